"""Nested lists of arrays or symbols as arguments and results: flat lists and their formats.

A format says what stands where: 0 for an array, n for a symbol of n outputs, -1 for None, a list
for a list.
"""

from __future__ import annotations

from typing import Any

from ..context import Context
from ..ndarray import NDArray
from ..symbol import Symbol

__all__ = ["Format", "flatten", "regroup", "same_structure", "survey"]

Format = Any  # an int, or a list of formats


def flatten(value: Any, what: str) -> tuple[list[Any], Format]:
    """The arrays or symbols in a nested list, and its format; `what` is ``input`` or ``output``."""
    if isinstance(value, NDArray):
        return [value], 0
    if isinstance(value, Symbol):
        count = len(value)
        return [value], count if count > 1 else 0
    if value is None:
        return [None], -1
    if not isinstance(value, (list, tuple)):
        raise ValueError(
            f"When hybridized, the {what} of HybridBlock must be (nested) list of Symbol or NDArray, but got {value} "
            f"of type {type(value)}"
        )
    flat: list[Any] = []
    formats: list[Format] = []
    for part in value:
        inner, form = flatten(part, what)
        flat += inner
        formats.append(form)
    return flat, formats


def regroup(values: list[Any], form: Format) -> Any:
    """The nested list of a format."""
    return _regroup(values, form)[0]


def _regroup(values: list[Any], form: Format) -> tuple[Any, list[Any]]:
    if isinstance(form, int):
        if form in (0, -1):
            if form == -1 and values[0] is not None:
                raise ValueError(
                    "We do not support passing types that are not None where the block was traced with None"
                )
            return values[0], values[1:]
        return values[:form], values[form:]
    made = []
    for part in form:
        value, values = _regroup(values, part)
        made.append(value)
    return made, values


def same_structure(given: list[Format], traced: list[Format]) -> bool:
    """Whether arguments fit what was traced: None at the end may be left out."""
    shorter, longer = (given, traced) if len(given) <= len(traced) else (traced, given)
    return longer[: len(shorter)] == shorter and all(form == -1 for form in longer[len(shorter) :])


def survey(value: Any) -> tuple[bool, bool, list[Context]]:
    """Whether a nested list holds symbols, whether it holds arrays, and the contexts of those in
    order.
    """
    if isinstance(value, NDArray):
        return False, True, [value.context]
    if isinstance(value, Symbol):
        return True, False, []
    symbols = arrays = False
    contexts: list[Context] = []
    if isinstance(value, (list, tuple)):
        for part in value:
            more_symbols, more_arrays, more = survey(part)
            symbols |= more_symbols
            arrays |= more_arrays
            contexts += [context for context in more if context not in contexts]
    return symbols, arrays, contexts
