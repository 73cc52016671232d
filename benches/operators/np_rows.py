"""Rows of `mx.np`: calls by mxrt, MXNet and NumPy, and small ones next to those of `mx.nd`.

A large row works on a million elements. `_t64` and `_i64` at the end of a name stand for float64
and int64; without them elements are float32.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

# Function of the module (`mx.np` or NumPy) and of its arrays.
Work = Callable[..., Any]

SQUARE = ((1000, 1000), (1000, 1000))
LINE = ((1000000,), (1000000,))
BATCH = ((64, 128, 128), (64, 128, 128))
HEADS = ((8, 12, 128, 64), (8, 12, 128, 64))

ELEMENTWISE: dict[str, Work] = {
    "add": lambda xp, x, y: xp.add(x, y),
    "multiply": lambda xp, x, y: xp.multiply(x, y),
    "true_divide": lambda xp, x, y: xp.true_divide(x, y),
    "maximum": lambda xp, x, y: xp.maximum(x, y),
    "power": lambda xp, x, y: xp.power(abs(x), y),
    "greater": lambda xp, x, y: xp.greater(x, y),
    "equal": lambda xp, x, y: xp.equal(x, y),
    "add_scalar": lambda xp, x, y: x + 1.5,
    "add_row": lambda xp, x, y: x + y[0],
    "add_column": lambda xp, x, y: x + y[:, :1],
    "where": lambda xp, x, y: xp.where(x > y, x, y),
    "clip": lambda xp, x, y: xp.clip(x, -0.5, 0.5),
    "negative": lambda xp, x, y: xp.negative(x),
    "abs": lambda xp, x, y: xp.abs(x),
    "square": lambda xp, x, y: xp.square(x),
    "sqrt": lambda xp, x, y: xp.sqrt(y),
    "floor": lambda xp, x, y: xp.floor(x),
    "rint": lambda xp, x, y: xp.rint(x),
    "sign": lambda xp, x, y: xp.sign(x),
    "exp": lambda xp, x, y: xp.exp(x),
    "expm1": lambda xp, x, y: xp.expm1(x),
    "log": lambda xp, x, y: xp.log(y),
    "log1p": lambda xp, x, y: xp.log1p(y),
    "tanh": lambda xp, x, y: xp.tanh(x),
    "sin": lambda xp, x, y: xp.sin(x),
    "cos": lambda xp, x, y: xp.cos(x),
    "arctan": lambda xp, x, y: xp.arctan(x),
    "transpose": lambda xp, x, y: x.T.copy(),
    "concatenate": lambda xp, x, y: xp.concatenate([x, y], axis=1),
}
REDUCTIONS: dict[str, Work] = {
    "sum": lambda xp, x, y: xp.sum(x),
    "sum_axis0": lambda xp, x, y: xp.sum(x, axis=0),
    "sum_axis1": lambda xp, x, y: xp.sum(x, axis=1),
    "mean": lambda xp, x, y: xp.mean(x),
    "std": lambda xp, x, y: xp.std(x),
    "var_axis1": lambda xp, x, y: xp.var(x, axis=1),
    "prod": lambda xp, x, y: xp.prod(x),
    "max": lambda xp, x, y: xp.max(x),
    "max_axis0": lambda xp, x, y: xp.max(x, axis=0),
    "max_axis1": lambda xp, x, y: xp.max(x, axis=1),
    "min": lambda xp, x, y: xp.min(x),
    "argmax": lambda xp, x, y: xp.argmax(x),
    "argmax_axis0": lambda xp, x, y: xp.argmax(x, axis=0),
    "argmax_axis1": lambda xp, x, y: xp.argmax(x, axis=1),
    "argmin_axis1": lambda xp, x, y: xp.argmin(x, axis=1),
    "cumsum_axis1": lambda xp, x, y: xp.cumsum(x, axis=1),
    "all": lambda xp, x, y: xp.all(x),
}
# Shapes and work; the factor of NumPy's time that is wanted is below.
PRODUCTS: dict[str, tuple[tuple[tuple[int, ...], ...], Work]] = {
    "matmul": (SQUARE, lambda xp, x, y: xp.matmul(x, y)),
    "matmul_turned": (SQUARE, lambda xp, x, y: xp.matmul(x, y.T)),
    "matmul_batch": (BATCH, lambda xp, x, y: xp.matmul(x, y)),
    "matmul_heads": (((96, 128, 64), (96, 64, 128)), lambda xp, x, y: xp.matmul(x, y)),
    "matmul_shared": (((64, 128, 128), (128, 128)), lambda xp, x, y: xp.matmul(x, y)),
    "dot": (SQUARE, lambda xp, x, y: xp.dot(x, y)),
    "dot_vector": (((1000, 1000), (1000,)), lambda xp, x, y: xp.dot(x, y)),
    "dot_vectors": (LINE, lambda xp, x, y: xp.dot(x, y)),
    "tensordot": (SQUARE, lambda xp, x, y: xp.tensordot(x, y, axes=1)),
    "tensordot_axes": (((100, 100, 100), (100, 100, 100)), lambda xp, x, y: xp.tensordot(x, y, axes=([1, 2], [0, 1]))),
    "einsum_matmul": (SQUARE, lambda xp, x, y: xp.einsum("ij,jk->ik", x, y)),
    "einsum_batch": (BATCH, lambda xp, x, y: xp.einsum("bij,bjk->bik", x, y)),
    "einsum_heads": (HEADS, lambda xp, x, y: xp.einsum("bhqd,bhkd->bhqk", x, y)),
    "einsum_inner": (SQUARE, lambda xp, x, y: xp.einsum("ij,ij->", x, y)),
    "einsum_rows": (SQUARE, lambda xp, x, y: xp.einsum("ij,ij->i", x, y)),
    "einsum_outer": (((1000,), (1000,)), lambda xp, x, y: xp.einsum("i,j->ij", x, y)),
    "einsum_turn": (SQUARE, lambda xp, x, y: xp.einsum("ij->ji", x).copy()),
    "einsum_sum": (SQUARE, lambda xp, x, y: xp.einsum("ij->i", x)),
}
DOUBLE = ("add", "multiply", "exp", "log", "tanh", "sum", "sum_axis0", "max", "argmax_axis1", "matmul", "matmul_batch")
INTEGER = ("add", "multiply", "maximum", "sum", "sum_axis0", "max", "argmax_axis1")
# A call by `mx.np`, and the same one by `mx.nd`.
SMALL: dict[str, tuple[Work, Work]] = {
    "add": (lambda mx, x: x + x, lambda mx, x: x + x),
    "add_scalar": (lambda mx, x: x + 1.5, lambda mx, x: x + 1.5),
    "exp": (lambda mx, x: mx.np.exp(x), lambda mx, x: mx.nd.exp(x)),
    "sum": (lambda mx, x: mx.np.sum(x), lambda mx, x: mx.nd.sum(x)),
    "dot": (lambda mx, x: mx.np.dot(x, x), lambda mx, x: mx.nd.dot(x, x)),
    "reshape": (lambda mx, x: x.reshape((2, 8)), lambda mx, x: x.reshape((2, 8))),
    "zeros": (lambda mx, x: mx.np.zeros((4, 4)), lambda mx, x: mx.nd.zeros((4, 4))),
    "ones": (lambda mx, x: mx.np.ones((4, 4)), lambda mx, x: mx.nd.ones((4, 4))),
    "full": (lambda mx, x: mx.np.full((4, 4), 2.5), lambda mx, x: mx.nd.full((4, 4), 2.5)),
    "arange": (lambda mx, x: mx.np.arange(16), lambda mx, x: mx.nd.arange(16)),
    "concatenate": (lambda mx, x: mx.np.concatenate([x, x]), lambda mx, x: mx.nd.concat(x, x, dim=0)),
}
# Small calls of a turn's call: one alone is as short as reading the clock.
CALLS = 100


def _operands(shapes: tuple[tuple[int, ...], ...], dtype: str) -> list[np.ndarray]:
    """Normal numbers, and positive ones as the last operand."""
    random = np.random.RandomState(0)
    made = [random.randn(*shape) for shape in shapes]
    made[-1] = abs(made[-1]) + 0.1
    return [(x * 1000 if dtype == "int64" else x).astype(dtype) for x in made]


def _large(work: Work, shapes: tuple[tuple[int, ...], ...], dtype: str) -> tuple[Callable, Callable]:
    """The work by an MXNet, and by NumPy."""

    def by_mx(mx: Any) -> Callable[[], object]:
        mx.npx.set_np()
        operands = [mx.np.array(x, dtype=dtype) for x in _operands(shapes, dtype)]
        return lambda: work(mx.np, *operands).wait_to_read()

    def by_numpy() -> Callable[[], object]:
        operands = _operands(shapes, dtype)
        return lambda: work(np, *operands)

    return by_mx, by_numpy


def _small(by_np: Work, by_nd: Work) -> tuple[Callable, Callable]:
    """Small calls of `mx.np`, and of `mx.nd` in mxrt."""

    def repeated(mx: Any, work: Work, x: Any) -> Callable[[], object]:
        def run() -> None:
            for _ in range(CALLS - 1):
                work(mx, x)
            work(mx, x).wait_to_read()

        return run

    def np_calls(mx: Any) -> Callable[[], object]:
        mx.npx.set_np()
        return repeated(mx, by_np, mx.np.ones((4, 4)))

    def nd_calls() -> Callable[[], object]:
        mx = importlib.import_module("mxrt")
        return repeated(mx, by_nd, mx.nd.ones((4, 4)))

    return np_calls, nd_calls


def rows() -> dict[str, tuple[Callable, Callable]]:
    """All large rows: by `mx.np`, and by NumPy."""
    whole = {**ELEMENTWISE, **REDUCTIONS}
    large = {**{name: (SQUARE, work) for name, work in whole.items()}, **PRODUCTS}
    found = {f"np_{name}": _large(work, shapes, "float32") for name, (shapes, work) in large.items()}
    for suffix, dtype, names in (("_t64", "float64", DOUBLE), ("_i64", "int64", INTEGER)):
        found.update({f"np_{name}{suffix}": _large(large[name][1], large[name][0], dtype) for name in names})
    return found


def small_rows() -> dict[str, tuple[Callable, Callable]]:
    """Small calls: by `mx.np`, and by `mx.nd`."""
    return {f"npcall_{name}": _small(*work) for name, work in SMALL.items()}


def goal(row: str) -> float:
    """The least part of NumPy's speed."""
    return 0.8 if row.startswith(("np_einsum", "np_tensordot")) else 0.9
