"""Reading and writing symbol files, with errors that say what to do."""

from __future__ import annotations

import os

from .. import _mxrt
from ..base import MXNetDataError

# How a list of arrays begins.
_PARAMS_MAGIC = (0x112).to_bytes(8, "little")


def read(fname: str) -> str:
    """The text of a symbol file."""
    path = _path(fname)
    content = _mxrt.read_file(path)
    if content.startswith(_PARAMS_MAGIC):
        raise MXNetDataError(
            f"'{path}' is not a symbol file but a parameter file: the two are in each other's place. Pass the one that "
            "ends in -symbol.json here"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MXNetDataError(
            f"'{path}' is not a symbol file: byte {error.start} is not UTF-8 text. Copy or download the file again"
        ) from None


def write(fname: str, text: str) -> None:
    """Writes a symbol file, whole or not at all."""
    _mxrt.write_file(_path(fname), text.encode("utf-8"))


def _path(fname: str) -> str:
    if not isinstance(fname, (str, os.PathLike)):
        raise TypeError("fname need to be string")
    path = os.fspath(fname)
    return path[len("file://") :] if path.startswith("file://") else path
