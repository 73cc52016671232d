"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from ..ndarray import NDArray
from ..symbol import Symbol

# ruff: noqa
# fmt: off

T = TypeVar("T", NDArray, Symbol)

__all__ = [
    "gemm",
    "gemm2",
]

def gemm(A: T | None = ..., B: T | None = ..., C: T | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., beta: float = ..., axis: int = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def gemm2(A: T | None = ..., B: T | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., axis: int = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
