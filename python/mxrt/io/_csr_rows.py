"""Rows of a csr matrix, as numpy arrays: what ``NDArrayIter`` takes batches of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ndarray import NDArray
from ..ndarray.sparse import CSRNDArray, csr_matrix

__all__ = ["CsrRows"]


class CsrRows:
    """A copy of a csr matrix, or of a matrix of scipy. Picking rows gives a csr matrix of them."""

    def __init__(self, matrix: Any) -> None:
        given = matrix if isinstance(matrix, CSRNDArray) else csr_matrix(matrix)
        self.shape = given.shape
        self.dtype = np.dtype(given.dtype)
        self._values = given.data.asnumpy()
        self._columns = given.indices.asnumpy()
        self._pointers = given.indptr.asnumpy()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray:
        first, counts = self._pointers[rows], np.diff(self._pointers)[rows]
        pointers = np.concatenate([[0], np.cumsum(counts)])
        picked = np.arange(pointers[-1]) + np.repeat(first - pointers[:-1], counts)
        parts = (self._values[picked], self._columns[picked], pointers)
        return csr_matrix(parts, shape=(len(first), self.shape[1]))
