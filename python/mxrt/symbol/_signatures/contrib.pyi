"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..symbol import Symbol

# ruff: noqa
# fmt: off

__all__ = [
    "arange_like",
    "index_array",
]

def arange_like(
    data: Symbol | None = ...,
    start: float = ...,
    step: float = ...,
    repeat: int = ...,
    ctx: Any = ...,
    axis: int | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def index_array(
    data: Symbol | None = ...,
    axes: int | Sequence[int] | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
