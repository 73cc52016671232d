"""Sparse arrays by name. There are none: programs may ask whether an array is one, and what would
make one is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .creation import empty as _dense_empty
from .creation import zeros as _dense_zeros
from .ndarray import NDArray, is_sparse, sparse_refused

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


class BaseSparseNDArray(NDArray):
    """The common base of sparse arrays. No array is one: making one is refused."""

    _stype = "row_sparse"

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise sparse_refused(cls.__name__, cls._stype)


class CSRNDArray(BaseSparseNDArray):
    """A matrix whose rows are stored sparsely. No array is one: making one is refused."""

    _stype = "csr"


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which some rows are stored. No array is one: making one is refused."""


def csr_matrix(arg1: Any, shape: Any = None, ctx: Any = None, dtype: Any = None) -> NoReturn:
    """Refused with MXNetNotImplementedError: arrays are stored densely."""
    raise sparse_refused("csr_matrix", "csr")


def row_sparse_array(arg1: Any, shape: Any = None, ctx: Any = None, dtype: Any = None) -> NoReturn:
    """Refused with MXNetNotImplementedError: arrays are stored densely."""
    raise sparse_refused("row_sparse_array", "row_sparse")


def zeros(stype: str, shape: Any, ctx: Any = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """Zeros of a shape; MXNetNotImplementedError for another `stype` than ``default``."""
    if stype != "default":
        raise sparse_refused("zeros", stype)
    return _dense_zeros(shape, ctx=ctx, dtype=dtype, **kwargs)


def empty(stype: str, shape: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """An array of a shape; MXNetNotImplementedError for another `stype` than ``default``."""
    if stype != "default":
        raise sparse_refused("empty", stype)
    return _dense_empty(shape, ctx=ctx, dtype=dtype)


def cast_storage(data: NDArray, stype: str) -> NDArray:
    """A copy of an array; MXNetNotImplementedError for another `stype` than ``default``."""
    return data.tostype(stype)


def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Refused with MXNetNotImplementedError for sparse matrices, and with ValueError for anything
    else, as in MXNet.
    """
    if is_sparse(source_array):
        raise sparse_refused("array", str(source_array.format))
    raise ValueError(f"Please use mx.nd.array to create an NDArray with source_array of type {type(source_array)}")
