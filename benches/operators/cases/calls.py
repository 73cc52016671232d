"""Calls of generated rows by mxrt, MXNet and NumPy.

Every call waits for its result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .table import CASES, Row, Stored

NAMES = Path(__file__).resolve().parents[3] / "tests" / "recorded" / "operator_names.json"
PREFIXES = {"_npi_": "numpy._internal", "_np_": "numpy", "_npx_": "numpy_extension"}
# Functions of NumPy by the rest of the operator's name, where it differs.
RENAMED = {
    "plus": "add",
    "minus": "subtract",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "lesser": "less",
    "lesser_equal": "less_equal",
    "batch_dot": "matmul",
    "inverse": "inv",
    "reverse": "flip",
}
# Arguments that mean the same to NumPy's function.
COMMON = set("axis axes keepdims repeats reps a_min a_max k decimals shape dtype N M start stop step num UPLO".split())

Work = Callable[[], Any]


def recorded(operator: str) -> list[str]:
    """Names of MXNet's functions in mx.nd that call the operator."""
    found = json.loads(NAMES.read_text()).get(operator, [[], []])[1]
    return [path.removeprefix("nd.") for path in found if path.startswith("nd.")]


def function(mx: Any, operator: str) -> Callable[..., Any]:
    """The function of the module that calls the operator; AttributeError if it has none."""
    paths = recorded(operator)
    if not paths and mx.__name__ == "mxrt":
        paths = [f"_internal.{operator}"]
    for prefix, space in PREFIXES.items():
        if not paths and operator.startswith(prefix):
            paths = [f"{space}.{operator.removeprefix(prefix)}", f"{space}._internal.{operator.removeprefix(prefix)}"]
    for path in paths:
        found = mx.nd
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return found
    raise AttributeError(f"{mx.__name__} has no function for {operator}")


def of_numpy(row: Row) -> Callable[..., Any] | None:
    """NumPy's function of the same name."""
    name = row.operator.removesuffix("_scalar")
    for prefix in ("_npi_", "_np_", "broadcast_", "elemwise_", "_linalg_", "_"):
        name = name.removeprefix(prefix)
    name = RENAMED.get(name, name)
    found = getattr(np, name, getattr(np.linalg, name, None))
    return found if callable(found) and not isinstance(found, type) else None


def prepare(engine: str, mx: Any, name: str, size: str) -> tuple[Work, int]:
    """A call of the row that waits, and the bytes of its arrays and results."""
    row = CASES[name]
    inputs, attrs = row.make(row.sizes()[size])
    if engine == "numpy":
        return _numpy(row, inputs, attrs), 0
    numpy_interface = engine == "mxnet" and not recorded(row.operator) and row.operator.startswith(tuple(PREFIXES))
    if engine == "mxnet":
        (mx.npx.set_np if numpy_interface else mx.npx.reset_np)()
    arrays = [_array(mx, one, numpy_interface) for one in inputs]
    called = function(mx, row.operator)
    if row.in_place:
        attrs["out"] = arrays[0]

    def work() -> list[Any]:
        made = called(*arrays, **attrs)
        results = made if isinstance(made, (list, tuple)) else [made]
        for one in results:
            one.wait_to_read()
        return results

    moved = sum(_bytes(one) for one in [*arrays, *work()])
    return work, moved


def _bytes(array: Any) -> int:
    """Bytes of a dense array; 0 for others."""
    if getattr(array, "stype", "default") != "default":
        return 0
    return int(np.prod(array.shape)) * np.dtype(array.dtype).itemsize


def _array(mx: Any, given: Any, numpy_interface: bool) -> Any:
    """An array of the engine."""
    if isinstance(given, Stored):
        return mx.nd.array(given.array).tostype(given.kind)
    return (mx.np if numpy_interface else mx.nd).array(given, dtype=given.dtype)


def _numpy(row: Row, inputs: list[Any], attrs: dict[str, Any]) -> Work:
    """The call by NumPy's function; a view is copied, for operators have results of their own."""
    called = of_numpy(row)
    scalar = attrs.get("scalar")
    if (
        called is None
        or any(isinstance(one, Stored) for one in inputs)
        or attrs.keys() - COMMON - {"scalar", "num_args"}
    ):
        raise AttributeError(f"NumPy has no such function as {row.operator}")
    named = {key: value for key, value in attrs.items() if key in COMMON}
    arguments = [inputs] if "num_args" in attrs else inputs if scalar is None else [*inputs, scalar]

    def work() -> Any:
        made = called(*arguments, **named)
        return made.copy() if isinstance(made, np.ndarray) and made.base is not None else made

    work()
    return work
