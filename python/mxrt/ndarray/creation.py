"""Functions that make arrays, and some that join or split them."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from .. import _mxrt
from .._scopes.np_mode import is_np_shape
from .._values.extents import LARGEST, check_extents, extents, read_extents
from .._values.numbers import real, whole
from ..base import MXNetIndexError, MXNetShapeError, MXNetTypeError, MXNetValueError, is_number
from ..context import Context, cpu
from ._refusals import JoinError, NegativeExtentError, NoPartsError, array_type, check_joined
from .ndarray import NDArray, _device, _empty, array

__all__ = [
    "arange",
    "array",
    "concatenate",
    "empty",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "histogram",
    "linspace",
    "moveaxis",
    "onehot_encode",
    "ones",
    "split_v2",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "zeros",
]


#: Element types in which operators make ranges. NumPy makes those of others.
_COMPUTED = frozenset(("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64"))


def _extents(shape: Any, empty_allowed: bool, op: str) -> tuple[int, ...]:
    try:
        given: Any = read_extents(shape) if isinstance(shape, str) else shape
        alone = isinstance(given, (int, np.integer)) or getattr(given, "ndim", None) == 0
        extents = (index(given),) if alone else tuple(index(n) for n in given)
    except (TypeError, MXNetValueError):
        raise MXNetTypeError(f"{op}: a shape is an integer or a tuple of integers, got {shape!r}", op=op) from None
    if any(n < 0 for n in extents):
        raise NegativeExtentError(f"{op}: the shape {extents} has a negative extent", op=op)
    check_extents(extents, op)
    if not (empty_allowed or is_np_shape()) and (not extents or 0 in extents):
        what = "an extent of 0, which stands for one" if extents else "no axes, which stands for a shape"
        shape = tuple(int(n) for n in extents)
        raise MXNetShapeError(
            f"Operator {op} inferring shapes failed: the shape {shape} has {what} that is not known. "
            f"For an array of this shape use mx.nd.empty({shape})",
            op=op,
        )
    return tuple(int(n) for n in extents)


def empty(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str | None = None) -> NDArray:
    """A new array for values that are written later. Its elements are zero."""
    return _stored(stype, _extents(shape, True, "empty"), ctx, array_type(dtype))


def _stored(stype: str | None, extents: tuple[int, ...], ctx: Any, dtype: str) -> NDArray:
    if stype in (None, "default"):
        return _empty(extents, ctx, dtype)
    made: NDArray = _mxrt.zeroed_stored(stype, list(extents), dtype, _device(ctx))
    return made


def _filled(shape: Any, value: Any, ctx: Any, dtype: Any, out: NDArray | None, op: str) -> NDArray:
    if out is None:
        out = _empty(_extents(shape, False, op), ctx, array_type(dtype))
    # An array without elements takes any number.
    if out.size or not is_number(value):
        out._assign(value)
    return out


def _out_of(kwargs: dict[str, Any], op: str) -> NDArray | None:
    """The keyword ``out``. MXNetValueError for keywords other than it and ``name``."""
    out: NDArray | None = kwargs.pop("out", None)
    kwargs.pop("name", None)
    if kwargs:
        raise MXNetValueError(f"{op}: Cannot find argument '{next(iter(kwargs))}'; there are out and name", op=op)
    return out


def zeros(
    shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str | None = None, **kwargs: Any
) -> NDArray:
    """An array of zeros of the given shape, float32 unless `dtype` says otherwise."""
    out = _out_of(kwargs, "_zeros")
    if out is not None:
        return _filled(shape, 0, ctx, dtype, out, "_zeros")
    return _stored(stype, _extents(shape, False, "_zeros"), ctx, array_type(dtype))


def ones(shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """An array of ones of the given shape, float32 unless `dtype` says otherwise."""
    return _filled(shape, 1, ctx, dtype, _out_of(kwargs, "_ones"), "_ones")


def full(shape: Any, val: Any, ctx: Context | None = None, dtype: Any = None, out: NDArray | None = None) -> NDArray:
    """An array of the given shape whose elements are all `val`, float32 unless `dtype` says
    otherwise.
    """
    if out is None:
        # As in MXNet an extent of 0 is one, since the array is filled by an assignment.
        known = _extents(shape, True, "_full") or _extents(shape, False, "_full")
        out = _empty(known, ctx, array_type(dtype))
    return _filled(shape, val, ctx, dtype, out, "_full")


def _made(op: str, attrs: dict[str, Any], ctx: Any, dtype: str) -> NDArray:
    """The array that an operator without inputs makes on a device."""
    kind, number = _device(ctx)
    made: NDArray = _mxrt.invoke(op, (), {**attrs, "ctx": f"{kind}({number})", "dtype": dtype})
    return made


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool | None = None,
    ctx: Context | None = None,
    dtype: Any = "float32",
) -> NDArray:
    """Numbers from `start` (0 if only one bound is given) up to, but excluding, `stop`.

    Integer types have as many, and count with `start` and `step` rounded towards zero.
    """
    first, end = (0.0, start) if stop is None else (start, stop)
    first, end = real(first, "_arange", "start"), real(end, "_arange", "stop")
    step, repeat = real(step, "_arange", "step"), whole(repeat, "_arange", "repeat")
    if step == 0 or repeat < 1:
        raise MXNetValueError(f"arange: step {step} and repeat {repeat} make no range", op="_arange")
    if (end - first) * step <= 0:
        raise MXNetValueError(f"arange: from {first} to {end} there are no steps of {step}", op="_arange")
    name = array_type("float64" if dtype is None else dtype)
    if name in _COMPUTED:
        attrs = {"start": first, "stop": end, "step": step, "repeat": repeat}
        return _made("_arange", attrs, ctx, name)
    count = np.arange(np.ceil((end - first) / step))
    if "int" in name:
        first, step = np.trunc(first), np.trunc(step)
    values = first + count * step
    return array(np.repeat(values, repeat), ctx=ctx, dtype=name)


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None, dtype: Any = "float32"
) -> NDArray:
    """`num` numbers at equal distances from `start` to `stop`, which is left out without
    `endpoint`.
    """
    name = array_type("float64" if dtype is None else dtype)
    start, stop = real(start, "_linspace", "start"), real(stop, "_linspace", "stop")
    num = whole(num, "_linspace", "num")
    if name in _COMPUTED and num:
        attrs = {"start": start, "stop": stop, "num": num, "endpoint": bool(endpoint)}
        return _made("_linspace", attrs, ctx, name)
    return array(np.linspace(start, stop, num, endpoint=endpoint), ctx=ctx, dtype=name)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """A matrix of `N` rows and `M` columns (`N` if 0) with ones on diagonal `k`, zeros
    elsewhere.
    """
    out: NDArray | None = _out_of(kwargs, "_eye")
    name = array_type(dtype)
    N, M, k = whole(N, "_eye", "N"), whole(M, "_eye", "M"), whole(k, "_eye", "k")
    if out is None and name in _COMPUTED and N:
        return _made("_eye", {"N": N, "M": M, "k": k}, ctx, name)
    made = np.eye(N, M or N, k)
    if out is not None:
        out._assign(made)
        return out
    return array(made, ctx=ctx, dtype=dtype)


def from_numpy(ndarray: np.ndarray[Any, Any], zero_copy: bool = True, array_cls: Any = NDArray) -> NDArray:
    """An array from a numpy array, with its dtype: of :class:`mxrt.nd.NDArray` or, with
    ``array_cls=mx.np.ndarray``, of that class.

    With ``zero_copy`` both share the elements, and numpy's array becomes read-only, as in MXNet.
    Elements that are read-only already are shared until this array is written. It then gets
    elements of its own. So this is the fastest way to pass the data of a request. Writes of other
    code to shared elements are not ordered with operators. Elements that are not aligned are
    copied. Without ``zero_copy`` bytes may be in the order of another machine, and a number of
    numpy will do.
    """
    if not isinstance(ndarray, np.ndarray if zero_copy else (np.ndarray, np.generic)):
        raise TypeError(f"from_numpy expects a numpy array, got {type(ndarray)}")
    made: NDArray | None = _mxrt.share_numpy(ndarray) if zero_copy else None
    if made is None and not zero_copy:
        made = array(np.asarray(ndarray), dtype=ndarray.dtype.newbyteorder("="))
    if made is None:
        made = _mxrt.from_numpy(np.array(ndarray, order="C", subok=False), _device(cpu()))
        ndarray.flags.writeable = False
    if not issubclass(NDArray, array_cls):
        made = made.as_np_ndarray()
    return made


def _check_array(value: Any, function: str, name: str) -> None:
    if not isinstance(value, NDArray):
        raise MXNetTypeError(f"{function}: {name} must be an NDArray, got {type(value).__name__}")


def from_dlpack(dlpack: Any) -> NDArray:
    """An array that shares memory with `dlpack`: a DLPack capsule, or an array of any library with
    ``__dlpack__``.

    Read-only elements, and elements that are not contiguous, are copied. Later accesses of the
    other library are not ordered with operators.
    """
    if not hasattr(dlpack, "__dlpack__") and type(dlpack).__name__ != "PyCapsule":
        raise MXNetTypeError(
            f"from_dlpack: expected a capsule or an array with __dlpack__, got {type(dlpack).__name__}"
        )
    made: NDArray = _mxrt.import_dlpack(dlpack)
    return made


def to_dlpack_for_read(data: NDArray) -> Any:
    """A DLPack capsule for reading. Waits for the value."""
    _check_array(data, "to_dlpack_for_read", "data")
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """A DLPack capsule for writing. Waits for the value, and until it has no reader."""
    _check_array(data, "to_dlpack_for_write", "data")
    return data.to_dlpack_for_write()


def concatenate(arrays: list[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Joins arrays along an axis, in which alone their shapes may differ.

    Raises JoinError, an AssertionError, if there are no arrays, or if their types or other extents
    differ, and MXNetIndexError if the first has no such axis.
    """
    if not arrays:
        raise JoinError("concatenate: there are no arrays to be joined")
    check_joined(arrays, axis)
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    made: NDArray = _mxrt.invoke("Concat", tuple(arrays), {"dim": axis})
    return made


def moveaxis(tensor: NDArray, source: Any, destination: Any) -> NDArray:
    """Moves axes to other positions. The other axes keep their order."""
    _check_array(tensor, "moveaxis", "tensor")
    sources = list(extents(source))
    targets = list(extents(destination))
    if any(abs(n) > LARGEST for n in (*sources, *targets)):
        raise MXNetIndexError(f"moveaxis: {source} or {destination} does not exist in an array with {tensor.ndim} axes")
    if len(sources) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    places = np.moveaxis(np.broadcast_to(np.int8(0), tuple(range(1, tensor.ndim + 1))), sources, targets).shape
    return tensor.transpose(tuple(n - 1 for n in places))


def split_v2(ary: NDArray, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
    """Splits an array into equal parts, or before the given positions."""
    if not -ary.ndim <= axis < ary.ndim:
        raise MXNetIndexError(f"split_v2: axis {axis} does not exist in an array with {ary.ndim} axes")
    if isinstance(indices_or_sections, (int, np.integer)):
        if not indices_or_sections:
            raise NoPartsError("split_v2: an array cannot be split into 0 parts; give at least 1, or positions")
        if indices_or_sections > 0 and ary.shape[axis] % indices_or_sections:
            raise ValueError(
                f"array split does not result in an equal division: {ary.shape[axis]} elements into "
                f"{indices_or_sections} parts"
            )
        attrs = {"indices": (), "sections": int(indices_or_sections)}
    elif isinstance(indices_or_sections, (tuple, list)):
        if any(n < 0 for n in indices_or_sections):
            raise MXNetValueError(f"split_v2: {indices_or_sections} has a negative position")
        attrs = {"indices": (0, *indices_or_sections), "sections": 0}
    else:
        raise ValueError("indices_or_sections must either int or tuple of ints")
    return _mxrt.invoke("_split_v2", (ary,), {"axis": axis, "squeeze_axis": squeeze_axis, **attrs})


def histogram(a: NDArray, bins: Any = 10, range: Any = None) -> Any:
    """Counts of values per bin, and the edges of the bins.

    With a number of `bins` and no `range`, from the smallest to the largest value, counts are
    float32.
    """
    _check_array(a, "histogram", "a")
    if isinstance(bins, NDArray):
        return _mxrt.invoke("_histogram", (a, bins))
    if not isinstance(bins, (int, np.integer)):
        raise ValueError("bins argument should be either an integer or an NDArray")
    if range is None:
        # MXNet leaves this to numpy, and its results have these types then.
        return tuple(array(part) for part in np.histogram(a.asnumpy(), int(bins)))
    limits = (float(range[0]), float(range[1]))
    return _mxrt.invoke("_histogram", (a,), {"bin_cnt": int(bins), "range": limits})


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Writes rows with a one at the given index, else zeros, to `out`."""
    if is_number(indices):
        raise TypeError("onehot_encode expects an array of indices")
    _check_array(indices, "onehot_encode", "indices")
    _check_array(out, "onehot_encode", "out")
    if out.ndim != 2:
        raise MXNetShapeError(f"onehot_encode: out must have 2 axes, got the shape {out.shape}")
    width = out.shape[1]
    # An index that no column has makes a row of zeros.
    rows = indices.asnumpy().astype(np.int64)[..., None] == np.arange(width)
    out._assign(rows.astype(np.float64))
    return out
