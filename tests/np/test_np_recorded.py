"""Expressions over ``mx.np`` and ``mx.npx`` against what MXNet 1.9.1 made of them
(recorded/record_np.py).
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as onp
import pytest

from np_cases import EXPRESSIONS, environment, evaluated
from support import recorded

RECORDED: list[list[Any]] = recorded("np")

# Differences from MXNet 1.9.1 that are meant, by expression, with the reason.
MEANT = {
    "hash(f)": "TypeError, as Python has it for what cannot be a key; MXNet has NotImplementedError",
    "np.linalg.norm(m, ord='inf')": "the norm of the matrix; MXNet has the largest element",
    "m.sort()": "NotImplementedError, which says what works; MXNet raises what is no exception",
}
# Expressions that MXNet refuses and that have an answer here.
MORE = {
    "getattr(__import__('operator'), 'sub')(i8, i)": "whole numbers of two types, of any shapes",
    "getattr(__import__('operator'), 'mod')(i8, i)": "whole numbers of two types, of any shapes",
    "+f": "the array itself",
    "z[...]": "NumPy's indexing of scalars",
    "z[None]": "NumPy's indexing of scalars",
    "m.reshape([6])": "a list is a shape",
    "np.insert(m, 0, 5, axis=1)": "a number as values",
    "np.insert(g, slice(0, 2), 9)": "a number as values",
    "np.nansum": "NumPy's function",
    **{one: "an operator of another name, which MXNet misses" for one in EXPRESSIONS if "rad2deg" in one},
    **{one: "an operator of another name, which MXNet misses" for one in EXPRESSIONS if "deg2rad" in one},
}


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def difference(got: Any, want: Any) -> str | None:
    """The error in a described value, or None."""
    if "error" in want:
        return None if "error" in got else f"no error, but MXNet has {want['error']}"
    if "array" in want:
        if (got.get("dtype"), got.get("shape")) != (want["dtype"], want["shape"]):
            return f"{got}, expected {want['dtype']}{want['shape']}"
        return (
            None if close(got["array"], want["array"], want["dtype"]) else f"{got['array']}, expected {want['array']}"
        )
    for kind in ("tuple", "list"):
        if kind in want:
            if len(got.get(kind, [])) != len(want[kind]):
                return f"{got}, expected {want}"
            parts = (difference(a, b) for a, b in zip(got[kind], want[kind], strict=True))
            return next((part for part in parts if part), None)
    if "numpy" in want or "value" in want:
        a, b = (one.get("numpy", one.get("value", one)) for one in (got, want))
        same = close(a, b, "float32") if isinstance(b, (float, list)) and not isinstance(a, dict) else a == b
        return None if same else f"{a!r}, expected {b!r}"
    return None if got == want else f"{got}, expected {want}"


def close(got: Any, want: Any, dtype: str) -> bool:
    tolerance = 4e-3 if dtype == "float16" else 2e-4
    return bool(onp.allclose(onp.asarray(got, float), onp.asarray(want, float), tolerance, 1e-5, equal_nan=True))


def test_the_recorded_expressions_are_those_of_the_list() -> None:
    assert [one for one, _ in RECORDED] == EXPRESSIONS
    assert len(RECORDED) > 700


def judged(mx: Any, expression: str, want: Any) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return difference(evaluated(expression, environment(mx)), want)


@pytest.mark.parametrize("part", range(10))
def test_an_expression_gives_what_mxnet_recorded(mx: Any, part: int) -> None:
    size = math.ceil(len(RECORDED) / 10)
    wrong = []
    for expression, want in RECORDED[part * size : (part + 1) * size]:
        message = judged(mx, expression, want)
        if message is not None and expression not in MEANT and expression not in MORE:
            wrong.append(f"{expression}: {message[:300]}")
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("expression", [*MEANT, *MORE])
def test_a_listed_difference_is_one(mx: Any, expression: str) -> None:
    want = dict(RECORDED)[expression]
    got = evaluated(expression, environment(mx))
    assert difference(got, want) is not None or got.get("error") != want.get("error")


def test_an_error_of_python_is_of_the_class_that_mxnet_has(mx: Any) -> None:
    """Programs catch TypeError, ValueError, IndexError and AttributeError."""
    wrong = []
    for expression, want in RECORDED:
        if want.get("error") in ("TypeError", "ValueError", "IndexError", "AttributeError", "NotImplementedError"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got = evaluated(expression, environment(mx)).get("error")
            if got not in (None, want["error"]) and expression not in MEANT:
                wrong.append(f"{expression}: {got}, expected {want['error']}")
    assert wrong == [], "\n".join(wrong)
