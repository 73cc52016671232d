"""Arguments of calls of blocks: by position or by name, NDArrays or numpy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from .._operators.call_options import CallOptions
from .._values.dtypes import dtype_name
from ..base import MXNetError, MXNetTypeError
from ..context import Context, current_context
from ..ndarray import NDArray, array
from .parameter import Parameter

__all__ = [
    "InputTypeError",
    "arrays_of",
    "has_numpy",
    "in_order",
    "listed",
    "options_and_inputs",
    "type_of_parameters",
    "wrong_input",
]


class InputTypeError(MXNetTypeError, AssertionError):
    """Something that is no array was passed to a block."""


def options_and_inputs(keywords: dict[str, Any]) -> tuple[CallOptions, dict[str, Any]]:
    """The keywords of a call: those that are options, and those that are inputs."""
    options = {name: value for name, value in keywords.items() if name in CallOptions.__annotations__}
    return cast(CallOptions, options), {name: value for name, value in keywords.items() if name not in options}


def in_order(block: str, names: Sequence[str], args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call in the order of the inputs, of which some were given by name."""
    for name in named:
        if name not in names:
            from difflib import get_close_matches

            near = get_close_matches(name, names, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise MXNetTypeError(f"{block}: there is no input '{name}'; it takes {listed(names)}{hint}")
        if name in names[: len(args)]:
            raise MXNetTypeError(f"{block}: input '{name}' was given twice, by position and by name")
    rest = names[len(args) :]
    missing = [name for name in rest if name not in named]
    if missing:
        raise MXNetTypeError(f"{block}: input {listed(missing)} is missing; it takes {listed(names)}")
    return (*args, *(named[name] for name in rest))


def listed(names: Iterable[str]) -> str:
    """Names as messages show them."""
    return ", ".join(f"'{name}'" for name in names)


def has_numpy(value: Any) -> bool:
    """Whether a nested list holds numpy arrays."""
    if isinstance(value, (list, tuple)):
        return any(has_numpy(part) for part in value)
    return isinstance(value, np.ndarray)


def arrays_of(args: Any, names: Sequence[str], params: Iterable[Parameter], types: Mapping[str, str]) -> Any:
    """Nested lists with the same structure and NDArrays in the place of numpy arrays.

    A numpy array is converted like ``mx.nd.array`` does, to the element type in `types` for its
    input or else to float32, on the device of the other NDArrays, else of the parameters.
    """
    device = _device(args, params)

    def convert(value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray):
            return _array(value, name, device, types.get(name, "float32"))
        if isinstance(value, (list, tuple)):
            return type(value)([convert(part, name) for part in value])
        return value

    return tuple(convert(value, names[i] if i < len(names) else str(i)) for i, value in enumerate(args))


def _array(value: Any, name: str, device: Context, dtype: str) -> NDArray:
    if value.dtype.kind not in "biuf":
        raise MXNetTypeError(f"input '{name}': got a numpy array of dtype {value.dtype}, wanted numbers that are real")
    return array(value, ctx=device, dtype=dtype)


def type_of_parameters(params: Iterable[Parameter]) -> str:
    """The element type of a block's parameters: float16 or float64 where one has it, else
    float32.
    """
    found = {dtype_name(parameter.dtype) for parameter in params}
    return next((name for name in ("float16", "float64") if name in found), "float32")


def _device(args: Any, params: Iterable[Parameter]) -> Context:
    pending = list(args)
    while pending:
        value = pending.pop()
        if isinstance(value, NDArray):
            return value.context
        if isinstance(value, (list, tuple)):
            pending += value
    here = current_context()
    for parameter in params:
        try:
            there = parameter.list_ctx()
        except RuntimeError:  # it has no value yet, and says so when it is used
            continue
        return here if here in there else there[0]
    return here


def wrong_input(name: str, value: Any) -> MXNetError:
    """The error for what is no array."""
    return InputTypeError(
        f"input '{name}': got {type(value).__name__}, wanted an NDArray or a numpy array (or a Symbol): "
        "pass mx.nd.array(x)"
    )
