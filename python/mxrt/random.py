"""Random numbers: ``mx.random``."""

from __future__ import annotations

from typing import Any

from . import _mxrt
from .context import Context
from .ndarray import random as _arrays
from .ndarray.random import *  # noqa: F403

__all__ = ["seed"]
__all__ += _arrays.__all__


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Starts the random stream again. One stream serves all contexts; `ctx` names one, or all."""
    if not hasattr(seed_state, "__index__"):
        raise ValueError("seed_state must be int")
    if not (isinstance(ctx, str) and ctx == "all"):
        Context(ctx)  # the error of what names no context
    _mxrt.seed(seed_state.__index__() & 0xFFFFFFFFFFFFFFFF)
