"""Addresses of a running server, in the forms in which `mxrt serve` prints them."""

from __future__ import annotations

import os
import shlex

__all__ = ["Places"]


class Places:
    """Addresses on which a server listens: each has a protocol, and a host and port or a path."""

    def __init__(
        self,
        places: list[tuple[str, str, int | None]],
        certificate: str | os.PathLike[str] | None,
        tokens: str | os.PathLike[str] | None = None,
    ) -> None:
        self._places = places
        self._certificate = certificate
        self._tokens = tokens

    def _first(self, speaks: str, tcp: bool) -> tuple[str, int] | None:
        of = ((where, port or 0) for kind, where, port in self._places if kind == speaks and (port is not None) == tcp)
        return next(of, None)

    @property
    def url(self) -> str | None:
        """The URL of HTTP over TCP, or None if the server has no such port."""
        found = self._first("http", tcp=True)
        return None if found is None else f"{'https' if self._certificate else 'http'}://{_address(*found)}"

    @property
    def admin(self) -> str | None:
        """The URL of the port for operators, or None if the server has no such port."""
        found = self._first("admin", tcp=True)
        return None if found is None else f"{'https' if self._certificate else 'http'}://{_address(*found)}"

    @property
    def grpc(self) -> str | None:
        """The address of gRPC in the form that its clients take, or None. TCP is preferred."""
        found = self._first("grpc", tcp=True)
        if found is not None:
            return _address(*found)
        found = self._first("grpc", tcp=False)
        return None if found is None else f"unix:{found[0]}"

    @property
    def said(self) -> str:
        """The address of HTTP for messages: the URL, or the path of the Unix socket."""
        found = self._first("http", tcp=False)
        return self.url or (found[0] if found else "no place of HTTP")

    @property
    def curl(self) -> tuple[str, str] | None:
        """Options of curl and the URL for it, or None if the server does not speak HTTP."""
        url, options = self.url, ""
        if url is None:
            found = self._first("http", tcp=False)
            if found is None:
                return None
            options = f" --unix-socket {shlex.quote(found[0])}"
            url = f"{'https' if self._certificate else 'http'}://localhost"
        if self._certificate:
            options += f" --cacert {shlex.quote(os.fspath(self._certificate))}"
        if self._tokens:
            # The first of the file; a token itself would stay in logs.
            first = f"awk '!/^[[:space:]]*(#|$)/ {{ print $1; exit }}' {shlex.quote(os.path.abspath(self._tokens))}"
            options += f' -H "Authorization: Bearer $({first})"'
        return options, url


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
