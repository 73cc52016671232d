"""Random matrices with known properties, and shuffled csr matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Matrix = np.ndarray[Any, Any]


def new_orthonormal_matrix_2d(n: int) -> Matrix:
    """A random orthonormal matrix of shape (n, n)."""
    return np.linalg.qr(np.random.randn(n, n))[0]


def new_sym_matrix_with_real_eigvals_2d(n: int) -> Matrix:
    """A random symmetric matrix of shape (n, n), with eigenvalues between -10 and 10."""
    vectors = new_orthonormal_matrix_2d(n)
    made: Matrix = vectors * _eigenvalues(n) @ vectors.T
    return (made + made.T) / 2


def new_matrix_with_real_eigvals_2d(n: int) -> Matrix:
    """A random matrix of shape (n, n) with real eigenvalues between -10 and 10.

    The condition number of its eigenvectors is at most 2.
    """
    stretched = new_orthonormal_matrix_2d(n) * np.random.uniform(1.0, 2.0, n)
    vectors = stretched @ new_orthonormal_matrix_2d(n)
    made: Matrix = vectors * _eigenvalues(n) @ np.linalg.inv(vectors)
    return made


def new_sym_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> Matrix:
    """Random symmetric matrices in the last two axes of an array."""
    return _stacked(shape, new_sym_matrix_with_real_eigvals_2d)


def new_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> Matrix:
    """Random matrices with real eigenvalues in the last two axes of an array."""
    return _stacked(shape, new_matrix_with_real_eigvals_2d)


def shuffle_csr_column_indices(csr: Any) -> None:
    """Shuffles the column numbers of each row in place. `csr` has NumPy arrays ``indptr`` and
    ``indices``, as matrices of scipy do.
    """
    for first, last in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        np.random.shuffle(csr.indices[first:last])


def _eigenvalues(n: int) -> Matrix:
    return np.random.uniform(-10.0, 10.0, n)


def _stacked(shape: Sequence[int], make: Callable[[int], Matrix]) -> Matrix:
    made = np.empty(shape)
    for place in np.ndindex(*shape[:-2]):
        made[place] = make(shape[-1])
    return made
