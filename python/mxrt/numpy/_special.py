"""Functions of ``mx.np`` whose operator or attributes depend on the kind of their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as onp

from .. import _mxrt
from .._values.extents import extents
from ..base import is_number
from ._call import call, check_ufunc_options, computed_in_python, is_tensor
from .multiarray import array, ndarray

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "append",
    "argsort",
    "around",
    "average",
    "bincount",
    "broadcast_to",
    "clip",
    "delete",
    "diag_indices_from",
    "diff",
    "ediff1d",
    "einsum",
    "flip",
    "fliplr",
    "flipud",
    "histogram",
    "inner",
    "insert",
    "may_share_memory",
    "nan_to_num",
    "nonzero",
    "outer",
    "pad",
    "percentile",
    "polyval",
    "quantile",
    "ravel",
    "resize",
    "round",
    "round_",
    "shape",
    "shares_memory",
    "sort",
    "take",
    "tensordot",
    "tile",
    "unique",
    "unravel_index",
    "vdot",
    "where",
]


def shape(a: Any) -> tuple[int, ...]:
    """The extents of an array."""
    return a.shape  # type: ignore[no-any-return]


def broadcast_to(array: Any, shape: Any) -> Any:
    """An array, or a number, repeated to a larger shape."""
    if is_number(array):
        from ._creation import full

        return full(shape, array)
    return call("_npi_broadcast_to", (array,), {"shape": extents(shape)})


# ---- rounding and limits -------------------------------------------------------------------------


def around(x: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    """The elements rounded to a number of decimals; halves go to the even neighbour."""
    check_ufunc_options("around", kwargs)
    if is_number(x):
        return onp.around(x, decimals)
    return call("_npi_around", (x,), {"decimals": decimals}, out)


round: Callable[..., Any] = around
round_: Callable[..., Any] = around


def clip(a: Any, a_min: Any, a_max: Any, out: Any = None) -> Any:
    """The elements limited to a range; None leaves a side open. ValueError if both are None."""
    if is_number(a):
        return onp.clip(a, a_min, a_max)
    if a_min is None and a_max is None:
        raise ValueError("array_clip: must set either max or min")
    low = float("-inf") if a_min is None else a_min
    high = float("inf") if a_max is None else a_max
    return call("_npi_clip", (a,), {"a_min": low, "a_max": high}, out)


def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None, **kwargs: Any
) -> Any:
    """The elements with numbers in the place of NaN and infinities; in place with
    ``copy=False``.
    """
    if is_number(x):
        return onp.nan_to_num(x, copy, nan, posinf, neginf)
    if isinstance(x, ndarray) and x.dtype.kind in "iub":
        return x
    attrs = {"copy": copy, "nan": nan}
    attrs.update({key: value for key, value in (("posinf", posinf), ("neginf", neginf)) if value is not None})
    return call("_npi_nan_to_num", (x,), attrs, None if copy else x)


# ---- order ---------------------------------------------------------------------------------------


def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """The indices, int64, that sort the array along an axis; `kind` is ignored."""
    _no_order(order)
    return call("_npi_argsort", (a,), {"axis": _axis(axis), "is_ascend": True, "dtype": "int64"})


def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """A sorted copy along an axis; `kind` is ignored."""
    _no_order(order)
    return call("_npi_sort", (a,), {"axis": _axis(axis), "is_ascend": True})


def _no_order(order: Any) -> None:
    if order is not None:
        raise NotImplementedError("order not supported here")


def _axis(axis: int | None) -> Any:
    return "None" if axis is None else axis


def flip(m: Any, axis: Any = None, out: Any = None) -> Any:
    """The elements in reverse order along axes; along all without any."""
    if is_number(m):
        return onp.flip(m, axis)
    return call("_npi_flip", (m,), {"axis": _axis(axis)}, out)


def flipud(m: Any) -> Any:
    """The rows in reverse order."""
    return flip(m, 0)


def fliplr(m: Any) -> Any:
    """The columns in reverse order."""
    return flip(m, 1)


# ---- selection -----------------------------------------------------------------------------------


def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise", out: Any = None) -> Any:
    """The elements at these indices along an axis; of the flattened array without one.

    Indices out of range are an error (``raise``), limited (``clip``) or counted round (``wrap``).
    """
    if mode not in ("wrap", "clip", "raise"):
        raise NotImplementedError(f"function take does not support mode '{mode}'")
    source = ravel(a) if axis is None else a
    if isinstance(source, ndarray) and not isinstance(indices, ndarray) and not is_tensor(indices):
        indices = array(indices, dtype="int64", ctx=source.context)
    return call("_npi_take", (source, indices), {"axis": 0 if axis is None else axis, "mode": mode}, out)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of `x` where a condition holds, else of `y`; with the condition alone the indices
    where it holds.
    """
    if x is None and y is None:
        return nonzero(condition)
    if is_number(condition):
        return x if condition != 0 else y
    if is_number(x) and is_number(y):
        return call("_npi_where_scalar2", (condition,), {"x": float(x), "y": float(y)})
    if is_number(x):
        return call("_npi_where_lscalar", (condition, y), {"scalar": float(x)})
    if is_number(y):
        return call("_npi_where_rscalar", (condition, x), {"scalar": float(y)})
    return call("_npi_where", (condition, x, y))


def nonzero(a: Any) -> Any:
    """The indices of the elements that are not 0: an int64 array for each axis."""
    if isinstance(a, _mxrt.SymbolBase):
        raise TypeError(
            "nonzero: a symbol has no number of axes yet; use npx.nonzero(x), which has a row for each element"
        )
    found = call("_npx_nonzero", (a,)).transpose()
    return tuple(found[axis] for axis in range(len(found)))


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """The different elements, sorted, and on request where each is first, which one each element
    is, and how often each occurs.
    """
    attrs = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    made = call("_npi_unique", (ar,), attrs if axis is None else {**attrs, "axis": axis})
    return tuple(made) if isinstance(ar, ndarray) and isinstance(made, list) else made


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """The array without the elements at an index, a slice or an array of indices."""
    attrs = {} if axis is None else {"axis": axis}
    if isinstance(obj, slice):
        return call("_npi_delete", (arr,), {**_slice(obj), **attrs})
    if isinstance(obj, (int, onp.integer)):
        return call("_npi_delete", (arr,), {"int_ind": int(obj), **attrs})
    if is_tensor(obj):
        return call("_npi_delete", (arr, obj), attrs)
    raise TypeError(f"'obj' can not support type {type(obj)}; give an integer, a slice or an array of mx.np")


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """The array with values inserted before an index, a slice or an array of indices."""
    attrs: dict[str, Any] = {} if axis is None else {"axis": axis}
    if not is_tensor(arr):
        raise TypeError(f"'arr' can not support type {type(arr)}; give an array of mx.np")
    inputs: tuple[Any, ...] = (arr, values)
    if is_number(values):
        inputs, attrs = (arr,), {**attrs, "val": values}
    elif not is_tensor(values):
        raise TypeError(f"'values' can not support type {type(values)}; give a number or an array of mx.np")
    if isinstance(obj, slice):
        return call("_npi_insert_slice", inputs, {**attrs, **_slice(obj)})
    if isinstance(obj, (int, onp.integer)):
        return call("_npi_insert_scalar", inputs, {**attrs, "int_ind": int(obj)})
    if is_tensor(obj):
        return call("_npi_insert_tensor", (*inputs, obj), attrs)
    raise TypeError(f"'obj' can not support type {type(obj)}; give an integer, a slice or an array of mx.np")


def _slice(part: slice) -> dict[str, Any]:
    given = {"start": part.start, "stop": part.stop, "step": 1 if part.step is None else part.step}
    return {key: value for key, value in given.items() if value is not None}


def diag_indices_from(arr: Any) -> Any:
    """The indices of the main diagonal, an array for each axis; of a symbol in one symbol."""
    found = call("_npi_diag_indices_from", (arr,))
    return tuple(found[axis] for axis in range(len(found))) if isinstance(found, ndarray) else found


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Flat indices as a tuple of indices along each axis of a shape."""
    if order != "C":
        raise NotImplementedError("Do not support column-major (Fortran-style) order at this moment")
    if is_number(indices):
        return onp.unravel_index(indices, shape)
    if isinstance(indices, _mxrt.SymbolBase):
        return computed_in_python("unravel_index_fallback", (indices,), {"shape": shape})
    found = onp.unravel_index(_host("unravel_index", indices), shape)
    return tuple(array(one, dtype=indices.dtype, ctx=indices.context) for one in found)


def _host(name: str, value: Any) -> onp.ndarray[Any, Any]:
    """The value of an array, for a function that NumPy computes; refuses symbols."""
    if not isinstance(value, ndarray):
        raise TypeError(f"{name}: type {type(value)} not supported: expected an array of mx.np with a value")
    return value.asnumpy()


def resize(a: Any, new_shape: Any) -> Any:
    """An array of a shape of any size, filled with the elements, repeated as needed. Waits."""
    if isinstance(a, _mxrt.SymbolBase):
        return computed_in_python("resize_fallback", (a,), {"new_shape": new_shape})
    made = onp.resize(_host("resize", a), new_shape)
    return array(made, ctx=a.context)


# ---- shapes and joining --------------------------------------------------------------------------


def ravel(x: Any, order: str = "C") -> Any:
    """The elements in one axis."""
    if order != "C":
        raise NotImplementedError(f"order {order} is not supported")
    if is_number(x):
        return onp.reshape(x, -1)
    return call("_npx_reshape", (x,), {"newshape": (-1,)})


def tile(A: Any, reps: Any) -> Any:
    """The array repeated along its axes."""
    if is_number(A):
        return onp.tile(A, reps)
    return call("_npi_tile", (A,), {"reps": extents(reps)})


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Two arrays joined along an axis; flattened without one."""
    return call("_npi_concatenate", (arr, values), {"axis": _axis(axis), "num_args": 2})


def pad(x: Any, pad_width: Any = None, mode: Any = "constant", **kwargs: Any) -> Any:
    """The array with elements added at both ends of each axis.

    `mode` is ``constant`` (with ``constant_values``), ``edge``, ``reflect``, ``symmetric``,
    ``maximum`` or ``minimum``.
    """
    if onp.asarray(pad_width).dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    if not isinstance(pad_width, tuple):
        raise TypeError("`pad_width` must be tuple.")
    known = {
        "constant": "constant_values",
        "edge": "",
        "maximum": "stat_length",
        "minimum": "stat_length",
        "reflect": "reflect_type",
        "symmetric": "reflect_type",
    }
    if not isinstance(mode, str) or mode not in known:
        raise ValueError(f"mode {{{mode!r}}} is not supported; known: {', '.join(known)}")
    for key, value in kwargs.items():
        if key != known[mode]:
            raise ValueError(f"unsupported keyword arguments for mode '{mode}': {{{key!r}}}")
        if key != "constant_values" and value not in ("even", None):
            raise ValueError(f"unsupported {key} '{value}'")
    attrs: dict[str, Any] = {"pad_width": pad_width, "mode": mode}
    if mode == "constant":
        value = kwargs.get("constant_values", 0)
        if isinstance(value, tuple):
            raise TypeError("unsupported constant_values type: {'tuple'}.")
        attrs["constant_value"] = value
    return call("_npi_pad", (x,), attrs)


# ---- products ------------------------------------------------------------------------------------


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The sum of products over axes: a number of them, or two lists."""
    if isinstance(axes, (int, onp.integer)):
        return call("_npi_tensordot_int_axes", (a, b), {"axes": int(axes)})
    if len(axes) != 2:
        raise ValueError("Axes must consist of two arrays.")
    summed = [extents(part) for part in axes]
    if len(summed[0]) != len(summed[1]):
        raise ValueError("Axes length mismatch")
    return call("_npi_tensordot", (a, b), {"a_axes_summed": summed[0], "b_axes_summed": summed[1]})


def inner(a: Any, b: Any) -> Any:
    """The sum of products over the last axes."""
    return tensordot(a, b, [-1, -1])


def outer(a: Any, b: Any) -> Any:
    """All products of two elements."""
    return tensordot(ravel(a), ravel(b), 0)


def vdot(a: Any, b: Any) -> Any:
    """The sum of products of the flattened arrays."""
    return tensordot(ravel(a), ravel(b), 1)


def einsum(*operands: Any, **kwargs: Any) -> Any:
    """A sum of products in Einstein's notation: ``einsum("ij,jk->ik", a, b)``."""
    optimize, out = kwargs.pop("optimize", False), kwargs.pop("out", None)
    if kwargs:
        raise TypeError(f"einsum() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if not operands or not isinstance(operands[0], str):
        raise TypeError("einsum: the first argument is the notation, such as 'ij,jk->ik'")
    arrays = operands[1:]
    attrs = {"num_args": len(arrays), "subscripts": operands[0], "optimize": int(bool(optimize))}
    return call("_npi_einsum", arrays, attrs, out)


def polyval(p: Any, x: Any) -> Any:
    """The value of a polynomial with these coefficients, the highest first."""
    if not is_tensor(p) and not is_tensor(x):
        return onp.polyval(p, x)
    return call("_npi_polyval", (p, x))


# ---- statistics ----------------------------------------------------------------------------------


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, out: Any = None) -> Any:
    """The weighted mean, and the sum of weights with ``returned=True``."""
    attrs: dict[str, Any] = {"returned": returned, "weighted": weights is not None}
    if axis is not None:
        attrs["axis"] = axis
    return call("_npi_average", (a,) if weights is None else (a, weights), attrs, out)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = None,
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """The value below which `q` percent of the elements are."""
    if overwrite_input is not None:
        raise NotImplementedError("overwrite_input is not supported yet")
    attrs: dict[str, Any] = {"interpolation": interpolation, "keepdims": keepdims}
    if axis is not None:
        attrs["axis"] = axis
    if is_number(q):
        return call("_npi_percentile", (a,), {**attrs, "q_scalar": q}, out)
    return call("_npi_percentile", (a, q), attrs, out)


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = None,
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """The value below which a part `q` of the elements is."""
    return percentile(a, q * 100, axis, out, overwrite_input, interpolation, keepdims)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number occurs, or the sum of the weights where it does."""
    if minlength < 0:
        raise ValueError("bincount: minlength must not be negative")
    attrs = {"minlength": minlength, "has_weights": weights is not None}
    return call("_npi_bincount", (x,) if weights is None else (x, weights), attrs)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, normed: Any = None, weights: Any = None, density: Any = None
) -> Any:
    """Counts of values per bin, and the edges of the bins; `bins` is a number, with `range`, or the
    edges as an array.
    """
    for name, value in (("normed", normed), ("weights", weights), ("density", density)):
        if value is not None and value is not False:
            raise NotImplementedError(f"{name} is not supported yet...")
    if is_number(bins):
        if bins < 1:
            raise ValueError(f"`bins` must be positive, when an integer, got {bins}")
        if range is None:
            raise NotImplementedError("automatic range is not supported yet; give range=(lowest, highest)")
        return call("_npi_histogram", (a,), {"bin_cnt": int(bins), "range": tuple(range)})
    if is_tensor(bins):
        return call("_npi_histogram", (a, bins))
    raise NotImplementedError(f"bins of type {type(bins)} are not supported; give a number or an array of mx.np")


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, `n` times."""
    if prepend is not None or append is not None:
        raise NotImplementedError("prepend and append options are not supported yet")
    return call("_npi_diff", (a,), {"n": n, "axis": axis})


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of the flattened array, with values before and after them."""
    inputs, attrs = [ary], {}
    for name, value in (("to_begin", to_begin), ("to_end", to_end)):
        if is_tensor(value):
            inputs.append(value)
            attrs[f"{name}_arr_given"] = True
        elif value is not None:
            attrs[f"{name}_scalar"] = value
    return call("_npi_ediff1d", inputs, attrs)


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether two arrays share elements."""
    return bool(call("_npi_share_memory", (a, b)).item())


may_share_memory = shares_memory
