"""Functions of two operands that may be arrays or numbers: ``mx.nd.add`` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _mxrt
from ..base import is_number
from .ndarray import NDArray


def _two(
    left: Any,
    right: Any,
    arrays: str,
    with_number: str,
    reflected: str | None,
    numbers: Callable[[Any, Any], Any],
) -> Any:
    """Calls the operator that fits the operands."""
    if isinstance(left, NDArray):
        if isinstance(right, NDArray):
            return _mxrt.invoke(arrays, (left, right))
        if is_number(right):
            return _mxrt.invoke(with_number, (left,), {"scalar": float(right)})
    elif is_number(left):
        if isinstance(right, NDArray):
            return _mxrt.invoke(reflected or with_number, (right,), {"scalar": float(left)})
        if is_number(right):
            return numbers(left, right)
    wrong = left if not isinstance(left, NDArray) and not is_number(left) else right
    advice = ": make an NDArray of it by mx.nd.array(x)" if isinstance(wrong, (np.ndarray, list, tuple)) else ""
    raise TypeError(f"type {type(wrong)} not supported{advice}")


def add(lhs: Any, rhs: Any) -> Any:
    """The sum, with broadcasting."""
    return _two(lhs, rhs, "broadcast_add", "_plus_scalar", None, lambda a, b: a + b)


def subtract(lhs: Any, rhs: Any) -> Any:
    """The difference, with broadcasting."""
    return _two(lhs, rhs, "broadcast_sub", "_minus_scalar", "_rminus_scalar", lambda a, b: a - b)


def multiply(lhs: Any, rhs: Any) -> Any:
    """The product, with broadcasting."""
    return _two(lhs, rhs, "broadcast_mul", "_mul_scalar", None, lambda a, b: a * b)


def divide(lhs: Any, rhs: Any) -> Any:
    """The quotient, with broadcasting."""
    return _two(lhs, rhs, "broadcast_div", "_div_scalar", "_rdiv_scalar", lambda a, b: a / b)


def true_divide(lhs: Any, rhs: Any) -> Any:
    """The quotient, with broadcasting."""
    return _two(lhs, rhs, "broadcast_div", "_div_scalar", "_rdiv_scalar", lambda a, b: a / b)


def modulo(lhs: Any, rhs: Any) -> Any:
    """The remainder, with broadcasting."""
    return _two(lhs, rhs, "broadcast_mod", "_mod_scalar", "_rmod_scalar", lambda a, b: a % b)


def power(base: Any, exp: Any) -> Any:
    """The power, with broadcasting."""
    return _two(base, exp, "broadcast_power", "_power_scalar", "_rpower_scalar", lambda a, b: a**b)


def maximum(lhs: Any, rhs: Any) -> Any:
    """The larger of two elements, with broadcasting."""
    return _two(lhs, rhs, "broadcast_maximum", "_maximum_scalar", None, lambda a, b: a if a > b else b)


def minimum(lhs: Any, rhs: Any) -> Any:
    """The smaller of two elements, with broadcasting."""
    return _two(lhs, rhs, "broadcast_minimum", "_minimum_scalar", None, lambda a, b: a if a < b else b)


def equal(lhs: Any, rhs: Any) -> Any:
    """1 where both are equal, else 0, with broadcasting."""
    return _two(lhs, rhs, "broadcast_equal", "_equal_scalar", None, lambda a, b: 1 if a == b else 0)


def not_equal(lhs: Any, rhs: Any) -> Any:
    """1 where both differ, else 0, with broadcasting."""
    return _two(lhs, rhs, "broadcast_not_equal", "_not_equal_scalar", None, lambda a, b: 1 if a != b else 0)


def greater(lhs: Any, rhs: Any) -> Any:
    """1 where the first is larger, else 0, with broadcasting."""
    return _two(lhs, rhs, "broadcast_greater", "_greater_scalar", "_lesser_scalar", lambda a, b: 1 if a > b else 0)


def greater_equal(lhs: Any, rhs: Any) -> Any:
    """1 where the first is not smaller, else 0, with broadcasting."""
    return _two(
        lhs,
        rhs,
        "broadcast_greater_equal",
        "_greater_equal_scalar",
        "_lesser_equal_scalar",
        lambda a, b: 1 if a >= b else 0,
    )


def lesser(lhs: Any, rhs: Any) -> Any:
    """1 where the first is smaller, else 0, with broadcasting."""
    return _two(lhs, rhs, "broadcast_lesser", "_lesser_scalar", "_greater_scalar", lambda a, b: 1 if a < b else 0)


def lesser_equal(lhs: Any, rhs: Any) -> Any:
    """1 where the first is not larger, else 0, with broadcasting."""
    return _two(
        lhs,
        rhs,
        "broadcast_lesser_equal",
        "_lesser_equal_scalar",
        "_greater_equal_scalar",
        lambda a, b: 1 if a <= b else 0,
    )


def logical_and(lhs: Any, rhs: Any) -> Any:
    """1 where both are not 0, else 0, with broadcasting."""
    return _two(lhs, rhs, "broadcast_logical_and", "_logical_and_scalar", None, lambda a, b: 1 if a and b else 0)


def logical_or(lhs: Any, rhs: Any) -> Any:
    """1 where one is not 0, else 0, with broadcasting."""
    return _two(lhs, rhs, "broadcast_logical_or", "_logical_or_scalar", None, lambda a, b: 1 if a or b else 0)


def logical_xor(lhs: Any, rhs: Any) -> Any:
    """1 where exactly one is not 0, else 0, with broadcasting."""
    return _two(
        lhs, rhs, "broadcast_logical_xor", "_logical_xor_scalar", None, lambda a, b: 1 if bool(a) ^ bool(b) else 0
    )
