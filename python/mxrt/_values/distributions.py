"""Parameters of distributions: numbers, or arrays or symbols of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import MXNetTypeError, MXNetValueError, is_number

__all__ = ["check_parameters"]


class ParameterKindError(MXNetValueError, AssertionError):
    """Parameters of a distribution are not of one kind."""


class ParameterTypeError(MXNetTypeError, ValueError):
    """A parameter of a distribution is neither a number nor an array."""


def check_parameters(values: Sequence[Any], array: type, called: str) -> None:
    """Checks parameters that are not all of the type `array`: they must be numbers.

    Raises ParameterTypeError, a ValueError, if the first is neither a number nor an `array`, and
    ParameterKindError, an AssertionError, if another is not of the same kind.
    """
    first = values[0]
    if not isinstance(first, array) and not is_number(first):
        raise ParameterTypeError(f"Distribution parameters must be either {called} or numbers, but got {type(first)}.")
    for other in values[1:]:
        if not (isinstance(other, array) if isinstance(first, array) else is_number(other)):
            raise ParameterKindError(
                f"Distribution parameters must all have the same type, but got both {type(first)} and {type(other)}."
            )
