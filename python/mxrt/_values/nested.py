"""Nested lists of arrays or symbols, as one flat list and a format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base import MXNetTypeError

__all__ = ["FormatError", "flatten", "regroup"]


class FormatError(MXNetTypeError, AssertionError):
    """Something that is not in nested lists of arrays or symbols; MXNet asserts that it is."""


def flatten(values: Any, parts: Callable[[Any], list[Any] | None], what: str) -> tuple[list[Any], Any]:
    """All values of nested lists in one list, and the format: 0 for one value, a number for several
    outputs of one value, a list for a list.

    `parts` gives the outputs of a value, or None for what is no value.

    Raises FormatError for what is neither a value nor a list.
    """
    outputs = parts(values)
    if outputs is not None:
        return outputs, len(outputs) if len(outputs) > 1 else 0
    if not isinstance(values, (list, tuple)):
        raise FormatError(f"{what}: expected values in (nested) lists, got {values!r} of type {type(values)}")
    flat: list[Any] = []
    formats = []
    for value in values:
        some, one = flatten(value, parts, what)
        flat += some
        formats.append(one)
    return flat, formats


def regroup(flat: list[Any], form: Any) -> Any:
    """Nested lists of a format with the values of a flat list."""
    grouped, rest = _take(flat, form)
    if rest:
        raise AssertionError(f"{len(rest)} values are left over: the format is {form}")
    return grouped


def _take(flat: list[Any], form: Any) -> tuple[Any, list[Any]]:
    if isinstance(form, int):
        return (flat[:form], flat[form:]) if form else (flat[0], flat[1:])
    grouped = []
    for one in form:
        value, flat = _take(flat, one)
        grouped.append(value)
    return grouped, flat
