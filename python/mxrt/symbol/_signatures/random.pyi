"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..symbol import Symbol

# ruff: noqa
# fmt: off

__all__ = [
    "normal_like",
    "uniform_like",
]

def normal_like(data: Symbol | None = ..., loc: float = ..., scale: float = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
def uniform_like(data: Symbol | None = ..., low: float = ..., high: float = ..., *, name: Any = ..., attr: Any = ..., **kwargs: Any) -> Symbol: ...
