"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..symbol import Symbol

# ruff: noqa
# fmt: off

__all__: list[str] = []
