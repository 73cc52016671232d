"""Operators whose names start with ``_contrib_``: ``mx.sym.contrib``."""

from __future__ import annotations

from sys import modules as _modules
from typing import TYPE_CHECKING

from .._operators.functions import WholeModule as _WholeModule
from .._operators.functions import module_functions as _module_functions
from ._make import make as _make
from .control_flow import cond, foreach, while_loop
from .zipfian import rand_zipfian

__all__ = ["cond", "foreach", "rand_zipfian", "while_loop"]

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._signatures.contrib import *  # noqa: F403

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = _module_functions(globals(), "contrib", _make)
_modules[__name__].__class__ = _WholeModule
