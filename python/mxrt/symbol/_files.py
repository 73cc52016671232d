"""Reading and writing symbol files, with errors that say what to do."""

from __future__ import annotations

import os
import tempfile

from .. import _mxrt
from ..base import MXNetDataError


def _advice(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "Check the path; it is relative to the directory the program runs in"
    if isinstance(error, IsADirectoryError):
        return "Name a file in that directory instead"
    if isinstance(error, PermissionError):
        return "Check the permissions of the file and of the directories above it"
    return "Check that the path names an ordinary file"


def _failed(fname: str, error: OSError) -> MXNetDataError:
    return MXNetDataError(f'Open "{fname}": {error.strerror}. {_advice(error)}')


def read(fname: str) -> str:
    """The text of a symbol file."""
    path = _path(fname)
    content = _mxrt.read_file(path)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MXNetDataError(
            f"'{path}' is not a symbol file: byte {error.start} is not UTF-8 text. Copy or download the file again"
        ) from None


def write(fname: str, text: str) -> None:
    """Writes a symbol file, whole or not at all."""
    path = _path(fname)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return
        folder = os.path.dirname(os.path.realpath(path))
        with tempfile.NamedTemporaryFile("w", dir=folder, encoding="utf-8", delete=False) as file:
            temporary = file.name
            file.write(text)
        try:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, os.path.realpath(path))
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise _failed(path, error) from None


def _path(fname: str) -> str:
    if not isinstance(fname, (str, os.PathLike)):
        raise TypeError("fname need to be string")
    path = os.fspath(fname)
    return path[len("file://") :] if path.startswith("file://") else path
