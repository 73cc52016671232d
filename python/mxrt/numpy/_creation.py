"""Functions of ``mx.np`` that make arrays."""

from __future__ import annotations

from typing import Any

import numpy as onp

from .. import _mxrt
from .._scopes.np_mode import ShapeScope
from .._values.dtypes import dtype_name
from ..base import is_number
from ..context import Context
from ..ndarray import NDArray
from ..ndarray.ndarray import _empty
from ._call import call, computed_in_python, create, makes_symbols
from .multiarray import array, checked_axes_shape, ndarray

__all__ = [
    "arange",
    "blackman",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "genfromtxt",
    "hamming",
    "hanning",
    "identity",
    "indices",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


# Element types of the operators that make arrays.
_DTYPES = frozenset("bool float16 float32 float64 int32 int64 int8 uint8".split())


def _only_c(order: str) -> None:
    if order != "C":
        raise NotImplementedError(f"order {order} is not supported: arrays are stored in C order")


def empty(shape: Any, dtype: Any = onp.float32, order: str = "C", ctx: Context | None = None) -> ndarray:
    """A new array for values that are written later. Its elements are zero."""
    _only_c(order)
    return ndarray(_empty(checked_axes_shape(shape, "empty"), ctx, dtype_name(dtype)))


def zeros(shape: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None) -> Any:
    """An array of zeros, float32 unless `dtype` says otherwise."""
    _only_c(order)
    extents, name = checked_axes_shape(shape, "zeros"), dtype_name(dtype)
    if name in _DTYPES and not makes_symbols():
        return ndarray(_empty(extents, ctx, name))
    return create("_npi_zeros", {"shape": extents, "dtype": name}, ctx)


def ones(shape: Any, dtype: Any = onp.float32, order: str = "C", ctx: Context | None = None) -> Any:
    """An array of ones, float32 unless `dtype` says otherwise."""
    _only_c(order)
    return create("_npi_ones", {"shape": checked_axes_shape(shape, "ones"), "dtype": dtype_name(dtype)}, ctx)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, out: Any = None
) -> Any:
    """An array of one value, or of an array repeated.

    It is float32, or bool for a value of bool, unless `dtype` says otherwise.
    """
    _only_c(order)
    if isinstance(fill_value, (NDArray, _mxrt.SymbolBase)):
        made = call("_npi_broadcast_to", (fill_value,), {"shape": checked_axes_shape(shape, "full")})
        return made if dtype is None else made.astype(dtype)
    if isinstance(fill_value, (bool, onp.bool_)):
        fill_value, dtype = int(fill_value), "bool" if dtype is None else dtype
    attrs = {"shape": checked_axes_shape(shape, "full"), "value": fill_value, "dtype": dtype_name(dtype)}
    # An operator that mx.nd has too: of it, () and 0 are shapes with this switch alone.
    with ShapeScope(True):
        return create("_npi_full", attrs, ctx, out)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, out: Any = None
) -> Any:
    """An array of one value, with the shape and, without another, the dtype of another array."""
    _only_c(order)
    value = int(fill_value) if isinstance(fill_value, (bool, onp.bool_)) else fill_value
    attrs: dict[str, Any] = {"fill_value": value}
    if dtype is not None:
        attrs["dtype"] = dtype_name(dtype)
    return call("_npi_full_like", (a,), attrs, out)


def zeros_like(a: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, out: Any = None) -> Any:
    """An array of zeros, with the shape and, without another, the dtype of another array."""
    return full_like(a, 0, dtype, order, ctx, out)


def ones_like(a: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, out: Any = None) -> Any:
    """An array of ones, with the shape and, without another, the dtype of another array."""
    return full_like(a, 1, dtype, order, ctx, out)


def empty_like(prototype: Any, dtype: Any = None, order: str = "C", subok: bool = False, shape: Any = None) -> Any:
    """An array for values that are written later, like another one. Its elements are zero."""
    _only_c(order)
    if subok:
        raise NotImplementedError("Creating array by using sub-class is not supported at this moment")
    if shape is not None:
        raise NotImplementedError("Assigning new shape is not supported at this moment")
    if isinstance(prototype, _mxrt.SymbolBase):
        name = "None" if dtype is None else dtype_name(dtype)
        attrs = {"dtype": name, "order": order, "subok": subok, "shape": shape}
        return computed_in_python("empty_like_fallback", (prototype,), attrs)
    return zeros_like(prototype, dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, ctx: Context | None = None) -> Any:
    """Numbers from `start` (0 if only one bound is given) up to, but excluding, `stop`; float32
    unless `dtype` says otherwise.
    """
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if start is None or stop is None:
        raise ValueError("start and stop cannot be both None")
    if step == 0:
        raise ZeroDivisionError("step cannot be 0")
    return create("_npi_arange", {"start": start, "stop": stop, "step": step, "dtype": dtype_name(dtype)}, ctx)


def _only_numbers(name: str, start: Any, stop: Any, axis: int) -> None:
    if not is_number(start) or not is_number(stop):
        raise NotImplementedError(f"{name}: start and stop are numbers, no arrays")
    if axis != 0:
        raise NotImplementedError("the function only support axis 0")


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    ctx: Context | None = None,
) -> Any:
    """Numbers at equal distances; the distance too with ``retstep=True``."""
    _only_numbers("linspace", start, stop, axis)
    attrs = {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "dtype": dtype_name(dtype)}
    made = create("_npi_linspace", attrs, ctx)
    return (made, (stop - start) / (num - 1)) if retstep else made


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    axis: int = 0,
    ctx: Context | None = None,
) -> Any:
    """Powers of `base` whose exponents are at equal distances."""
    _only_numbers("logspace", start, stop, axis)
    attrs = {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "base": base, "dtype": dtype_name(dtype)}
    return create("_npi_logspace", attrs, ctx)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = onp.float32, **kwargs: Any) -> Any:
    """A matrix with ones on diagonal `k`, zeros elsewhere."""
    ctx = kwargs.pop("ctx", None)
    if "order" in kwargs:
        raise NotImplementedError("function eye does not support parameter order")
    if kwargs:
        raise TypeError(f"eye() got an unexpected keyword argument '{next(iter(kwargs))}'")
    return create("_npi_eye", {"N": N, "M": "None" if M is None else M, "k": k, "dtype": dtype_name(dtype)}, ctx)


def identity(n: int, dtype: Any = None, ctx: Context | None = None) -> Any:
    """A square matrix with ones on the main diagonal, zeros elsewhere."""
    if not isinstance(n, int):
        raise TypeError("Input 'n' should be an integer")
    if n < 0:
        raise ValueError("Input 'n' cannot be negative")
    return create("_npi_identity", {"shape": (n, n), "dtype": dtype_name(dtype)}, ctx)


def indices(dimensions: Any, dtype: Any = onp.int32, ctx: Context | None = None) -> Any:
    """The indices of a grid, an axis of them first."""
    if not isinstance(dimensions, (tuple, list)):
        raise ValueError("The dimensions must be sequence of ints")
    return create("_npi_indices", {"dimensions": tuple(dimensions), "dtype": dtype_name(dtype)}, ctx)


def _window(operator: str, M: int, dtype: Any, ctx: Context | None) -> Any:
    return create(operator, {"M": M, "dtype": dtype_name(dtype)}, ctx)


def hanning(M: int, dtype: Any = onp.float32, ctx: Context | None = None) -> Any:
    """The Hann window with `M` points."""
    return _window("_npi_hanning", M, dtype, ctx)


def hamming(M: int, dtype: Any = onp.float32, ctx: Context | None = None) -> Any:
    """The Hamming window with `M` points."""
    return _window("_npi_hamming", M, dtype, ctx)


def blackman(M: int, dtype: Any = onp.float32, ctx: Context | None = None) -> Any:
    """The Blackman window with `M` points."""
    return _window("_npi_blackman", M, dtype, ctx)


def genfromtxt(*args: Any, **kwargs: Any) -> Any:
    """The numbers of a text file, as ``numpy.genfromtxt`` reads it."""
    ctx = kwargs.pop("ctx", None)
    made = onp.genfromtxt(*args, **kwargs)
    return array(made, dtype=made.dtype, ctx=ctx)
