"""Operators on images, and what ``mx.image`` has: ``mx.npx.image``."""

from __future__ import annotations

import importlib
from typing import Any

from .. import _mxrt
from .._operators.functions import operator_names as _operator_names
from ._make import make as _make

__all__: list[str] = []

_PREFIX = "_npx__image_"


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        operator = _mxrt.get_operator(_PREFIX + name)
        if operator is not None:
            found = globals()[name] = _make(operator, name, __name__)
            return found
        # Read when needed: the first use of mx.np takes no time for it.
        images = importlib.import_module("mxrt.image")
        if hasattr(images, name):
            return getattr(images, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    operators = (n.removeprefix(_PREFIX) for n in _operator_names() if n.startswith(_PREFIX))
    return sorted({*globals(), *operators, *dir(importlib.import_module("mxrt.image"))})
