"""Operators whose names start with ``_contrib_``: ``mx.nd.contrib``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._functions import Namespace as _Namespace
from ._make import make as _make
from .control_flow import cond, foreach, isfinite, isinf, isnan, while_loop

__all__ = ["cond", "foreach", "isfinite", "isinf", "isnan", "while_loop"]

if TYPE_CHECKING:
    from ._signatures.contrib import *  # noqa: F403

_functions = _Namespace(__name__, "contrib", _make)


def __getattr__(name: str) -> Any:
    return _functions.find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_functions.names()})
