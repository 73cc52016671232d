"""Calls for cuda_kernels.py: linear algebra."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

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


LINEAR_ALGEBRA: dict[str, Callable[[], Iterator[Call]]] = {"linalg": linalg, "triangular": triangular}
