"""Models on 8-bit integers: files of MXNet's, the tool that makes them, and wrong ranges."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import DIGITS, MODELS, RECORDED, run

# digits_cnn as MXNet 1.9.1's get_backend_symbol("MKLDNN") writes it.
FUSED = RECORDED / "fused_digits_cnn-symbol.json"
PARAMS = DIGITS / "digits_cnn-0000.params"


def golden(folder: Path, batch: int) -> tuple[Any, Any]:
    with np.load(folder / "golden.npz") as arrays:
        return arrays[f"b{batch}.in.data"], arrays[f"b{batch}.out.0"]


def held_back(folder: Path) -> tuple[Any, Any]:
    with np.load(folder / "eval.npz") as arrays:
        return arrays["in.data"], arrays["label"]


def ranged(mx, *numbers: float) -> list[Any]:
    return [mx.nd.array([number]) for number in numbers]


# ----------------------------------------------------------------------------- fused files


@pytest.mark.parametrize("name", ["0", "1", "2", "3", "stored"])
def test_numbers_of_a_calibrated_network_are_those_of_mxnet_to_the_last_bit(mx, name: str) -> None:
    prefix = RECORDED / "int8" / name
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    with np.load(f"{prefix}.npz") as arrays:
        found = net(mx.nd.array(arrays["data"])).asnumpy()
        assert found.tobytes() == arrays["out"].tobytes()


def test_a_fused_float32_graph_gives_the_numbers_of_the_plain_one_and_is_written_as_it_was(mx) -> None:
    symbol = mx.sym.load(str(FUSED))
    assert json.loads(symbol.tojson())["nodes"] == json.loads(FUSED.read_text())["nodes"]
    plain = mx.sym.load(str(DIGITS / "digits_cnn-symbol.json"))
    assert symbol.list_arguments() == plain.list_arguments()
    assert symbol.list_auxiliary_states() == plain.list_auxiliary_states()
    net = mx.gluon.SymbolBlock.imports(str(FUSED), ["data"], str(PARAMS))
    for batch in (1, 3, 16):
        data, wanted = golden(DIGITS, batch)
        np.testing.assert_allclose(net(mx.nd.array(data)).asnumpy(), wanted, atol=2e-4)


def test_a_fused_float32_graph_runs_on_the_kernels_of_the_plain_one(mx) -> None:
    data = mx.nd.array(golden(DIGITS, 3)[0])
    plans = []
    for file in (FUSED, DIGITS / "digits_cnn-symbol.json"):
        net = mx.gluon.SymbolBlock.imports(str(file), ["data"], str(PARAMS))
        net(data).wait_to_read()
        steps = [re.split(r"\s{2,}", line) for line in net.plan(data, measure=False).splitlines()[1:-1]]
        # Operator, shape and kernel; residuals of two layers may be added by either.
        plans.append((len(steps), {step[1] for step in steps}, {step[4] for step in steps}))
    assert plans[0] == plans[1]


def damaged(change: str) -> dict[str, Any]:
    graph = json.loads((MODELS / "cnn_int8_fused" / "cnn_int8_fused-symbol.json").read_text())
    node = next(n for n in graph["nodes"] if n["op"] == "_sg_mkldnn_conv")
    inner = node["subgraphs"][0]
    match change:
        case "absent":
            del node["subgraphs"]
        case "twice":
            node["subgraphs"].append(inner)
        case "another operator":
            next(n for n in inner["nodes"] if n["op"] == "Activation").update(op="sum", attrs={})
        case "flag":
            node["attrs"]["with_act"] = "false"
        case "input":
            node["inputs"].pop()
        case "attribute":
            next(n for n in inner["nodes"] if n["op"] == "Convolution")["attrs"]["kernel"] = "(0, 3)"
        case "itself":
            inner["nodes"][2].update(op="_sg_mkldnn_conv", subgraphs=[json.loads(json.dumps(inner))])
        case "reversed range":
            node["attrs"].update(min_calib_range="3", max_calib_range="1")
        case "half a range":
            del node["attrs"]["max_calib_range"]
        case "no number":
            node["attrs"].update(max_calib_range="nan")
    return graph


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("absent", "0 nested graphs and needs one"),
        ("twice", "2 nested graphs and needs one"),
        ("another operator", "it has a node sum"),
        ("flag", "with_act is false"),
        ("input", "expects"),
        ("attribute", "kernel"),
        ("itself", "expects 6 inputs"),
        ("reversed range", "min=3, max=1"),
        ("half a range", "max_calib_range is missing"),
        ("no number", "max=NaN"),
    ],
)
def test_a_damaged_fused_node_is_named_with_what_is_wrong(mx, change: str, words: str) -> None:
    with pytest.raises(mx.base.MXNetError, match=words) as caught:
        symbol = mx.sym.load_json(json.dumps(damaged(change)))
        symbol.simple_bind(mx.cpu(), data=(1, 1, 8, 8), grad_req="null").forward()[0].asnumpy()
    assert "sg_mkldnn_conv" in str(caught.value)
    assert mx.nd.ones(2).asnumpy().tolist() == [1, 1]


# ----------------------------------------------------------------------------- the same everywhere

# The answers of callers that wait for each other, and of eight concurrent ones.
HASH = """
import hashlib, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import mxrt as mx
prefix = sys.argv[1]
net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
x = mx.nd.array(np.load(prefix.rsplit("/", 1)[0] + "/golden.npz")["b16.in.data"])
bits = lambda _=None: hashlib.sha256(net(x).asnumpy().tobytes()).hexdigest()
with ThreadPoolExecutor(8) as callers:
    found = {bits(), *callers.map(bits, range(24))}
print("bits", *found)
"""


def test_integers_are_the_same_on_every_instruction_set_for_any_number_of_threads(mx) -> None:
    prefix = str(MODELS / "cnn_int8_fused" / "cnn_int8_fused")
    found = {}
    for variable, values in {"MXRT_ISA": ("portable", "avx2", "avx512"), "MXRT_CORES": ("1", "2", "8")}.items():
        for value in values:
            result = run([sys.executable, "-c", HASH, prefix], 240, env={variable: value})
            if "this processor does not have it" in result.stderr:
                continue
            assert result.returncode == 0, result.stderr
            found[variable, value] = result.stdout.split("bits ")[1].split()
    assert ("MXRT_ISA", "portable") in found and ("MXRT_CORES", "8") in found
    assert len({bits for all_bits in found.values() for bits in all_bits}) == 1, found


# ----------------------------------------------------------------------------- operators


def test_the_sum_of_two_kinds_of_integers_is_their_sum(mx) -> None:
    a, b = np.array([49, 200, 15], np.uint8), np.array([-84, 40, -7], np.int8)
    arrays = [mx.nd.array(a, dtype="uint8"), mx.nd.array(b, dtype="int8"), *ranged(mx, 0, 1, -1, 1)]
    sums, low, high = mx.nd.contrib.quantized_elemwise_add(*arrays)
    got = sums.asnumpy() * (high.asscalar() / (2**31 - 1))
    np.testing.assert_allclose(got, a / 255.5 + b / 127.5, atol=1e-6)
    assert low.asscalar() == -high.asscalar() == -2
    integers = mx.nd.contrib.quantized_elemwise_add(*arrays, min_calib_range=-2, max_calib_range=2)[0]
    # As MXNet 1.9.1 rounds.
    assert (integers.dtype, integers.asnumpy().tolist()) == (np.int8, [-30, 70, 0])


def test_joined_integers_have_the_range_that_holds_all(mx) -> None:
    a = mx.nd.array([[49, -32, 15], [-61, -13, 24]], dtype="int8")
    b = mx.nd.array([[49, 200, 15], [6, 13, 24]], dtype="uint8")
    joined, low, high = mx.nd.contrib.quantized_concat(a, b, *ranged(mx, -1, 1, 0, 2), num_args=2, dim=1)
    # MXNet 1.9.1 on these numbers.
    assert joined.asnumpy().tolist() == [[24, -16, 8, 24, 100, 7], [-30, -6, 12, 3, 6, 12]]
    assert (low.asscalar(), high.asscalar()) == (-1, 2)


@pytest.mark.parametrize(
    ("low", "high", "words"), [(2, 1, "min=2, max=1"), (np.nan, 1, "min=NaN"), (0, np.inf, "max=inf")]
)
def test_a_range_that_is_none_is_an_error_that_names_it(mx, low: float, high: float, words: str) -> None:
    data, weight = mx.nd.ones((1, 4), dtype="int8"), mx.nd.ones((2, 4), dtype="int8")
    call = mx.nd.contrib.quantized_fully_connected
    with pytest.raises(mx.base.MXNetError, match=f"the range of weight is .*{words}"):
        call(data, weight, *ranged(mx, -1, 1, low, high), num_hidden=2, no_bias=True)[0].asnumpy()
    good = call(data, weight, *ranged(mx, -1, 1, -1, 1), num_hidden=2, no_bias=True)
    assert good[0].asnumpy().tolist() == [[4, 4]]


def test_an_image_of_zeros_is_quantized_to_zeros(mx) -> None:
    integers, low, high = mx.nd.contrib.quantize_v2(mx.nd.zeros((2, 3)))
    assert not integers.asnumpy().any()
    assert (low.asscalar(), high.asscalar()) == (0, 0)
    assert not mx.nd.contrib.dequantize(integers, low, high).asnumpy().any()


# ----------------------------------------------------------------------------- the tool


def correct(mx, symbol: Any, args: dict, auxs: dict, folder: Path) -> int:
    data, labels = held_back(folder)
    names = [name for name in symbol.list_arguments() if name not in args]
    module = mx.mod.Module(symbol, data_names=["data"], label_names=[n for n in names if n != "data"] or None)
    module.bind([("data", data.shape)], [(n, labels.shape) for n in names if n != "data"] or None, for_training=False)
    module.set_params(args, auxs, allow_extra=True)
    module.forward(mx.io.DataBatch([mx.nd.array(data)], [mx.nd.array(labels)]), is_train=False)
    return int((module.get_outputs()[0].asnumpy().argmax(1) == labels).sum())


def batches(mx, folder: Path, samples: int = 96) -> Any:
    return mx.io.NDArrayIter(held_back(folder)[0][:samples], batch_size=32)


def histogram(bins: int, kind: int) -> tuple[Any, Any]:
    """Counts of a narrow, a wide and a one-sided distribution, and the ends of their bins."""
    place = np.arange(bins)
    far = abs(place - bins // 2)
    part = (
        4000 * bins * bins // (bins * bins + 4000 * far * far),
        1000 * bins // (bins + 60 * far),
        2000 * bins // (bins + 80 * far) * (place >= bins // 2),
    )[kind]
    return part * part // 3000 * (place * 7919 % 5 != kind), (2 * np.arange(bins + 1) - bins) * 4 / bins


# Bits of the thresholds and divergences of MXNet 1.9.1.
CALIBRATED = {
    (801, 0, 255): (1067646731, 0),
    (801, 0, 511): (1076056284, 0),
    (801, 1, 255): (1078067036, 978992256),
    (801, 1, 511): (1076056284, 0),
    (801, 2, 255): (1082046651, 992746033),
    (801, 2, 511): (1079910226, 995201367),
    (8001, 0, 255): (1066497069, 967458147),
    (8001, 0, 511): (1066589333, 949088401),
    (8001, 1, 255): (1074954875, 981526231),
    (8001, 1, 511): (1074975844, 964907477),
    (8001, 2, 255): (1080247425, 995150723),
    (8001, 2, 511): (1080314525, 979458021),
}


@pytest.mark.parametrize(("bins", "kind", "steps"), CALIBRATED, ids=str)
def test_the_search_for_a_range_ends_where_mxnets_does(mx, bins: int, kind: int, steps: int) -> None:
    counts, ends = (mx.nd.array(part, dtype="float32") for part in histogram(bins, kind))
    found = mx.nd.contrib.calibrate_entropy(counts, ends, num_quantized_bins=steps)
    threshold, divergence = CALIBRATED[bins, kind, steps]
    assert [array.shape for array in found] == [(1,), (1,)]
    assert found[0].asnumpy().view("u4")[0] == threshold
    # Sums of logarithms, of which those of two mathematical libraries may differ in the last bit.
    wanted = np.uint32(divergence).view("f4")
    np.testing.assert_allclose(found[1].asnumpy()[0], wanted, rtol=1e-3, atol=1e-7)


def test_values_are_counted_in_the_bins_that_mxnet_has_whatever_numpy_computes_in(mx) -> None:
    """NumPy 2 finds ends of bins in single precision, which moves values and so the range."""
    tool, place = mx.contrib.quantization, np.arange(60)
    first = ((place * place * 7 % 997) / 211 - 2.3).astype("float32")
    second = first[::-1] * np.float32(1.7) + np.float32(0.1)
    collector = tool._LayerHistogramCollector(include_layer=["layer"])
    # Number of bins, sum of the places that are not empty, bits of the range: of MXNet 1.9.1.
    recorded = [(first, 8001, 213851, 1075169961), (second, 13943, 776112, 1082295535)]
    for values, bins, places, threshold in recorded:
        collector.collect("layer", values)
        histogram = collector.hist_dict["layer"]
        assert (len(histogram[0]), int(np.nonzero(histogram[0])[0].sum())) == (bins, places)
        assert np.float32(tool._get_optimal_threshold(histogram, "int8")[2]).view("u4") == threshold


@pytest.mark.parametrize("mode", ["naive", "entropy", "none"])
@pytest.mark.parametrize("dtype", ["int8", "auto"])
@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
def test_a_quantized_network_answers_as_the_one_in_float32(mx, mode: str, dtype: str, fused: bool) -> None:
    symbol, args, auxs = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)
    tool = mx.contrib.quantization
    quantize = tool.quantize_model_mkldnn if fused else tool.quantize_model
    excluded = (
        [] if mode != "none" else [n.name for n in symbol.get_internals() if "batchnorm" in n.name and "fwd" in n.name]
    )
    qsymbol, qargs, qauxs = quantize(
        symbol, args, auxs, label_names=None, calib_mode=mode, calib_data=batches(mx, DIGITS),
        quantized_dtype=dtype, quantize_mode="full", excluded_sym_names=[] if fused else excluded,
    )  # fmt: skip
    operators = {node["op"] for node in json.loads(qsymbol.tojson())["nodes"]}
    assert ("_sg_mkldnn_conv" if fused else "_contrib_quantized_conv") in operators
    assert not operators & {"Convolution", "FullyConnected"}
    before, after = correct(mx, symbol, args, auxs, DIGITS), correct(mx, qsymbol, qargs, qauxs, DIGITS)
    assert after >= before - 6, f"{after} of 360 are right, {before} in float32"


def test_a_bias_of_a_plain_convolution_counts_as_much_as_in_float32(mx) -> None:
    random = np.random.RandomState(0)
    data = random.rand(4, 3, 6, 6).astype("float32")
    symbol = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="c")
    args = {"c_weight": mx.nd.array(random.randn(4, 3, 3, 3)), "c_bias": mx.nd.array([5, -5, 2, 0])}
    wanted = symbol.bind(mx.cpu(), {**args, "data": mx.nd.array(data)}).forward()[0].asnumpy()
    made, made_args, _ = mx.contrib.quantization.quantize_model(
        symbol, args, {}, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, batch_size=4)
    )
    assert "_contrib_quantized_conv" in {node["op"] for node in json.loads(made.tojson())["nodes"]}
    found = made.bind(mx.cpu(), {**made_args, "data": mx.nd.array(data)}).forward()[0].asnumpy()
    assert np.abs(found - wanted).max() <= 0.03 * np.abs(wanted).max()


def test_layers_and_operators_can_be_excluded(mx) -> None:
    symbol, args, auxs = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)
    names = [n.name for n in symbol.get_internals() if n.name.endswith("conv0_fwd")]
    made = mx.contrib.quantization.quantize_model(
        symbol, args, auxs, label_names=None, calib_mode="naive", calib_data=batches(mx, DIGITS),
        excluded_sym_names=names, excluded_op_names=["FullyConnected"],
    )  # fmt: skip
    nodes = {node["name"]: node["op"] for node in json.loads(made[0].tojson())["nodes"]}
    assert all(nodes[name] == "Convolution" for name in names)
    assert "FullyConnected" in nodes.values()
    assert "_contrib_quantized_conv" in nodes.values()


def test_a_collector_calibrates_a_quantized_graph(mx) -> None:
    symbol, args, auxs = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)
    tool = mx.contrib.quantization
    qsymbol, _, _, collector = tool.quantize_graph(symbol, args, auxs, calib_mode="naive")
    executor = symbol.simple_bind(mx.cpu(), data=(32, 1, 8, 8), grad_req="null")
    executor.copy_params_from(args, auxs)
    executor.set_monitor_callback(collector.collect, monitor_all=True)
    executor.forward(data=mx.nd.array(held_back(DIGITS)[0][:32]))
    executor.outputs[0].wait_to_read()
    with pytest.raises(ValueError, match="calibration mode"):
        tool.calib_graph(qsymbol, args, auxs, collector, calib_mode="none")
    calibrated, qargs, qauxs = tool.calib_graph(qsymbol, args, auxs, collector, calib_mode="naive")
    nodes = json.loads(calibrated.tojson())["nodes"]
    missing = [n["name"] for n in nodes if n["op"] == "_contrib_requantize" and "min_calib_range" not in n["attrs"]]
    assert not missing
    assert correct(mx, calibrated, qargs, qauxs, DIGITS) >= 345


@pytest.mark.parametrize("mode", ["none", "naive", "entropy"])
def test_where_nothing_is_quantized_a_block_stays_as_it_is(mx, mode: str) -> None:
    """A layer that is excluded, and a block without parameters; neither is worth a warning."""
    rows = np.linspace(-2, 2, 12, dtype="float32").reshape(4, 3)
    dense, plain = mx.gluon.nn.Dense(2), mx.gluon.nn.HybridLambda("tanh")
    dense.initialize(mx.init.One())
    for net in (dense, plain):
        want = net(mx.nd.array(rows)).asnumpy()
        quantized = mx.contrib.quantization.quantize_net(
            net, calib_data=mx.io.NDArrayIter(rows, batch_size=2), calib_mode=mode, exclude_layers_match=["dense"]
        )
        assert np.array_equal(quantized(mx.nd.array(rows)).asnumpy(), want)


def test_a_collector_that_was_not_used_is_named(mx) -> None:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    args = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros(2)}
    qsym, _, _, collector = mx.contrib.quantization.quantize_graph(net, args, {}, calib_mode="naive")
    with pytest.raises(ValueError, match="the collector has seen no layer; run the float32 model with it"):
        mx.contrib.quantization.calib_graph(qsym, args, {}, collector, calib_mode="naive")


def test_a_block_is_quantized_with_data_of_a_loader(mx) -> None:
    data, labels = held_back(DIGITS)
    net = mx.gluon.SymbolBlock.imports(str(DIGITS / "digits_cnn-symbol.json"), ["data"], str(PARAMS))
    dataset = mx.gluon.data.ArrayDataset(data[:64], labels[:64].astype("float32"))
    loader = mx.gluon.data.DataLoader(dataset, batch_size=16)
    for calibration in (
        {"calib_data": loader, "calib_mode": "naive"},
        {"data_shapes": [mx.io.DataDesc("data", (4, 1, 8, 8))]},
    ):
        quantized = mx.contrib.quantization.quantize_net_v2(net, **calibration)
        found = quantized(mx.nd.array(data)).asnumpy().argmax(1)
        assert (found == labels).sum() >= 348


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"calib_data": None}, "calib_data must be provided"),
        ({"calib_data": 3}, "must be a DataIter"),
        ({"calib_mode": "best"}, "unknown calibration mode best"),
        ({"quantized_dtype": "int4"}, "unknown quantized_dtype int4"),
        ({"quantize_mode": "some"}, "unknown quantize_mode some"),
        ({"excluded_sym_names": "conv"}, "excluded_sym_names must be a list"),
        ({"excluded_op_names": ["Pooling", 3]}, "excluded_op_names must be a list of strings, while it holds 3"),
        ({"ctx": "cpu"}, "only supports single ctx"),
        ({"data_names": []}, "calib_data has .'data'., but data_names are"),
        ({"num_calib_examples": 0}, "num_calib_examples=0"),
    ],
)
def test_wrong_options_of_the_tool_are_named(mx, change: dict[str, Any], words: str) -> None:
    symbol, args, auxs = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)
    options = {"label_names": None, "calib_mode": "naive", "calib_data": batches(mx, DIGITS), **change}
    for quantize in (mx.contrib.quantization.quantize_model, mx.contrib.quantization.quantize_model_mkldnn):
        with pytest.raises(ValueError, match=words):
            quantize(symbol, args, auxs, **options)


def test_calibration_data_that_are_empty_nan_or_of_another_shape_are_errors(mx) -> None:
    symbol, args, auxs = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)

    def quantize(data: Any) -> None:
        mx.contrib.quantization.quantize_model(
            symbol, args, auxs, label_names=None, calib_mode="naive", calib_data=data, quantize_mode="full"
        )

    used = batches(mx, DIGITS)
    assert sum(1 for _ in used) == 3
    with pytest.raises(ValueError, match="gave no batch"):
        quantize(used)
    with pytest.raises(ValueError, match="'data' holds NaN or infinity"):
        quantize(mx.io.NDArrayIter(np.full((4, 1, 8, 8), np.nan, np.float32), batch_size=4))
    with pytest.raises(mx.base.MXNetError, match="data"):
        quantize(mx.io.NDArrayIter(np.zeros((4, 8), np.float32), batch_size=4))


# ----------------------------------------------------------------------------- fused as by MXNet


def test_fused_layers_are_named_and_joined_as_by_mxnet(mx) -> None:
    symbol = mx.sym.load(str(DIGITS / "digits_cnn-symbol.json"))
    of_mxnet = {n["name"] for n in json.loads(FUSED.read_text())["nodes"] if n["op"].startswith("_sg_mkldnn_")}
    fused = symbol.get_backend_symbol("MKLDNN")
    nodes = json.loads(fused.tojson())["nodes"]
    assert {n["name"] for n in nodes if n["op"].startswith("_sg_mkldnn_")} == of_mxnet
    assert "Dropout" not in {n["op"] for n in nodes}
    twice = fused.get_backend_symbol("MKLDNN")
    assert json.loads(twice.tojson())["nodes"] == nodes


def test_a_graph_is_fused_quantized_and_finished_by_a_backend(mx) -> None:
    symbol, args, auxs = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)
    fused = symbol.get_backend_symbol("MKLDNN_QUANTIZE")
    made = mx.contrib.quantization.quantize_model(
        fused, args, auxs, label_names=None, calib_mode="naive", calib_data=batches(mx, DIGITS), quantized_dtype="auto"
    )
    finished = made[0].get_backend_symbol("MKLDNN_QUANTIZE")
    operators = [node["op"] for node in json.loads(finished.tojson())["nodes"]]
    assert "_contrib_requantize" in [node["op"] for node in json.loads(made[0].tojson())["nodes"]]
    assert "_contrib_requantize" not in operators and "_sg_mkldnn_conv" in operators
    assert correct(mx, finished, made[1], made[2], DIGITS) >= 350


def test_what_concat_joins_has_one_range(mx) -> None:
    data = mx.sym.var("data")
    parts = [mx.sym.Convolution(data, num_filter=2, kernel=(1, 1), no_bias=True, name=f"c{i}") for i in range(3)]
    symbol = mx.sym.concat(*parts, dim=1, name="joined")
    args = {f"c{i}_weight": mx.nd.ones((2, 1, 1, 1)) * (i + 1) for i in range(3)}
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 1, 4, 4)
    qsymbol, qargs, _ = mx.contrib.quantization.quantize_model_mkldnn(
        symbol, args, {}, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(x, batch_size=1),
        quantize_mode="full",
    )  # fmt: skip
    ranges = [
        (node["attrs"]["min_calib_range"], node["attrs"]["max_calib_range"])
        for node in json.loads(qsymbol.tojson())["nodes"]
        if node["op"] == "_sg_mkldnn_conv"
    ]
    assert ranges == [("-3", "3")] * 3
    found = qsymbol.bind(mx.cpu(), {**qargs, "data": mx.nd.array(x)}).forward()[0].asnumpy()
    np.testing.assert_allclose(found, np.concatenate([x, x, 2 * x, 2 * x, 3 * x, 3 * x], 1), atol=0.05)


def test_a_quantized_network_gets_first_values_of_its_own_types(mx) -> None:
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    args = {"fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.ones(3)}
    made, _, _ = mx.contrib.quantization.quantize_model(symbol, args, {}, label_names=None, calib_mode="none")
    module = mx.mod.Module(made, label_names=None)
    module.bind([("data", (2, 4))], for_training=False)
    module.init_params(mx.init.Xavier())
    held, _ = module.get_params()
    assert held["fc_weight_quantize"].dtype == held["fc_bias_quantize"].dtype == np.int8
    assert held["fc_weight_quantize"].asnumpy().any() and not held["fc_bias_quantize"].asnumpy().any()
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 4))], []), is_train=False)
    assert np.isfinite(module.get_outputs()[0].asnumpy()).all()


def test_an_array_that_is_convolved_and_added_is_two_inputs_of_a_fused_layer(mx) -> None:
    data = mx.sym.var("data")
    symbol = mx.sym.Convolution(data, num_filter=2, kernel=(1, 1), no_bias=True, name="c") + data
    x, weight = mx.nd.array(np.arange(8).reshape(1, 2, 2, 2)), mx.nd.array([[1, 0], [1, 1]]).reshape((2, 2, 1, 1))
    found = [
        one.bind(mx.cpu(), {"data": x, "c_weight": weight}).forward()[0].asnumpy()
        for one in (symbol, symbol.get_backend_symbol("MKLDNN"))
    ]
    assert "with_sum" in symbol.get_backend_symbol("MKLDNN").tojson()
    np.testing.assert_array_equal(*found)


def test_a_quantized_lstm_in_a_graph_is_close_to_the_one_in_float32(mx) -> None:
    rng = np.random.default_rng(0)
    values = {
        "data": rng.uniform(-1, 1, (5, 2, 16)),
        "p": rng.uniform(-0.5, 0.5, 2176),
        "s": rng.uniform(-1, 1, (1, 2, 16)),
    }
    arrays = {name: mx.nd.array(value) for name, value in values.items()}
    data, p, s = (mx.sym.var(name) for name in arrays)
    options = {"state_size": 16, "num_layers": 1, "mode": "lstm"}
    exact = mx.sym.RNN(data, p, s, s, **options).bind(mx.cpu(), arrays).forward()[0].asnumpy()
    integers, scale, shift = mx.sym.contrib.quantize_asym(data)
    made = mx.sym.contrib.quantized_rnn(integers, p, s, s, scale, shift, **options)
    found = made.bind(mx.cpu(), arrays).forward()[0].asnumpy()
    np.testing.assert_allclose(found, exact, atol=0.03)


def test_a_value_that_was_always_zero_stays_zero(mx) -> None:
    state = mx.sym.zeros((2, 4), name="state")
    symbol = mx.sym.FullyConnected(state, num_hidden=3, name="h") + mx.sym.FullyConnected(
        mx.sym.var("data"), num_hidden=3, name="i"
    )
    args = {f"{n}_{k}": mx.nd.ones((3, 4) if k == "weight" else 3) for n in "hi" for k in ("weight", "bias")}
    made, qargs, _ = mx.contrib.quantization.quantize_model(
        symbol, args, {}, label_names=None, calib_mode="naive",
        calib_data=mx.io.NDArrayIter(np.ones((2, 4), np.float32), batch_size=2), quantize_mode="full",
    )  # fmt: skip
    found = made.bind(mx.cpu(), {**qargs, "data": mx.nd.ones((2, 4))}).forward()[0].asnumpy()
    np.testing.assert_allclose(found, 6, atol=0.1)


def quantized_and_float(mx, symbol: Any, shapes: dict[str, Any], data: Any, **options: Any) -> tuple[Any, Any, Any]:
    """The quantized symbol, its answer, and that in float32; parameters are random."""
    random = np.random.RandomState(0)
    known = dict(zip(symbol.list_arguments(), symbol.infer_shape(data=data.shape)[0], strict=True))
    args = {
        name: mx.nd.array(shapes.get(name, random.randn(*shape) * 0.3))
        for name, shape in known.items()
        if name != "data"
    }
    answer = symbol.bind(mx.cpu(), {**args, "data": mx.nd.array(data)}).forward()[0].asnumpy()
    made, made_args, _ = mx.contrib.quantization.quantize_model_mkldnn(
        symbol, args, {}, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, None, 4), **options
    )
    return made, made.bind(mx.cpu(), {**made_args, "data": mx.nd.array(data)}).forward()[0].asnumpy(), answer


@pytest.mark.parametrize("kind", ["leaky", "elu", "gelu"])
def test_a_dense_layer_with_a_rectifier_that_lets_something_through_is_quantized(mx, kind: str) -> None:
    data = np.random.RandomState(1).randn(8, 6).astype("float32")
    hidden = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=16, name="fc0")
    hidden = mx.sym.LeakyReLU(hidden, act_type=kind, slope=0.5)
    symbol = mx.sym.FullyConnected(hidden, num_hidden=4, name="fc1")
    _, found, wanted = quantized_and_float(mx, symbol, {}, data)
    assert np.abs(found - wanted).max() <= 0.03 * np.abs(wanted).max()
    # As MXNet fuses it before it is told to quantize.
    _, found, wanted = quantized_and_float(mx, symbol.optimize_for("MKLDNN"), {}, data)
    # Bytes after leaky are unsigned there, as in MXNet.
    assert np.abs(found - wanted).max() <= (0.8 if kind == "leaky" else 0.03) * np.abs(wanted).max()


def test_a_layer_whose_relu_stayed_at_zero_is_quantized(mx) -> None:
    data = np.random.RandomState(1).randn(8, 3, 6, 6).astype("float32")
    first = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="c0")
    second = mx.sym.Convolution(mx.sym.Activation(first, act_type="relu"), kernel=(1, 1), num_filter=4, name="c1")
    symbol = mx.sym.FullyConnected(second, num_hidden=2, name="fc")
    for dtype in ("int8", "auto"):
        _, found, wanted = quantized_and_float(mx, symbol, {"c0_bias": np.full(4, -100)}, data, quantized_dtype=dtype)
        assert np.abs(found - wanted).max() <= 0.03 * np.abs(wanted).max()


@pytest.mark.parametrize("mode", ["smart", "full"])
def test_a_second_relu_on_unsigned_bytes_changes_nothing(mx, mode: str) -> None:
    data = np.random.RandomState(1).randn(8, 2, 8, 8).astype("float32")
    layer = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="c0")
    layer = mx.sym.Pooling(mx.sym.Activation(layer, act_type="relu"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    symbol = mx.sym.FullyConnected(mx.sym.Activation(layer, act_type="relu"), num_hidden=3, name="fc")
    _, found, wanted = quantized_and_float(mx, symbol, {}, data, quantize_mode=mode)
    assert np.abs(found - wanted).max() <= 0.03 * np.abs(wanted).max()


def test_a_layer_that_is_excluded_stays_fused_in_float32(mx) -> None:
    data = np.random.RandomState(1).randn(8, 3, 6, 6).astype("float32")
    first = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="c0")
    first = mx.sym.Activation(first, act_type="relu", name="r0")
    symbol = mx.sym.Convolution(first, kernel=(1, 1), num_filter=4, name="c1")
    made, found, wanted = quantized_and_float(
        mx, symbol, {}, data, excluded_sym_names=["c0"], quantize_mode="full", quantized_dtype="auto"
    )
    nodes = [node for node in json.loads(made.tojson())["nodes"] if node["op"] == "_sg_mkldnn_conv"]
    assert [node["attrs"].get("quantized", "false") for node in nodes] == ["false", "true"]
    assert [inner["name"] for inner in nodes[0]["subgraphs"][0]["nodes"] if inner["op"] != "null"] == ["c0", "r0"]
    assert np.abs(found - wanted).max() <= 0.03 * np.abs(wanted).max()


def test_a_text_in_the_place_of_names_is_refused(mx) -> None:
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    data = mx.nd.ones((4, 3))
    with pytest.raises(ValueError, match="exclude_layers must be a list of strings"):
        mx.quantize(net, data, exclude_layers="dense0")
    with pytest.raises(ValueError, match="exclude_layers_match must be a list of strings"):
        mx.contrib.quantization.quantize_net_v2(
            net, exclude_layers_match="dense", data_shapes=[("data", (4, 3))], calib_mode="none"
        )
