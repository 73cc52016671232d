"""Calls for cuda_kernels.py: linear algebra, and functions of mx.np."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mxrt as mx
from cuda_calls import Array, Call, named, values

WIDE = ("float32", "float64")
# Orders that are no multiples of a warp, and more than one for each.
ORDERS = (1, 2, 5, 33, 40)


def dominant(*shape: int, dtype: str) -> Array:
    """Square matrices that are far from singular."""
    made = values(*shape, dtype=dtype, low=-1, high=1)
    return (made + 3 * np.eye(shape[-1])[::-1] * shape[-1] ** 0.5).astype(dtype)


def definite(*shape: int, dtype: str) -> Array:
    """Symmetric, positive definite matrices with NaN in nothing."""
    x = values(*shape, dtype="float64", low=-1, high=1)
    return (x @ x.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def with_eigenvalues(numbers: Array, count: int, order: int) -> Array:
    """Symmetric matrices with these eigenvalues."""
    q = np.linalg.qr(values(count, order, order, dtype="float64", low=-1, high=1))[0]
    made = (q * numbers) @ q.swapaxes(1, 2)
    return (made + made.swapaxes(1, 2)) / 2


def triangular() -> Iterator[Call]:
    for dtype in WIDE:
        yield from triangles(dtype)
    for dtype in (*WIDE, "float16"):
        yield from products(dtype)


def triangles(dtype: str) -> Iterator[Call]:
    for offset in (-2, -1, 0, 1, 3):
        yield named("linalg.extractdiag", values(2, 3, 7, 7, dtype=dtype), offset=offset)
        yield named("linalg.makediag", values(2, 3, 7, dtype=dtype), offset=offset)
        for lower in (True, False):
            yield named("linalg.extracttrian", values(2, 3, 7, 7, dtype=dtype), offset=offset, lower=lower)
            yield named("linalg.maketrian", values(2, 3, 10, dtype=dtype), offset=offset, lower=lower)
    yield named("linalg.extracttrian", values(3, 40, 40, dtype=dtype))
    yield named("linalg.maketrian", values(1, dtype=dtype))
    for shape in ((4, 4), (3, 2, 5, 5), (300, 1, 1)):
        yield named("linalg.sumlogdiag", values(*shape, dtype=dtype, low=0.2, high=4))


def products(dtype: str) -> Iterator[Call]:
    for order, lower, transpose, rightside in itertools.product((1, 5, 35), *[(False, True)] * 3):
        a = dominant(2, order, order, dtype=dtype)[:, ::-1].copy()
        b = values(2, 19, order, dtype=dtype) if rightside else values(2, order, 19, dtype=dtype)
        attrs = {"lower": lower, "transpose": transpose, "rightside": rightside}
        for name, alpha in (("trmm", 1), ("trmm", -0.5), ("trsm", 1), ("trsm", 1.5)):
            yield named(f"linalg.{name}", a, b, alpha=alpha, **attrs)
    # More columns than a block has threads.
    yield named("linalg.trsm", dominant(9, 9, dtype=dtype)[::-1].copy(), values(9, 600, dtype=dtype))
    for transpose, shape in itertools.product((False, True), ((5, 3), (2, 70, 33), (3, 2, 4, 4))):
        yield named("linalg.syrk", values(*shape, dtype=dtype), transpose=transpose, alpha=0.5)


def linalg() -> Iterator[Call]:
    for dtype in WIDE:
        yield from factors(dtype)
    for order in ORDERS:
        # Minors of small whole numbers are often zero: a pivot that was chosen too early shows.
        whole = np.round(values(40 if order < 33 else 2, order, order, dtype="float64", low=-1.2, high=1.2))
        # So that determinants are small numbers.
        whole[:, :, 6:] *= 0.3
        yield named("linalg.det", whole)


def factors(dtype: str) -> Iterator[Call]:
    for order, lower in itertools.product(ORDERS, (True, False)):
        a = definite(2, order, order, dtype=dtype)
        # One triangle is read.
        other = np.triu_indices(order, 1) if lower else np.tril_indices(order, -1)
        a[:, other[0], other[1]] = np.nan
        yield named("linalg.potrf", a, lower=lower)
        factor = np.linalg.cholesky(definite(2, order, order, dtype="float64")).astype(dtype)
        yield named("linalg.potri", factor if lower else factor.swapaxes(1, 2).copy(), lower=lower)
    yield named("linalg.potrf", definite(3, 2, 4, 4, dtype=dtype))
    yield named("linalg.potrf", np.array([[np.nan, 0], [1, 1]], dtype))
    for order in ORDERS:
        a = dominant(3, order, order, dtype=dtype)
        for name in ("det", "slogdet", "inverse"):
            yield named(f"linalg.{name}", a)
    yield named("linalg.det", values(4, 4, dtype=dtype))
    yield named("linalg.slogdet", np.array([[[1, 2], [2, 4]], [[0, 1], [1, 0]], [[0, 0], [0, 0]]], dtype))
    yield named("linalg.inverse", np.array([[0, 2, 0], [0, 0, 4], [1, 0, 0]], dtype))
    yield named("linalg.inverse", dominant(2, 2, 3, 3, dtype=dtype))
    for rows, columns in ((1, 1), (1, 4), (3, 3), (13, 70), (40, 90)):
        yield named("linalg.gelqf", values(2, rows, columns, dtype=dtype))
    yield named("linalg.gelqf", np.array([[3, 0, 0], [1, -2, 0], [-0.0, 0, 5]], dtype))
    yield named("linalg.gelqf", np.zeros((2, 2, 3), dtype))
    for order in (1, 2, 5, 12) if dtype == "float32" else ORDERS:
        a = with_eigenvalues(np.arange(order) - 1.5, 2, order)
        # The lower triangle is read.
        upper = np.triu_indices(order, 1)
        a[:, upper[0], upper[1]] = np.nan
        for scale in (1, 1e-18 if dtype == "float32" else 1e-200):
            yield named("linalg.syevd", (a * scale).astype(dtype))
    yield named("linalg.syevd", np.array([[[2, 0, 0], [0, 1, 0], [0, 0, 3]], np.full((3, 3), np.nan)], dtype))
    yield named("linalg.syevd", with_eigenvalues(np.array([0.5, 2, 7]), 3, 3).reshape(3, 1, 3, 3).astype(dtype))


# ---- mx.np ---------------------------------------------------------------------------------------


def in_np(name: str, function: Callable[..., Any], *inputs: Array) -> Call:
    """A function of arrays of mx.np, which gives one or a list of them."""

    def call(*arrays: Any) -> list[Any]:
        with mx.util.np_shape(True):
            made = function(*[array.as_np_ndarray() for array in arrays])
            return [one.as_nd_ndarray() for one in (made if isinstance(made, list) else [made])]

    return f"np {name}", call, list(inputs)


def numpy() -> Iterator[Call]:
    yield from arithmetic()
    yield from questions()
    yield from folds()
    yield from choices()
    yield from contractions()
    yield from made()


def arithmetic() -> Iterator[Call]:
    def numbers(dtype: str, *shape: int) -> Array:
        made = values(*shape, dtype=dtype, low=1, high=9)
        return made - 4 if dtype not in ("uint8", "bool") else made

    for dtype in ("float32", "float64", "float16", "int32", "int64", "int8"):
        a, b = numbers(dtype, 3, 1, 70), numbers(dtype, 5, 1)
        yield in_np("sums", lambda a, b: [a + b, a - b, a * b, 2 * a, a - 3, 5 - a], a, b)
        divisors = values(5, 1, dtype=dtype, low=1, high=4)
        yield in_np("quotients", lambda a, b: [a / b, a / 4, 3 / (b + 1)], a, divisors)
        if dtype != "float16":
            yield in_np("remainders", lambda a, b: [a % b, a % 3, 7 % b], a, divisors)
    for first, second in (
        ("int8", "int32"),
        ("int32", "int64"),
        ("uint8", "float32"),
        ("int32", "float32"),
        ("int64", "float64"),
        ("int8", "float16"),
        ("float16", "float32"),
        ("float32", "float64"),
        ("bool", "int32"),
        ("bool", "float32"),
    ):
        a, b = numbers(first, 4, 33), numbers(second, 4, 33)
        yield in_np("mixed", lambda a, b: [a + b, b * a], a, b)
    for dtype in ("float32", "float64"):
        x = values(4, 70, dtype=dtype, low=0.2, high=3)
        yield in_np("powers", lambda x: [x**2, x**1.5, 2**x, mx.np.hypot(x, x), mx.np.arctan2(x, x)], x)
        yield in_np("functions", lambda x: [mx.np.exp(x), mx.np.log1p(x), mx.np.tanh(x), mx.np.square(x)], x)
    for dtype in ("float32", "float64", "int32"):
        x = values(300, dtype=dtype, low=-99, high=99)
        x[:5] = [25, 35, -45, 0, 5]
        for decimals in (-1, 0, 2):
            yield in_np("around", lambda x, decimals=decimals: mx.np.around(x, decimals), x)
    special = np.array([0.5, 1.5, -2.5, 2.25, 1e30, np.nan, np.inf, -0.25], "float32")
    yield in_np("around", lambda x: [mx.np.around(x), mx.np.around(x, 1)], special)
    yield in_np("halves", lambda x: [x * 0.5, x + 0.5, x / 2], values(70, dtype="int32", low=-9, high=9))


def questions() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool"):
        a, b = values(3, 70, dtype=dtype, low=0, high=3), values(3, 70, dtype=dtype, low=0, high=3.1)
        a[0] = b[0]
        row = b[2:].copy()
        yield in_np("compared", lambda a, b, c: [a == b, a != b, a < c, a <= b, a > c, a >= b], a, b, row)
        yield in_np("with a number", lambda a: [a == 1, a < 2, a >= 2, a != 0, a > 1], a)
        if dtype != "bool":
            yield in_np("with a fraction", lambda a: [a > 1.5, a <= 0.5], a)
        yield in_np("not", mx.np.logical_not, a)
        if not dtype.startswith("float"):
            yield in_np("bits", lambda a, b: [mx.np.bitwise_and(a, b), a | b, a ^ b, mx.np.bitwise_not(a)], a, b)
    for dtype in ("int32", "int64"):
        a, b = values(70, dtype=dtype, low=-40, high=40), values(70, dtype=dtype, low=-9, high=9)
        yield in_np("lcm", mx.np.lcm, a, b)
        yield in_np("bits and a number", lambda a: [a & 6, a | 9, a ^ -1], a)
    for dtype in ("float32", "float64", "float16"):
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], dtype)
        for name in ("isnan", "isinf", "isposinf", "isneginf", "isfinite"):
            yield in_np(name, getattr(mx.np, name), special)
        yield in_np("numbers", lambda x: [mx.np.nan_to_num(x), mx.np.nan_to_num(x, nan=3, posinf=9)], special)
        yield in_np("nothing is near nan", lambda x: [x == x, x != x, x < 1, x > 1], special)


def folds() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16", "int32", "int64", "int8", "bool"):
        x = values(4, 33, 7, dtype=dtype, low=0, high=2)
        for axis in (1, (0, 2), -1):
            yield in_np("sum", lambda x, axis=axis: mx.np.sum(x, axis=axis), x)
            if dtype != "bool":
                yield in_np("mean", lambda x, axis=axis: mx.np.mean(x, axis=axis), x)
                yield in_np("most", lambda x, axis=axis: [mx.np.max(x, axis), mx.np.min(x, axis, keepdims=True)], x)
        if dtype != "bool":
            yield in_np("place", lambda x: [mx.np.argmax(x, axis=1), mx.np.argmin(x, axis=0)], x)
    for dtype, axis in itertools.product(("float32", "float64", "float16", "int32"), (0, (1, 2), None)):
        x = values(4, 33, 7, dtype=dtype, low=-3, high=9)
        made = "float32" if dtype == "int32" else dtype
        for ddof in (0, 1):
            attrs = {"axis": axis, "dtype": made, "ddof": ddof, "keepdims": True}
            yield in_np("variance", lambda x, attrs=attrs: [mx.np.var(x, **attrs), mx.np.std(x, **attrs)], x)
    for dtype, axis in itertools.product(("float32", "float64", "float16", "int32", "bool"), (0, (1, 2))):
        x = values(4, 33, 7, dtype=dtype, low=-1, high=1)
        x[0, 0], x[1:, 3] = 0, 1
        x[:, :, 5] = np.nan if dtype.startswith("float") else 1
        x[:, 4] = 0
        yield in_np("truths", lambda x, axis=axis: [mx.np.any(x, axis), mx.np.all(x, axis)], x)
    x = values(3, 300, dtype="float16")
    yield in_np("wider sum", lambda x: [mx.np.sum(x, 1, dtype="float32"), mx.np.mean(x, 0, dtype="float64")], x)
    yield in_np("all", lambda x: mx.np.sum(x).reshape(1), values(5, 70))


def choices() -> Iterator[Call]:
    for dtype, condition in itertools.product(("float32", "float64", "float16", "int8", "int64"), ("bool", "float32")):
        which = values(3, 1, 70, dtype=condition, low=-1, high=1)
        which[0] = 0
        x, y = values(5, 1, dtype=dtype, low=-9, high=9), values(3, 5, 70, dtype=dtype, low=-8, high=9)
        yield in_np("where", mx.np.where, which, x, y)
        yield in_np("where with numbers", lambda c, x: [mx.np.where(c, x, 3), mx.np.where(c, -2.5, x)], which, x)
        same = values(3, 5, 70, dtype=dtype)
        yield in_np("where alike", lambda c, x: mx.np.where(c > 0, c, x), same, y)
    yield in_np("two numbers", lambda c: mx.np.where(c, 1.5, -2), values(9, dtype="int32", low=-1, high=1))
    for dtype in ("float32", "int32"):
        x = values(3, 4, 5, dtype=dtype, low=-9, high=9)
        for mode in ("constant", "edge", "reflect", "symmetric"):
            attrs = {"constant_values": 2} if mode == "constant" else {}
            widths = ((1, 0), (2, 3), (0, 4))
            yield in_np(f"pad {mode}", lambda x, m=mode, a=attrs, w=widths: mx.np.pad(x, w, mode=m, **a), x)
        for shift, axis in ((2, None), (-7, None), (3, 1), ((1, -2), (0, 2))):
            yield in_np("roll", lambda x, shift=shift, axis=axis: mx.np.roll(x, shift, axis), x)
        parts = {"begin": (2, None, 0), "end": (None, 3, 4), "step": (-1, 2, 3)}
        yield named("_internal._slice_assign", x, values(3, 2, 2, dtype=dtype), **parts)
        for k in (-2, 0, 1, 9):
            yield in_np("tril", lambda x, k=k: [mx.np.tril(x, k), mx.np.tril(x[0, 0], k)], x)
            yield in_np("diagonals", lambda x, k=k: [mx.np.diagflat(x[0], k), mx.np.diag(x[0, 0], k)], x)
        yield named("diag", x[0, 0].copy(), k=-2)
    for dtype in ("float32", "float64", "float16", "int8", "uint8", "int32", "int64", "bool"):
        x = values(3, 300, 5, low=0, high=120).astype(dtype)
        for offset, axes in itertools.product((-2, 0, 3, 400), ((0, 1), (2, 1), (-1, 0))):
            yield in_np("trace", lambda x, k=offset, axes=axes: mx.np.trace(x, k, *axes), x)


def contractions() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16"):

        def of(*shape: int, dtype: str = dtype) -> Array:
            return values(*shape, dtype=dtype, low=-1, high=1)

        yield in_np("dot", mx.np.dot, of(5, 33), of(33, 7))
        yield in_np("dot with a vector", mx.np.dot, of(2, 5, 33), of(33))
        yield in_np("matmul", mx.np.matmul, of(2, 3, 5, 9), of(2, 3, 9, 4))
        yield in_np("matmul of one", mx.np.matmul, of(2, 1, 5, 9), of(3, 9, 4))
        yield in_np("matmul with a vector", mx.np.matmul, of(2, 5, 9), of(9))
        yield in_np("tensordot", lambda a, b: mx.np.tensordot(a, b, axes=2), of(4, 5, 6), of(5, 6, 7))
        yield in_np("tensordot of axes", lambda a, b: mx.np.tensordot(a, b, ((1,), (0,))), of(4, 5), of(5, 3, 2))
        for text, shapes in (
            ("ij,kj->ik", ((70, 40), (66, 40))),
            ("ij,kj->ki", ((5, 9), (6, 9))),
            ("bij,bjk->bik", ((3, 4, 5), (3, 5, 6))),
            ("bqhd,bkhd->bhqk", ((2, 5, 3, 4), (2, 7, 3, 4))),
            ("bhqk,bkhd->bqhd", ((2, 3, 5, 7), (2, 7, 3, 4))),
            ("i,j->ij", ((5,), (6,))),
        ):
            arrays = [of(*shape) for shape in shapes]
            yield in_np(text, lambda *x, text=text: mx.np.einsum(text, *x), *arrays)


def made() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16", "int32", "int64", "uint8"):
        x = values(1, dtype=dtype)
        for k in (-2, 0, 3):
            yield in_np("eye", lambda x, k=k: mx.np.eye(5, 40, k, dtype=x.dtype, ctx=x.ctx), x)
        for given in ((0, 10, 31, True), (0.5, 9, 7, False), (3, 1, 300, True), (2, 5, 1, True)):
            yield in_np("linspace", lambda x, given=given: mx.np.linspace(*given, dtype=x.dtype, ctx=x.ctx), x)
    yield in_np("identity", lambda x: mx.np.identity(9, ctx=x.ctx), values(1))
    yield in_np("arange", lambda x: mx.np.arange(1, 9, 0.5, ctx=x.ctx), values(1))
    for dtype in ("float32", "float64", "float16"):
        matrices = [values(height, 9, dtype=dtype) for height in (3, 5, 1, 7)]
        for count in (1, 2, 4):
            yield named("khatri_rao", *matrices[:count])


LINEAR_ALGEBRA: dict[str, Callable[[], Iterator[Call]]] = {"linalg": linalg, "triangular": triangular, "numpy": numpy}
