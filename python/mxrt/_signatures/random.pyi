"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from ..ndarray import NDArray
from ..symbol import Symbol

# ruff: noqa
# fmt: off

T = TypeVar("T", NDArray, Symbol)

__all__ = [
    "normal_like",
    "uniform_like",
]

def normal_like(data: T | None = ..., loc: float = ..., scale: float = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def uniform_like(data: T | None = ..., low: float = ..., high: float = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
