"""Operators on images: ``mx.sym.image``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._functions import Namespace as _Namespace
from ._make import make as _make

if TYPE_CHECKING:
    from ._signatures.image import *  # noqa: F403

_functions = _Namespace(__name__, "image", _make)


def __getattr__(name: str) -> Any:
    return _functions.find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_functions.names()})
