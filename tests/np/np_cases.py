"""Expressions over ``mx.np`` and ``mx.npx``: recorded/record_np.py evaluates them under MXNet
1.9.1, and test_np_recorded.py under mxrt.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as onp

from np_array_expressions import ARRAYS
from np_function_expressions import FUNCTIONS

__all__ = ["EXPRESSIONS", "described", "environment", "evaluated"]


def environment(mx: Any) -> dict[str, Any]:
    """The names that expressions use."""
    np = mx.np

    def put(x: Any, key: Any, value: Any) -> Any:
        x = x.copy()
        x[key] = value
        return x

    def inplace(name: str, x: Any, y: Any) -> Any:
        x = x.copy()
        made = getattr(operator, name)(x, y)
        assert made is x
        return x

    def into(function: Any, *args: Any, like: Any) -> Any:
        out = np.zeros(like.shape, dtype=like.dtype)
        assert function(*args, out=out) is out
        return out

    return {
        "mx": mx,
        "np": np,
        "npx": mx.npx,
        "onp": onp,
        "put": put,
        "inplace": inplace,
        "into": into,
        "half": np.array([0.5, -1.25, 3], dtype="float16"),
        "f": np.array([1.5, 2.5]),
        "g": np.array([-1.0, 0.5, 2.0]),
        "d": np.array([1.0, 2.0], dtype="float64"),
        "i": np.array([1, 2], dtype="int32"),
        "j": np.array([3, -4, 5], dtype="int64"),
        "i8": np.array([1, 2], dtype="int8"),
        "u8": np.array([200, 100, 3], dtype="uint8"),
        "b": np.array([True, False], dtype=bool),
        "c": np.array([True, False, True], dtype=bool),
        "z": np.array(3.0),
        "zi": np.array(1, dtype="int64"),
        "e": np.zeros((0, 3)),
        "m": np.arange(6).reshape(2, 3),
        "n": np.array([[2.0, 1.0], [1.0, 3.0]]),
        "k": np.arange(24, dtype="int32").reshape(2, 3, 4),
        "nd": mx.nd.array([1.0, 2.0]),
        "o": onp.array([1.0, 2.0]),
    }


def evaluated(expression: str, names: dict[str, Any]) -> dict[str, Any]:
    """The result of an expression: a described value, or the class of an error."""
    try:
        return described(eval(expression, dict(names)), names["np"].ndarray)
    except Exception as error:
        return {"error": next(one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins")}


def described(value: Any, array: type) -> dict[str, Any]:
    """A value as JSON holds it."""
    if isinstance(value, array):
        host = value.asnumpy()
        return {"array": host.tolist(), "dtype": host.dtype.name, "shape": list(host.shape)}
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [described(one, array) for one in value]}
    if isinstance(value, (onp.generic, onp.ndarray)):
        return {"numpy": value.tolist()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    return {"object": type(value).__name__}


_UNARY = (
    "abs absolute fabs negative sign rint ceil floor trunc fix reciprocal square sqrt cbrt exp expm1 log log2 log10 "
    "log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees rad2deg radians deg2rad "
    "logical_not isnan isinf isposinf isneginf isfinite"
).split()
_BINARY = (
    "add subtract multiply divide true_divide mod remainder power maximum minimum copysign arctan2 hypot ldexp equal "
    "not_equal greater greater_equal less less_equal"
).split()
_FOLDS = "sum prod mean max min amax amin std var".split()
_SIGNS = "add sub mul truediv mod pow eq ne lt le gt ge".split()

EXPRESSIONS: list[str] = [
    *(f"np.{name}({x})" for name in _UNARY for x in ("f", "z", "e", "half")),
    *(f"np.{name}(0.5)" for name in _UNARY),
    *(f"np.{name}({x})" for name in ("bitwise_not", "invert") for x in ("i", "u8", "3")),
    *(f"np.{name}({args})" for name in _BINARY for args in ("f, f", "f, 2", "2, f", "z, f", "e, z", "1, 2")),
    *(
        f"np.{name}({args})"
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "lcm")
        for args in ("i, i", "i, 3")
    ),
    *(f"np.{name}({args})" for name in _FOLDS for args in ("m", "m, axis=0", "m, axis=(0, 1), keepdims=True", "k, 1")),
    *(f"m.{name}({args})" for name in ("sum", "mean", "max", "min", "std", "var", "prod") for args in ("", "axis=1")),
    *(f"onp.{name}(m)" for name in (*_FOLDS, "cumsum", "sin", "exp", "median", "ravel", "transpose")),
    *(f"inplace('i{name}', f, {y})" for name in ("add", "sub", "mul", "truediv", "mod", "pow") for y in ("f", "2")),
    *(
        f"getattr(__import__('operator'), '{name}')({x})"
        for name in _SIGNS
        for x in (
            "f, f",
            "f, 2",
            "2, f",
            "i, 2",
            "2, i",
            "i, f",
            "d, f",
            "b, 1",
            "z, m",
            "f, z",
            "i8, i",
            "f, nd",
            "f, o",
        )
    ),
]

EXPRESSIONS += [*ARRAYS, *FUNCTIONS]
