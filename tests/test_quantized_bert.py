"""GluonNLP's int8 BERT: files that MXNet 1.9.1 made, and the same made here of the same block."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bert_blocks

FOLDER = Path(__file__).parent / "recorded" / "bert8"
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
