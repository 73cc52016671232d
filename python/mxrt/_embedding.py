"""The folders of headers and library for extensions in C and C++."""

from __future__ import annotations

from pathlib import Path

from . import _mxrt


def get_include() -> str:
    """The folder with the headers ``mxrt.h``, ``mxrt.hpp`` and those of MXNet's C interface."""
    return str(Path(__file__).parent / "include")


def get_library() -> str:
    """The folder with the library, whose name for linkers is ``mxrt``.

    It is the module that ``import mxrt`` loads, so that an extension has the same engine, and the
    memory limit and random numbers of Python programs. Extensions are linked with
    ``-L<folder> -lmxrt -Wl,-rpath,<folder>``. Programs that run no Python link to the library of
    ``make install-c``: the module needs Python's symbols.
    """
    return str(Path(_mxrt.__file__).parent)
