"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..symbol import Symbol

# ruff: noqa
# fmt: off

__all__ = [
    "gemm",
    "gemm2",
]

def gemm(A: Symbol | None = ..., B: Symbol | None = ..., C: Symbol | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., beta: float = ..., axis: int = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
def gemm2(A: Symbol | None = ..., B: Symbol | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., axis: int = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
