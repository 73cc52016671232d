"""Random arrays and others whose shapes and axes are numbers of NumPy. They mean what those of
Python mean, as in MXNet 1.9.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

FOUR = np.int64(4)


@pytest.mark.parametrize(
    "call",
    [
        lambda mx: mx.nd.random.uniform(-1, 1, FOUR),
        lambda mx: mx.nd.random.normal(shape=np.int32(4)),
        lambda mx: mx.nd.random.randint(0, 3, FOUR),
        lambda mx: mx.nd.random.gamma(2, 2, FOUR),
        lambda mx: mx.nd.random.multinomial(mx.nd.array([0, 1]), FOUR),
        lambda mx: mx.np.random.uniform(size=FOUR),
        lambda mx: mx.np.random.normal(size=FOUR),
        lambda mx: mx.np.random.choice(5, FOUR),
        lambda mx: mx.np.random.gamma(1, size=FOUR),
        lambda mx: mx.np.random.pareto(1, FOUR),
    ],
)
def test_random_arrays_take_sizes_of_numpy(mx: Any, call: Any) -> None:
    assert call(mx).shape == (4,)


def test_random_arrays_of_rows_take_sizes_of_numpy(mx: Any) -> None:
    assert mx.np.random.multivariate_normal(mx.np.zeros((2,)), mx.np.eye(2), size=FOUR).shape == (4, 2)
    assert mx.np.random.multinomial(3, [0.5, 0.5], FOUR).shape == (4, 2)
    assert mx.np.random.uniform(size=()).shape == ()
    assert mx.np.random.uniform(size=[2, 3]).shape == (2, 3)


def test_symbols_take_shapes_of_numpy(mx: Any) -> None:
    assert mx.sym.random.uniform(shape=FOUR).infer_shape()[1] == [(4,)]
    assert mx.sym.random.multinomial(mx.sym.var("p", shape=(3,)), FOUR).infer_shape()[1][0] == (4,)
    assert (mx.sym.var("x", shape=FOUR) + 1).infer_shape()[1] == [(4,)]


def test_parameters_of_distributions_are_all_symbols_or_all_numbers(mx: Any) -> None:
    with pytest.raises(AssertionError, match="must all have the same type, but got both"):
        mx.sym.random.normal(mx.sym.var("a"), 2)
    with pytest.raises(ValueError, match="must be either Symbols or numbers, but got <class 'str'>"):
        mx.sym.random.normal("a", 2)


def test_parameters_take_shapes_of_numpy(mx: Any) -> None:
    parameter = mx.gluon.Parameter("w", shape=FOUR)
    parameter.initialize(init="ones")
    assert parameter.data().shape == (4,)
    found = mx.gluon.ParameterDict()
    assert found.get("w", shape=FOUR).shape == (4,)
    assert found.get("w", shape=FOUR) is found["w"]


def test_moveaxis_takes_axes_of_numpy(mx: Any) -> None:
    assert mx.nd.moveaxis(mx.nd.zeros((2, 3, 4)), np.int64(0), np.int32(2)).shape == (3, 4, 2)


@pytest.mark.parametrize("function", ["uniform", "normal", "poisson", "exponential", "gamma", "negative_binomial"])
def test_random_arrays_take_a_name(mx: Any, function: str) -> None:
    assert getattr(mx.nd.random, function)(shape=(2,), name="noise").shape == (2,)
    assert mx.nd.random.randint(0, 2, (2,), name="noise").shape == (2,)
    assert mx.nd.random.shuffle(mx.nd.zeros((2,)), name="noise").shape == (2,)
    assert mx.nd.random.multinomial(mx.nd.array([1, 0]), name="noise").shape == (1,)
    with pytest.raises(mx.base.MXNetError, match="Cannot find argument 'noise'"):
        mx.nd.random.uniform(shape=(2,), noise=1)
