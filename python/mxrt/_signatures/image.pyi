"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from ..ndarray import NDArray
from ..symbol import Symbol

# ruff: noqa
# fmt: off

T = TypeVar("T", NDArray, Symbol)

__all__: list[str] = []
