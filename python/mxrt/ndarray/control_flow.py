"""Control flow with arrays, and tests of numbers: functions of ``mx.nd.contrib`` that call Python
code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._nested import flatten, regroup
from ..base import MXNetValueError
from .creation import concatenate, empty
from .ndarray import NDArray

__all__ = ["cond", "foreach", "isfinite", "isinf", "isnan", "while_loop"]


def _rows(data: NDArray) -> list[NDArray]:
    return [data[i] if data.ndim > 1 else data[i : i + 1] for i in range(len(data))]


def _stacked(steps: list[NDArray]) -> NDArray:
    return concatenate([step.reshape((1, *step.shape)) for step in steps])


def _parts(value: Any) -> list[Any] | None:
    return [value] if isinstance(value, NDArray) else None


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Calls ``body(row, states)`` for every row of the data; outputs, in the nested lists that the
    body returns, are stacked, the last states are returned.
    """
    several = isinstance(data, (list, tuple))
    columns = [_rows(d) for d in data] if several else [_rows(data)]
    states = init_states
    outputs: list[list[Any]] = []
    form: Any = None
    for row in zip(*columns, strict=True):
        out, states = body(list(row) if several else row[0], states)
        flat, form = flatten(out, _parts, "foreach output")
        outputs.append(flat)
    if not outputs:
        raise MXNetValueError("foreach: the data has no rows")
    return regroup([_stacked(list(column)) for column in zip(*outputs, strict=True)], form), states


def while_loop(
    cond: Callable[..., Any], func: Callable[..., tuple[Any, Any]], loop_vars: Any, max_iterations: int | None = None
) -> tuple[Any, Any]:
    """Calls ``func(*loop_vars)`` while ``cond(*loop_vars)``; outputs, in the nested lists that the
    function returns, have `max_iterations` rows, the rest is zero. Without a step there are none.
    """
    if max_iterations is None:
        raise ValueError("max_iterations should be specified")
    if max_iterations < 1:
        raise ValueError("max_iterations should be a positive integer")
    single = isinstance(loop_vars, NDArray)
    current = [loop_vars] if single else list(loop_vars)
    if not current:
        raise ValueError("loop_vars should contain at least one element")
    steps: list[list[NDArray]] = []
    form: Any = []
    while len(steps) < max_iterations and bool(cond(*current)):
        out, new = func(*current)
        flat, form = flatten([] if out is None else out, _parts, "while output")
        steps.append(flat)
        current = [new] if isinstance(new, NDArray) else list(new)
    outputs = []
    for column in zip(*steps, strict=True):
        made = _stacked(list(column))
        if len(steps) < max_iterations:
            padded = empty((max_iterations, *made.shape[1:]), ctx=made.context, dtype=made.dtype)
            padded[: len(steps)] = made
            made = padded
        outputs.append(made)
    return regroup(outputs, form), (current[0] if single else current)


def cond(pred: NDArray, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """The result of one of two functions."""
    return then_func() if bool(pred.asscalar()) else else_func()


def isnan(data: NDArray) -> NDArray:
    """1 where an element is no number, else 0."""
    return data != data


def isinf(data: NDArray) -> NDArray:
    """1 where an element is infinite, else 0."""
    return abs(data) == float("inf")


def isfinite(data: NDArray) -> NDArray:
    """1 where an element is finite, else 0."""
    return (abs(data) != float("inf")) * (data == data)
