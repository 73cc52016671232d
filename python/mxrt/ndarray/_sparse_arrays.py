"""Sparse arrays: csr matrices, arrays of which some rows are stored, and what makes them."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from .. import _mxrt
from .._values.dtypes import dtype_name
from ..base import MXNetRuntimeWarning, MXNetTypeError, MXNetValueError, NotSupportedForSparseNDArray, is_number, warn
from ..context import Context
from ._elements import is_sparse
from ._refusals import DenseArrayError, checked_array
from ._sparse_parts import (
    check_shape,
    checked_extents,
    csr_of_coordinates,
    csr_of_parts,
    from_definition,
    values_of,
    whole_numbers,
)
from .creation import empty as _dense_empty
from .creation import zeros as _dense_zeros
from .ndarray import NDArray, _device
from .ndarray import array as _dense_array

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "RowSparseNDArray",
    "array",
    "cast_storage",
    "csr_matrix",
    "empty",
    "row_sparse_array",
    "zeros",
]

#: Texts of which the program was warned, and the call that did so.
_WARNED: dict[str, object] = {}
_MOST_WARNINGS = 1024


def warn_of_dense_copies(text: str) -> None:
    """Warns of a call that copies sparse arrays densely, once of each kind of call."""
    if text not in _WARNED and len(_WARNED) < _MOST_WARNINGS:
        call = object()
        if _WARNED.setdefault(text, call) is call:  # else another thread was first
            warn(text, MXNetRuntimeWarning)


class BaseSparseNDArray(NDArray):
    """The common base of sparse arrays. They have the operators of dense arrays, and no views.

    Unlike dense arrays they take attributes of programs, as in MXNet.
    """

    @property
    def stype(self) -> str:
        """Storage type: ``csr`` or ``row_sparse``."""
        return str(self._stype)

    @property
    def size(self) -> int:
        """Refused with NotImplementedError, as in MXNet; `data` has the number of stored values."""
        raise NotImplementedError("a sparse array has no size; ask its data, or its shape")

    @property
    def data(self) -> NDArray:
        """A copy of the stored values. Waits for them."""
        made: NDArray = _mxrt.sparse_part(self, 0)
        return made

    @property
    def indices(self) -> NDArray:
        """A copy of the columns or row numbers of the values (int64). Waits for them."""
        made: NDArray = _mxrt.sparse_part(self, 1)
        return made

    @property
    def _num_aux(self) -> int:
        return 2 if self.stype == "csr" else 1

    @property
    def _aux_types(self) -> list[Any]:
        return [np.int64] * self._num_aux

    def _aux_type(self, i: int) -> Any:
        return self._aux_types[i]

    def _data(self) -> NDArray:
        return self.data

    def _aux_data(self, i: int) -> NDArray:
        made: NDArray = _mxrt.sparse_part(self, 1 if self.stype == "row_sparse" else 2 - index(i))
        return made

    def __repr__(self) -> str:
        extents = "x".join(str(n) for n in self.shape)
        return f"\n<{type(self).__name__} {extents} @{self.context}>"

    def _repr_html_(self) -> str:
        from .._output.html import of_sparse

        return of_sparse(self)

    def __bool__(self) -> bool:
        return bool(self._dense())

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """A copy of the value as a dense numpy array. Waits for the value."""
        # The dense array is made on the host.
        on_host = self._device[0].startswith("cpu")
        array = self if on_host else self.copyto(Context("cpu", 0))
        return array.tostype("default").asnumpy()

    def _to_numpy(self) -> np.ndarray[Any, Any]:
        return self.asnumpy()

    def _dense(self) -> NDArray:
        made: NDArray = _mxrt.to_storage(self, "default")
        return made

    def asscalar(self) -> Any:
        """The only element, as a numpy scalar. Raises ValueError if there are several."""
        return self._dense().asscalar()

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """A copy with elements of another dtype and the same storage."""
        name = dtype_name(dtype)
        if name == self._dtype_name:
            return self.copy() if copy else self
        made: NDArray = _mxrt.zeroed_stored(self.stype, list(self.shape), name, self._device)
        _mxrt.invoke("Cast", (self,), {"dtype": name}, made)
        return made

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copies the elements into `other`: an array of the same shape, or a context for a new
        array of this storage.
        """
        if isinstance(other, Context):
            target: NDArray = _mxrt.zeroed_stored(self.stype, list(self.shape), self._dtype_name, other._device)
        elif isinstance(other, NDArray):
            if other is self:
                warn("You are attempting to copy an array to itself", MXNetRuntimeWarning)
                return False  # type: ignore[return-value]  # as MXNet does
            if other.stype not in ("default", self.stype):
                raise TypeError(f"copyto does not support destination NDArray stype {other.stype}")
            target = other
        else:
            raise TypeError(f"copyto does not support type {type(other)}")
        _overwrite(target, self)
        return target

    def check_format(self, full_check: bool = True) -> None:
        """Raises MXNetError if the positions are not those of such an array.

        Positions are checked when an array is made. What was wrong then is raised here, as by every
        other use.
        """
        self.wait_to_read()

    def tostype(self, stype: str) -> NDArray:
        """A copy in its own storage or as a dense array (``default``)."""
        if stype not in ("default", "csr", "row_sparse"):
            raise MXNetValueError(f"Invalid Input: '{stype}', valid values are: {{'csr', 'default', 'row_sparse'}}")
        if stype not in ("default", self.stype):
            raise ValueError(f"cast_storage from {self.stype} to {stype} is not supported: convert to 'default' first")
        made: NDArray = _mxrt.to_storage(self, stype)
        return made

    def asscipy(self) -> Any:
        """A scipy matrix with the value. Only csr arrays have one."""
        raise NotSupportedForSparseNDArray(self.asscipy)

    def detach(self) -> NDArray:
        """Another handle of the same array."""
        return type(self)(self)

    def _at(self, idx: int) -> NDArray:
        raise NotSupportedForSparseNDArray(self._at, "[idx]", idx)

    def _slice(self, start: int, stop: int) -> NDArray:
        raise NotSupportedForSparseNDArray(self._slice, None, start, stop)

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Refused with NotSupportedForSparseNDArray; `tostype('default')` has views."""
        raise NotSupportedForSparseNDArray(self.reshape, None, shape)

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """The dense array with an axis of extent 1 inserted."""
        return self._dense().expand_dims(axis, inplace=True)

    def flatten(self, inplace: bool = False) -> NDArray:
        """The dense array with all axes but the first joined."""
        return self._dense().flatten(inplace=True)

    def broadcast_to(self, shape: Any) -> NDArray:
        """The dense array, repeated along axes of extent 1."""
        return self._dense().broadcast_to(shape)

    def _sync_copyfrom(self, source_array: Any) -> None:
        raise NotImplementedError("a sparse array is made of its parts: mx.nd.sparse.csr_matrix or row_sparse_array")

    def _assign(self, value: Any) -> None:
        """Overwrites all of it, in its storage."""
        source = value if isinstance(value, NDArray) else self._value(value)
        if source.shape != self.shape:
            source = source.tostype("default").broadcast_to(self.shape)
        _overwrite(self, source)

    def _set_whole(self, key: Any, value: Any) -> None:
        name = type(self).__name__
        if not isinstance(key, (slice, int, tuple, np.integer)):
            raise AssertionError(f"{name} only supports [:] for assignment, not {key!r}")
        if not isinstance(key, slice):
            # MXNet's classes: any exception of a csr matrix.
            kind = TypeError if self.stype == "row_sparse" else ValueError
            raise kind(f"{name} only supports [:] for assignment")
        if key != slice(None):
            raise ValueError(f"Assignment with slice for {name} is not implemented yet: assign to [:]")
        if isinstance(value, NDArray):
            if value is not self:
                _overwrite(self, value)
        elif isinstance(value, (np.ndarray, np.generic)):
            warn(f"Assigning non-NDArray object to {name} is not efficient", MXNetRuntimeWarning)
            _overwrite(self, _dense_array(value, dtype=self._dtype_name))
        elif is_number(value):
            self._set_number(value)
        else:
            raise TypeError(f"type {type(value)} not supported")

    def _set_number(self, value: Any) -> None:
        _overwrite(self, _dense_array(np.broadcast_to(np.asarray(value), self.shape), dtype=self._dtype_name))

    def __reduce__(self) -> tuple[Any, ...]:
        pointers = self._aux_data(0).asnumpy() if self.stype == "csr" else None
        parts = (self.data.asnumpy(), self.indices.asnumpy(), pointers)
        return _unpickle, (self.stype, self.shape, parts, *self._device)


def _unpickle(stype: str, shape: tuple[int, ...], parts: Any, device_type: str, device_id: int) -> NDArray:
    made: NDArray = _mxrt.from_parts(stype, list(shape), parts, (device_type, device_id))
    return made


def _overwrite(target: NDArray, source: NDArray) -> None:
    """Copies an array into one of the same shape, of any storage and element type."""
    if source._dtype_name != target._dtype_name:
        source = source.astype(target._dtype_name)
    _mxrt.convert_into(source, target)


class CSRNDArray(BaseSparseNDArray):
    """A matrix of which each row stores some elements, by column.

    Row i has the values ``data[indptr[i]:indptr[i + 1]]`` in the columns
    ``indices[indptr[i]:indptr[i + 1]]``, which rise. :func:`csr_matrix` and ``tostype`` make one.
    """

    @property
    def indptr(self) -> NDArray:
        """A copy of the positions at which rows begin, and of the number of values (int64)."""
        made: NDArray = _mxrt.sparse_part(self, 2)
        return made

    def __getitem__(self, key: Any) -> NDArray:
        if isinstance(key, tuple):
            raise ValueError("Multi-dimension indexing is not supported")
        rows = self.shape[0]
        if isinstance(key, (int, np.integer)):
            if not -rows <= key < rows:
                raise IndexError(f"index {key} is out of bounds for axis 0 with size {rows}")
            begin = int(key) % rows
            return self._rows(begin, begin + 1)
        if not isinstance(key, slice):
            raise ValueError(f"Undefined behaviour for {key}")
        if key.step is not None:
            raise ValueError("CSRNDArray only supports continuous slicing on axis 0")
        if key.start is None and key.stop is None:
            return self
        begin, end, _ = key.indices(rows)
        return self._rows(begin, end)

    def _rows(self, begin: int, end: int) -> NDArray:
        made: NDArray = _mxrt.invoke("slice", (self,), {"begin": (begin,), "end": (end,)})
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        self._set_whole(key, value)

    def _set_number(self, value: Any) -> None:
        raise ValueError("Assigning numeric types to CSRNDArray is not implemented yet.")

    def asscipy(self) -> Any:
        """A ``scipy.sparse.csr_matrix`` with a copy of the value."""
        from scipy import sparse  # type: ignore[import-not-found,import-untyped,unused-ignore]

        parts = (self.data.asnumpy(), self.indices.asnumpy(), self.indptr.asnumpy())
        return sparse.csr_matrix(parts, shape=self.shape, dtype=self.dtype)


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which some rows are stored, by number.

    ``data`` holds the rows, ``indices`` their numbers, which rise. Make one with
    :func:`row_sparse_array` or ``tostype``.
    """

    def __getitem__(self, key: Any) -> NDArray:
        if isinstance(key, (int, np.integer)):
            raise ValueError("__getitem__ with int key is not implemented for RowSparseNDArray yet")
        if isinstance(key, slice):
            if key != slice(None):
                raise ValueError("RowSparseNDArray only supports [:] for __getitem__")
            return self
        if isinstance(key, tuple):
            raise ValueError("Multi-dimension indexing is not supported")
        raise ValueError(f"Undefined behaviour for {key}")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._set_whole(key, value)

    def retain(self, *args: Any, **kwargs: Any) -> NDArray:
        """The rows that the argument names; all others become zero."""
        indices = args[0] if args else kwargs["indices"]
        made: NDArray = _mxrt.invoke("_sparse_retain", (self, indices), None, kwargs.get("out"))
        return made


def csr_matrix(arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None) -> CSRNDArray:
    """A csr matrix of a dense array, a csr matrix (scipy's too), a shape, of ``(data, indices,
    indptr)``, or of ``(data, (row, column))``.

    Positions that are not those of a csr matrix are a failure that the array holds: every use of it
    raises MXNetError. Raises ValueError for shapes that do not fit.
    """
    if isinstance(arg1, tuple) and len(arg1) == 2 and not isinstance(arg1[1], (tuple, list)):
        check_shape(arg1, shape)
        return empty("csr", arg1, ctx=ctx, dtype=dtype)  # type: ignore[return-value]
    if isinstance(arg1, tuple) and len(arg1) == 2:
        if len(arg1[1]) != 2:
            raise ValueError(f"Unexpected length of coordinates: {len(arg1[1])}")
        row, column = arg1[1]
        return csr_of_coordinates(arg1[0], row, column, shape, ctx, dtype)  # type: ignore[return-value]
    if isinstance(arg1, tuple):
        if len(arg1) != 3:
            raise ValueError(f"Unexpected length of input tuple: {len(arg1)}")
        return csr_of_parts(*arg1, shape, ctx, dtype)  # type: ignore[return-value]
    if isinstance(arg1, RowSparseNDArray):
        raise ValueError("Unexpected input type: RowSparseNDArray")
    if isinstance(arg1, CSRNDArray) or is_sparse(arg1):
        check_shape(arg1.shape, shape)
        return array(arg1, ctx=ctx, dtype=dtype)  # type: ignore[return-value]
    dense = _dense_of(arg1, ctx, dtype)
    check_shape(dense.shape, shape)
    return dense.tostype("csr")  # type: ignore[return-value]


def _dense_of(source: Any, ctx: Any, dtype: Any) -> NDArray:
    if dtype is None and isinstance(source, (NDArray, np.ndarray)):
        dtype = source.dtype
    return _dense_array(source, ctx=ctx, dtype=dtype)


def row_sparse_array(arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None) -> RowSparseNDArray:
    """A row_sparse array of a dense or row_sparse array, a shape, or ``(data, indices)``.

    Row numbers that do not rise, or are outside of the array, are a failure that the array holds:
    every use of it raises MXNetError. Raises ValueError for shapes that do not fit.
    """
    if isinstance(arg1, tuple):
        if len(arg1) < 2:
            raise ValueError(f"Unexpected length of input tuple: {len(arg1)}")
        if len(arg1) > 2 or all(isinstance(n, (int, np.integer)) for n in arg1):
            check_shape(arg1, shape)
            return empty("row_sparse", arg1, ctx=ctx, dtype=dtype)  # type: ignore[return-value]
        values, rows = values_of(arg1[0], dtype), whole_numbers(arg1[1], "indices")
        if shape is None:
            if not rows.size:
                raise ValueError("invalid shape")
            shape = (int(rows.max()) + 1, *values.shape[1:])
        if values.ndim != len(shape) or rows.ndim != 1 or 0 in tuple(shape[1:]):
            raise ValueError("invalid shape")
        return from_definition("row_sparse", shape, (values, rows, None), ctx)  # type: ignore[return-value]
    if isinstance(arg1, RowSparseNDArray):
        check_shape(arg1.shape, shape)
        return array(arg1, ctx=ctx, dtype=dtype)  # type: ignore[return-value]
    if isinstance(arg1, CSRNDArray):
        raise ValueError("Unexpected input type: CSRNDArray")
    dense = _dense_of(arg1, ctx, dtype)
    check_shape(dense.shape, shape)
    return dense.tostype("row_sparse")  # type: ignore[return-value]


def zeros(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """Zeros of a shape, stored as `stype` says: ``default``, ``csr`` or ``row_sparse``."""
    if stype == "default":
        return _dense_zeros(shape, ctx=ctx, dtype=dtype, **kwargs)
    if stype not in ("csr", "row_sparse"):
        raise ValueError(f"unknown storage type {stype}")
    made: NDArray = _mxrt.zeroed_stored(stype, checked_extents(_tuple(shape)), dtype_name(dtype), _device(ctx))
    return made


def _tuple(shape: Any) -> Any:
    return (shape,) if isinstance(shape, (int, np.integer)) else shape


def empty(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """An array of a shape for values that are written later. Its elements are zero."""
    if stype == "default":
        return _dense_empty(shape, ctx=ctx, dtype=dtype)
    if stype not in ("csr", "row_sparse"):
        raise ValueError(f"unknown stype : {stype}")
    return zeros(stype, shape, ctx=ctx, dtype=dtype)


def cast_storage(
    data: NDArray | None = None,
    stype: str | None = None,
    out: NDArray | None = None,
    name: str | None = None,
    **kwargs: Any,
) -> NDArray:
    """A copy of an array in another storage; it is written to `out`, which has that storage.

    Raises :class:`mxrt.base.MXNetError` without an array or a storage, or for other keywords, and
    AssertionError for something that is no array.
    """
    if out is not None and out.stype != stype:
        raise MXNetTypeError(f"cast_storage: out is a {out.stype} array, wanted a {stype} one")
    inputs = () if data is None else (checked_array(data),)
    attrs = kwargs if stype is None else {**kwargs, "stype": stype}
    made: NDArray = _mxrt.invoke("cast_storage", inputs, attrs, out)
    return made


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A copy of a sparse array, or of a sparse matrix of scipy.

    Raises ValueError for anything that is not sparse, and for a dense NDArray an AssertionError,
    too.
    """
    if isinstance(source_array, NDArray):
        if not isinstance(source_array, BaseSparseNDArray):
            raise DenseArrayError("sparse.array: give a sparse array; a dense one becomes one by tostype()")
        copy = source_array.astype(source_array._dtype_name if dtype is None else dtype)
        return copy if ctx is None or copy.context == ctx else copy.copyto(ctx)
    if not is_sparse(source_array):
        raise ValueError(f"Please use mx.nd.array to create an NDArray with source_array of type {type(source_array)}")
    if source_array.format != "csr":
        source_array = source_array.tocsr()
    if not source_array.has_canonical_format:
        source_array = source_array.copy()
        source_array.sum_duplicates()
    kind = source_array.dtype if dtype is None else dtype
    parts = (source_array.data, source_array.indices, source_array.indptr)
    return csr_of_parts(*parts, source_array.shape, ctx, kind)


def _two(same_shape: str, broadcast: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, NDArray) and isinstance(rhs, NDArray) and lhs.shape == rhs.shape:
            return _mxrt.invoke(same_shape, (lhs, rhs))
        return broadcast(lhs, rhs)

    function.__doc__ = f"The operator {same_shape} of arrays of one shape; with broadcasting otherwise."
    return function
