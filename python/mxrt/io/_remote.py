"""Files that are not local, opened by fsspec: local copies of them."""

from __future__ import annotations

import shutil
from pathlib import Path

from .._system import temporary
from ..base import MXNetDataError, MXNetNotImplementedError

__all__ = ["LocalCopies"]


class LocalCopies:
    """A folder with copies of files that were fetched; it goes with this object."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._count = 0

    def paths(self, text: str) -> str:
        """Paths with ``;`` between, those like ``s3://bucket/name`` replaced by local copies."""
        return ";".join(self._path(path) for path in text.split(";"))

    def _path(self, path: str) -> str:
        scheme, separator, _ = path.strip().partition("://")
        if not separator or scheme == "file":
            return path
        try:
            import fsspec  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise MXNetNotImplementedError(
                f"'{path}': only local files can be read, not {scheme}://, unless the package fsspec is installed"
            ) from None
        if self.folder is None:
            self.folder = temporary.folder_of(self)
        self._count += 1
        copy = self.folder / f"{self._count}-{path.rstrip('/').rpartition('/')[2]}"
        try:
            with fsspec.open(path.strip(), "rb") as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except Exception as error:
            raise MXNetDataError(f"'{path}' cannot be fetched: {type(error).__name__}: {error}") from error
        return str(copy)
