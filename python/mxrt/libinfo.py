"""Paths of the library: ``mx.libinfo``."""

from __future__ import annotations

from . import _mxrt
from ._embedding import get_include

__all__ = ["find_include_path", "find_lib_path"]

__version__ = "1.9.1"
"""The version of MXNet whose interface this is."""


def find_lib_path(prefix: str = "libmxnet") -> list[str]:
    """The path of the shared library, in a list. There is one whatever the prefix."""
    return [str(_mxrt.__file__)]


def find_include_path() -> str:
    """The folder of the headers: those of MXNet's C interface, and mxrt's own."""
    return get_include()
