"""Numbers given to functions that pass them on as attributes of operators."""

from __future__ import annotations

from operator import index
from typing import Any, SupportsFloat

from ..base import MXNetTypeError, MXNetValueError

__all__ = ["real", "whole"]


class AttributeValueError(MXNetValueError, MXNetTypeError):
    """An attribute has a value of another kind."""


def real(value: SupportsFloat | str, op: str, name: str) -> float:
    """A number, or the text of one. AttributeValueError, a ValueError and TypeError, for others."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise _refused(value, op, name, "double") from None


def whole(value: Any, op: str, name: str) -> int:
    """A whole number, or the text of one. AttributeValueError, a ValueError and TypeError, for
    others.
    """
    try:
        return int(value) if isinstance(value, str) else index(value)
    except (TypeError, ValueError):
        raise _refused(value, op, name, "int") from None


def _refused(value: Any, op: str, name: str, kind: str) -> AttributeValueError:
    return AttributeValueError(f"{op}: Invalid Parameter format for {name} expect {kind} but value={value!r}", op=op)
