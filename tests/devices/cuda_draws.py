"""Calls for cuda_kernels.py: random choices among places, and densities of distributions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mxrt as mx
from cuda_calls import Array, Call, named, values
from cuda_linalg import in_np

FLOATS = ("float32", "float64", "float16")


def seeded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function draw the same numbers at every call."""

    def call(*arrays: Any) -> Any:
        mx.random.seed(11)
        return function(*arrays)

    return call


def weights(*shape: int, dtype: str = "float32") -> Array:
    """Makes weights, some of which are 0; the last one is not."""
    made = values(*shape, low=-0.5, high=1).clip(0)
    made[..., -1] = 0.3
    return made.astype(dtype)


def draws() -> Iterator[Call]:
    yield from shuffles()
    yield from places()
    yield from choices()
    yield from outcomes()


def shuffles() -> Iterator[Call]:
    # Two pairs share a block of the stream, and rows of more than a chunk are sorted by several.
    for rows in (1, 2, 3, 300, 1024, 5000):
        yield f"shuffle {rows}", seeded(mx.nd.random.shuffle), [np.arange(rows, dtype="int32")]
    for dtype, shape in itertools.product(("float32", "float16", "int8", "int64"), ((7, 5), (130, 2, 3))):
        yield "shuffle rows", seeded(mx.nd.shuffle), [values(*shape, dtype=dtype, low=-9, high=9)]

    def in_place(x: Any) -> Any:
        before = x + 0
        mx.np.random.shuffle(x)
        return [before, x]

    yield in_np("shuffle", seeded(in_place), values(300, 2))
    yield in_np("shuffle of nothing", seeded(in_place), values(0, 3))
    yield in_np("shuffle of rows of nothing", seeded(in_place), values(3, 0))


def places() -> Iterator[Call]:
    def chosen(n: int, size: Any, replace: bool) -> Call:
        choice = lambda x: mx.np.random.choice(n, size=size, replace=replace, ctx=x.ctx)  # noqa: E731
        return in_np(f"choice {n} {size} {replace}", seeded(choice), values(1))

    for n in (1, 7, 10**6, 2**40, 2**40 + 1, 2**63 - 1):
        yield chosen(n, (9, 40), True)
    for n, count in ((1, 1), (5, 5), (7, 2), (2000, 2000), (2000, 1300), (3000, 40), (10**12, 300), (2**63 - 1, 50)):
        yield chosen(n, count, False)
    yield chosen(5, 0, False)
    yield chosen(5, (), True)
    picked = lambda x: [mx.np.random.choice(x, size=40), mx.np.random.choice(x, size=9, replace=False)]  # noqa: E731
    yield in_np("choice of elements", seeded(picked), values(9))
    for dtype, (n, count) in itertools.product((*FLOATS, "int32"), ((1, 1), (5, 2), (300, 90), (2000, 700))):
        for replace in (True, False):
            attrs = {"a": n, "size": (count,), "replace": replace, "weighted": True}
            name, call, _ = named("_internal._npi_choice", **attrs)
            yield name, seeded(call), [(weights(n) * 9).astype(dtype) if n > 1 else np.ones(1, dtype)]


def choices() -> Iterator[Call]:
    for dtype, (shape, drawn) in itertools.product(
        FLOATS, (((3,), ()), ((4, 1), 5), ((3, 7), (2, 50)), ((2, 1000), 200), ((1, 3000), 60))
    ):
        chances = weights(*shape, dtype="float64")
        chances = (chances / chances.sum(-1, keepdims=True)).astype(dtype)
        for with_logarithms, to in ((False, "int32"), (True, "float32"), (False, "uint8")):
            attrs = {"shape": drawn, "get_prob": with_logarithms, "dtype": to}
            name, call, _ = named("sample_multinomial", **attrs)
            yield name, seeded(call), [chances]
    # Numbers that are no probabilities, and sums that do not rise.
    odd = [[0.1, -0.5, 0.9, 0.5], [np.nan, 0.5, 0.2, 0.3], [0.2, 0.3, np.nan, 1], [np.inf, 0, 0, 0], [0] * 4]
    for dtype in FLOATS:
        name, call, _ = named("sample_multinomial", shape=70)
        yield name, seeded(call), [np.array([*odd, [-1] * 4, [0, 0, 1e-310, 2], [0.1] * 4], dtype)]


def outcomes() -> Iterator[Call]:
    def counted(n: int, chances: list[float], size: Any) -> Call:
        def call(x: Any) -> Any:
            return mx.nd._internal._npi_multinomial(n=n, pvals=tuple(chances), size=size)

        return f"multinomial {n} {len(chances)} {size}", seeded(call), [values(1)]

    for n in (0, 1, 30, 10**6, 4 * 10**9):
        for chances in ([0.2, 0.5, 0.3], [0.9, 0.1], [0.2, 0.5], [0.0, 0.1, 0.2, 0.7, 0.0], [1.0], [0.025] * 40):
            yield counted(n, chances, (3, 50))
    for dtype in ("float32", "float64"):
        function = lambda p: mx.np.random.multinomial(1000, p, size=(70,))  # noqa: E731
        yield in_np("multinomial of an array", seeded(function), np.array([0.25, 0.5, 0.125, 0.125], dtype))


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 170.0, 1e4, -2.5]


def densities() -> Iterator[Call]:
    with_two = ("uniform", "normal", "gamma", "negative_binomial", "generalized_negative_binomial")
    names = [*((name, 2) for name in with_two), ("exponential", 1), ("poisson", 1)]
    for (name, parameters), dtype, is_log in itertools.product(names, FLOATS, (False, True)):
        samples = np.round(values(3, 4, 30, dtype="float64", low=0, high=6)).astype(dtype)
        given = [values(3, 4, dtype=dtype, low=0.1, high=2), values(3, 4, dtype=dtype, low=0.05, high=0.95)]
        yield named(f"random_pdf_{name}", samples, *given[:parameters], is_log=is_log)
        special = np.array(SPECIAL, dtype)
        first, second = np.meshgrid(special, special, indexing="ij")
        everywhere = np.broadcast_to(special, (*first.shape, special.size)).copy()
        yield named(f"random_pdf_{name}", everywhere, *[first, second][:parameters], is_log=is_log)
    for dtype, is_log in itertools.product(FLOATS, (False, True)):
        for extent, shape in ((3, (5, 4)), (1, (2,)), (40, (2, 70)), (100, (3, 1))):
            samples = values(*shape, extent, dtype=dtype, low=0.01, high=1)
            yield named("random_pdf_dirichlet", samples, values(shape[0], extent, dtype=dtype, low=0.1), is_log=is_log)
        odd = np.array([[0.5, np.nan, 0.1], [0, 0.5, 0.5], [np.inf, 1, 1]], dtype)
        yield named("random_pdf_dirichlet", odd, np.array([1, 2, 0.5], dtype), is_log=is_log)


DRAWS: dict[str, Callable[[], Iterator[Call]]] = {"draws": draws, "density": densities}
