"""The meaning of the codes of ``reshape``."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np

from ..base import MXNetShapeError

__all__ = ["shape_argument", "target_shape"]


class ShapeMissingError(MXNetShapeError, AssertionError):
    """``reshape`` without a shape."""


def shape_argument(shape: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    """The codes given to ``reshape``, in any of its ways to give them."""
    named = kwargs.pop("shape", None)
    if shape:  # counts more than shape=, as in MXNet
        given = shape[0] if len(shape) == 1 else shape
    elif named or isinstance(named, (int, np.integer)):
        given = named
    else:
        raise ShapeMissingError("reshape: Shape must be provided.")
    try:
        return (int(given),) if isinstance(given, (int, np.integer)) else tuple(index(n) for n in given)
    except TypeError:
        raise TypeError(f"reshape: a shape is an integer or a tuple of integers, got {given!r}") from None


def target_shape(old: tuple[int, ...], codes: tuple[int, ...], reverse: bool) -> tuple[int, ...]:
    """The shape that reshape's codes stand for."""
    if not all(code >= -4 for code in codes):
        raise MXNetShapeError(f"reshape: {codes} holds a number below -4, which means nothing")
    size = prod(old)
    extents = _decode(old[::-1], codes[::-1])[::-1] if reverse else _decode(old, codes)
    known = prod(n for n in extents if n != -1)
    unknown = extents.count(-1)
    if unknown > 1:
        raise MXNetShapeError(f"reshape: {codes} asks for more than one extent to be worked out")
    if unknown:
        extents[extents.index(-1)] = size // known if known else 0
        known = prod(extents)
    if known > size and not unknown:
        raise MXNetShapeError(
            f"reshape: target shape size is larger than the current shape: {tuple(extents)} against {old}"
        )
    if known != size:
        raise MXNetShapeError(f"Cannot reshape array of size {size} into shape {codes}")
    return tuple(extents)


def _decode(old: tuple[int, ...], codes: tuple[int, ...]) -> list[int]:
    """One pass over the codes; -1 stays for the caller to work out."""
    new: list[int] = []
    at = 0
    i = 0

    def take() -> int:
        nonlocal at
        if at >= len(old):
            raise MXNetShapeError(f"reshape: {codes} refers to more axes than the {len(old)} of the array")
        at += 1
        return old[at - 1]

    while i < len(codes):
        code = codes[i]
        i += 1
        if code == 0:
            new.append(take())
        elif code == -2:
            new.extend(old[at:])
            at = len(old)
        elif code == -3:
            new.append(take() * take())
        elif code == -4:
            if i + 2 > len(codes):
                raise MXNetShapeError(f"reshape: -4 in {codes} must be followed by two extents")
            new.extend(_split(take(), codes[i], codes[i + 1]))
            i += 2
        else:
            at = min(at + 1, len(old))
            new.append(code)
    return new


def _split(extent: int, first: int, second: int) -> tuple[int, int]:
    if first == -1 and second == -1:
        raise MXNetShapeError("reshape: -4 can work out one of its two extents, not both")
    if first == -1:
        first = extent // second if second else 0
    elif second == -1:
        second = extent // first if first else 0
    if first * second != extent:
        raise MXNetShapeError(f"reshape: -4 cannot split an axis of {extent} into {first} and {second}")
    return first, second
