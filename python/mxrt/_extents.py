"""Shapes and axes as programs give them: a number, of Python or NumPy, or several."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from .base import MXNetTypeError

__all__ = ["extents"]


def extents(shape: Any) -> tuple[Any, ...]:
    """A shape, or axes, as a tuple. A number stands for one, as does an array without axes.
    Whole numbers of numpy become Python's.
    MXNetTypeError for anything else.
    """
    try:
        if isinstance(shape, (int, np.integer)) or getattr(shape, "ndim", None) == 0:
            return (index(shape),)
        return tuple(int(n) if isinstance(n, np.integer) else n for n in shape)
    except TypeError:
        raise MXNetTypeError(f"expected an integer or a tuple of integers, got {shape!r}") from None
