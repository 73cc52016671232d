"""The folders of headers and library for extensions in C and C++."""

from __future__ import annotations

import os

from . import _mxrt


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
