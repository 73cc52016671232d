"""Where `mxrt serve` listens, and who may ask: options, and what is said of them."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import Any

from .bench.model import UsageError

__all__ = ["Places", "add_arguments", "settings_of", "warning"]


class Places:
    """Where a server listens, as it says it: what is spoken, and host and port, or a path."""

    def __init__(self, places: list[tuple[str, str, int | None]], tls: tuple[str, str] | None) -> None:
        self._places = places
        self._tls = tls

    def _first(self, speaks: str, tcp: bool) -> tuple[str, int] | None:
        of = ((where, port or 0) for kind, where, port in self._places if kind == speaks and (port is not None) == tcp)
        return next(of, None)

    @property
    def url(self) -> str | None:
        """Where HTTP is spoken over TCP."""
        found = self._first("http", tcp=True)
        return None if found is None else f"{'https' if self._tls else 'http'}://{_address(*found)}"

    @property
    def grpc(self) -> str | None:
        """Where gRPC is spoken, as its clients take it."""
        found = self._first("grpc", tcp=True)
        if found is not None:
            return _address(*found)
        found = self._first("grpc", tcp=False)
        return None if found is None else f"unix:{found[0]}"

    @property
    def said(self) -> str:
        """Where HTTP is spoken, for people."""
        found = self._first("http", tcp=False)
        return self.url or (found[0] if found else "no place of HTTP")

    @property
    def curl(self) -> tuple[str, str] | None:
        """Options of curl, and the address that it asks; None where HTTP is not spoken."""
        url, options = self.url, ""
        if url is None:
            found = self._first("http", tcp=False)
            if found is None:
                return None
            options = f" --unix-socket {shlex.quote(found[0])}"
            url = f"{'https' if self._tls else 'http'}://localhost"
        if self._tls:
            options += f" --cacert {shlex.quote(self._tls[0])}"
        return options, url


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1)")
    parser.add_argument(
        "--port", default="8000", help="port of HTTP, 0 for a free one, off for none (default 8000)", metavar="PORT"
    )
    parser.add_argument(
        "--grpc-port",
        metavar="PORT",
        help="port of gRPC, 0 for a free one, off for none (default: the one after --port, so 8001)",
    )
    parser.add_argument("--unix", metavar="PATH", help="Unix socket of HTTP")
    parser.add_argument("--grpc-unix", metavar="PATH", help="Unix socket of gRPC")
    parser.add_argument("--tls-certificate", metavar="FILE", help="certificates in PEM, which switch TLS on")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate, in PEM")
    parser.add_argument(
        "--tokens",
        metavar="FILE",
        help="bearer tokens, one a line: requests must have one of them (default: nobody is asked for one)",
    )


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """The options as ``Server`` takes them."""
    if (args.tls_certificate is None) != (args.tls_key is None):
        raise UsageError("TLS needs both --tls-certificate and --tls-key")
    tls = None if args.tls_certificate is None else (args.tls_certificate, args.tls_key)
    return {
        "host": args.host,
        "port": _port("--port", args.port),
        "grpc_port": "next" if args.grpc_port is None else _port("--grpc-port", args.grpc_port),
        "unix": args.unix,
        "grpc_unix": args.grpc_unix,
        "tls": tls,
        "tokens": args.tokens,
        # systemd names the process that its sockets are for.
        "inherited": os.environ.get("LISTEN_PID") == str(os.getpid()),
    }


def _port(option: str, text: str) -> int | None:
    if text == "off":
        return None
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise UsageError(f"{option} is {text}; expected a number from 0 to 65535, or off")
    return int(text)


def warning(settings: dict[str, Any]) -> str | None:
    """What is to be said where others can ask and nothing checks them."""
    host = settings["host"]
    tcp = settings["port"] is not None or settings["grpc_port"] is not None
    loopback = host in ("localhost", "::1") or host.startswith("127.")
    if loopback or not tcp or settings["tls"] or settings["tokens"] or settings["inherited"]:
        return None
    return (
        f"{host} can be reached by other machines, and nothing checks who asks: "
        "use --tokens and --tls-certificate, or a proxy"
    )
