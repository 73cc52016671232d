"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..ndarray import NDArray

# ruff: noqa
# fmt: off

__all__ = [
    "normal_like",
    "uniform_like",
]

def normal_like(data: NDArray | None = ..., loc: float = ..., scale: float = ..., *, out: Any = ..., name: Any = ..., **kwargs: Any) -> NDArray: ...
def uniform_like(data: NDArray | None = ..., low: float = ..., high: float = ..., *, out: Any = ..., name: Any = ..., **kwargs: Any) -> NDArray: ...
