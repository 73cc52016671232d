"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..ndarray import NDArray

# ruff: noqa
# fmt: off

__all__ = [
    "arange_like",
    "index_array",
]

def arange_like(
    data: NDArray | None = ...,
    start: float = ...,
    step: float = ...,
    repeat: int = ...,
    ctx: Any = ...,
    axis: int | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def index_array(
    data: NDArray | None = ...,
    axes: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
