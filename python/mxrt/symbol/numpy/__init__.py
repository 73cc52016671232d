"""``mx.sym.np``: the functions of ``mx.np`` on symbols, and their class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import numpy as _np
from ...numpy import _call
from ..symbol import Group, load, load_json
from ._symbol import _Symbol, apply_np

__all__ = ["Group", "_Symbol", "apply_np", "linalg", "load", "load_json", "random"]


class _Space:
    """Functions of a module of ``mx.np``, whose results without an input are symbols too."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _symbolic(getattr(self._module, name))


def _symbolic(function: Any) -> Any:
    if isinstance(function, type) or not callable(function):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        with _call.creating_symbols():
            return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", "function")
    call.__doc__ = function.__doc__
    made: Callable[..., Any] = call
    return made


linalg: _Space = _Space(_np.linalg)
random: _Space = _Space(_np.random)


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name in ("array", "genfromtxt", "ndarray"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = _symbolic(getattr(_np, name))
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_np.__all__} - {"array", "genfromtxt", "ndarray"})
