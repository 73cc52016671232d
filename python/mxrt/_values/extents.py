"""Shapes and axes as programs give them: a number, of Python or NumPy, several, or their text."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable
from operator import index
from typing import Any

import numpy as np

from ..base import MXNetShapeError, MXNetTypeError, MXNetValueError

__all__ = ["LARGEST", "check_extents", "extents", "read_extents"]

#: No array has more elements, and no position is larger.
LARGEST = 2**63 - 1


def check_extents(extents: Iterable[int], what: str) -> None:
    """MXNetShapeError for an extent that no array has."""
    shape = tuple(extents)
    if any(n > LARGEST for n in shape):
        raise MXNetShapeError(f"{what}: the shape {shape} has an extent above 2**63 - 1")


def extents(shape: Any) -> tuple[Any, ...]:
    """A shape, or axes, as a tuple. A number stands for one, as does an array without axes. Whole
    numbers of numpy become Python's. Text is read as MXNet's operators read it: ``"(2, 3)"``.
    MXNetTypeError for anything else, MXNetValueError for another text.
    """
    try:
        if isinstance(shape, str):
            return read_extents(shape)
        if isinstance(shape, (int, np.integer)) or getattr(shape, "ndim", None) == 0:
            return (index(shape),)
        return tuple(int(n) if isinstance(n, np.integer) else n for n in shape)
    except TypeError:
        raise MXNetTypeError(f"expected an integer or a tuple of integers, got {shape!r}") from None


def read_extents(text: str) -> tuple[int, ...]:
    """The tuple of a text such as ``"(2, 3)"`` or ``"2"``. MXNetValueError for other texts."""
    try:
        found = literal_eval(text.strip())
    except (ValueError, SyntaxError):
        found = None
    parts = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if not all(type(part) is int for part in parts):
        raise MXNetValueError(
            f"Invalid Parameter format: expected an integer or a tuple of integers, such as '(2, 3)', got {text!r}"
        )
    return parts
