"""Values and positions that sparse arrays are made of, as programs give them."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from .. import _mxrt
from .._values.dtypes import dtype_name
from .._values.extents import check_extents
from ..base import MXNetTypeError, MXNetValueError
from .ndarray import NDArray, _device

__all__ = [
    "check_shape",
    "checked_extents",
    "csr_of_coordinates",
    "csr_of_parts",
    "from_definition",
    "values_of",
    "whole_numbers",
]


def whole_numbers(values: Any, what: str) -> np.ndarray[Any, Any]:
    """Whole numbers of an array-like as int64."""
    given = values.asnumpy() if isinstance(values, NDArray) else np.asarray(values)
    try:
        numbers = np.ascontiguousarray(given, dtype=np.int64)
    except (TypeError, ValueError) as error:
        raise MXNetTypeError(f"{what} are whole numbers: {error}") from None
    except OverflowError:
        raise MXNetValueError(f"{what} are whole numbers of 64 bits, but some are larger") from None
    if numbers.size and given.dtype.kind == "f" and not np.array_equal(numbers, given):
        raise MXNetValueError(f"{what} are whole numbers, but some are not")
    return numbers


def values_of(values: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Values as a C-contiguous numpy array; float32 for lists, unless `dtype` says otherwise."""
    if dtype is None:
        dtype = values.dtype if isinstance(values, (NDArray, np.ndarray)) else np.float32
    given = values.asnumpy() if isinstance(values, NDArray) else values
    try:
        return np.ascontiguousarray(np.asarray(given), dtype=dtype_name(dtype))
    except (TypeError, ValueError):
        raise TypeError("values must be array like object") from None


def check_shape(found: Any, wanted: Any) -> None:
    """ValueError if two shapes, as far as both are known, differ."""
    if found and wanted and tuple(found) != tuple(wanted):
        raise ValueError(f"Shape mismatch detected. {tuple(found)} v.s. {tuple(wanted)}")


def checked_extents(shape: Any) -> list[int]:
    """The extents of a shape; an error if they are no whole numbers from 0."""
    try:
        extents = [index(n) for n in shape]
    except TypeError:
        raise MXNetTypeError(f"a shape is a tuple of integers, got {shape!r}") from None
    if any(n < 0 for n in extents):
        raise MXNetValueError(f"the shape {tuple(extents)} has a negative extent")
    check_extents(extents, "sparse")
    return extents


def from_definition(stype: str, shape: Any, parts: tuple[Any, ...], ctx: Any) -> NDArray:
    """A sparse array of values and positions, which the engine checks."""
    made: NDArray = _mxrt.from_parts(stype, checked_extents(shape), parts, _device(ctx))
    return made


def csr_of_parts(data: Any, indices: Any, indptr: Any, shape: Any, ctx: Any, dtype: Any) -> NDArray:
    """A csr matrix of its values, their columns, and the positions at which rows begin."""
    values = values_of(data, dtype)
    columns, pointers = whole_numbers(indices, "indices"), whole_numbers(indptr, "indptr")
    if shape is None:
        if not columns.size:
            raise ValueError("invalid shape")
        shape = (len(pointers) - 1, int(columns.max()) + 1)
    if values.ndim != 1 or columns.ndim != 1 or pointers.ndim != 1 or not pointers.size or len(shape) != 2:
        raise ValueError("invalid shape")
    return from_definition("csr", shape, (values, columns, pointers), ctx)


def csr_of_coordinates(data: Any, row: Any, column: Any, shape: Any, ctx: Any, dtype: Any) -> NDArray:
    """A csr matrix of coordinates; values of equal position are added. Without `dtype` it has the
    type that numpy gives the values, as scipy makes it, which has no float16.
    """
    rows, columns = whole_numbers(row, "row numbers"), whole_numbers(column, "columns")
    values = np.asarray(data.asnumpy() if isinstance(data, NDArray) else data)
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    kind = values.dtype
    if values.ndim != 1 or values.shape != rows.shape or values.shape != columns.shape:
        raise ValueError(f"coordinates of shapes {rows.shape} and {columns.shape} for values of shape {values.shape}")
    if shape is None:
        if not rows.size:
            raise ValueError("invalid shape")
        shape = (int(rows.max()) + 1, int(columns.max()) + 1)
    if rows.size and (rows.min() < 0 or rows.max() >= shape[0]):
        raise ValueError(f"row numbers from {rows.min()} to {rows.max()} for {shape[0]} rows")
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    if rows.size:
        values = np.add.reduceat(values, np.flatnonzero(first), dtype=kind)
    pointers = np.searchsorted(rows[first], np.arange(shape[0] + 1))
    return csr_of_parts(values, columns[first], pointers, shape, ctx, kind if dtype is None else dtype)
