"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..ndarray import NDArray

# ruff: noqa
# fmt: off

__all__ = [
    "gemm",
    "gemm2",
]

def gemm(A: NDArray | None = ..., B: NDArray | None = ..., C: NDArray | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., beta: float = ..., axis: int = ..., *, out: Any = ..., name: Any = ..., **kwargs: Any) -> NDArray: ...
def gemm2(A: NDArray | None = ..., B: NDArray | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., axis: int = ..., *, out: Any = ..., name: Any = ..., **kwargs: Any) -> NDArray: ...
