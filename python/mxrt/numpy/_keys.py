"""The meaning of NumPy's keys, basic and advanced."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as onp

from .. import _mxrt
from ..base import MXNetIndexError
from ..ndarray._positions import positions as positions_of

__all__ = ["checked", "is_basic", "plain", "positions"]


def checked(key: Any) -> Any:
    """The key; ValueError for what can be none."""
    if isinstance(key, (str, bytes, float, complex)):
        raise ValueError(f"NDArray does not support slicing with key {key!s} of type {type(key)}.")
    return key


def is_basic(key: Any) -> bool:
    """Whether a key consists of integers, slices, ``None`` and ``...`` only."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None or (isinstance(part, (slice, EllipsisType, int, onp.integer)) and not isinstance(part, bool))
        for part in parts
    )


def plain(key: Any) -> Any:
    """An advanced key with NumPy's arrays in it."""
    return tuple(_plain(part) for part in key) if isinstance(key, tuple) else _plain(key)


def positions(shape: tuple[int, ...], key: Any) -> onp.ndarray[Any, Any]:
    """The positions that a plain advanced key names, in the shape of the result."""
    try:
        picked = positions_of(shape, key)
    except IndexError as error:
        raise MXNetIndexError(str(error)) from None
    return picked if picked.flags.c_contiguous else picked.copy()


def _plain(part: Any) -> Any:
    """One part of a key as NumPy takes it. Bool stays bool, other numbers become integers."""
    if isinstance(part, _mxrt.NDArrayBase):
        part = part.asnumpy()  # type: ignore[attr-defined]
    elif isinstance(part, (list, tuple)):
        part = onp.asarray([_plain(one) for one in part] if part else onp.zeros(0, onp.int64))
    if isinstance(part, onp.ndarray) and part.dtype.kind not in "bi":
        return part.astype(onp.int64)
    return part
