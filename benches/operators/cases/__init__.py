"""Generated rows: a call of every registered operator, at three sizes."""

from __future__ import annotations

from . import elements, networks, others, products, shapes
from .table import CASES, REASONS, SIZES, Row

__all__ = ["CASES", "REASONS", "SIZES", "Row", "elements", "missing", "networks", "others", "products", "shapes"]


def missing(operators: set[str]) -> tuple[set[str], set[str]]:
    """Operators that have neither a row nor a reason, and those that the tables name in vain."""
    named = {row.operator for row in CASES.values()} | REASONS.keys()
    return operators - named, named - operators
