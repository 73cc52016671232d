"""Operators that also take sparse arrays in MXNet, and the names of such arrays: ``mx.nd.sparse``.
Here every array is dense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._functions import module_functions as _module_functions
from ._make import make as _make
from ._sparse_arrays import (
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    array,
    cast_storage,
    csr_matrix,
    empty,
    row_sparse_array,
    zeros,
)
from .arithmetic import add, divide, multiply, subtract

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "RowSparseNDArray",
    "add",
    "array",
    "cast_storage",
    "csr_matrix",
    "divide",
    "empty",
    "multiply",
    "row_sparse_array",
    "subtract",
    "zeros",
]

if TYPE_CHECKING:
    from .._signatures.sparse import *  # noqa: F403

__getattr__, __dir__ = _module_functions(globals(), "sparse", _make)
