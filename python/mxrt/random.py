"""Random numbers: ``mx.random``."""

from __future__ import annotations

from typing import Any

from . import _mxrt
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
    """Starts the random stream again. One stream serves all contexts."""
    if not hasattr(seed_state, "__index__"):
        raise ValueError("sd must be int")
    _mxrt.seed(seed_state.__index__() & 0xFFFFFFFFFFFFFFFF)
