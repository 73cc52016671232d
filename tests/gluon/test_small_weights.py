"""Weights in fewer bytes than float32: precision w8 and bf16 of dense and recurrent layers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

STEPS, INPUTS, SIZE = 12, 48, 64
# Of the largest answer: a byte has 127 levels of either sign, bf16 has 8 bits of mantissa.
ERRORS = {"w8": 3e-2, "bf16": 1e-2}


def fill(mx, parameters) -> None:
    """Gives every parameter numbers of its own, of a size that keeps gates from saturating."""
    rng = np.random.RandomState(7)
    for parameter in parameters.values():
        parameter.initialize()
        parameter.set_data(mx.nd.array(rng.uniform(-0.15, 0.15, parameter.shape).astype("float32")))


def sequence(mx, batch: int):
    return mx.nd.array(np.random.RandomState(1).uniform(-1, 1, (STEPS, batch, INPUTS)).astype("float32"))


def recurrent(mx, kind: str):
    layer = {
        "lstm": lambda: mx.gluon.rnn.LSTM(SIZE, num_layers=2, input_size=INPUTS),
        "gru": lambda: mx.gluon.rnn.GRU(SIZE, bidirectional=True, input_size=INPUTS),
        "rnn": lambda: mx.gluon.rnn.RNN(SIZE, activation="tanh", input_size=INPUTS),
    }[kind]()
    fill(mx, layer.collect_params())
    return layer


def unrolled(mx, batch: int):
    cell = mx.gluon.rnn.LSTMCell(SIZE, input_size=INPUTS)
    fill(mx, cell.collect_params())
    x = mx.sym.var("data")
    begin = [mx.sym.zeros((batch, SIZE)) for _ in range(2)]
    out, _ = cell.unroll(STEPS, x, layout="TNC", merge_outputs=True, begin_state=begin)
    return mx.gluon.SymbolBlock(out, [x], params=cell.collect_params())


def dense(mx):
    layer = mx.gluon.nn.Dense(100, in_units=INPUTS, activation="relu", flatten=False)
    fill(mx, layer.collect_params())
    return layer


def network(mx, kind: str, batch: int):
    if kind == "dense":
        return dense(mx)
    return unrolled(mx, batch) if kind == "unrolled" else recurrent(mx, kind)


def answer(net, x, precision: str) -> np.ndarray:
    net.hybridize(precision=precision)
    return net(x).asnumpy()


@pytest.mark.parametrize("batch", [1, 20])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn", "unrolled", "dense"])
def test_answers_on_small_weights_lie_near_those_of_float32(mx, kind: str, batch: int) -> None:
    net, x = network(mx, kind, batch), sequence(mx, batch)
    exact = answer(net, x, "default")
    for precision, most in ERRORS.items():
        error = abs(answer(net, x, precision) - exact).max() / abs(exact).max()
        assert error <= most, f"{precision}: {error}"
        rounded = precision == "w8" or (batch == 1 and kind != "dense")
        assert error > 0 or not rounded, f"{precision} rounded nothing"


@pytest.mark.parametrize("precision", ["w8", "bf16"])
@pytest.mark.parametrize("kind", ["lstm", "gru", "unrolled", "dense"])
def test_sixty_four_threads_get_the_same_bits_on_small_weights(mx, kind: str, precision: str) -> None:
    net, x = network(mx, kind, 1), sequence(mx, 1)
    want = answer(net, x, precision)
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda _: net(x).asnumpy(), range(256)))
    assert all((got == want).all() for got in answers)


def test_the_plan_names_the_layers_whose_weights_are_small(mx) -> None:
    for kind, batch, w8, bf16 in [("lstm", 1, "packed, w8", "packed, bf16 weights"), ("unrolled", 1, "dense w8", None)]:
        net, x = network(mx, kind, batch), sequence(mx, batch)
        net.hybridize(precision="w8")
        plan = net.plan(x)
        assert w8 in plan and "precision w8: dense and recurrent layers" in plan
        net.hybridize(precision="bf16")
        assert bf16 is None or bf16 in net.plan(x)
        net.hybridize()
        assert "w8" not in net.plan(x)


def test_small_weights_follow_new_parameters(mx) -> None:
    net, x = dense(mx), sequence(mx, 1)
    first = answer(net, x, "w8")
    parameters = net.collect_params()
    for parameter in parameters.values():
        parameter.set_data(parameter.data() * 2)
    # Twice the weights have twice the factors and the same whole numbers.
    assert (net(x).asnumpy() == 2 * first).all()


def test_a_row_of_weights_that_are_not_finite_gives_nan_and_others_their_numbers(mx) -> None:
    net, x = dense(mx), sequence(mx, 1)
    weight = next(parameter for name, parameter in net.collect_params().items() if name.endswith("weight"))
    before = answer(net, x, "w8")
    numbers = weight.data().asnumpy()
    numbers[3, 5] = np.inf
    weight.set_data(mx.nd.array(numbers))
    after = net(x).asnumpy()
    assert np.isnan(after[..., 3]).all()
    others = [i for i in range(100) if i != 3]
    assert (after[..., others] == before[..., others]).all()


def test_the_choices_of_precision_include_w8(mx) -> None:
    with pytest.raises(ValueError, match="w8"):
        dense(mx).hybridize(precision="w4")
