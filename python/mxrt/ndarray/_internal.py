"""Operators whose names start with an underscore: ``mx.nd._internal``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._operators.functions import module_functions as _module_functions
from ._images import _cvimdecode, _cvimread, _imdecode  # noqa: F401
from ._make import make as _make

if TYPE_CHECKING:
    # The functions above take what `mx.image` does, bytes too.
    from .._signatures.internal import *  # type: ignore[assignment]  # noqa: F403

__getattr__, __dir__ = _module_functions(globals(), "_internal", _make)
