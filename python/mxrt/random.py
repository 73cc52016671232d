"""Random numbers: ``mx.random``."""

from __future__ import annotations

from typing import Any

from . import _mxrt
from .context import Context
from .ndarray.random import (
    exponential,
    gamma,
    generalized_negative_binomial,
    multinomial,
    negative_binomial,
    normal,
    poisson,
    randint,
    randn,
    shuffle,
    uniform,
)

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "seed",
    "shuffle",
    "uniform",
]


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Starts the random stream again. One stream serves all contexts; `ctx` names one, or all."""
    if not hasattr(seed_state, "__index__"):
        raise ValueError("seed_state must be int")
    if not (isinstance(ctx, str) and ctx == "all"):
        Context(ctx)  # the error of what names no context
    _mxrt.seed(seed_state.__index__() & 0xFFFFFFFFFFFFFFFF)
