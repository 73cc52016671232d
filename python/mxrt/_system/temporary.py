"""Temporary folders and files, and the list of them for whoever ends the process."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator
from pathlib import Path

__all__ = ["file", "folder", "folder_of", "made", "new_folder", "new_name", "remove", "remove_all", "shown", "unpacked"]

_made: set[Path] = set()
# The archives that folders were unpacked from.
_unpacked: dict[Path, Path] = {}


def new_folder() -> Path:
    """Makes a folder that others cannot read, to be given to :func:`remove` later."""
    path = new_name()
    path.mkdir(mode=0o700)
    return path


def new_name() -> Path:
    """The name of a folder that somebody may make, to be given to :func:`remove` later."""
    # Here, as every command imports this module, and few make a folder: 10 ms.
    import tempfile

    path = Path(tempfile.gettempdir(), f"mxrt-{os.urandom(8).hex()}")
    # Listed before it is made: Ctrl-C may come between the two.
    _made.add(path)
    return path


def unpacked(path: Path, archive: Path) -> None:
    """Says which archive a folder was unpacked from, whose name :func:`shown` gives it."""
    _unpacked[path] = archive


def shown(text: str) -> str:
    """A text with the names of archives in place of the folders that they were unpacked into."""
    for path, archive in list(_unpacked.items()):
        text = text.replace(str(path), str(archive))
    return text


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that others cannot read, removed at the end of the block."""
    path = new_folder()
    try:
        yield path
    finally:
        remove(path)


@contextlib.contextmanager
def file(path: Path) -> Iterator[None]:
    """Lists a file that the block makes. At its end the file is removed, unless it was renamed."""
    _made.add(path)
    try:
        yield
    finally:
        remove(path)


def folder_of(owner: object) -> Path:
    """Makes a folder that others cannot read, removed when nothing refers to `owner` any longer."""
    path = new_folder()
    weakref.finalize(owner, remove, path)
    return path


def made() -> list[Path]:
    """The folders and files that were not removed yet."""
    return list(_made)


def remove(path: Path) -> None:
    """Removes a temporary folder or file; what cannot be removed stays."""
    if path.is_dir():
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
    _made.discard(path)
    _unpacked.pop(path, None)


def remove_all() -> None:
    """Removes all temporary folders and files of this process."""
    for path in made():
        remove(path)
