"""Operators whose names start with an underscore: ``mx.sym._internal``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._operators.functions import module_functions as _module_functions
from ._make import make as _make

if TYPE_CHECKING:
    from .._signatures.internal import *  # noqa: F403

__getattr__, __dir__ = _module_functions(globals(), "_internal", _make)
