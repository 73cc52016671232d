"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from ..ndarray import NDArray
from ..symbol import Symbol

# ruff: noqa
# fmt: off

T = TypeVar("T", NDArray, Symbol)

__all__ = [
    "cast_storage",
]

def cast_storage(data: T | None = ..., stype: Literal['csr', 'default', 'row_sparse'] = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
