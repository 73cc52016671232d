"""Errors of arrays that are of two of Python's classes: MXNet's, and the one that fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _mxrt
from .._values.dtypes import dtype_name
from ..base import MXNetIndexError, MXNetShapeError, MXNetTypeError, MXNetValueError

__all__ = [
    "DenseArrayError",
    "ElementTypeError",
    "IndexShapeError",
    "InputError",
    "JoinError",
    "NegativeExtentError",
    "NoAxesError",
    "NoPartsError",
    "array_type",
    "check_joined",
    "checked_array",
    "element_type",
]

#: Element types of MXNet's arrays.
_TYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool")
#: Those that arrays have here, but no operator.
_STORED = ("int16", "uint16", "uint32", "uint64")


class NoAxesError(MXNetIndexError, TypeError):
    """The length of an array without axes."""


class DenseArrayError(MXNetValueError, AssertionError):
    """A dense array was given for a sparse one."""


class ElementTypeError(MXNetTypeError, MXNetValueError, KeyError):
    """An element type of NumPy that operators do not have."""


class IndexShapeError(MXNetIndexError, ValueError):
    """Arrays of an index have shapes that cannot be broadcast together."""


class InputError(MXNetTypeError, AssertionError):
    """An input of an operator is no array."""


class JoinError(MXNetShapeError, AssertionError):
    """Arrays cannot be joined."""


class NegativeExtentError(MXNetShapeError, OverflowError):
    """A shape has an extent below 0."""


class NoPartsError(MXNetValueError, ZeroDivisionError):
    """An array is split into no parts."""


def element_type(dtype: Any) -> str:
    """The name of an element type. ElementTypeError for one that operators do not have, TypeError
    where there is no such type.
    """
    return _known(dtype, _TYPES)


def array_type(dtype: Any) -> str:
    """The name of an element type, as ``element_type``, or of one that only arrays have."""
    return _known(dtype, _TYPES + _STORED)


def _known(dtype: Any, known: tuple[str, ...]) -> str:
    name = dtype_name(dtype)
    if name not in known:
        raise ElementTypeError(f"the element type {name} is not known; there are {', '.join(known)}")
    return name


def checked_array(data: Any) -> Any:
    """An input of an operator. InputError, an AssertionError as in MXNet, if it is no array."""
    if not isinstance(data, _mxrt.NDArrayBase):
        raise InputError(f"Argument data must have NDArray type, but got {data}")
    return data


def check_joined(arrays: Sequence[Any], axis: int) -> None:
    """Checks that arrays have one type, and one shape except for an axis; JoinError otherwise.
    MXNetIndexError if the first has no such axis.
    """
    first = checked_array(arrays[0])
    if not -first.ndim <= axis < first.ndim:
        raise MXNetIndexError(f"concatenate: axis {axis} does not exist in an array with {first.ndim} axes")
    for place, other in enumerate(arrays[1:], 1):
        checked_array(other)
        if other.dtype != first.dtype:
            names = f"{np.dtype(other.dtype).name}, the first {np.dtype(first.dtype).name}"
            raise JoinError(f"concatenate: array {place} has the type {names}: cast one of them")
        if other.ndim != first.ndim or _rest(other.shape, axis) != _rest(first.shape, axis):
            raise JoinError(
                f"concatenate: array {place} has shape {other.shape}, which does not fit the first, {first.shape}, "
                f"in all axes but {axis}"
            )


def _rest(shape: tuple[int, ...], axis: int) -> list[int]:
    rest = list(shape)
    del rest[axis]
    return rest
