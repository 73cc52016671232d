"""Sparse arrays, functions that make them, and the operators that know them: ``mx.nd.sparse``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._operators.functions import module_functions as _module_functions
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
from ._sparse_arrays import _two as _of_one_shape
from .arithmetic import add as _add
from .arithmetic import divide as _divide
from .arithmetic import multiply as _multiply
from .arithmetic import subtract as _subtract

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

add: Callable[[Any, Any], Any] = _of_one_shape("elemwise_add", _add)
subtract: Callable[[Any, Any], Any] = _of_one_shape("elemwise_sub", _subtract)
multiply: Callable[[Any, Any], Any] = _of_one_shape("elemwise_mul", _multiply)
divide: Callable[[Any, Any], Any] = _of_one_shape("elemwise_div", _divide)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._signatures.sparse import *  # noqa: F403

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = _module_functions(globals(), "sparse", _make)
