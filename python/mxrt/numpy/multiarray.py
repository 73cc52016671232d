"""The array class of ``mx.np``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from .. import _mxrt
from .._values.dtypes import dtype_name
from .._values.extents import extents
from ..base import MXNetTypeError, MXNetValueError, is_number, no_training, warn
from ..context import Context, current_context
from ..ndarray import NDArray
from ..ndarray import _indexing as indexing
from ..ndarray._elements import numbers
from ..ndarray._positions import rows_of
from ..ndarray.ndarray import _empty
from ..ndarray.ndarray import array as _legacy_array
from . import _keys
from ._methods import NumpyMethods, check_cast, refuse

__all__ = ["array", "ndarray"]


class ndarray(NumpyMethods):
    """An array with the interface of NumPy's: operators, methods and indexing follow NumPy, results
    of no axes are scalars, and element types are kept.

    It is computed in the background and holds failures like :class:`mxrt.nd.NDArray`, with which it
    can share its elements: ``as_nd_ndarray``. Make one with :func:`mxrt.np.array` and the like.

    Unlike an array of ``mx.nd`` it takes attributes of programs, as in MXNet.
    """

    # ---- NumPy's protocols -----------------------------------------------------------------------

    def __array_ufunc__(  # type: ignore[override]
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        from ._protocols import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from ._protocols import call_function

        return call_function(func, types, args, kwargs)

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the elements."""
        return onp.dtype(super().dtype)

    @property
    def T(self) -> ndarray:
        """The array with its axes reversed, as a copy."""
        made: ndarray = self.transpose()
        return made

    def __repr__(self) -> str:
        text = repr(self.asnumpy())
        name = self._dtype_name
        if "dtype=" in text:
            if name == "float32":
                text = text[: text.rindex(",")] + ")"
        elif name not in ("float32", "bool"):
            text = f"{text[:-1]}, dtype={name})"
        context = self.context
        return text if context.device_type == "cpu" else f"{text[:-1]}, ctx={context})"

    def __str__(self) -> str:
        text = str(self.asnumpy())
        context = self.context
        return text if context.device_type == "cpu" or not self.ndim else f"{text} @{context}"

    def __format__(self, fmt: str) -> str:
        if self.ndim == 0:
            return format(self.item(), fmt)
        # TypeError for other formats than none, as of all objects.
        return object.__format__(self, fmt)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(self.item())
        if self.size == 0:
            warn(
                "The truth value of an empty array is ambiguous. Returning False, but in future this will result in "
                "an error.",
                DeprecationWarning,
            )
            return False
        raise ValueError("The truth value of an ndarray with multiple elements is ambiguous.")

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        if self.ndim == 0 and self._dtype_name.lstrip("u").startswith("int"):
            return int(self.item())
        raise TypeError("only integer scalar arrays can be converted to a scalar index")

    def _number(self) -> Any:
        if self.size != 1:
            raise TypeError("only size-1 arrays can be converted to Python scalars")
        return self.item()

    # ---- its value -------------------------------------------------------------------------------

    def item(self, *args: Any) -> Any:
        """An element as a Python number: the only one, or that at a flat index or a tuple of
        indices. ValueError without an index if there are several.
        """
        return self.asnumpy().item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for an array without axes."""
        return self.asnumpy().tolist()

    def as_nd_ndarray(self) -> NDArray:
        """An array of ``mx.nd`` over the same elements, without a copy."""
        return NDArray(self)

    def as_np_ndarray(self) -> ndarray:
        """The array itself."""
        return self

    def detach(self) -> ndarray:
        """Another array over the same elements."""
        return ndarray(self)

    def astype(  # type: ignore[override]
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> ndarray:
        """A copy with elements of another dtype; the array itself if it has it, with
        ``copy=False``.
        """
        check_cast(order, casting, subok)
        made = super().astype(dtype, copy)
        return made if made is self else ndarray(made)

    def copy(self, order: str = "C") -> ndarray:
        """A copy on the same context."""
        if order != "C":
            raise NotImplementedError(f"ndarray.copy only supports order='C', while received {order}")
        made: ndarray = self.copyto(self.context)
        return made

    def copyto(self, other: Any) -> Any:
        """Copies the elements into `other`: an array of the same shape (elements of another type
        are cast), or a context for a new array. Returns the copy.
        """
        if isinstance(other, NDArray) and not isinstance(other, ndarray):
            raise TypeError("copyto: the other array is one of mx.nd; give other.as_np_ndarray()")
        made = super().copyto(other)
        # MXNet's copy of an array onto itself is False.
        return made if made is other or not isinstance(made, NDArray) else ndarray(made)

    def as_in_context(self, context: Context) -> ndarray:
        """The array itself if it is on `context` already, else a copy there."""
        made = super().as_in_context(context)
        return made if isinstance(made, ndarray) else ndarray(made)

    def as_in_ctx(self, ctx: Context) -> ndarray:
        """The array itself if it is on `ctx` already, else a copy there."""
        return self.as_in_context(ctx)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (super().__reduce__(), self.shape)

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Refused, except for ``grad_req='null'``, which asks for nothing."""
        if grad_req != "null":
            raise no_training("attach_grad")

    # ---- parts of it -----------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> ndarray:
        shape = self.shape
        if type(key) is int and shape:
            return self._row_of(key, shape)
        key = _keys.checked(key)
        if not _keys.is_basic(key):
            plain = _keys.plain(key)
            rows = rows_of(shape, plain)
            if rows is None:
                return ndarray(_mxrt.gather(self, _keys.positions(shape, plain)))
            index = ndarray(_mxrt.from_numpy(rows, self._device))
            found: ndarray = _mxrt.invoke_np("_npi_take", (self, index), {"axis": 0, "mode": "clip"})
            return found
        if isinstance(key, tuple) and not key:
            return self
        region = indexing.basic_region(shape, key)
        picked = indexing.region_shape(region)
        if indexing.is_contiguous(region):
            view: ndarray = self._view_np(0 if 0 in picked else region[0], list(picked))
            return view
        copy = _empty(picked, self.context, self._dtype_name)
        _mxrt.copy_region(copy, indexing.whole_region(picked), self, region)
        return ndarray(copy)

    def _row_of(self, index: int, shape: tuple[int, ...]) -> ndarray:
        extent = shape[0]
        if not -extent <= index < extent:
            raise IndexError(f"index {index} is out of bounds for axis 0 with size {extent}")
        width = 1
        for n in shape[1:]:
            width *= n
        row: ndarray = self._view_np((index % extent) * width, list(shape[1:]))
        return row

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, NDArray) and not isinstance(value, ndarray):
            raise TypeError("Cannot assign mx.nd.NDArray to mxnet.numpy.ndarray; give value.as_np_ndarray()")
        key = _keys.checked(key)
        source = self._value(value)
        if _keys.is_basic(key):
            region, values = indexing.basic_assignment(self.shape, key, source.shape)
            _mxrt.copy_region(self, region, source, values)
            return
        positions = lambda key: _keys.positions(self.shape, key)  # noqa: E731
        at, values = indexing.advanced_assignment(positions, _keys.plain(key), source.shape)
        spread = _empty(at.shape, self.context, self._dtype_name)
        _mxrt.copy_region(spread, indexing.whole_region(at.shape), source, values)
        _mxrt.scatter(self, at, spread)

    def _value(self, value: Any) -> NDArray:
        if isinstance(value, NDArray):
            return NDArray.astype(value, self._dtype_name, copy=False).as_in_context(self.context)
        if not is_number(value) and not isinstance(value, (onp.ndarray, list, tuple, range)):
            raise TypeError(
                f"mxnet.np.ndarray does not support assignment with non-array-like object {value} of type {type(value)}"
            )
        return array(value, dtype=self._dtype_name, ctx=self.context)

    # ---- shape -----------------------------------------------------------------------------------

    def reshape_view(self, *shape: Any, **kwargs: Any) -> ndarray:
        """A view in another shape; 0 and -1 to -4 are those of ``mx.nd``."""
        return ndarray(NDArray.reshape(self, *shape, **kwargs))


refuse(ndarray, "mxnet.numpy.ndarray", {"asscalar": "x.item()", "tostype": None})


def _unpickle(parts: tuple[Callable[..., NDArray], tuple[Any, ...]], shape: tuple[int, ...]) -> ndarray:
    make, arguments = parts
    view: ndarray = make(*arguments)._view_np(0, list(shape))
    return view


def array(object: Any, dtype: Any = None, ctx: Context | None = None) -> ndarray:
    """A new array with the values of `object`: a list, number, numpy array or array of ``mx.np``.

    `dtype` is its element type: by default that of the array given, else float32. `ctx` is its
    device, by default the current context. Raises TypeError for values that are no array, and
    ValueError for arrays of ``mx.nd``.
    """
    context = current_context() if ctx is None else ctx
    if isinstance(object, ndarray):
        made = object.astype(object._dtype_name if dtype is None else dtype)
        return made.as_in_context(context)
    if isinstance(object, NDArray):
        raise ValueError(
            "If you're trying to create a mxnet.numpy.ndarray from mx.nd.NDArray, please use the zero-copy "
            "as_np_ndarray function."
        )
    name = dtype_name(getattr(object, "dtype", None) if dtype is None else dtype)
    if getattr(getattr(object, "dtype", None), "kind", "") == "c":
        raise TypeError("array: complex numbers have no element type; pass the real or the imaginary part")
    try:
        values = numbers(_plain(object), name)
    except MemoryError:
        raise
    except Exception as error:
        raise TypeError(f"array: {error}") from None
    view: ndarray = _legacy_array(values, ctx=context, dtype=name)._view_np(0, list(values.shape))
    return view


def _plain(value: Any) -> Any:
    """Nested lists with numpy arrays in the place of ours."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value.asnumpy() if isinstance(value, NDArray) else value


def checked_axes_shape(shape: Any, name: str) -> tuple[int, ...]:
    """A shape that is given for a new array."""
    if type(shape) is tuple:
        # Nearly every call.
        for n in shape:
            if type(n) is not int or not 0 <= n < 2**63:
                break
        else:
            return shape
    try:
        found = (None,) if isinstance(shape, str) else extents(shape)
    except TypeError:
        found = (None,)
    if any(not isinstance(n, (int, onp.integer)) for n in found):
        raise MXNetTypeError(f"{name}: a shape is an integer or a tuple of integers, got {shape!r}")
    if any(n < 0 for n in found):
        raise MXNetValueError(f"{name}: the shape {found} has a negative extent")
    if any(n >= 2**63 for n in found):
        raise MXNetValueError(f"{name}: the shape {found} has an extent of 2**63 or more")
    return tuple(int(n) for n in found)
