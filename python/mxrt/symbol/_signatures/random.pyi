"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..symbol import Symbol

# ruff: noqa
# fmt: off

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "negative_binomial",
    "normal_like",
    "poisson",
    "randint",
    "uniform_like",
]

def exponential(lam: float = ..., shape: int | Sequence[int] | None = ..., ctx: Any = ..., dtype: Any = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
def gamma(alpha: float = ..., beta: float = ..., shape: int | Sequence[int] | None = ..., ctx: Any = ..., dtype: Any = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
def generalized_negative_binomial(mu: float = ..., alpha: float = ..., shape: int | Sequence[int] | None = ..., ctx: Any = ..., dtype: Any = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
def negative_binomial(k: int = ..., p: float = ..., shape: int | Sequence[int] | None = ..., ctx: Any = ..., dtype: Any = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
def normal_like(data: Symbol | None = ..., loc: float = ..., scale: float = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
def poisson(lam: float = ..., shape: int | Sequence[int] | None = ..., ctx: Any = ..., dtype: Any = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
def randint(low: int = ..., high: int = ..., shape: int | Sequence[int] | None = ..., ctx: Any = ..., dtype: Any = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
def uniform_like(data: Symbol | None = ..., low: float = ..., high: float = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
