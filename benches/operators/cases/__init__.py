"""Generated rows: a call of every registered operator, at three sizes."""

from __future__ import annotations

from . import elements, networks, others, products, shapes
from .table import CASES, REASONS, SIZES, Row

__all__ = ["CASES", "REASONS", "SIZES", "Row", "elements", "named", "networks", "others", "products", "shapes"]


def named() -> set[str]:
    """Operators that have a row or a reason."""
    return {row.operator for row in CASES.values()} | REASONS.keys()
