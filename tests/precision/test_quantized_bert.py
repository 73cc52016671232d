"""GluonNLP's int8 BERT: files that MXNet 1.9.1 made, and the same made here of the same block."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bert_blocks
from support import RECORDED

FOLDER = RECORDED / "bert8"
MODES = {"smart": "channel-wise", "full": "tensor-wise"}


def inputs(mx) -> dict[str, Any]:
    return {f"data{i}": mx.nd.array(array) for i, array in enumerate(bert_blocks.batches(6)[-1])}


def quantized(mx, mode: str, **options: Any) -> Any:
    settings = {"quantize_granularity": MODES[mode], "calib_mode": "naive", **options}
    data = bert_blocks.iterator(mx, bert_blocks.batches(6)[:-1])
    net = bert_blocks.make(mx)
    return mx.contrib.quantization.quantize_net_v2(net, quantize_mode=mode, calib_data=data, **settings)


def operators(nodes: list[dict[str, Any]]) -> dict[str, tuple[str, dict[str, str]]]:
    """Quantized nodes by name: operator and attributes."""
    return {n["name"]: (n["op"], n.get("attrs", {})) for n in nodes if n["op"].startswith(("_sg", "_contrib_quant"))}


@pytest.mark.parametrize("mode", MODES)
def test_a_bert_that_mxnet_quantized_gives_its_integers_in_every_layer(mx, mode: str) -> None:
    symbol = mx.sym.load(str(FOLDER / f"{mode}-symbol.json"))
    saved = mx.nd.load(str(FOLDER / f"{mode}-0000.params"))
    given = {name.removeprefix("arg:"): array for name, array in saved.items()} | inputs(mx)
    with np.load(FOLDER / f"{mode}.npz") as arrays:
        wanted = dict(arrays)
    names = [name.removeprefix("integers.") for name in wanted if name != "out"]
    inner = symbol.get_internals()
    assert {"_sg_mkldnn_fully_connected", "_sg_mkldnn_selfatt_qk", "_sg_mkldnn_selfatt_valatt"} <= {
        op for op, _ in operators(json.loads(symbol.tojson())["nodes"]).values()
    }
    found = mx.sym.Group([inner[name] for name in names] + [symbol])
    *integers, out = found.bind(mx.cpu(), {n: given[n] for n in found.list_arguments()}, grad_req="null").forward()
    for name, made in zip(names, integers, strict=True):
        number, expected = made.asnumpy(), wanted[f"integers.{name}"]
        assert number.dtype == expected.dtype, name
        # LayerNorm and softmax are float32: a last bit may move a number over a border between two.
        distance = np.abs(number.astype(int) - expected)
        assert distance.max() <= 1 and (distance > 0).mean() < 0.01, name
    np.testing.assert_allclose(out.asnumpy(), wanted["out"], atol=5e-3)
    assert (out.asnumpy().argmax(1) == wanted["out"].argmax(1)).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_bert_is_quantized_to_the_graph_and_the_numbers_of_mxnet(mx, tmp_path: Path, mode: str) -> None:
    net = quantized(mx, mode)
    with np.load(FOLDER / f"{mode}.npz") as arrays:
        np.testing.assert_allclose(net(*inputs(mx).values()).asnumpy(), arrays["out"], atol=5e-3)
    net.export(str(tmp_path / "bert"), epoch=0)
    found = operators(json.loads((tmp_path / "bert-symbol.json").read_text())["nodes"])
    wanted = operators(json.loads((FOLDER / f"{mode}-symbol.json").read_text())["nodes"])
    fused = [name for name in wanted if name.startswith("quantized_")]
    assert len(fused) == {"smart": 8, "full": 14}[mode]
    for name in fused:
        (operator, attrs), (expected, others) = found[name], wanted[name]
        assert (operator, set(attrs)) == (expected, set(others)), name
        for key, value in attrs.items():
            if key.endswith("calib_range"):
                assert float(value) == pytest.approx(float(others[key]), rel=1e-4, abs=2e-6), (name, key)
            else:
                assert value == others[key], (name, key)


class GluonNLPCollector:
    """Collects ranges as GluonNLP 0.10's BertLayerCollector does, with C handles and a limit."""

    def __init__(self, mx: Any, limit: float):
        self.mx, self.limit = mx, limit
        self.include_layer = lambda name: name.endswith("_output")
        self.min_max_dict: dict[str, tuple[float, float]] = {}

    def collect(self, name: Any, arr: Any) -> None:
        name = self.mx.base.py_str(name)
        if not self.include_layer(name):
            return
        array = self.mx.nd.NDArray(ctypes.cast(arr, self.mx.base.NDArrayHandle), writable=False)
        low, high = (self.mx.nd.min(array).asscalar(), self.mx.nd.max(array).asscalar())
        before = self.min_max_dict.get(name, (low, high))
        self.min_max_dict[name] = (min(before[0], low), min(self.limit, max(before[1], high)))


def test_a_collector_of_gluonnlp_calibrates_a_bert(mx, tmp_path: Path) -> None:
    collector = GluonNLPCollector(mx, limit=0.5)
    net = quantized(mx, "smart", calib_mode="customize", LayerOutputCollector=collector)
    assert len(collector.min_max_dict) > 20
    net(*inputs(mx).values())
    found = ends(net, tmp_path)
    assert len(found) >= 5 and max(found) == 0.5
    free = GluonNLPCollector(mx, limit=1e9)
    like_naive = quantized(mx, "smart", calib_mode="customize", LayerOutputCollector=free)(*inputs(mx).values())
    with np.load(FOLDER / "smart.npz") as arrays:
        np.testing.assert_allclose(like_naive.asnumpy(), arrays["out"], atol=5e-3)


def ends(net: Any, folder: Path) -> list[float]:
    """The upper ends of all ranges in a quantized network."""
    net.export(str(folder / "net"), epoch=0)
    nodes = json.loads((folder / "net-symbol.json").read_text())["nodes"]
    return [float(attrs["max_calib_range"]) for _, attrs in operators(nodes).values() if "max_calib_range" in attrs]


def test_handles_of_a_monitored_executor_are_those_of_its_arrays(mx) -> None:
    symbol = mx.sym.Activation(mx.sym.var("data"), act_type="relu", name="relu")
    executor = symbol.bind(mx.cpu(), {"data": mx.nd.array([-2.0, 3.0])}, grad_req="null")
    seen, kept = [], []

    def callback(name: bytes, array: Any) -> None:
        assert repr(array) == "\n[0. 3.]\n<NDArray 2 @cpu(0)>"
        handle = ctypes.cast(array, mx.base.NDArrayHandle)
        seen.append((name, mx.nd.NDArray(handle, writable=False).asnumpy().tolist()))
        kept.append(handle)

    executor.set_monitor_callback(callback)
    executor.forward()
    assert seen == [(b"relu_output", [0.0, 3.0])]
    with pytest.raises(ValueError, match="belongs to no array"):
        mx.nd.NDArray(kept[0])
    with pytest.raises(TypeError, match="takes an NDArray or its handle, not list"):
        mx.nd.NDArray([1.0])


def test_a_scale_for_each_channel_without_ranges_is_refused_when_the_model_is_made(mx) -> None:
    with pytest.raises(ValueError, match=r"channel-wise.*'quantized_sg_mkldnn_fully_connected_0'.*tensor-wise"):
        quantized(mx, "smart", calib_mode="none")
    out = quantized(mx, "smart", calib_mode="none", quantize_granularity="tensor-wise")(*inputs(mx).values())
    assert out.shape == (bert_blocks.BATCH, bert_blocks.CLASSES)


@pytest.mark.parametrize(
    ("shape", "heads", "words"),
    [
        ((5, 2, 32), 4, r"shape \(5, 2, 32\).*heads=4.*a multiple of 12"),
        ((180, 1, 1024), 8, r"shape \(180, 1, 1024\).*heads=8.*a multiple of 24"),
        ((5, 64), 4, r"shape \(5, 64\).*three axes"),
        ((5, 2, 24), 2**63 - 1, "larger than the address space"),
    ],
)
@pytest.mark.parametrize("fused", [False, True])
def test_attention_whose_columns_do_not_fit_the_heads_names_node_and_shape(
    mx, shape: tuple[int, ...], heads: int, words: str, fused: bool
) -> None:
    data = mx.sym.var("data", shape=shape)
    for make in (
        lambda: mx.sym.contrib.interleaved_matmul_selfatt_qk(data, heads=heads, name="scores"),
        lambda: mx.sym.contrib.interleaved_matmul_selfatt_valatt(
            data, mx.sym.var("weights", shape=(8, 5, 5)), heads=heads, name="values"
        ),
    ):
        with pytest.raises(mx.base.MXNetError, match=words) as caught:
            symbol = make().get_backend_symbol("MKLDNN") if fused else make()
            symbol.simple_bind(mx.cpu(), grad_req="null").forward()[0].asnumpy()
        assert ("sg_mkldnn_selfatt" if fused else "interleaved_matmul_selfatt") in str(caught.value)
    assert mx.nd.ones(2).asnumpy().tolist() == [1, 1]
