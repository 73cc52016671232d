"""The elements that an advanced key names: as many numbers as the result has elements, however
large the array is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ._refusals import IndexShapeError

__all__ = ["positions", "rows_of", "strides_of"]

_Array: TypeAlias = np.ndarray[Any, Any]

# Rows of fewer elements are picked element by element.
_WIDE = 16


def strides_of(shape: tuple[int, ...]) -> list[int]:
    """How many elements lie between neighbours along each axis of an array in C order."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return strides


def rows_of(shape: tuple[int, ...], key: Any) -> _Array | None:
    """The rows, counted from the first one, that a key of one array of integers names: the operator
    ``take`` copies them whole. None for other keys, narrow rows and rows that are not there.
    """
    part = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if not isinstance(part, np.ndarray) or part.dtype.kind not in "iu" or not part.size or not part.ndim:
        return None
    if len(shape) < 2 or strides_of(shape)[0] < _WIDE:
        return None
    return _offsets(part, shape[:1], [1])


def positions(shape: tuple[int, ...], key: Any) -> _Array:
    """The flat positions, int64, that NumPy's indexing by a key finds, in the shape of the result.

    Arrays in the key are NumPy's, of bool or integers. Raises NumPy's IndexError for a key that
    does not fit the shape, and IndexShapeError, a ValueError too, for arrays that do not fit each
    other.
    """
    found = _computed(shape, key if isinstance(key, tuple) else (key,))
    if found is not None:
        return found
    # NumPy says what is wrong, with an array that takes no memory.
    try:
        shown = np.broadcast_to(np.int64(0), shape)[key]
    except IndexError as error:
        if "broadcast" in str(error):
            raise IndexShapeError(str(error)) from None
        raise
    if shown.size:
        shown = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)[key]
    return np.asarray(shown, np.int64)


def _computed(shape: tuple[int, ...], key: tuple[Any, ...]) -> _Array | None:
    """The positions; None for a key that does not fit or is of another kind."""
    used = sum(map(_axes_of, key))
    dots = sum(part is Ellipsis for part in key)
    if used > len(shape) or dots > 1:
        return None
    strides = strides_of(shape)
    axis, start = 0, 0
    # The axes of the result that slices make: extent and step.
    plain: list[tuple[int, int]] = []
    # What the arrays of the key add to a position, and before which of the plain axes it goes.
    picked: list[_Array] = []
    place, together, follows = 0, True, False
    for part in key if dots else (*key, Ellipsis):
        if part is None or part is Ellipsis or isinstance(part, slice):
            follows = False
            if part is None:
                plain.append((1, 0))
            elif isinstance(part, slice):
                first, stop, step = part.indices(shape[axis])
                length = len(range(first, stop, step))
                plain.append((length, step * strides[axis]))
                start += first * strides[axis] if length else 0
                axis += 1
            else:
                rest = axis + len(shape) - used
                plain += zip(shape[axis:rest], strides[axis:rest], strict=True)
                axis = rest
            continue
        count = _axes_of(part)
        offsets = _offsets(part, shape[axis : axis + count], strides[axis : axis + count])
        if offsets is None:
            return None
        if not picked:
            place = len(plain)
        elif not follows:
            together = False
        picked.append(offsets)
        axis, follows = axis + count, True
    return _combined(start, picked, plain, place if together else 0)


def _axes_of(part: Any) -> int:
    """How many axes of an array a part of a key stands for."""
    if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype.kind == "b" else 1


def _offsets(part: Any, extents: tuple[int, ...], strides: list[int]) -> _Array | None:
    """Distances that an index adds to a position; None where it does not fit."""
    if isinstance(part, (bool, np.bool_)):
        return np.zeros(int(part), np.int64)
    if isinstance(part, (int, np.integer)):
        part = np.asarray(part)
    if not isinstance(part, np.ndarray) or part.dtype.kind not in "biu":
        return None
    if part.dtype.kind == "b":
        if part.shape != extents:
            return None
        return np.flatnonzero(part) * (strides[-1] if strides else 1)
    extent = extents[0]
    if part.size and not -extent <= int(part.min()) <= int(part.max()) < extent:
        return None
    index = part.astype(np.int64)
    index[index < 0] += extent
    index *= strides[0]
    return index


def _combined(start: int, picked: list[_Array], plain: list[tuple[int, int]], place: int) -> _Array | None:
    """The sums of what arrays and slices add; None where the arrays do not fit each other."""
    at = np.asarray(start, np.int64)
    try:
        for offsets in picked:
            at = at + offsets
    except ValueError:
        return None
    axes = at.ndim
    at = np.reshape(at, (1,) * place + at.shape + (1,) * (len(plain) - place))
    for number, (length, step) in enumerate(plain):
        along = number if number < place else number + axes
        steps = np.arange(length, dtype=np.int64) * step
        at = at + steps.reshape((-1,) + (1,) * (at.ndim - along - 1))
    return np.asarray(at, np.int64)
