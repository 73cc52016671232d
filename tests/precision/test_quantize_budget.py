"""``mx.quantize``: models on 8-bit integers within a budget of lost accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import DIGITS

PARAMS = DIGITS / "digits_cnn-0000.params"


def held_back() -> tuple[Any, Any]:
    with np.load(DIGITS / "eval.npz") as arrays:
        return arrays["in.data"], arrays["label"]


def network(mx) -> Any:
    return mx.gluon.SymbolBlock.imports(str(DIGITS / "digits_cnn-symbol.json"), ["data"], str(PARAMS))


def test_a_network_is_quantized_within_a_budget_and_each_layer_is_reported(mx, tmp_path: Path) -> None:
    data, labels = held_back()
    made = mx.quantize(network(mx), [(data, labels.astype("float32"))], budget="0.5%")
    report = made.report
    assert report["measure"] == "accuracy"
    assert report["before"] == pytest.approx(356 / 360)
    assert report["after"] >= report["before"] - 0.005
    assert report["layers"][0]["layers"][0] == "digitsnet_conv0_fwd"
    for one in report["layers"]:
        assert one["range"][0] < one["range"][1] and one["snr_db"] > 25 and one["clipped"] == 0
        # Also of layers that add int8 to results that are uint8: their range is not cut in half.
        assert 0 < one["output_error"] < 0.04
    made.save(tmp_path / "int8")
    again = mx.gluon.SymbolBlock.imports(
        str(tmp_path / "int8-symbol.json"), ["data"], str(tmp_path / "int8-0000.params")
    )
    answers = again(mx.nd.array(data)).asnumpy()
    assert (answers.argmax(1) == labels).mean() == pytest.approx(report["after"])
    np.testing.assert_array_equal(made.net(mx.nd.array(data)).asnumpy(), answers)


def test_the_weights_of_a_quantized_copy_are_integers_that_give_the_same_sums(mx, tmp_path: Path) -> None:
    data, _ = held_back()
    made = mx.quantize(network(mx), data, budget=None)
    made.save(tmp_path / "int8")
    size = (tmp_path / "int8-0000.params").stat().st_size
    assert made.report["bytes_after"] < 0.3 * made.report["bytes_before"]
    assert size < 0.35 * PARAMS.stat().st_size
    # MXNet's form, which keeps the weights in float32.
    whole = mx.contrib.quantization.quantize_net_v2(
        network(mx), "auto", "smart", calib_data=[mx.nd.array(data)], calib_mode="naive"
    )
    found, wanted = (net(mx.nd.array(data)).asnumpy() for net in (made.net, whole))
    # The same integers, except that the largest of a filter end at 127 or -128.
    assert abs(found - wanted).max() < 0.02 * abs(wanted).max()


def test_layers_that_cost_most_stay_in_float32_until_the_budget_holds(mx) -> None:
    # Likeness of one number; a sine that is large in one layer is lost in the other.
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(8, in_units=4), mx.gluon.nn.Dense(1, in_units=8))
    net.initialize(mx.init.Normal(1))
    data = np.random.default_rng(3).normal(size=(64, 4)).astype("float32")
    free = mx.quantize(net, data, budget=None).report
    assert free["measure"] == "likeness" and not any(one["float32"] for one in free["layers"])
    assert free["after"] < 1
    tight = mx.quantize(net, data, budget=0).report
    assert all(one["float32"] for one in tight["layers"]) and tight["after"] == 1
    errors = sorted(one["output_error"] for one in free["layers"])
    between = mx.quantize(net, data, budget=(errors[0] + errors[1]) / 2).report
    kept = [one for one in between["layers"] if one["float32"]]
    assert [one["output_error"] for one in kept] == errors[1:]
    assert between["before"] - between["after"] <= between["budget"]


def test_the_page_of_a_report_needs_no_other_file_and_escapes_names(mx) -> None:
    data, _ = held_back()
    made = mx.quantize(network(mx), data[:32])
    assert made.report["measure"] == "agreement"
    made.report["model"] = "<script>alert(1)</script>"
    page = made.page()
    assert "<script" not in page and "http" not in page and "src=" not in page
    assert page.count("<tr class=") == len(made.report["layers"])


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ([], {}, "gave no batch"),
        (np.full((2, 1, 8, 8), np.nan, np.float32), {}, "'data' holds NaN"),
        (np.zeros((2, 3, 8, 8), np.float32), {}, "data"),
        (np.zeros((2, 1, 8, 8), np.float32), {"budget": "much"}, "budget='much': expected a fraction"),
        (np.zeros((2, 1, 8, 8), np.float32), {"budget": -0.1}, "budget=-0.1"),
        (np.zeros((2, 1, 8, 8), np.float32), {"calib_mode": "none"}, "expected naive or entropy"),
    ],
)
def test_wrong_data_and_budgets_are_named(mx, data: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mx.quantize(network(mx), data, **options)


def test_a_model_that_cannot_be_quantized_is_named_with_the_reason(mx) -> None:
    data = mx.nd.ones((2, 1, 8, 8))
    quantized = mx.quantize(network(mx), data).net
    with pytest.raises(ValueError, match=r"is quantized already: _contrib_quantize_v2 'data_quantize' is on 8-bit"):
        mx.quantize(quantized, data)
    half = network(mx)
    half.cast("float16")
    words = "layer 'digitsnet_conv0_fwd' computes in float16, and 8-bit integers are made of layers in float32"
    with pytest.raises(ValueError, match=words):
        mx.quantize(half, data.astype("float16"))
    pool = mx.gluon.nn.HybridSequential()
    pool.add(mx.gluon.nn.MaxPool2D(), mx.gluon.nn.PReLU())
    pool.initialize()
    with pytest.raises(ValueError, match="no layer of the model can be quantized; expected at least one FullyConn"):
        mx.quantize(pool, data)
    # In this mode it can be, without a layer of products.
    assert mx.quantize(pool, data, quantize_mode="full").report["layers"] == []


def test_the_padding_of_the_last_batch_counts_as_no_sample(mx) -> None:
    data, labels = held_back()
    rows = mx.io.NDArrayIter(data[:50], labels[:50].astype("float32"), batch_size=32)
    padded = mx.quantize(network(mx), rows, budget=None).report
    whole = mx.quantize(network(mx), [(data[:50], labels[:50].astype("float32"))], budget=None).report
    assert padded["samples"] == whole["samples"] == 50
    assert padded["before"] == whole["before"]
    for one, other in zip(padded["layers"], whole["layers"], strict=True):
        assert one["range"] == pytest.approx(other["range"])
        assert one["output_error"] == pytest.approx(other["output_error"], rel=0.1)


@pytest.mark.parametrize("wrong", [10, -1, 2.5, float("nan")])
def test_a_label_that_is_no_class_is_named(mx, wrong: float) -> None:
    data, labels = held_back()
    labels = labels[:8].astype("float32")
    labels[3] = wrong
    with pytest.raises(ValueError, match=rf"label 3 is {wrong}.*, which is no class .* whole numbers from 0 to 9"):
        mx.quantize(network(mx), [(data[:8], labels)])
