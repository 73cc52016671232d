"""Forms of graphs that are written as ONNX, or refused by name: shared layers, names, attributes of
old files, windows of pooling.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")


def file_of(nodes: list[tuple[str, str, dict[str, str], list[int]]]) -> str:
    """A symbol file with these nodes (operator, name, attributes, numbers of inputs); the last one
    is its head.
    """
    listed = [
        {"op": op, "name": name, "attrs": attrs, "inputs": [[number, 0, 0] for number in inputs]}
        for op, name, attrs, inputs in nodes
    ]
    variables = [number for number, node in enumerate(listed) if node["op"] == "null"]
    ends = list(range(len(listed) + 1))
    return json.dumps(
        {"nodes": listed, "arg_nodes": variables, "node_row_ptr": ends, "heads": [[len(listed) - 1, 0, 0]]}
    )


def written(mx, symbol: Any, folder: Path, **inputs: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The answers of an ONNX file of a symbol with random parameters, and those of mxrt."""
    from onnx.reference import ReferenceEvaluator

    rng = np.random.RandomState(0)
    shapes, _, states = symbol.infer_shape(**{name: value.shape for name, value in inputs.items()})
    values = {
        name: mx.nd.array(rng.rand(*shape) + 0.5)
        for name, shape in zip(symbol.list_arguments(), shapes, strict=True)
        if name not in inputs
    }
    kept = {
        name: mx.nd.array(rng.rand(*shape) + 0.5)
        for name, shape in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    file = str(folder / "m.onnx")
    given = [inputs[name].shape for name in dict.fromkeys(symbol.list_inputs()) if name in inputs]
    mx.onnx.export_model(symbol, {**values, **kept}, given, onnx_file_path=file)
    onnx.checker.check_model(file, full_check=True)
    bound = symbol.bind(mx.cpu(), {**values, **{n: mx.nd.array(v) for n, v in inputs.items()}}, aux_states=kept)
    return ReferenceEvaluator(file).run(None, inputs), [one.asnumpy() for one in bound.forward(is_train=False)]


def same(answers: tuple[list[np.ndarray], list[np.ndarray]]) -> None:
    found, wanted = answers
    assert len(found) == len(wanted)
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


X = np.random.RandomState(1).randn(2, 3).astype("f4")
IMAGE = np.random.RandomState(2).randn(1, 2, 8, 8).astype("f4")


def test_a_layer_that_is_used_twice_is_written_twice(mx, tmp_path: Path) -> None:
    net = mx.gluon.nn.HybridSequential(prefix="n_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(4), mx.gluon.nn.Dense(5))
    relu = mx.gluon.nn.Activation("relu", prefix="relu_")
    first, second = net
    same(written(mx, relu(second(relu(first(mx.sym.var("data"))))), tmp_path, data=X))


def test_names_of_nodes_need_not_differ_nor_end_in_some_way(mx, tmp_path: Path) -> None:
    data, other = mx.sym.var("data"), mx.sym.var("x_output")
    dense = {"num_hidden": 3, "no_bias": True}
    once = mx.sym.relu(data, name="a")
    # A reshape needs the shape of its own value, not of another one of its name.
    reshaped = mx.sym.reshape(mx.sym.reshape(data, shape=(3, 2), name="r") * 2, shape=(6,), name="r")
    twice = mx.sym.FullyConnected(mx.sym.FullyConnected(data, mx.sym.var("w"), **dense), mx.sym.var("w"), **dense)
    for symbol in (
        mx.sym.relu(once * -1, name="a"),
        reshaped,
        twice,
        mx.sym.Group([once, once]),
        mx.sym.Group([data, once]),
    ):
        same(written(mx, symbol, tmp_path, data=X))
    same(written(mx, mx.sym.FullyConnected(other, num_hidden=2, name="fc"), tmp_path, x_output=X))
    named = mx.sym.FullyConnected(mx.sym.relu(mx.sym.var("q_output"), name="q"), num_hidden=2, name="fc")
    same(written(mx, named, tmp_path, q_output=IMAGE))


def test_attributes_of_python_2_and_defaults_are_read(mx, tmp_path: Path) -> None:
    window = {"kernel": "(3L, 3L)", "pad": "(1L, 1L)", "stride": "(1L, 1L)"}
    old = [
        ("null", "data", {}, []),
        ("null", "w", {}, []),
        ("null", "b", {}, []),
        ("Convolution", "c", {**window, "num_filter": "4"}, [0, 1, 2]),
        ("Pooling", "p", {"kernel": "(2L, 2L)", "stride": "(2L, 2L)", "pool_type": "max"}, [3]),
        ("Concat", "j", {"num_args": "2", "dim": "1"}, [4, 4]),
    ]
    same(written(mx, mx.sym.load_json(file_of(old)), tmp_path, data=IMAGE))
    plus = [("null", "data", {}, []), ("_plus_scalar", "p", {}, [0])]
    same(written(mx, mx.sym.load_json(file_of(plus)), tmp_path, data=X))
    empty = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, stride=(), pad=(), dilate=())
    same(written(mx, empty, tmp_path, data=IMAGE))
    # A gamma that counts as ones need not be a parameter.
    computed = mx.sym.BatchNorm(mx.sym.var("data"), gamma=mx.sym.var("g") * 2, name="bn")
    same(written(mx, computed, tmp_path, data=IMAGE))


def test_a_form_that_no_translation_reads_is_refused_by_name(mx, tmp_path: Path) -> None:
    from mxrt.bench.onnx_writer import Untranslatable, Writer

    def rule(w: Any, name: str, attrs: Any, inputs: list[str]) -> None:
        attrs.numbers("kernel", ())
        attrs["act_type"]

    writer = Writer(mx.sym.relu(mx.sym.var("data"), name="r"), {}, {"data": (1, 2)})
    for attrs in ({"kernel": "(3,"}, {"kernel": "(3, 3)"}):
        with pytest.raises(Untranslatable, match=r"operator Odd of node 'n' .* form that no translation reads"):
            writer.translate(rule, "Odd", "n", attrs, [])


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("extent", [7, 8])
def test_windows_of_pooling_that_both_have_are_written(mx, tmp_path: Path, kind: str, extent: int) -> None:
    image = np.random.RandomState(3).randn(1, 2, extent, extent).astype("f4")
    for convention in ("valid", "full"):
        for kernel, stride, pad in ((3, 2, 1), (2, 2, 0), (3, 2, 0)):
            window = {"kernel": (kernel,) * 2, "stride": (stride,) * 2, "pad": (pad,) * 2}
            pooled = mx.sym.Pooling(mx.sym.var("data"), pool_type=kind, pooling_convention=convention, **window)
            same(written(mx, pooled, tmp_path, data=image))


def test_what_onnx_would_answer_otherwise_is_refused(mx, tmp_path: Path) -> None:
    data = mx.sym.var("data")
    window = {"kernel": (3, 3), "stride": (3, 3), "pad": (1, 1), "pooling_convention": "full"}
    for symbol, words in (
        (mx.sym.Pooling(data, kernel=(2, 2), layout="NHWC"), "layout NHWC"),
        (mx.sym.Pooling(data, kernel=(1, 1), global_pool=True, layout="NHWC"), "layout NHWC"),
        (mx.sym.Pooling(data, **window), "the last window begins in the padding"),
        (mx.sym.Pooling(data, pool_type="avg", **window), "the last window begins in the padding"),
        (mx.sym.BatchNorm(data, output_mean_var=True, name="bn")[1], "the model reads output 1 of 'bn'"),
        (mx.sym.Dropout(data, mode="always"), "drops in inference too"),
        (mx.sym.softmax(data, dtype="float16"), "dtype float16"),
    ):
        with pytest.raises(mx.base.MXNetNotImplementedError, match=words):
            written(mx, symbol, tmp_path, data=IMAGE)
        assert not list(tmp_path.glob("*.onnx"))


@pytest.mark.parametrize(("axis", "keepdims"), [((0, 1), False), ((-1, 0), False), ((0, 1), True)])
def test_the_mean_of_everything_has_one_axis(mx, tmp_path: Path, axis: Any, keepdims: bool) -> None:
    rows = np.random.RandomState(1).rand(3, 4).astype("float32")
    graph = mx.sym.mean(mx.sym.Variable("data"), axis=axis, keepdims=keepdims)
    answers = written(mx, graph, tmp_path, data=rows)
    assert answers[0][0].shape == answers[1][0].shape == ((1, 1) if keepdims else (1,))
    same(answers)
    same(written(mx, mx.sym.concat(graph, graph * 2, dim=0), tmp_path, data=rows))
