"""`mxrt bench`: what it measures, how it compares, and what it says when it cannot."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import DIGITS, MODELS, ROOT, mxrt, output_of, run

MODEL = str(DIGITS / "digits_cnn")
QUICK = (MODEL, "--shape", "1,1,8,8", "--seconds", "0.3", "--callers", "1,2")


# ---- one model -----------------------------------------------------------------------------------


def test_bench_measures_a_model_and_reports_it_as_data(mx) -> None:
    model = str(DIGITS / "digits_cnn")
    result = mxrt("bench", model, "--shape", "2,1,8,8", "--callers", "1,3", "--seconds", "0.5", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["inputs"] == {"data": [2, 1, 8, 8]}
    assert [one["callers"] for one in report["runs"]] == [1, 3]
    for one in report["runs"]:
        assert 0 < one["p50_ms"] <= one["p99_ms"] <= one["max_ms"]
        # A caller has one request under way at a time, of two images each.
        assert one["images_per_second"] * one["p50_ms"] / 1e3 <= 2 * one["callers"] * 1.5
    assert report["memory"]["constant_bytes"] > 0
    plan = report["plan"]
    assert [step["step"] for step in plan["steps"]] == list(range(len(plan["steps"])))
    convolution = next(step for step in plan["steps"] if "onvolution" in step["operator"])
    assert convolution["node"] and convolution["kernel"] and convolution["output"].startswith("float32(2, ")
    for name in ("arena_bytes", "packed_bytes", "estimated_us", "measured_us"):
        assert convolution[name] > 0, name
    for name in ("packed_bytes", "estimated_us", "measured_us"):
        assert plan[name] == pytest.approx(sum(step[name] for step in plan["steps"])), name
    assert plan["arena_bytes"] >= max(step["arena_bytes"] for step in plan["steps"])
    assert convolution["node"] in plan["text"]


def test_bench_says_which_precision_auto_chose_and_what_the_other_gives(mx) -> None:
    result = mxrt("bench", MODEL, "--shape", "1,1,8,8", "--seconds", "0.3", "--callers", "1", "--precision", "auto")
    assert result.returncode == 0, result.stderr
    chosen = "bf16" if "precision auto: bf16" in result.stdout else "float32"
    assert f"precision auto: {chosen}" in result.stdout
    other = "default" if chosen == "bf16" else "bf16"
    assert f"with precision {other} one caller gets" in result.stdout


def test_bench_prints_tables(mx) -> None:
    result = mxrt("bench", str(DIGITS / "digits_cnn-symbol.json"), "--shape", "data=1,1,8,8", "--seconds", "0.2")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for word in ("images/s", "p99 ms", "measured in all", "packed"):
        assert word in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 130
    assert "the 10 slowest of" in result.stdout and len(re.findall(r"^ +[\d.]+ %", result.stdout, re.M)) == 10


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("no/such/model",), "there is no file"),
        ((str(MODELS / "transformer" / "transformer"),), "--shape data="),
        ((str(DIGITS / "digits_cnn"), "--shape", "photo=1,1,8,8"), "no input 'photo'"),
        ((str(DIGITS / "digits_cnn"), "--shape", "1,1,eight"), "is no shape"),
        ((MODEL, "--shape", "1,1,8,8", "--callers", "0"), "--callers is '0'"),
        ((MODEL, "--shape", "1,1,99999999,99999999"), "--shape 1,1,99999999,99999999 is too large"),
        ((MODEL, "--shape", "99999999999999999999,1,8,8"), "is too large"),
        ((MODEL, "--shape", "1,1,8,8", "--shape", "data=2,1,8,8"), "the shape of 'data' twice"),
    ],
)
def test_bench_says_what_is_missing(mx, arguments: tuple[str, ...], expected: str) -> None:
    result = mxrt("bench", *arguments)
    assert result.returncode == 2
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1, result.stderr


# ---- the load generator --------------------------------------------------------------------------


def test_throughput_counts_the_part_of_a_request_that_lies_in_the_window(mx) -> None:
    from mxrt.bench.peer.load import Load, summary

    # One caller, a request of two images each second, the window from 0.5 to 3.5: three requests'
    # worth.
    load = Load(begin=0.5, end=3.5, requests=[(i, i + 1.0) for i in range(5)])
    seen = summary(load, batch=2)
    assert seen["images_per_second"] == pytest.approx(2.0)
    assert seen["requests"] == 3, "those that began in the window"
    assert seen["p50_ms"] == seen["p99_ms"] == pytest.approx(1000.0)


def test_a_closed_loop_lasts_until_every_caller_has_had_its_answers(mx) -> None:
    from mxrt.bench.peer.load import closed_loop

    asked = [0, 0]

    def make(index: int):
        def ask() -> None:
            asked[index] += 1
            time.sleep(0.001 + 0.02 * index)

        return ask

    load = closed_loop(make, 2, seconds=0.01, ramp=0.01, each=5)
    assert asked[1] >= 6, "one before the window, five in it"
    assert len(load.requests) == sum(asked)
    assert load.begin >= sorted(end for _, end in load.requests)[0]


def test_in_an_open_loop_requests_begin_when_they_arrive_even_if_nobody_is_free(mx) -> None:
    from mxrt.bench.peer.load import open_loop

    def run():
        return open_loop(lambda _: lambda: time.sleep(0.01), clients=1, rate=400, seconds=0.2, ramp=0.0, seed=3)

    load = run()
    begins = [begin for begin, _ in load.requests]
    assert begins == sorted(begins)
    assert len(begins) == len(run().requests), "the same arrivals for the same seed"
    # One client can do 100 a second of the 400: the last ones waited for most of the time.
    assert max(end - begin for begin, end in load.requests) > 0.1


def test_an_error_of_one_caller_ends_the_run_and_is_raised(mx) -> None:
    from mxrt.bench.peer.load import closed_loop

    def ask() -> None:
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        closed_loop(lambda _: ask, 3, seconds=30, ramp=0)


# ---- the comparison with peers -------------------------------------------------------------------


def test_rounds_count_between_two_good_probes(mx, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benches" / "peers"))
    lanes = importlib.import_module("lanes")
    # The best tenth begins at 100; each round has a probe before it and one after it.
    assert lanes.between_good_ones([100, 99, 80, 100, 97, 95, 94]) == [0, 3, 4]
    assert lanes.between_good_ones([50, 50]) == [0], "a machine that is slow all the time is what there is"
    assert lanes.between_good_ones([50]) == []


# ---- models for peers ----------------------------------------------------------------------------


def onnx_answer(mx, base: str, params_file: str, inputs: dict[str, np.ndarray], file: Path) -> list[np.ndarray]:
    """The results of ONNX's reference evaluator, plain numpy, for the exported model."""
    from mxrt.bench import to_onnx

    with warnings.catch_warnings():  # of the library itself
        warnings.simplefilter("ignore")
        import onnx
        from onnx.reference import ReferenceEvaluator

        graph = mx.sym.load(f"{base}-symbol.json")
        # What is saved without a name comes back as a list: an operator without parameters has
        # none.
        saved = dict(mx.nd.load(params_file) or {})
        params = {name.partition(":")[2]: value.asnumpy() for name, value in saved.items()}
        to_onnx.export(graph, params, {name: value.shape for name, value in inputs.items()}, file)
        onnx.checker.check_model(str(file), full_check=True)
        model = ReferenceEvaluator(str(file))
        return model.run(None, {name: inputs[name] for name in model.input_names})


@pytest.mark.parametrize("batch", [1, 3])
def test_an_exported_network_answers_as_mxnet_did(mx, tmp_path: Path, batch: int) -> None:
    with np.load(DIGITS / "golden.npz") as saved:
        image, expected = saved[f"b{batch}.in.data"], saved[f"b{batch}.out.0"]
    answers = onnx_answer(mx, MODEL, f"{MODEL}-0000.params", {"data": image}, tmp_path / "m.onnx")
    np.testing.assert_allclose(answers[0], expected, atol=2e-4)


def attention(mx, joined):
    scores = mx.sym.softmax(mx.sym.contrib.interleaved_matmul_selfatt_qk(joined, heads=2))
    return mx.sym.contrib.interleaved_matmul_selfatt_valatt(joined, scores, heads=2)


SMALL = {
    "convolution in one dimension": lambda mx, x: mx.sym.Convolution(
        mx.sym.reshape(x, shape=(4, 4, -1)), kernel=(3,), num_filter=2, stride=(2,), dilate=(2,), name="layer"
    ),
    "grouped convolution without bias": lambda mx, x: mx.sym.Convolution(
        x, kernel=(3, 2), num_filter=6, num_group=2, pad=(1, 0), no_bias=True, name="layer"
    ),
    "BatchNorm with its defaults": lambda mx, x: mx.sym.BatchNorm(x, name="layer"),
    "BatchNorm with gamma": lambda mx, x: mx.sym.BatchNorm(x, fix_gamma=False, eps=0.01, name="layer"),
    "largest of windows": lambda mx, x: mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1)),
    "mean with padding": lambda mx, x: mx.sym.Pooling(x, kernel=(3, 2), pad=(1, 1), pool_type="avg"),
    "mean without padding": lambda mx, x: mx.sym.Pooling(
        x, kernel=(3, 3), pad=(1, 1), pool_type="avg", count_include_pad=False
    ),
    "mean of everything": lambda mx, x: mx.sym.Flatten(mx.sym.Pooling(x, global_pool=True, pool_type="avg")),
    "dense layer over all axes": lambda mx, x: mx.sym.FullyConnected(x, num_hidden=3, name="layer"),
    "normalisation over channels": lambda mx, x: mx.sym.LRN(x, nsize=3, alpha=0.1),
    "activations": lambda mx, x: mx.sym.Concat(
        *(mx.sym.Activation(x, act_type=kind) for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"))
    ),
    "leaking": lambda mx, x: mx.sym.LeakyReLU(x) + mx.sym.LeakyReLU(x, act_type="elu", slope=0.5),
    "arithmetic": lambda mx, x: (x * 2 - 0.5) / (mx.sym.clip(x, 0.1, 0.7) + 1) - x * x,
    "dense layer over the last axis": lambda mx, x: mx.sym.FullyConnected(x, num_hidden=3, flatten=False, name="layer"),
    "normalisation over the last axis": lambda mx, x: mx.sym.LayerNorm(x, eps=0.01, name="layer"),
    "bells": lambda mx, x: mx.sym.LeakyReLU(x, act_type="gelu") + mx.sym.erf(x),
    "means": lambda mx, x: mx.sym.broadcast_add(
        mx.sym.mean(x, axis=(1, 3), keepdims=True), mx.sym.mean(x, axis=-1, keepdims=True)
    ),
    "products of batches": lambda mx, x: mx.sym.batch_dot(
        *(mx.sym.reshape(x, shape=(4, 20, 6)),) * 2, transpose_a=True
    ),
    "rows of a table": lambda mx, x: mx.sym.Embedding(x * 9, input_dim=4, output_dim=3, name="layer"),
    "attention of projections": lambda mx, x: attention(
        mx,
        mx.sym.FullyConnected(mx.sym.reshape(x, shape=(4, 4, -1)), num_hidden=24, flatten=False, name="layer"),
    ),
    "attention without projections": lambda mx, x: attention(mx, mx.sym.reshape(x, shape=(4, 4, -1))),
    "deconvolution": lambda mx, x: mx.sym.Deconvolution(
        x, kernel=(4, 3), num_filter=6, stride=(2, 2), pad=(1, 1), adj=(0, 1), name="layer"
    ),
    "deconvolution with bias": lambda mx, x: mx.sym.Deconvolution(
        x, kernel=(2, 2), num_filter=3, dilate=(2, 1), no_bias=False, name="layer"
    ),
    "bilinear resizing by corners": lambda mx, x: mx.sym.contrib.BilinearResize2D(x, height=9, width=4),
    "bilinear resizing by centres": lambda mx, x: mx.sym.contrib.BilinearResize2D(
        x, height=10, width=12, align_corners=False
    ),
    "repeated pixels": lambda mx, x: mx.sym.UpSampling(x, scale=2, sample_type="nearest"),
    "norms of channels": lambda mx, x: mx.sym.L2Normalization(x, mode="channel", eps=0.1),
    "norms of images": lambda mx, x: mx.sym.L2Normalization(x),
    "moving axes": lambda mx, x: mx.sym.softmax(mx.sym.transpose(x, axes=(0, 2, 3, 1)), axis=1),
}


@pytest.mark.parametrize("name", SMALL)
def test_an_exported_operator_answers_as_in_mxrt(mx, tmp_path: Path, name: str) -> None:
    graph = SMALL[name](mx, mx.sym.var("x"))
    shapes, _, aux = graph.infer_shape(x=(4, 4, 5, 6))  # as many images as channels: the evaluator mixes them up in LRN
    random = np.random.RandomState(7)
    named = zip([*graph.list_arguments(), *graph.list_auxiliary_states()], [*shapes, *aux], strict=True)
    values = {key: mx.nd.array(random.rand(*shape).astype("float32") - 0.3 * (key == "x")) for key, shape in named}
    base = str(tmp_path / "small")
    graph.save(f"{base}-symbol.json")
    x = values.pop("x")
    mx.nd.save(f"{base}-0000.params", {f"arg:{key}": value for key, value in values.items()})
    net = mx.gluon.SymbolBlock.imports(f"{base}-symbol.json", ["x"], f"{base}-0000.params")
    answers = onnx_answer(mx, base, f"{base}-0000.params", {"x": x.asnumpy()}, tmp_path / "m.onnx")
    np.testing.assert_allclose(answers[0], net(x).asnumpy(), rtol=1e-4, atol=1e-5)


def test_an_exported_perceptron_has_no_label(mx, tmp_path: Path) -> None:
    base = str(MODELS / "module_mlp" / "module_mlp")
    with np.load(MODELS / "module_mlp" / "golden.npz") as saved:
        data, expected = saved["b3.in.data"], saved["b3.out.0"]
    inputs = {"data": data, "softmax_label": np.zeros(3, "float32")}
    answers = onnx_answer(mx, base, f"{base}-0005.params", inputs, tmp_path / "m.onnx")
    np.testing.assert_allclose(answers[0], expected, atol=1e-5)


def test_what_cannot_be_written_as_onnx_is_named(mx, tmp_path: Path) -> None:
    from mxrt.bench import to_onnx

    graph = mx.sym.erfinv(mx.sym.var("x"), name="bell")
    with pytest.raises(to_onnx.Untranslatable, match=r"operator erfinv of node 'bell'.*no translation"):
        to_onnx.export(graph, {}, {"x": (2, 3)}, tmp_path / "m.onnx")
    # MXNet writes all axes as none.
    graph = mx.sym.mean(mx.sym.var("x"), axis=(), name="middle")
    with pytest.raises(to_onnx.Untranslatable, match="only over axes that are named"):
        to_onnx.export(graph, {}, {"x": (2, 3)}, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


# ---- comparing -----------------------------------------------------------------------------------


@pytest.fixture
def stand_in(tmp_path: Path) -> dict[str, str]:
    """An environment in which `import mxnet` finds mxrt, so that there is a peer without installing
    one.
    """
    (tmp_path / "mxnet.py").write_text("from mxrt import *\nfrom mxrt import nd, gluon\n__version__ = '1.9.1'\n")
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_peers_are_measured_in_turns_and_their_answers_compared(mx, stand_in) -> None:
    result = mxrt("bench", *QUICK, "--peer-python", f"mxnet={sys.executable}", "--json", env=stand_in)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    (peer,) = (one for one in report["peers"] if one["engine"] == "mxnet")
    assert peer["version"] == "1.9.1"
    assert peer["largest_difference"] == 0.0, "the same engine"
    assert [one["callers"] for one in peer["runs"]] == [1, 2]
    for own, other in zip(report["runs"], peer["runs"], strict=True):
        ratio = own["images_per_second"] / other["images_per_second"]
        assert other["mxrt_is_faster_by"] == pytest.approx(ratio)


OPENVINO = """
from onnx.reference import ReferenceEvaluator
__version__ = "2026.4.0-1"
class Core:
    def read_model(self, file): return ReferenceEvaluator(file)
    def compile_model(self, model, device, properties): return Compiled(model, properties)
class Compiled:
    def __init__(self, model, properties):
        self.model, self.hint = model, properties.get("INFERENCE_PRECISION_HINT", "CHOICE")
        self.inputs = [type("Port", (), {"names": {name}}) for name in model.input_names]
    def get_property(self, name): return {"f32": "<Type: 'float32'>"}.get(self.hint, f"<Type: '{self.hint}'>")
    def create_infer_request(self): return self
    def infer(self, named, share_inputs): return dict(enumerate(self.model.run(None, named)))
"""


@pytest.mark.parametrize(("choice", "engines"), [("bfloat16", ["float32", "bf16"]), ("float32", ["float32"])])
def test_a_peer_that_chooses_its_precision_is_measured_as_installed_too(
    mx, tmp_path: Path, choice: str, engines: list[str]
) -> None:
    pytest.importorskip("onnx")
    (tmp_path / "openvino.py").write_text(OPENVINO.replace("CHOICE", choice))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    arguments = (MODEL, "--shape", "1,1,8,8", "--seconds", "0.2", "--callers", "1")
    result = mxrt("bench", *arguments, "--peer-python", f"openvino={sys.executable}", "--json", env=env)
    assert result.returncode == 0, result.stderr
    peers = [one for one in json.loads(result.stdout)["peers"] if one["engine"].startswith("openvino")]
    assert [one["precision"] for one in peers] == engines
    assert [one["engine"] for one in peers] == ["openvino", "openvino as installed"][: len(engines)]
    assert all(len(one["runs"]) == 1 for one in peers)


def test_brief_turns_alternate_and_percentiles_are_of_all_requests(mx) -> None:
    from mxrt.bench.measure import _turns

    asked: list[tuple[str, float]] = []

    def turn(name: str, seconds: float, rate: float) -> dict[str, Any]:
        asked.append((name, seconds))
        slow = 10 if len(asked) == 5 else 0  # one turn, that of mxrt in the second round
        return {
            "requests": 50,
            "seconds": seconds,
            "images_per_second": rate,
            "others": 0.0,
            "resident_mb": 1.0,
            "times_ms": [50.0] * slow + [1.0] * (50 - slow),
        }

    class Peers:
        loaded, setting = {"peer": None}, {"peer": "its best"}

        def choose(self, callers: int) -> None:
            asked.clear()

        def ask(self, name: str, callers: int, seconds: float) -> dict[str, Any]:
            return turn(name, seconds, 50.0)

    own, rest = _turns(1, 2.0, lambda _, seconds: turn("mxrt", seconds, 100.0), Peers())
    trial, *turns = asked
    assert trial[0] == "mxrt"
    names = [name for name, _ in turns]
    assert names[:4] == ["mxrt", "peer", "peer", "mxrt"], "each round begins with another one"
    assert names.count("mxrt") == names.count("peer") == 10
    assert sum(seconds for name, seconds in turns if name == "peer") == pytest.approx(2.0)
    assert own["images_per_second"] == 100 and own["requests"] == 500
    assert rest["peer"]["mxrt_is_faster_by"] == 2
    assert asked[4][0] == "mxrt"
    assert (own["p50_ms"], own["p99_ms"], own["max_ms"]) == (1, 50, 50), "2 of 100 requests are slow, all in one turn"
    assert rest["peer"]["max_ms"] == 1


def test_slow_answers_have_fewer_and_longer_turns(mx) -> None:
    from mxrt.bench.measure import _how_many

    assert _how_many(6, 0.001) == 30
    assert _how_many(6, 0.04) == 7
    assert _how_many(6, 4) == 3


def test_a_peer_that_does_not_work_is_left_out_with_its_reason(mx) -> None:
    result = mxrt("bench", *QUICK, "--peer-python", f"mxnet={sys.executable}")
    assert result.returncode == 0, result.stderr
    assert "mxnet is left out: ModuleNotFoundError: No module named 'mxnet'" in result.stdout
    assert "images/s" in result.stdout


def test_a_model_with_a_label_needs_no_label(mx) -> None:
    base = str(MODELS / "module_mlp" / "module_mlp")
    result = mxrt("bench", base, "--shape", "2,64", "--seconds", "0.2", "--callers", "1", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["inputs"] == {"data": [2, 64], "softmax_label": [2]}


# ---- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--peers",), "pip install onnxruntime openvino"),
        (("--peer-python", "tensorflow=/usr/bin/python3"), "NAME is one of onnxruntime, openvino, mxnet"),
        (("--peer-python", "mxnet=/no/such/python"), "there is no program '/no/such/python'"),
        (("--plot", "/no/such/folder/x.png"), "there is no folder"),
        (("--plot", "/proc/self/x.png"), "--plot '/proc/self/x.png' cannot be written: permission denied"),
        (("--plot", "callers"), "ends in .png, .svg"),
    ],
)
def test_what_peers_and_pictures_need_is_said_before_anything_is_measured(mx, arguments, expected: str) -> None:
    if arguments == ("--peers",) and any(map(importlib.util.find_spec, ("onnxruntime", "openvino", "mxnet"))):
        pytest.skip("a peer is installed here")
    result = mxrt("bench", *QUICK, *arguments)
    assert result.returncode == 2
    assert expected in result.stderr
    assert result.stdout == ""


def test_a_parameter_that_the_file_lacks_is_named(mx, tmp_path: Path) -> None:
    symbol = tmp_path / "net-symbol.json"
    symbol.write_bytes((DIGITS / "digits_cnn-symbol.json").read_bytes())
    held = mx.nd.load(str(DIGITS / "digits_cnn-0000.params"))
    absent = sorted(held)[0]
    mx.nd.save(str(tmp_path / "net-0000.params"), {name: array for name, array in held.items() if name != absent})
    result = mxrt("bench", str(tmp_path / "net"), "--shape", "data=1,1,8,8")
    assert result.returncode == 1
    assert f"lacks 1 parameter of the symbol: {absent.partition(':')[2]}. Is it" in result.stderr
    assert "net-0000.params" in result.stderr
    assert result.stderr.count("\n") == 1, result.stderr


def test_a_folder_with_one_model_is_that_model(mx) -> None:
    result = mxrt("bench", str(DIGITS), *QUICK[1:], "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["model"].endswith("digits_cnn-symbol.json")


def test_ctrl_c_ends_a_run_at_once_and_leaves_no_process_behind(mx, stand_in) -> None:
    arguments = ["bench", MODEL, "--shape", "1,1,8,8", "--seconds", "60", "--peer-python", f"mxnet={sys.executable}"]
    # Shells start what runs in the background without Ctrl-C.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from mxrt.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=stand_in,
        cwd="/",
    )
    try:
        deadline = time.monotonic() + 60
        while not (peers := children(child.pid)):
            assert time.monotonic() < deadline
            assert child.poll() is None, child.communicate()
            time.sleep(0.05)
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        out, errors = output_of(child, 30)
    finally:
        child.kill()
    assert child.returncode == 130
    assert (out, errors) == ("", "\ninterrupted\n")
    assert not [pid for pid in peers if Path(f"/proc/{pid}").exists()]


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_shows_every_engine(mx, stand_in, tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"callers.{ending}"
    result = mxrt("bench", *QUICK, "--peer-python", f"mxnet={sys.executable}", "--plot", str(picture), env=stand_in)
    assert result.returncode == 0, result.stderr
    head = picture.read_bytes()[:5]
    assert head == (b"\x89PNG\r" if ending == "png" else b"<?xml")


def test_the_highest_point_of_a_picture_is_not_cut_by_the_frame(mx, tmp_path: Path, monkeypatch) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    from mxrt.bench import show

    monkeypatch.setattr(plt, "close", lambda figure: None)
    runs = [{"callers": n, "images_per_second": 100.0 * n, "p50_ms": 1.0, "p99_ms": 2.0} for n in (1, 2)]
    report = {"runs": runs, "peers": [], "inputs": {"data": [1, 3]}, "model": "m-symbol.json", "cores": 2}
    show.draw(report, str(tmp_path / "p.svg"))
    left = plt.gcf().axes[0]
    monkeypatch.undo()
    plt.close("all")
    assert left.get_ylim() == (0, pytest.approx(216))


def test_without_matplotlib_the_message_says_what_to_install(mx) -> None:
    hidden = (
        "import sys; sys.modules['matplotlib'] = None; from mxrt.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    result = run([sys.executable, "-c", hidden, "bench", *QUICK, "--plot", "x.png"])
    assert result.returncode == 2
    assert "pip install matplotlib" in result.stderr
    assert result.stdout == ""


# ---- rates, slowest layers -----------------------------------------------------------------------


def test_requests_of_a_rate_arrive_whether_or_not_others_are_answered(mx) -> None:
    result = mxrt("bench", *QUICK[:3], "--duration", "1", "--callers", "2", "--rate", "100", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["rate"] == 100
    assert 10 <= report["runs"][0]["requests"] <= 120
    for options, words in (("--rate 0", "--rate is 0"), ("--rate nan", "--rate is nan"), ("--top 0", "--top is 0")):
        result = mxrt("bench", *QUICK, *options.split())
        assert result.returncode == 2 and words in result.stderr


def test_the_slowest_layers_are_shown_with_their_shares(mx) -> None:
    result = mxrt("bench", *QUICK, "--top", "3")
    assert result.returncode == 0, result.stderr
    assert len([line for line in result.stdout.splitlines() if " % " in line and " us  " in line]) == 3
    assert "the 3 slowest of" in result.stdout
