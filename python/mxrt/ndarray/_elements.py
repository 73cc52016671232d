"""Elements of new arrays: what values of Python and of numpy become."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._values.dtypes import warn_of_changed
from ..base import MXNetTypeError

__all__ = ["elements", "is_sparse", "numbers"]


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse matrix, such as those of scipy."""
    return hasattr(value, "toarray") and hasattr(value, "nnz") and hasattr(value, "format")


def numbers(values: Any, name: str) -> np.ndarray[Any, Any]:
    """A numpy array of Python numbers. Whole numbers that the type does not have wrap around: numpy
    did so at MXNet's time, and raises OverflowError today.
    """
    try:
        return np.array(values, dtype=name, order="C")
    except OverflowError:
        found = np.array(values)
        whole = found.astype(np.int64) if found.dtype.kind == "f" else found
        return whole.astype(name, order="C")


def elements(values: Any, name: str) -> np.ndarray[Any, Any]:
    """The elements, of the type `name`, that an array of these values has: contiguous, in C order.

    Raises TypeError for values that are no array. Warns of whole numbers that float32 has not.
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "c":
            raise MXNetTypeError("array: complex numbers have no element type; pass the real or the imaginary part")
        try:
            made = np.asarray(values, dtype=name, order="C")
        except (TypeError, ValueError) as error:
            raise MXNetTypeError(f"array: a numpy array of dtype {values.dtype} has no numbers: {error}") from None
        if name == "float32" and values.dtype.kind != "f":
            warn_of_changed(values, made, "array")
    else:
        try:
            made = numbers(values, name)
        except MemoryError:
            raise
        except Exception as error:
            raise TypeError(f"source_array must be array like object: {error}") from None
        if name == "float32" and (np.abs(made) >= 1 << 24).any():
            warn_of_changed(np.asarray(values), made, "array")
    return made if made.flags.c_contiguous and made.flags.aligned else made.copy()
