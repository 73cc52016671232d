"""Control flow with arrays, and tests of numbers: functions of ``mx.nd.contrib`` that call Python
code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._values.nested import FormatError, flatten, regroup
from ..base import MXNetTypeError, MXNetValueError
from .creation import concatenate, empty
from .ndarray import NDArray

__all__ = ["cond", "foreach", "isfinite", "isinf", "isnan", "while_loop"]


def _rows(data: NDArray) -> list[NDArray]:
    return [data[i] if data.ndim > 1 else data[i : i + 1] for i in range(len(data))]


def _stacked(steps: list[NDArray], what: str) -> NDArray:
    if len({step.shape for step in steps}) > 1:
        shapes = ", ".join(str(step.shape) for step in steps[:8])
        raise MXNetValueError(f"{what} must have the same shape in every step, but has {shapes}")
    return concatenate([step.reshape((1, *step.shape)) for step in steps])


def _parts(value: Any) -> list[Any] | None:
    return [value] if isinstance(value, NDArray) else None


def _function(value: Any, what: str) -> None:
    if not callable(value):
        raise MXNetTypeError(f"{what} must be a function, got {value!r} of type {type(value)}")


def _pair(made: Any, what: str) -> tuple[Any, Any]:
    """The results of a function, if these are two."""
    if not isinstance(made, (list, tuple)) or len(made) != 2:
        raise MXNetValueError(f"{what} must return two things, outputs and states, not {made!r} of type {type(made)}")
    return made[0], made[1]


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Calls ``body(row, states)`` for every row of the data; outputs, in the nested lists that the
    body returns, are stacked, the last states are returned.

    Raises MXNetTypeError for an argument that is not in (nested) lists of arrays, MXNetValueError
    for data of no or different numbers of rows, and outputs that differ between rows.
    """
    _function(body, "foreach: body")
    arrays, data_form = flatten(data, _parts, "foreach: data")
    flatten(init_states, _parts, "foreach: init_states")
    if len({len(array) for array in arrays}) != 1 or len(arrays[0]) == 0:
        shapes = ", ".join(str(array.shape) for array in arrays)
        problem = "has no rows" if arrays and not any(map(len, arrays)) else "needs arrays with equally many rows"
        raise MXNetValueError(f"foreach: data {problem}; its shapes are [{shapes}]")
    states = init_states
    outputs: list[list[Any]] = []
    forms: list[Any] = []
    for row in zip(*map(_rows, arrays), strict=True):
        out, states = _pair(body(regroup(list(row), data_form), states), "foreach: body")
        flat, form = flatten(out, _parts, "foreach: outputs of body")
        outputs.append(flat)
        forms.append(form)
        if form != forms[0]:
            raise MXNetValueError("foreach: outputs of body must have the same format for every row")
    columns = [_stacked(list(column), "foreach: an output of body") for column in zip(*outputs, strict=True)]
    return regroup(columns, forms[0]), states


def while_loop(
    cond: Callable[..., Any], func: Callable[..., tuple[Any, Any]], loop_vars: Any, max_iterations: int | None = None
) -> tuple[Any, Any]:
    """Calls ``func(*loop_vars)`` while ``cond(*loop_vars)``; outputs, in the nested lists that the
    function returns, have `max_iterations` rows, the rest is zero. Without a step there are none.

    Raises MXNetTypeError for an argument of a wrong type, MXNetValueError where `max_iterations` or
    `loop_vars` is missing, and where what the functions return does not fit.
    """
    _function(cond, "while_loop: cond")
    _function(func, "while_loop: func")
    if max_iterations is None:
        raise MXNetValueError("max_iterations should be specified")
    most = _number(max_iterations)
    if most < 1:
        raise MXNetValueError(f"max_iterations should be a positive integer, got {most}")
    flat_vars, _ = flatten(loop_vars, _parts, "while_loop: loop_vars")
    if not flat_vars:
        raise MXNetValueError("loop_vars should contain at least one element")
    single = isinstance(loop_vars, NDArray)
    current = [loop_vars] if single else list(loop_vars)
    steps: list[list[NDArray]] = []
    forms: list[Any] = []
    while len(steps) < most and _condition(cond(*current), "while_loop: cond"):
        out, new = _pair(func(*current), "while_loop: func")
        flat, form = flatten([] if out is None else out, _parts, "while_loop: outputs of func")
        new = [] if new is None else new
        flatten(new, _parts, "while_loop: loop_vars of func")
        steps.append(flat)
        forms.append(form)
        if len(flat) != len(steps[0]):
            raise MXNetValueError("Number of elements in step_output should be the same in each step")
        new = [new] if isinstance(new, NDArray) else list(new)
        if len(new) != len(current):
            message = f"func took {len(current)} and returned {len(new)}"
            raise MXNetValueError(f"The length of loop_vars should be consistent during the loop: {message}")
        current = new
    outputs = []
    for column in zip(*steps, strict=True):
        made = _stacked(list(column), "while_loop: an output of func")
        if len(steps) < most:
            padded = empty((most, *made.shape[1:]), ctx=made.context, dtype=made.dtype)
            padded[: len(steps)] = made
            made = padded
        outputs.append(made)
    return regroup(outputs, forms[-1] if forms else []), (current[0] if single else current)


def _number(value: Any) -> int:
    try:
        return int(value.item() if isinstance(value, NDArray) else value)
    except (TypeError, ValueError):
        raise MXNetValueError(f"Cannot convert max_iterations to python int: {value!r}") from None


def _condition(value: Any, what: str) -> bool:
    """The truth of a single number."""
    if isinstance(value, NDArray) and value.size != 1:
        raise MXNetValueError(f"{what} must be a single number, but has shape {value.shape}")
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise FormatError(f"{what} must be a single number, not {value!r} of type {type(value)}") from None


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """The result of one of two functions; `pred` is an array of one element, or a number.

    Raises MXNetTypeError for an argument of a wrong type, MXNetValueError where `pred` is not a
    single number.
    """
    _function(then_func, "cond: then_func")
    _function(else_func, "cond: else_func")
    return then_func() if _condition(pred, "cond: pred") else else_func()


def isnan(data: NDArray) -> NDArray:
    """1 where an element is no number, else 0."""
    return data != data


def isinf(data: NDArray) -> NDArray:
    """1 where an element is infinite, else 0."""
    made: NDArray = data.abs() == float("inf")
    return made


def isfinite(data: NDArray) -> NDArray:
    """1 where an element is finite, else 0."""
    made: NDArray = (data.abs() != float("inf")) * (data == data)
    return made
