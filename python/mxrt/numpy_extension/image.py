"""Operators on images: ``mx.npx.image``."""

from __future__ import annotations

from typing import Any

from .. import _mxrt
from .._functions import operator_names as _operator_names
from ._make import make as _make

__all__: list[str] = []

_PREFIX = "_npx__image_"


def __getattr__(name: str) -> Any:
    operator = None if name.startswith("_") else _mxrt.get_operator(_PREFIX + name)
    if operator is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'; mx.image has the functions on images")
    found = globals()[name] = _make(operator, name, __name__)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *(n.removeprefix(_PREFIX) for n in _operator_names() if n.startswith(_PREFIX))})
