"""Half precision on the CPU: sums of products compute in single precision."""

from __future__ import annotations

import numpy as np
import pytest

from support import in_threads

HALF = {
    "dot": lambda nd, x, w, b: nd.dot(x, w, transpose_b=True),
    "batch_dot": lambda nd, x, w, b: nd.batch_dot(x.reshape((5, 1, 40)), w.reshape((5, 14, 40)), transpose_b=True),
    "FullyConnected": lambda nd, x, w, b: nd.FullyConnected(x, w, b, num_hidden=70),
    "Convolution": lambda nd, x, w, b: nd.Convolution(
        x.reshape((1, 8, 5, 5)), w.reshape((7, 8, 5, 10)), no_bias=True, kernel=(5, 10), pad=(2, 5), num_filter=7
    ),
}


@pytest.mark.parametrize("name", HALF)
def test_sums_of_half_precision_are_rounded_once(mx, name: str) -> None:
    random = np.random.RandomState(3)
    given = [random.uniform(-2, 2, shape).astype("float16") for shape in ((5, 40), (70, 40), (70,))]
    made = HALF[name](mx.nd, *[mx.nd.array(x, dtype="float16") for x in given])
    single = HALF[name](mx.nd, *[mx.nd.array(x, dtype="float32") for x in given])
    assert made.dtype == np.float16
    assert made.asnumpy().tobytes() == single.asnumpy().astype("float16").tobytes()


def test_a_network_of_half_precision_answers_from_threads(mx, tmp_path) -> None:
    data = mx.sym.var("data")
    layers = mx.sym.relu(mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, name="conv"))
    layers = mx.sym.FullyConnected(layers, num_hidden=5, name="fc")
    random = np.random.RandomState(4)
    shapes = {"conv_weight": (4, 3, 3, 3), "conv_bias": (4,), "fc_weight": (5, 4 * 6 * 6), "fc_bias": (5,)}
    values = {name: random.uniform(-0.3, 0.3, shape).astype("float16") for name, shape in shapes.items()}
    x = random.uniform(-1, 1, (2, 3, 8, 8)).astype("float16")

    def net(dtype: str):
        block = mx.gluon.SymbolBlock(layers, data)
        file = str(tmp_path / f"{dtype}.params")
        mx.nd.save(file, {f"arg:{name}": mx.nd.array(value, dtype=dtype) for name, value in values.items()})
        block.collect_params().load(file, mx.cpu(), cast_dtype=True, dtype_source="saved", restore_prefix="")
        return block

    half, single = net("float16"), net("float32")
    wanted = single(mx.nd.array(x, dtype="float32")).asnumpy()
    bits = set()

    def call(_: int) -> None:
        for _ in range(20):
            found = half(mx.nd.array(x, dtype="float16")).asnumpy()
            np.testing.assert_allclose(found.astype("float32"), wanted, rtol=4e-3, atol=4e-3)
            bits.add(found.tobytes())

    in_threads(8, call)
    assert len(bits) == 1


def test_a_network_with_batch_norm_is_cast_to_half_precision(mx) -> None:
    """The statistics stay in single precision, and fold into the layers before them."""
    data = mx.sym.var("data")
    layers = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, name="conv")
    layers = mx.sym.relu(mx.sym.BatchNorm(layers, fix_gamma=False, name="norm"))
    layers = mx.sym.Convolution(layers, kernel=(1, 1), num_filter=6, no_bias=True, name="narrow")
    layers = mx.sym.BatchNorm(mx.sym.BatchNorm(layers, name="second"), name="third")
    net = mx.gluon.SymbolBlock(layers, data)
    net.collect_params().initialize(mx.init.Uniform(0.5))
    random = np.random.RandomState(5)
    for name, parameter in net.collect_params().items():
        shape = {"conv_weight": (4, 3, 3, 3), "narrow_weight": (6, 4, 1, 1)}.get(name)
        shape = shape or ((6,) if name.startswith(("second", "third")) else (4,))
        parameter._load_init(mx.nd.array(random.uniform(0.2, 1, shape)), [mx.cpu()])
    x = random.uniform(-1, 1, (2, 3, 8, 8))
    wanted = net(mx.nd.array(x)).asnumpy()
    net.cast("float16")
    assert {parameter.dtype for parameter in net.collect_params().values()} == {"float16", "float32"}
    found = net(mx.nd.array(x, dtype="float16")).asnumpy()
    assert found.dtype == np.float16
    assert np.abs(found - wanted).max() <= 4e-3 * np.abs(wanted).max()


def test_attention_of_half_precision(mx) -> None:
    x = np.random.RandomState(6).uniform(-2, 2, (7, 2, 2 * 3 * 8)).astype("float16")

    def call(dtype: str):
        projections = mx.nd.array(x, dtype=dtype)
        scores = mx.nd.contrib.interleaved_matmul_selfatt_qk(projections, heads=2)
        return scores, mx.nd.contrib.interleaved_matmul_selfatt_valatt(projections, scores, heads=2)

    for half, single in zip(call("float16"), call("float32"), strict=True):
        assert half.dtype == np.float16
        assert np.abs(half.asnumpy() - single.asnumpy()).max() <= 2e-3 * np.abs(single.asnumpy()).max()
