"""Calls of cuda_kernels.py: functions of elements, and chains of them that a plan joins."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mxrt as mx
from cuda_calls import Call, named, values

INTEGERS = ("uint8", "int8", "int32", "int64")


def conversions() -> Iterator[Call]:
    ends = [300, -1, 127.5, -128.5, 255.9, 3e9, -3e9, 2147483647, -2147483648, 1e19, -1e19, 1.9, -0.5]
    for dtype, to in itertools.product(("float32", "float64"), INTEGERS):
        x = np.array([*ends, np.nan, np.inf, -np.inf], dtype)
        yield f"to {to}", lambda x, to=to: [x.astype(to), mx.nd.Cast(x + 0, dtype=to)], [x]
    halves = np.array([300, -1, 65504, -65504, np.nan, np.inf, -0.5], "float16")
    for to in (*INTEGERS, "bool"):
        yield f"to {to}", lambda x, to=to: x.astype(to), [halves]
    # By way of a double, the first would be rounded to another number of single precision.
    numbers = np.array([9007199791611905, -9007199791611905, 2**62 + 1, -(2**63), 300, 255, -129], "int64")
    for to in ("float32", "float64", "float16", "uint8", "int8", "int32", "bool"):
        yield f"to {to}", lambda x, to=to: x.astype(to), [numbers]
    for to in INTEGERS:
        filled = lambda x, to=to: [mx.nd.full((3,), v, dtype=to, ctx=x.context) for v in (300, -1, 3e9)]  # noqa: E731
        yield f"full of {to}", filled, [values(1)]


UNARY = {
    "abs sign negative square cbrt exp expm1 sin cos arctan sinh cosh tanh arcsinh degrees radians floor ceil trunc "
    "fix rint round sigmoid softsign relu erf logical_not hard_sigmoid": (-2.2, 2.2),
    "rcbrt reciprocal sqrt rsqrt log log2 log10 log1p gamma gammaln": (0.2, 4),
    "tan": (-1.2, 1.2),
    "arcsin arccos arctanh": (-0.95, 0.95),
    "arccosh": (1.1, 4),
}
COMPARISONS = "equal not_equal greater greater_equal lesser lesser_equal logical_and logical_or logical_xor"
BINARY = f"add sub mul div mod power maximum minimum hypot {COMPARISONS}"


def elementwise() -> Iterator[Call]:
    for names, (low, high) in UNARY.items():
        for name, dtype in itertools.product(names.split(), ("float32", "float64", "float16")):
            if name != "logical_not" or dtype != "float16":
                yield named(name, values(3, 5, 7, dtype=dtype, low=low, high=high))
    for name, dtype in itertools.product(("abs", "sign", "negative", "relu"), ("int32", "int64", "int8")):
        yield named(name, values(4, 70, dtype=dtype, low=-100, high=100))
    for dtype in ("int32", "int64", "int8", "uint8"):
        a, b = values(4, 70, dtype=dtype, low=0, high=9), values(4, 70, dtype=dtype, low=0, high=4)
        if dtype != "uint8":
            b = b - 2
        yield named("square", a)
        yield named("clip", a - 3, a_min=1, a_max=5)
        for name in ("div", "mod", "power", "hypot"):
            yield named(f"broadcast_{name}", a, b)
        yield "integers and numbers", lambda x: [x / 2, 7 / x, x % 3, 20 % x, x**3, 2**x], [a + 1]
    yield named("broadcast_power", values(9, dtype="int32", low=9, high=99), values(9, dtype="int32", low=6, high=30))
    yield named("relu", values(1100, 1100))
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], "float32")
    for name in ("relu", "abs", "sign", "round", "rint", "fix", "sigmoid", "tanh", "exp", "sqrt", "floor"):
        yield named(name, special)
    for name in ("isnan", "isinf", "isfinite"):
        yield named(f"contrib.{name}", special)
    for name, dtype in itertools.product(BINARY.split(), ("float32", "float64")):
        low = 0.3 if name in ("power", "mod", "div") else -2
        a, b = values(2, 1, 5, 1, 3, dtype=dtype, low=low), values(1, 4, 5, 2, 1, dtype=dtype, low=low, high=3)
        yield named(f"broadcast_{name}", a, b)
    for name, dtype in itertools.product(("add", "mul", "maximum", "greater"), ("int32", "int64", "float16")):
        yield named(f"broadcast_{name}", values(6, 1, dtype=dtype), values(6, 9, dtype=dtype, low=-9, high=9))
    yield named("elemwise_add", values(1031), values(1031, low=-1))
    scalars: dict[str, Callable[[Any], Any]] = {
        "+": lambda x: 2.5 + x * 3,
        "-": lambda x: 2.5 - x,
        "/": lambda x: 2.5 / x,
        "%": lambda x: x % 0.7,
        "**": lambda x: (x * x + 1) ** 1.5,
        ">": lambda x: x > 0.25,
        "==": lambda x: x == 1,
    }
    for name, call in scalars.items():
        yield f"scalar {name}", call, [values(5, 77)]
    yield "scalars of integers", lambda x: (x + 3) * 2 - 1, [values(200, dtype="int32", low=-50, high=50)]
    for name in ("leaky", "elu", "selu", "gelu"):
        yield named("LeakyReLU", values(3, 4, 5), act_type=name, slope=0.3)
    for slopes in (values(4, low=0.1, high=0.4), values(1, low=0.1, high=0.4)):
        yield named("LeakyReLU", values(3, 4, 5), slopes, act_type="prelu")
    yield named("Activation", values(3, 4), act_type="softrelu")
    yield named("clip", values(30), a_min=-0.5, a_max=1)
    for count, dtype in itertools.product((1, 2, 5, 8), ("float32", "float16", "int32")):
        yield named("add_n", *[values(6, 50, dtype=dtype, low=1, high=n + 3) for n in range(count)])
    yield named("smooth_l1", values(60), scalar=1.5)
    yield named("contrib.div_sqrt_dim", values(3, 17))
    types = ("float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool")
    for a, b in itertools.product(types, types):
        low = 0 if "uint8" in (a, b) else -3
        yield named("cast", values(45, dtype=a, low=low, high=3), dtype=b)
    yield from conversions()


def chains() -> Iterator[Call]:
    """Functions that a plan joins."""
    x, y, z = (mx.sym.var(name) for name in "xyz")
    graphs = {
        "one loop": mx.sym.relu(x * 2 + 1) * mx.sym.sigmoid(y) - z / 3,
        "broadcast": mx.sym.tanh(mx.sym.broadcast_add(x, y)) * mx.sym.broadcast_mul(x, z),
        "read twice": mx.sym.exp(x) / (mx.sym.exp(x) + y + z),
        "results": mx.sym.Group([x + y, mx.sym.square(x + y) * z, mx.sym.mean(x * z, axis=1)]),
    }
    for name, graph in graphs.items():
        inputs = [values(6, 50), values(6, 50, low=1), values(6, 50, low=-1)]
        if name == "broadcast":
            inputs[1:] = [values(1, 50), values(6, 1)]
        net = mx.gluon.SymbolBlock(graph, [x, y, z])
        yield f"chain {name}", net, inputs


ELEMENTS: dict[str, Callable[[], Iterator[Call]]] = {"elementwise": elementwise, "chains": chains}
