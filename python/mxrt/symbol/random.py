"""Symbols of random arrays: ``mx.sym.random``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._functions import module_functions as _module_functions
from ..base import dtype_name, is_number
from ._make import make as _make
from .symbol import Symbol, apply

__all__ = ["normal", "uniform"]

if TYPE_CHECKING:
    from ._signatures.random import *  # noqa: F403

__getattr__, __dir__ = _module_functions(globals(), "random", _make)


def _sample(kind: str, parameters: dict[str, Any], shape: Any, dtype: Any, kwargs: dict[str, Any]) -> Symbol:
    attrs: dict[str, Any] = {} if dtype is None else {"dtype": dtype_name(dtype)}
    if shape is not None:
        attrs["shape"] = (shape,) if isinstance(shape, int) else tuple(shape)
    name = kwargs.pop("name", None)
    values = list(parameters.values())
    if all(isinstance(v, Symbol) for v in values):
        return apply(f"_sample_{kind}", f"_sample_{kind}", values, {**attrs, **kwargs}, name)
    if not all(is_number(v) for v in values):
        raise ValueError("Distribution parameters must all be Symbols, or all be numbers.")
    return apply(f"_random_{kind}", f"_random_{kind}", [], {**parameters, **attrs, **kwargs}, name)


def uniform(low: Any = 0, high: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Evenly distributed between `low` and `high`."""
    return _sample("uniform", {"low": low, "high": high}, shape, dtype, kwargs)


def normal(loc: Any = 0, scale: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Normally distributed around `loc` with deviation `scale`."""
    return _sample("normal", {"loc": loc, "scale": scale}, shape, dtype, kwargs)
