"""Symbols of constant arrays, and functions of two operands that may be symbols or numbers."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from .._values.dtypes import dtype_name
from .._values.extents import extents
from ._operators import apply
from .symbol import Symbol

__all__ = [
    "arange",
    "eye",
    "full",
    "histogram",
    "hypot",
    "linspace",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "split_v2",
    "zeros",
]


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in extents(shape))


def zeros(shape: Any, dtype: Any = None, name: str | None = None, **kwargs: Any) -> Symbol:
    """An array of zeros."""
    return apply("_zeros", "_zeros", [], {"shape": _shape(shape), "dtype": dtype_name(dtype), **kwargs}, name)


def ones(shape: Any, dtype: Any = None, name: str | None = None, **kwargs: Any) -> Symbol:
    """An array of ones."""
    return apply("_ones", "_ones", [], {"shape": _shape(shape), "dtype": dtype_name(dtype), **kwargs}, name)


def full(shape: Any, val: float, dtype: Any = None, name: str | None = None, **kwargs: Any) -> Symbol:
    """An array with one value everywhere: a number, or the only one of an array."""
    val = val.item() if isinstance(val, np.ndarray) else val
    attrs = {"shape": _shape(shape), "dtype": dtype_name(dtype), "value": float(val), **kwargs}
    return apply("_full", "_full", [], attrs, name)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """Numbers from `start` (0 when only one bound is given) up to, but without, `stop`."""
    attrs = {
        "start": start,
        "stop": stop,
        "step": step,
        "repeat": repeat,
        "infer_range": infer_range,
        "dtype": dtype_name(dtype),
    }
    return apply("_arange", "_arange", [], attrs, name)


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None, dtype: Any = None
) -> Symbol:
    """`num` numbers at equal distances."""
    attrs = {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "dtype": dtype_name(dtype)}
    return apply("_linspace", "_linspace", [], attrs, name)


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, name: str | None = None, **kwargs: Any) -> Symbol:
    """Ones on a diagonal, zeros elsewhere."""
    return apply("_eye", "_eye", [], {"N": N, "M": M, "k": k, "dtype": dtype_name(dtype), **kwargs}, name)


def histogram(a: Symbol, bins: Any = 10, range: Any = None, name: str | None = None) -> Symbol:
    """Counts of values per bin, and the edges of the bins."""
    if isinstance(bins, Symbol):
        return apply("_histogram", "_histogram", [("data", a), ("bins", bins)], {}, name)
    if range is None:
        raise ValueError("null range is not supported in symbol mode")
    return apply("_histogram", "_histogram", [("data", a)], {"bin_cnt": int(bins), "range": tuple(range)}, name)


def split_v2(ary: Symbol, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Symbol:
    """Splits an array into equal parts, or before the given positions."""
    if isinstance(indices_or_sections, (int, np.integer)):
        attrs: dict[str, Any] = {"indices": "[]", "sections": int(indices_or_sections)}
    elif isinstance(indices_or_sections, (tuple, list)):
        attrs = {"indices": str([0, *indices_or_sections]), "sections": 0}
    else:
        raise ValueError("indices_or_sections must either int or tuple of ints")
    return apply("_split_v2", "_split_v2", [ary], {"axis": axis, "squeeze_axis": squeeze_axis, **attrs})


def _two(left: Any, right: Any, symbols: str, number: str, reflected: str, plain: Callable[[Any, Any], Any]) -> Any:
    """Applies the operator that fits the operands; names follow MXNet: ``_maximum0``,
    ``_maximumscalar0``.
    """
    if isinstance(left, Symbol) and isinstance(right, Symbol):
        return apply(symbols, symbols, [left, right], {})
    if isinstance(left, Symbol) and isinstance(right, Number):
        return apply(number, number.replace("_scalar", "scalar"), [left], {"scalar": right})
    if isinstance(right, Symbol) and isinstance(left, Number):
        return apply(reflected, reflected.replace("_scalar", "scalar"), [right], {"scalar": left})
    if isinstance(left, Number) and isinstance(right, Number):
        return plain(left, right)
    raise TypeError(f"types ({type(left)}, {type(right)}) not supported")


def pow(base: Any, exp: Any) -> Any:
    """The power of two symbols or numbers."""
    return _two(base, exp, "_power", "_power_scalar", "_rpower_scalar", lambda a, b: a**b)


power = pow


def maximum(left: Any, right: Any) -> Any:
    """The larger one of two symbols or numbers."""
    return _two(left, right, "_maximum", "_maximum_scalar", "_maximum_scalar", max)


def minimum(left: Any, right: Any) -> Any:
    """The smaller one of two symbols or numbers."""
    return _two(left, right, "_minimum", "_minimum_scalar", "_minimum_scalar", min)


def hypot(left: Any, right: Any) -> Any:
    """The square root of the sum of both squares."""
    return _two(left, right, "_hypot", "_hypot_scalar", "_hypot_scalar", lambda a, b: float(np.hypot(a, b)))
