"""Saving and loading arrays."""

from __future__ import annotations

import os
from typing import Any

from .. import _mxrt
from .ndarray import NDArray

__all__ = ["load", "load_frombuffer", "save"]


def _path(fname: Any) -> str:
    if not isinstance(fname, (str, os.PathLike)):
        raise TypeError("fname required to be a string")
    path = os.fspath(fname)
    return path[len("file://") :] if path.startswith("file://") else path


def load(fname: str) -> Any:
    """Loads the arrays of a file in any version of MXNet's format.

    Returns a dictionary if the arrays have names, else a list. Raises
    :class:`mxrt.base.MXNetDataError` for a damaged file.
    """
    return _mxrt.load_arrays(_path(fname))


def load_frombuffer(buf: bytes) -> Any:
    """Loads the arrays of a file's content, as :func:`load` does."""
    if not isinstance(buf, (str, bytes, bytearray, memoryview)):
        raise TypeError("load_frombuffer required a string or bytes buffer")
    return _mxrt.load_buffer(buf.encode() if isinstance(buf, str) else bytes(buf))


def save(fname: str, data: Any) -> None:
    """Saves an array, a list of arrays, or a dictionary of arrays by name.

    The file appears when it is complete, or not at all. Waits for the arrays, and raises the
    failure of an array that failed.
    """
    if isinstance(data, NDArray):
        data = [data]
    if isinstance(data, dict):
        names, arrays = list(data), list(data.values())
        if any(not isinstance(name, str) for name in names):
            raise TypeError("save only accept dict str->NDArray or list of NDArray")
    elif isinstance(data, (list, tuple)):
        names, arrays = [], list(data)
    else:
        raise ValueError("data needs to either be a NDArray, dict of str, NDArray pairs or a list of NDarrays.")
    if any(not isinstance(array, NDArray) for array in arrays):
        raise TypeError("save only accept dict str->NDArray or list of NDArray")
    _mxrt.save_arrays(_path(fname), names if isinstance(data, dict) and names else None, arrays)
