"""Shapes and axes as programs give them: a number, of Python or NumPy, or several."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["extents"]


def extents(shape: Any) -> tuple[Any, ...]:
    """A shape, or axes, as a tuple. A number stands for one."""
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
