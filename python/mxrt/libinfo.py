"""Paths of the library, and folders for extensions in C and C++: ``mx.libinfo``."""

from __future__ import annotations

import os

from . import _mxrt

__all__ = ["find_include_path", "find_lib_path", "get_include", "get_library"]

__version__ = "1.9.1"
"""The version of MXNet whose interface this is."""


def find_lib_path(prefix: str = "libmxnet") -> list[str]:
    """The path of the shared library, in a list. There is one whatever the prefix."""
    return [str(_mxrt.__file__)]


def find_include_path() -> str:
    """The folder of the headers: those of MXNet's C interface, and mxrt's own."""
    return get_include()


def get_include() -> str:
    """The folder with the headers ``mxrt.h``, ``mxrt.hpp`` and those of MXNet's C interface."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def get_library() -> str:
    """The folder with the library, whose name for linkers is ``mxrt``.

    It is the module that ``import mxrt`` loads, so that an extension has the same engine, and the
    memory limit and random numbers of Python programs. Extensions are linked with
    ``-L<folder> -lmxrt -Wl,-rpath,<folder>``. Programs that run no Python link to the library of
    ``make install-c``: the module needs Python's symbols.
    """
    return os.path.dirname(os.path.abspath(_mxrt.__file__))
