"""What a Python index means, as positions in an array.

numpy works it out: basic keys on an array of the same shape that has no memory, others on the array of all positions.
"""

from __future__ import annotations

from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import _mxrt

Region: TypeAlias = tuple[int, list[tuple[int, int]]]

_NOTHING = np.zeros(1, np.int8)
_BASE_ADDRESS: int = _NOTHING.__array_interface__["data"][0]


def is_basic(key: Any) -> bool:
    """Whether a key consists of integers, slices, ``None`` and ``...`` only."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None
        or isinstance(part, (slice, EllipsisType, np.integer))
        or (isinstance(part, int) and not isinstance(part, bool))
        for part in parts
    )


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def _hollow(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An int8 array whose strides are those of the shape; its elements must not be touched."""
    return as_strided(_NOTHING, shape, _strides(shape), writeable=False)


def _region(hollow: np.ndarray[Any, Any]) -> Region:
    start = hollow.__array_interface__["data"][0] - _BASE_ADDRESS
    return start, list(zip(hollow.shape, hollow.strides, strict=True))


def basic_region(shape: tuple[int, ...], key: Any) -> Region:
    """The elements a basic key names. IndexError as numpy raises it."""
    parts = key if isinstance(key, tuple) else (key,)
    # With an ellipsis numpy gives an array where it would else give, and read, a single element.
    if not any(part is Ellipsis for part in parts):
        parts = (*parts, Ellipsis)
    return _region(_hollow(shape)[parts])


def region_shape(region: Region) -> tuple[int, ...]:
    return tuple(length for length, _ in region[1])


def is_contiguous(region: Region) -> bool:
    """Whether the elements follow one another in memory, in order."""
    expected = 1
    for length, stride in reversed(region[1]):
        if length == 0:
            return True
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def broadcast_region(shape: tuple[int, ...], to: tuple[int, ...]) -> Region:
    """An array of `shape` repeated to the shape `to`. ValueError when it does not fit."""
    while len(shape) > len(to) and shape[0] == 1:
        shape = shape[1:]
    try:
        return _region(np.broadcast_to(_hollow(shape), to))
    except ValueError:
        raise ValueError(
            f"operands could not be broadcast together: a value of shape {shape} does not fit the indexed part, {to}"
        ) from None


def positions(shape: tuple[int, ...], key: Any) -> np.ndarray[Any, Any]:
    """The positions an advanced key names, in the shape of the result."""
    size = 1
    for extent in shape:
        size *= extent
    everything = np.arange(size, dtype=np.int64).reshape(shape)
    parts = key if isinstance(key, tuple) else (key,)
    picked = everything[tuple(_plain(part) for part in parts)]
    return np.ascontiguousarray(picked, np.int64)


def _plain(part: Any) -> Any:
    """One part of a key as numpy takes it; numbers of any type are integers here, also what a comparison made."""
    if isinstance(part, _mxrt.NDArrayBase):
        part = part.asnumpy()  # type: ignore[attr-defined]
    if isinstance(part, (list, tuple)):
        part = np.asarray([_plain(item) for item in part] if part else part)
    if isinstance(part, np.ndarray):
        return part.astype(np.int64)
    return part
