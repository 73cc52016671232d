"""Weights that `benches/quantized_graphs.py` computes for graphs whose trained ones are missing."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np
import pytest

from support import ROOT

CLASSES = 4


@pytest.fixture(scope="module")
def weights() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benches"))
        yield importlib.import_module("quantized_weights")


def pictures(count: int, seed: int) -> tuple[Any, Any, Any]:
    """Noisy images whose class is the quarter with ink."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, CLASSES, count)
    inks = np.zeros((count, 16, 16), np.float32)
    for ink, label in zip(inks, labels, strict=True):
        ink[label // 2 * 8 :, label % 2 * 8 :][:8, :8] = 1
    images = 3 * inks[:, None] - 1 + rng.normal(0, 0.2, (count, 3, 16, 16))
    return images.astype(np.float32), inks, labels


def quantized(mx: Any) -> dict[str, Any]:
    """A graph of MXNet's kind, calibrated for weights that are thrown away."""
    net = mx.sym.var("data")
    for i, stride in enumerate([(2, 2), (1, 1)]):
        net = mx.sym.Convolution(
            net, kernel=(3, 3), pad=(1, 1), stride=stride, num_filter=16, no_bias=i == 0, name=f"conv{i}"
        )
        if i == 0:
            net = mx.sym.BatchNorm(net, fix_gamma=False, name="bn")
        net = mx.sym.Activation(net, act_type="relu")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=CLASSES, name="fc")
    arguments, _, states = net.infer_shape(data=(8, 3, 16, 16))
    rng = np.random.RandomState(0)
    params = {
        name: mx.nd.array(rng.normal(0, 0.3, shape))
        for name, shape in zip(net.list_arguments(), arguments, strict=True)
        if name != "data"
    }
    moving = {
        name: mx.nd.array(rng.uniform(0.5, 1, shape))
        for name, shape in zip(net.list_auxiliary_states(), states, strict=True)
    }
    symbol, *_ = mx.contrib.quantization.quantize_model_mkldnn(
        net.get_backend_symbol("MKLDNN_QUANTIZE"),
        params,
        moving,
        excluded_op_names=["_sg_mkldnn_fully_connected"],
        calib_mode="naive",
        calib_data=mx.io.NDArrayIter(pictures(8, 1)[0], batch_size=8),
        num_calib_examples=8,
        quantized_dtype="auto",
    )
    return json.loads(symbol.tojson())


def test_computed_weights_fill_the_ranges_of_a_graph_and_tell_classes_apart(mx: Any, weights: Any) -> None:
    graph = quantized(mx)
    made = weights.fit(mx, graph, *pictures(60, 2))
    symbol = mx.sym.load_json(json.dumps(graph))
    inner = symbol.get_internals()
    names = [node["name"] for node in graph["nodes"] if node["op"] == "_sg_mkldnn_conv"]
    assert len(names) == 2
    found = mx.sym.Group([inner[f"{name}_output"] for name in names] + [symbol])
    images, _, labels = pictures(40, 3)
    given = {name.partition(":")[2]: array for name, array in made.items()} | {"data": mx.nd.array(images)}
    bound = found.bind(
        mx.cpu(),
        {name: given[name] for name in found.list_arguments()},
        aux_states={name: given[name] for name in found.list_auxiliary_states()},
        grad_req="null",
    )
    *integers, out = [array.asnumpy() for array in bound.forward()]
    for array in integers:
        assert array.dtype == np.uint8 and array.std() > 255 / 8 and (array == 255).mean() < 0.1
    assert (out.argmax(1) == labels).all()


def test_no_two_products_of_computed_weights_exceed_16_bits(weights: Any) -> None:
    value = weights.drawn((32, 8, 3, 3), np.random.RandomState(0))
    whole = np.rint(127 * value).astype(int)
    np.testing.assert_allclose(127 * value, whole, atol=1e-4)
    pairs = whole.reshape(32, 4, 2, 9)
    assert abs(255 * pairs.sum(2)).max() <= 32767
    largest = abs(whole).reshape(32, -1) == 127
    assert (largest.sum(1) == 1).all() and (whole.reshape(32, -1)[~largest] % 2 == 0).all()
