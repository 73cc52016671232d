"""NDArray: an array that the engine computes, and the functions that make arrays."""

from __future__ import annotations

import sys
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _mxrt
from .._operators.methods import OperatorMethods
from .._values.dtypes import dtype_class, dtype_name
from ..base import (
    MXNetNotImplementedError,
    MXNetRuntimeWarning,
    MXNetShapeError,
    MXNetValueError,
    is_number,
    no_training,
    warn,
)
from ..context import Context, checked_context, current_context
from . import _codes
from . import _indexing as indexing
from ._awaiting import Awaitable
from ._elements import elements, is_sparse
from ._exchange import Exchange
from ._parts import Parts
from ._refusals import NoAxesError, element_type
from ._reshape import shape_argument, target_shape

__all__ = ["NDArray", "waitall"]

_invoke = _mxrt.invoke

# Names that MXNet has in this module too. Their own module imports this one, hence not before they
# are asked for.
_ELSEWHERE = frozenset(
    "add arange concatenate divide empty equal eye from_dlpack from_numpy full greater greater_equal histogram lesser "
    "lesser_equal linspace load logical_and logical_or logical_xor maximum minimum modulo moveaxis multiply not_equal "
    "onehot_encode ones power save split_v2 subtract to_dlpack_for_read to_dlpack_for_write true_divide zeros".split()
)


def __getattr__(name: str) -> Any:
    if name in _codes.__all__:
        return getattr(_codes, name)
    if name in _ELSEWHERE:
        return getattr(sys.modules["mxrt.ndarray"], name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class NDArray(Parts, OperatorMethods, Exchange, Awaitable):
    """A multi-dimensional array.

    Operators return at once; the value is computed in the background. Reading it (``asnumpy``,
    ``wait_to_read``, ``print``) waits. If an operator fails, everything computed from its result
    holds that failure, and reading it raises an :class:`mxrt.base.MXNetError`, from every thread,
    until the array is overwritten.

    Make one with :func:`mxrt.nd.array`, :func:`mxrt.nd.zeros` and the like.
    """

    __slots__ = ("__weakref__",)
    # numpy leaves operators with its arrays on the left to this class, which refuses them as MXNet
    # does.
    __array_ufunc__ = None
    __array_priority__: float = 1000.0

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """numpy's class of the elements, such as ``numpy.float32``."""
        return dtype_class(self._dtype_name)

    @property
    def context(self) -> Context:
        """The context of the array's memory."""
        return Context(*self._device)

    @property
    def ctx(self) -> Context:
        """The context of the array's memory."""
        return Context(*self._device)

    @property
    def stype(self) -> str:
        """Storage type: ``default`` for a dense array."""
        return "default"

    @property
    def T(self) -> NDArray:
        """The array with its axes reversed, as a copy; the array itself when it has fewer than two
        axes.
        """
        return self.transpose() if self.ndim > 1 else self

    @property
    def grad(self) -> None:
        """Always None: mxrt computes no gradients."""
        return

    @property
    def handle(self) -> NDArray:
        """The array itself; MXNet keeps the number of its C object here. Another array that is
        assigned must have this array's shape and type: its values are copied.
        """
        return self

    @handle.setter
    def handle(self, other: NDArray) -> None:
        if other is not self:
            other.copyto(self)

    @property
    def writable(self) -> bool:
        """Always True: every array can be written to."""
        return True

    @writable.setter
    def writable(self, value: bool) -> None:
        if not value:
            raise MXNetNotImplementedError("NDArray.writable = False: arrays can always be written to; keep a copy()")

    def __repr__(self) -> str:
        extents = "x".join(str(n) for n in self.shape)
        return f"\n{self.asnumpy()!s}\n<{type(self).__name__} {extents} @{self.context}>"

    def _repr_html_(self) -> str:
        from .._output.html import of_array

        return of_array(self)

    def __len__(self) -> int:
        if not self.shape:
            raise NoAxesError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.size == 0:
            return False
        if self.size == 1:
            return bool(self.asscalar())
        raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")

    __hash__ = object.__hash__

    # ---- its value -------------------------------------------------------------------------------

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """A copy of the value as a numpy array of the same shape and dtype. Waits for the value.

        Raises :class:`mxrt.base.MXNetError` if the operator that computes the array failed.
        """
        found = self._to_numpy()
        return found.view(self.dtype) if self._dtype_name == "bfloat16" else found

    def asscalar(self) -> Any:
        """The only element, as a numpy scalar. Raises ValueError if there are several."""
        if self.size != 1:
            raise ValueError("The current array is not a scalar")
        return self._to_numpy().reshape(-1)[0]

    def item(self) -> Any:
        """The only element, as a Python number. Raises ValueError if there are several."""
        return self.asscalar().item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("the elements of an NDArray cannot be shared with numpy, only copied")
        found = self.asnumpy()
        return found if dtype is None else found.astype(dtype, copy=False)

    # numpy.all(array) and numpy.any(array) call these.

    def all(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """``numpy.all`` of the value: whether all elements, or those along an axis, are not 0."""
        return np.all(self.asnumpy(), axis, out, **options)

    def any(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """``numpy.any`` of the value: whether some element, or one along an axis, is not 0."""
        return np.any(self.asnumpy(), axis, out, **options)

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """A copy with elements of another dtype.

        With ``copy=False`` an array that has the dtype already is returned itself.
        """
        name = element_type(dtype)
        if name == self._dtype_name:
            return self.copy() if copy else self
        made: NDArray = _invoke("Cast", (self,), {"dtype": name})
        return made

    def copy(self) -> NDArray:
        """A copy on the same context."""
        return self.copyto(self.context)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copies the elements into `other`: an array of the same shape, or a context for a new
        array.

        Returns the copy. Raises :class:`mxrt.base.MXNetShapeError` if the shapes differ.
        """
        if isinstance(other, Context):
            target = _empty(self.shape, other, self._dtype_name)
        elif isinstance(other, NDArray):
            if other is self:
                warn("You are attempting to copy an array to itself", MXNetRuntimeWarning)
                return False  # type: ignore[return-value]  # as MXNet does
            target = other
            if target.shape != self.shape:
                raise MXNetShapeError(
                    f"copyto: the array has shape {self.shape}, the one to be overwritten {target.shape}", op="_copyto"
                )
        else:
            raise TypeError(f"copyto does not support type {type(other)}")
        target._assign(self)
        return target

    # Names of MXNet that programs use.

    def _sync_copyfrom(self, source_array: Any) -> None:
        if np.shape(source_array) != self.shape:
            raise ValueError(f"Shape inconsistent: expected {self.shape} vs got {np.shape(source_array)}")
        self._assign(array(source_array, dtype=self._dtype_name))

    def _at(self, idx: int) -> NDArray:
        made: NDArray = self[idx]
        return made

    def _slice(self, start: int, stop: int) -> NDArray:
        made: NDArray = self[start:stop]
        return made

    def _full(self, value: float) -> NDArray:
        self._assign(value)
        return self

    def as_in_context(self, context: Context) -> NDArray:
        """The array itself if it is on `context` already, else a copy there."""
        return self if self.context == context else self.copyto(checked_context(context))

    as_in_ctx = as_in_context

    def as_nd_ndarray(self) -> NDArray:
        """The array itself."""
        return self

    def as_np_ndarray(self) -> Any:
        """An array of ``mx.np`` over the same elements, without a copy."""
        from ..numpy import ndarray

        return ndarray(self)

    def detach(self) -> NDArray:
        """A view of the same elements."""
        view: NDArray = self._view(0, list(self.shape))
        return view

    def tostype(self, stype: str) -> NDArray:
        """A copy in another storage: ``default`` (dense), ``csr`` or ``row_sparse``."""
        if stype == "default":
            return self.copy()
        if stype in ("csr", "row_sparse"):
            made: NDArray = _invoke("cast_storage", (self,), {"stype": stype})
            return made
        raise MXNetValueError(f"Invalid Input: '{stype}', valid values are: {{'csr', 'default', 'row_sparse'}}")

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> NDArray:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        """The state that MXNet pickles: ``handle`` holds the bytes of a file's record."""
        from ._records import record_of

        return {"handle": record_of(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores an array that MXNet pickled, from what ``__getstate__`` gives."""
        from ._records import array_of

        if state.get("handle") is not None:
            self._become(array_of(state["handle"]))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._to_numpy(), self._dtype_name, *self._device)

    # ---- training --------------------------------------------------------------------------------

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Refused, except for ``grad_req='null'``, which asks for nothing."""
        if grad_req != "null":
            raise no_training("attach_grad")

    def backward(self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Refused: there are no gradients."""
        raise no_training("backward")

    # ---- parts of it -----------------------------------------------------------------------------

    def _value(self, value: Any) -> NDArray:
        """The assigned value, as an array with elements like those here."""
        if isinstance(value, NDArray):
            dense = value if value.stype == "default" else value.tostype("default")
            return dense.astype(self._dtype_name, copy=False)
        if is_number(value) or isinstance(value, (np.ndarray, list, tuple)):
            return array(value, ctx=self.context, dtype=self._dtype_name)
        # What numpy makes an array of: a range, a buffer. None is NaN.
        try:
            return array(value, ctx=self.context, dtype=self._dtype_name)
        except (TypeError, ValueError):
            raise TypeError(
                f"NDArray does not support assignment with non-array-like object {value} of type {type(value)}"
            ) from None

    def _assign(self, value: Any) -> None:
        """Overwrites all of it."""
        source = self._value(value)
        whole = indexing.whole_region(self.shape)
        _mxrt.copy_region(self, whole, source, indexing.broadcast_region(source.shape, self.shape))

    def slice_assign(self, rhs: NDArray, begin: Any, end: Any, step: Any) -> NDArray:
        """Assigns an array to a slice of this one."""
        self[_slices(begin, end, step)] = rhs
        return self

    def slice_assign_scalar(self, value: float, begin: Any, end: Any, step: Any) -> NDArray:
        """Assigns a number to a slice of this one."""
        self[_slices(begin, end, step)] = value
        return self

    # ---- shape -----------------------------------------------------------------------------------

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """A view of the same elements in another shape.

        0 keeps an extent, -1 is worked out, -2 keeps the rest, -3 joins two, -4 splits one into the
        next two. ``reverse=True`` matches from the right.
        """
        target = shape_argument(shape, kwargs)
        reverse = bool(kwargs.pop("reverse", False))
        if kwargs:
            raise TypeError(f"reshape: unknown argument {', '.join(kwargs)}; known: shape, reverse")
        found = target_shape(self.shape, target, reverse)
        view: NDArray = self._view(0, list(found))
        return view

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """Returns the array with an axis of extent 1 inserted; a copy unless ``inplace``."""
        extents = list(self.shape)
        place = axis + len(extents) + 1 if axis < 0 else axis
        if not 0 <= place <= len(extents):
            raise MXNetShapeError(f"expand_dims: axis {axis} does not exist in an array with {len(extents)} axes")
        extents.insert(place, 1)
        source: NDArray = self if inplace else self.copy()
        view: NDArray = source._view(0, extents)
        return view

    def flatten(self, inplace: bool = False) -> NDArray:
        """All axes but the first joined; a copy unless ``inplace``."""
        rows = self.shape[0] if self.shape else 1
        source: NDArray = self if inplace else self.copy()
        view: NDArray = source._view(0, [rows, self.size // rows if rows else 0])
        return view

    def squeeze(self, axis: Any = None, inplace: bool = False) -> NDArray:
        """Without axes of extent 1; a copy unless ``inplace``."""
        if not inplace:
            made: NDArray = self._function("squeeze")(self, axis=axis)
            return made
        kept = np.squeeze(np.broadcast_to(0, self.shape), axis=axis).shape
        view: NDArray = self._view(0, list(kept) or [1])
        return view

    def transpose(self, *axes: Any, **kwargs: Any) -> NDArray:
        """Returns a copy with permuted axes."""
        order = kwargs.pop("axes", axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)
        made: NDArray = self._function("transpose")(self, axes=tuple(order or ()), **kwargs)
        return made

    def broadcast_to(self, shape: Any) -> NDArray:
        """Repeated along axes of extent 1, and along axes that come before the first one.

        Raises
        ------
        MXNetValueError : another axis would change, or there would be fewer axes
        """
        wanted = tuple(shape)
        more = len(wanted) - self.ndim
        mapped = (1,) * more + self.shape
        if more < 0 or any(old not in (1, new) for old, new in zip(mapped, wanted, strict=True)):
            raise MXNetValueError(
                "operands could not be broadcast together with remapped shapes [original->remapped]: "
                f"{mapped} and requested shape {wanted}"
            )
        source = self.reshape(mapped) if more else self
        made: NDArray = self._function("broadcast_to")(source, shape=wanted)
        return made

    def broadcast_like(self, other: NDArray) -> NDArray:
        """Repeated to the shape of another array."""
        return self.broadcast_to(other.shape)

    def dot(self, other: NDArray, **kwargs: Any) -> NDArray:
        """The product with another array."""
        made: NDArray = self._function("dot")(self, other, **kwargs)
        return made

    def _function(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(sys.modules["mxrt.ndarray"], name)
        return found

    # ---- operators -------------------------------------------------------------------------------

    # Arithmetic and comparisons with arrays and numbers are in NDArrayBase.

    def __neg__(self) -> NDArray:
        return self * -1.0

    def __pos__(self) -> NDArray:
        return self

    def __abs__(self) -> NDArray:
        made: NDArray = _invoke("abs", (self,))
        return made


def _unpickle(values: np.ndarray[Any, Any], dtype: str, device_type: str, device_id: int) -> NDArray:
    if dtype == "bfloat16":
        raise MXNetNotImplementedError("arrays of bfloat16 cannot be unpickled in this build of mxrt")
    return array(values, ctx=Context(device_type, device_id), dtype=dtype)


def _slices(begin: Any, end: Any, step: Any) -> tuple[slice, ...]:
    steps = step or (None,) * len(begin)
    return tuple(slice(b, e, s) for b, e, s in zip(begin, end, steps, strict=True))


def waitall() -> None:
    """Waits until all operators pushed so far are done.

    Raises the failures that no wait has raised yet: one as itself, several as
    :class:`mxrt.base.MultipleErrors`.
    """
    _mxrt.wait_all()


def _device(ctx: Context | str | None) -> tuple[str, int]:
    if ctx is None:
        return current_context()._device
    if isinstance(ctx, Context):
        return ctx._device
    kind, _, number = str(ctx).partition("(")
    digits = number.rstrip(")").strip()
    if digits and not digits.isdigit():
        raise MXNetValueError(f"Invalid context string {ctx}")
    return kind, int(digits or 0)


def _empty(shape: tuple[int, ...], ctx: Context | str | None, dtype: str) -> NDArray:
    made: NDArray = _mxrt.zeroed(list(shape), dtype, _device(ctx))
    return made


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A new array with the values of `source_array`: a list, number, numpy array or NDArray.

    `ctx` is its device, by default the current context. `dtype` is its element type, by default
    float32, or that of the NDArray that is copied. Raises TypeError for values that are no array.
    Warns of whole numbers that float32 has not.
    """
    if isinstance(source_array, NDArray):
        copy = source_array.astype(source_array._dtype_name if dtype is None else dtype)
        if copy.stype != "default" and ctx is None:
            return copy
        return copy.as_in_context(current_context() if ctx is None else ctx)
    name = dtype_name(dtype)
    if name == "bfloat16":
        raise MXNetNotImplementedError("arrays of bfloat16 cannot be made from Python values in this build of mxrt")
    if not isinstance(source_array, np.ndarray) and is_sparse(source_array):
        from ._sparse_arrays import array as sparse_array

        return sparse_array(source_array, ctx, dtype)
    made: NDArray = _mxrt.from_numpy(elements(source_array, name), _device(ctx))
    return made
