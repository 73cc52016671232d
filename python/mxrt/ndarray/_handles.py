"""Handles of arrays: what callbacks written for MXNet make an array of.

MXNet calls them with a C handle, and they write ``NDArray(ctypes.cast(handle, NDArrayHandle))``.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from typing import Any

from .ndarray import NDArray

__all__ = ["array_of", "handled"]

# By the number in a handle: the array, as long as it lives.
_arrays: weakref.WeakValueDictionary[int, _HandledArray] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


class _HandledArray(NDArray):
    """An array that a callback may use unchanged, or as a handle. The handle is a number, not the
    address of a C structure: only ``NDArray(handle)`` understands it, while the callback runs.
    """

    __slots__ = ()

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        number = next(_numbers)  # never twice: a handle that was kept is not that of another array
        _arrays[number] = self
        return ctypes.c_void_p(number)


# What a callback prints is an NDArray.
_HandledArray.__name__ = NDArray.__name__


def handled(array: NDArray) -> NDArray:
    """An array for a callback. Sparse arrays and those of mx.np have no handle."""
    return _HandledArray(array) if type(array) is NDArray else array


def array_of(handle: Any) -> NDArray:
    """The array of a handle; TypeError for what is none, ValueError for one whose array is gone."""
    if not isinstance(handle, ctypes.c_void_p):
        raise TypeError(f"NDArray(...) takes an NDArray or its handle, not {type(handle).__name__}; use mx.nd.array")
    found = _arrays.get(handle.value or 0)
    if found is None:
        raise ValueError(
            f"the handle {handle.value} belongs to no array: those that a callback gets are valid until it returns"
        )
    return found
