"""Random calls of the operators of MXNet's numpy interface, against numpy.

Axes and shapes are drawn at random, scalars and axes without elements included.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

CASES = int(os.environ.get("MXRT_RANDOM_CASES", "1500"))
DTYPES = ("float32", "float64", "int32", "int64", "int8", "uint8")

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "_npi_add": np.add,
    "_npi_subtract": np.subtract,
    "_npi_multiply": np.multiply,
    "_npi_maximum": np.maximum,
    "_npi_minimum": np.minimum,
    "_npi_equal": np.equal,
    "_npi_less": np.less,
    "_npi_greater_equal": np.greater_equal,
}
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "_np_sum": np.sum,
    "_np_prod": np.prod,
    "_np_max": np.max,
    "_np_min": np.min,
    "_npi_mean": np.mean,
    "_npi_std": np.std,
    "_npi_var": np.var,
}


def operator(mx: Any, name: str, *inputs: np.ndarray, **attrs: Any) -> np.ndarray:
    def made(array: np.ndarray) -> Any:
        one = mx.nd.array(array, dtype=array.dtype)
        return one if one.shape == array.shape else mx.nd._internal._np_reshape(one, newshape=array.shape)

    return getattr(mx.nd._internal, name)(*map(made, inputs), **attrs).asnumpy()


def some_shape(rng: random.Random, axes: int) -> tuple[int, ...]:
    return tuple(rng.choice((0, 1, 1, 2, 3, 5)) for _ in range(rng.randrange(axes + 1)))


def some_array(rng: random.Random, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    low, high = (0, 5) if dtype == "uint8" else (-5, 5)
    values = np.array([rng.randint(low, high) for _ in range(int(np.prod(shape)))], dtype)
    return values.reshape(shape)


def part_of(rng: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that is broadcast to this one."""
    kept = shape[rng.randrange(len(shape) + 1) :]
    return tuple(1 if rng.random() < 0.3 else extent for extent in kept)


def same(got: np.ndarray, want: Any, words: str) -> None:
    want = np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype), f"{words}: {got.dtype}{got.shape}"
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=words)


def test_arrays_are_broadcast_as_by_numpy(mx: Any) -> None:
    rng = random.Random(5)
    for _ in range(CASES):
        shape, dtype = some_shape(rng, 4), rng.choice(DTYPES)
        pair = [some_array(rng, part_of(rng, shape), dtype), some_array(rng, shape, dtype)]
        rng.shuffle(pair)
        name = rng.choice(list(BINARY))
        same(operator(mx, name, *pair), BINARY[name](*pair), f"{name} {dtype} {pair[0].shape} {pair[1].shape}")


def test_axes_are_reduced_as_by_numpy(mx: Any) -> None:
    rng = random.Random(6)
    seen = 0
    for _ in range(CASES):
        x = some_array(rng, some_shape(rng, 4), rng.choice(("float32", "float64")))
        axes = rng.sample(range(x.ndim), rng.randrange(x.ndim + 1))
        axis = None if not axes else tuple(axis - x.ndim if rng.random() < 0.3 else axis for axis in axes)
        keepdims = rng.random() < 0.5
        name = rng.choice(list(REDUCTIONS))
        reduced = x.size if axis is None else int(np.prod([x.shape[at] for at in axis]))
        # The other answers of MXNet for no elements are its own.
        if reduced == 0 and name != "_np_sum":
            continue
        seen += 1
        want = REDUCTIONS[name](x, axis=axis, keepdims=keepdims)
        same(operator(mx, name, x, axis=axis, keepdims=keepdims), want, f"{name} {x.dtype}{x.shape} {axis} {keepdims}")
    assert seen > CASES / 2


def test_axes_are_moved_and_joined_as_by_numpy(mx: Any) -> None:
    rng = random.Random(7)
    for _ in range(CASES):
        x = some_array(rng, some_shape(rng, 4), rng.choice(DTYPES))
        order = tuple(rng.sample(range(x.ndim), x.ndim))
        same(operator(mx, "_np_transpose", x, axes=order), np.transpose(x, order), f"transpose {x.shape} {order}")
        shifted = rng.randint(-7, 7)
        same(operator(mx, "_np_roll", x, shift=shifted), np.roll(x, shifted), f"roll {x.shape} {shifted}")
        if x.ndim == 0:
            continue
        axis = rng.randrange(-x.ndim, x.ndim)
        same(operator(mx, "_npi_flip", x, axis=axis), np.flip(x, axis), f"flip {x.shape} {axis}")
        parts = [x, x[::1], x]
        got = operator(mx, "_npi_concatenate", *parts, axis=axis)
        same(got, np.concatenate(parts, axis), f"concatenate {x.shape} {axis}")
        same(operator(mx, "_npi_stack", *parts, axis=axis), np.stack(parts, axis), f"stack {x.shape} {axis}")


@pytest.mark.parametrize("name", ["_npi_matmul", "_np_dot"])
def test_products_are_those_of_numpy(mx: Any, name: str) -> None:
    rng = random.Random(8)
    function = {"_npi_matmul": np.matmul, "_np_dot": np.dot}[name]
    for _ in range(CASES // 5):
        rows, inner, columns = (rng.choice((0, 1, 2, 5)) for _ in range(3))
        outer = some_shape(rng, 2) if name == "_npi_matmul" else ()
        left = some_array(rng, (*part_of(rng, outer), rows, inner)[rng.randrange(2) if not outer else 0 :], "float32")
        right = some_array(rng, (*outer, inner, columns), "float32")
        same(operator(mx, name, left, right), function(left, right), f"{name} {left.shape} {right.shape}")


def test_eigenvectors_are_those_of_numpy(mx: Any) -> None:
    rng = np.random.default_rng(9)
    for n in (1, 2, 3, 6, 12):
        # Similar to a diagonal matrix, so that all eigenvalues are real.
        basis = rng.normal(size=(4, n, n)) + 2 * np.eye(n)
        x = basis @ (np.diag(np.arange(n) + 1.0) @ np.linalg.inv(basis))
        values, vectors = mx.nd._internal._npi_eig(mx.nd.array(x, dtype="float64"))
        values, vectors = values.asnumpy(), vectors.asnumpy()
        np.testing.assert_allclose(np.sort(values), np.sort(np.linalg.eigvals(x)), rtol=1e-6)
        np.testing.assert_allclose(x @ vectors, vectors * values[:, None, :], atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), np.ones((4, n)), rtol=1e-9)
    alone = mx.nd._internal._npi_eigvals(mx.nd.array(x, dtype="float64")).asnumpy()
    np.testing.assert_allclose(alone, values, rtol=1e-9)
    with pytest.raises(mx.base.MXNetError, match="complex eigenvalues"):
        mx.nd._internal._npi_eigvals(mx.nd.array([[0.0, -1.0], [1.0, 0.0]])).asnumpy()
