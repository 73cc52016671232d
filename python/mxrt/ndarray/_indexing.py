"""The meaning of a Python index: a region of an array, or, for keys with arrays in them, a list of
positions.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from .. import _mxrt
from ..base import MXNetIndexError, MXNetShapeError
from ._positions import positions as positions_of
from ._positions import strides_of

Region: TypeAlias = tuple[int, list[tuple[int, int]]]


def is_basic(key: Any, assigned: bool = False) -> bool:
    """Whether a key consists of integers, slices, ``None`` and ``...`` only.

    A boolean is 0 or 1 if it is read and next to integers alone, as in MXNet. Everywhere else it is
    a mask without axes, as in NumPy.
    """
    parts = key if isinstance(key, tuple) else (key,)
    kinds = set(map(type, parts))
    if bool in kinds and (assigned or not kinds <= {bool, int}):
        return False
    return all(part is None or isinstance(part, (slice, EllipsisType, int, np.integer)) for part in parts)


def basic_region(shape: tuple[int, ...], key: Any) -> Region:
    """The elements a basic key names."""
    parts = key if isinstance(key, tuple) else (key,)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    dots = sum(part is Ellipsis for part in parts)
    if dots > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    strides = strides_of(shape)
    start, axis = 0, 0
    axes: list[tuple[int, int]] = []
    for part in parts if dots else (*parts, Ellipsis):
        if part is None:
            axes.append((1, 0))
        elif part is Ellipsis:
            rest = len(shape) - used
            axes += zip(shape[axis : axis + rest], strides[axis : axis + rest], strict=True)
            axis += rest
        elif isinstance(part, slice):
            first, stop, step = part.indices(shape[axis])
            length = len(range(first, stop, step))
            axes.append((length, step * strides[axis]))
            start += first * strides[axis] if length else 0
            axis += 1
        else:
            index, extent = int(part), shape[axis]
            if not -extent <= index < extent:
                raise IndexError(f"index {index} is out of bounds for axis {axis} with size {extent}")
            start += (index % extent) * strides[axis]
            axis += 1
    return start, axes


def region_shape(region: Region) -> tuple[int, ...]:
    """The extents of a region."""
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


def whole_region(shape: tuple[int, ...]) -> Region:
    """All elements, in order."""
    return 0, list(zip(shape, strides_of(shape), strict=True))


def broadcast_region(shape: tuple[int, ...], to: tuple[int, ...]) -> Region:
    """An array of `shape` repeated to the shape `to`. MXNetShapeError when it does not fit."""
    while len(shape) > len(to) and shape[0] == 1:
        shape = shape[1:]
    lead = len(to) - len(shape)
    if lead < 0 or any(n not in (1, wanted) for n, wanted in zip(shape, to[lead:], strict=True)):
        raise MXNetShapeError(
            f"operands could not be broadcast together: a value of shape {shape} does not fit the indexed part, {to}"
        )
    steps = [0] * lead + [0 if n == 1 else stride for n, stride in zip(shape, strides_of(shape), strict=True)]
    return 0, list(zip(to, steps, strict=True))


def basic_assignment(shape: tuple[int, ...], key: Any, value: tuple[int, ...]) -> tuple[Region, Region]:
    """The elements that a basic key names for an assignment, and those of a value for them.
    MXNetShapeError when it does not fit.
    """
    region = basic_region(shape, _without_new_axes(key))
    named = lambda: region_shape(basic_region(shape, key))  # noqa: E731
    return region, _value_region(value, region_shape(region), named)


def advanced_assignment(
    positions: Callable[[Any], np.ndarray[Any, Any]], key: Any, value: tuple[int, ...]
) -> tuple[np.ndarray[Any, Any], Region]:
    """The positions that a plain advanced key names for an assignment, and the elements of a value
    for them. New axes are left out unless they part arrays of the key, which gives another order.
    MXNetShapeError when the value does not fit.
    """
    at = named = positions(key)
    if isinstance(key, tuple) and any(part is None for part in key):
        left = positions(_without_new_axes(key))
        if _new_axes(named.shape, left.shape) is not None and np.array_equal(left.ravel(), named.ravel()):
            at = left
    return at, _value_region(value, at.shape, lambda: named.shape)


def _without_new_axes(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(part for part in key if part is not None)
    return () if key is None else key


def _new_axes(named: tuple[int, ...], part: tuple[int, ...]) -> set[int] | None:
    """The axes of extent 1 that a shape has in addition to another; None where more differs."""
    new, rest = set(), list(part)
    for axis, extent in enumerate(named):
        if rest and extent == rest[0]:
            del rest[0]
        elif extent == 1:
            new.add(axis)
        else:
            return None
    return None if rest else new


def _value_region(value: tuple[int, ...], part: tuple[int, ...], named: Callable[[], tuple[int, ...]]) -> Region:
    """The elements of an array of the shape `value` for those of a part. A value with more axes may
    have the new axes of the key, as in MXNet: `named` gives the shape of the part with them.
    """
    if len(value) > len(part):
        new = _new_axes(named(), part) or set()
        value = tuple(extent for axis, extent in enumerate(value) if axis not in new or extent != 1)
    return broadcast_region(value, part)


def plain(key: Any) -> tuple[Any, ...]:
    """An advanced key with numpy's arrays in it."""
    return tuple(_plain(part) for part in (key if isinstance(key, tuple) else (key,)))


def positions(shape: tuple[int, ...], key: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """The positions a plain advanced key names, in the shape of the result."""
    return np.ascontiguousarray(positions_of(shape, key), np.int64)


def _plain(part: Any) -> Any:
    """One part of a key as numpy takes it; numbers of any type are integers here, also what a
    comparison made.
    """
    if isinstance(part, _mxrt.NDArrayBase):
        part = part.asnumpy()  # type: ignore[attr-defined]
    if isinstance(part, (list, tuple)):
        part = np.asarray([_plain(item) for item in part] if part else part)
    if isinstance(part, np.ndarray):
        try:
            return part.astype(np.int64)
        except OverflowError:
            raise MXNetIndexError("an index has more than 64 bits: no axis is as long") from None
    return part
