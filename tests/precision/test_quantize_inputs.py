"""Quantization of networks with several inputs, names in quantized files, and relus of bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest


def operators(symbol: Any) -> dict[str, str]:
    return {node["name"]: node["op"] for node in json.loads(symbol.tojson())["nodes"]}


# ----------------------------------------------------------------------------- several inputs


def two_inputs(mx, only_second: bool = False) -> Any:
    """A block that reads its second argument first."""

    class Two(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.first = mx.gluon.nn.Dense(3, in_units=4, use_bias=False)
                self.second = mx.gluon.nn.Dense(3, in_units=4, use_bias=False)

        def hybrid_forward(self, F: Any, x: Any, y: Any) -> Any:
            return self.second(y) if only_second else self.second(y) * 2 + self.first(x)

    net = Two()
    net.initialize()
    net.first.weight.set_data(mx.nd.arange(12).reshape((3, 4)) / -12)
    net.second.weight.set_data(mx.nd.arange(12).reshape((3, 4)) / 12)
    return net


def samples() -> tuple[Any, Any]:
    random = np.random.RandomState(0)
    return random.rand(6, 4).astype("float32"), 10 * random.rand(6, 4).astype("float32")


@pytest.mark.parametrize("given", ["shapes", "iterator", "loader", "budget"])
def test_a_quantized_block_takes_its_inputs_in_the_order_of_the_block(mx, given: str) -> None:
    net, (x, y) = two_inputs(mx), samples()
    arrays = (mx.nd.array(x), mx.nd.array(y))
    wanted = net(*arrays).asnumpy()
    quantize = mx.contrib.quantization.quantize_net_v2
    match given:
        case "shapes":
            shapes = [mx.io.DataDesc("data0", (3, 4)), mx.io.DataDesc("data1", (3, 4))]
            made = quantize(net, data_shapes=shapes, calib_mode="none")
        case "iterator":
            data = mx.io.NDArrayIter({"data0": x, "data1": y}, batch_size=3)
            made = quantize(net, calib_data=data, calib_mode="naive")
            assert [one.name for one in data.provide_data] == ["data0", "data1"]
        case "loader":
            data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(x, y, np.zeros(6)), batch_size=3)
            made = quantize(net, calib_data=data, calib_mode="naive")
        case _:
            made = mx.quantize(net, [arrays], budget=None).net
    np.testing.assert_allclose(made(*arrays).asnumpy(), wanted, atol=0.03 * np.abs(wanted).max())


def test_an_input_that_a_block_does_not_read_stays_one(mx) -> None:
    net, (x, y) = two_inputs(mx, only_second=True), samples()
    arrays = (mx.nd.array(x), mx.nd.array(y))
    with pytest.warns(UserWarning, match="not used"):
        wanted = net(*arrays).asnumpy()
        made = mx.contrib.quantization.quantize_net_v2(
            net, calib_data=mx.io.NDArrayIter({"data0": x, "data1": y}, batch_size=3), calib_mode="naive"
        )
        np.testing.assert_allclose(made(*arrays).asnumpy(), wanted, atol=0.03 * np.abs(wanted).max())


def half_quantized(mx) -> tuple[Any, dict[str, Any]]:
    """A network whose dense layer reads one of its two inputs."""
    data = mx.sym.var("data")
    symbol = mx.sym.Group([mx.sym.FullyConnected(data, num_hidden=2, name="fc"), data + mx.sym.var("other")])
    return symbol, {"fc_weight": mx.nd.ones((2, 4)), "fc_bias": mx.nd.ones(2)}


@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
def test_an_input_that_no_quantized_layer_needs_is_calibrated_without(mx, fused: bool) -> None:
    symbol, args = half_quantized(mx)
    x, y = samples()
    tool = mx.contrib.quantization
    made, made_args, _ = (tool.quantize_model_mkldnn if fused else tool.quantize_model)(
        symbol, args, {}, data_names=("data", "other"), label_names=None, calib_mode="naive",
        calib_data=mx.io.NDArrayIter({"data": x, "other": y}, batch_size=3),
    )  # fmt: skip
    found = made.bind(mx.cpu(), {**made_args, "data": mx.nd.array(x), "other": mx.nd.array(y)}).forward()
    np.testing.assert_allclose(found[0].asnumpy(), x.sum(1, keepdims=True).repeat(2, 1) + 1, atol=0.1)
    np.testing.assert_allclose(found[1].asnumpy(), x + y, atol=1e-5)


def test_names_of_data_that_the_network_does_not_have_are_refused(mx) -> None:
    symbol, args = half_quantized(mx)
    x, y = samples()
    with pytest.raises(ValueError, match="'wrong' is not found"):
        mx.contrib.quantization.quantize_model(
            symbol, args, {}, data_names=("data", "wrong"), label_names=None, calib_mode="naive",
            calib_data=mx.io.NDArrayIter({"data": x, "wrong": y}, batch_size=3),
        )  # fmt: skip


def test_a_table_of_integers_alone_needs_no_calibration(mx) -> None:
    net = mx.gluon.nn.Embedding(4, 2)
    net.initialize(mx.init.Uniform(1))
    tokens = mx.nd.array([[0, 1], [2, 3]])
    wanted = net(tokens).asnumpy()
    made = mx.contrib.quantization.quantize_net_v2(
        net, calib_data=mx.io.NDArrayIter(tokens, batch_size=2), calib_mode="naive", quantize_mode="full"
    )
    np.testing.assert_allclose(made(tokens).asnumpy(), wanted, atol=0.01)


# Ends of the range that MXNet 1.9.1 finds, by the number of layers that read the data.
@pytest.mark.parametrize(("layers", "end"), [(1, 2.235182), (2, 2.229439)])
def test_an_input_counts_for_each_layer_that_reads_it(mx, layers: int, end: float) -> None:
    data, names = mx.sym.var("data"), [f"fc{i}" for i in range(layers)]
    dense = [mx.sym.FullyConnected(data, num_hidden=2, no_bias=True, name=name) for name in names]
    made, _, _ = mx.contrib.quantization.quantize_model(
        mx.sym.Group(dense), {f"{name}_weight": mx.nd.ones((2, 70)) for name in names}, {}, label_names=None,
        calib_mode="entropy",
        calib_data=mx.io.NDArrayIter(np.random.RandomState(0).randn(3, 70).astype("float32"), batch_size=3),
    )  # fmt: skip
    nodes = {node["name"]: node for node in json.loads(made.tojson())["nodes"]}
    assert float(nodes["data_quantize"]["attrs"]["max_calib_range"]) == pytest.approx(end, abs=1e-6)


@pytest.mark.parametrize("axes", [2, 3])
def test_clips_of_a_loader_calibrate_a_block_of_single_images(mx, axes: int) -> None:
    """Clips are what GluonCV's loaders of videos give; volumes of a 3-D network are none."""
    conv = mx.gluon.nn.Conv2D if axes == 2 else mx.gluon.nn.Conv3D
    mx.random.seed(3)
    images = np.random.RandomState(0).rand(4, 3, 2, *[6] * axes).astype("float32")
    for data in (images, images[:, 0]):
        net = mx.gluon.nn.HybridSequential()
        net.add(conv(3, 3, in_channels=2), mx.gluon.nn.Dense(2))
        net.initialize(mx.init.Normal(0.3))
        loader = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(data, np.zeros(4)), batch_size=2)
        samples = mx.nd.array(images.reshape(12, *images.shape[2:]))
        wanted = net(samples).asnumpy()
        for shapes in (None, [mx.io.DataDesc("data", samples.shape)]):
            made = mx.contrib.quantization.quantize_net_v2(
                net, calib_data=loader, data_shapes=shapes, calib_mode="naive"
            )
            assert np.abs(made(samples).asnumpy() - wanted).max() <= 0.1 * np.abs(wanted).max()


# ----------------------------------------------------------------------------- names

# Operator, name and `quantized` of the nodes that MXNet 1.9.1 makes, and the names of what is in
# them. A number follows the name of each input, and stands for an output that has no name.
NODES = [
    ("data_quantize", None, []),
    ("quantized_sg_mkldnn_conv_0", "true", ["data0", "c0_weight0", "c0"]),
    (
        "quantized_sg_mkldnn_conv_add_1",
        "true",
        ["sg_mkldnn_conv_0_output0", "c1_weight0", "c1", "sg_mkldnn_conv_0_output1", "sum"],
    ),
    ("sg_mkldnn_conv_add_1_dequantize", None, []),
    ("e", None, []),
    ("half", None, []),
    ("m", None, []),
    ("m_0_quantize", None, []),
    ("quantized_sg_mkldnn_fully_connected_0", "True", ["m_output0", "f0_weight0", "f0"]),
    ("half_output1_quantize", None, []),
    ("quantized_sg_mkldnn_fully_connected_1", "True", ["half_output10", "f1_weight0", "f1"]),
    ("quantized_sg_mkldnn_fully_connected_2", "True", ["sg_mkldnn_fully_connected_1_output0", "f2_weight0", "f2"]),
]


def test_nodes_of_a_quantized_network_are_named_and_ordered_as_by_mxnet(mx) -> None:
    options = {"no_bias": True}
    data = mx.sym.var("data")
    c0 = mx.sym.Convolution(data, kernel=(1, 1), num_filter=2, name="c0", **options)
    c1 = mx.sym.Convolution(c0, kernel=(1, 1), num_filter=2, name="c1", **options)
    halves = mx.sym.split(mx.sym.exp(mx.sym.elemwise_add(c1, c0, name="sum"), name="e"), num_outputs=2, name="half")
    f0 = mx.sym.FullyConnected(mx.sym.mean(halves[0], axis=(2, 3), name="m"), num_hidden=2, name="f0", **options)
    f1 = mx.sym.FullyConnected(halves[1], num_hidden=2, name="f1", **options)
    symbol = mx.sym.Group([f0, mx.sym.FullyConnected(f1, num_hidden=1, name="f2", **options)])
    shapes = zip(symbol.list_arguments(), symbol.infer_shape(data=(1, 2, 2, 2))[0], strict=True)
    made, _, _ = mx.contrib.quantization.quantize_model_mkldnn(
        symbol, {name: mx.nd.ones(shape) for name, shape in shapes if name != "data"}, {}, label_names=None,
        calib_mode="naive", calib_data=mx.io.NDArrayIter(np.ones((1, 2, 2, 2), "float32"), batch_size=1),
        quantize_mode="full",
    )  # fmt: skip
    nodes = [node for node in json.loads(made.tojson())["nodes"] if node["op"] != "null"]
    inner = [[part["name"] for graph in node.get("subgraphs", []) for part in graph["nodes"]] for node in nodes]
    flags = [node.get("attrs", {}).get("quantized") for node in nodes]
    assert list(zip([node["name"] for node in nodes], flags, inner, strict=True)) == NODES


# ----------------------------------------------------------------------------- relu of bytes


@pytest.mark.parametrize(("dtype", "quantized"), [("auto", True), ("int8", True), ("uint8", False)])
def test_a_relu_never_reads_unsigned_bytes_which_it_takes_for_negative_numbers(mx, dtype: str, quantized: bool) -> None:
    data = np.linspace(0, 1, 24, dtype="float32").reshape(2, 12)
    symbol = mx.sym.Activation(mx.sym.Flatten(mx.sym.var("data")), act_type="relu", name="r")
    made, args, _ = mx.contrib.quantization.quantize_model(
        symbol, {}, {}, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, batch_size=2),
        quantized_dtype=dtype, quantize_mode="full",
    )  # fmt: skip
    assert ("quantized_r" in operators(made)) == quantized
    found = made.bind(mx.cpu(), {**args, "data": mx.nd.array(data)}).forward()[0].asnumpy()
    np.testing.assert_allclose(found, data, atol=0.01)


@pytest.mark.parametrize("dtype", ["auto", "int8", "uint8"])
def test_a_product_never_reads_unsigned_bytes_which_it_does_not_take(mx, dtype: str) -> None:
    data = np.random.RandomState(0).rand(2, 3, 4, 4).astype("float32")
    layer = mx.sym.Convolution(mx.sym.var("data"), kernel=(1, 1), num_filter=2, no_bias=True, name="c")
    layer = mx.sym.Activation(layer, act_type="relu", name="r")
    symbol = mx.sym.elemwise_mul(layer, mx.sym.Pooling(layer, kernel=(1, 1)), name="m")
    args = {"c_weight": mx.nd.array(np.random.RandomState(1).rand(2, 3, 1, 1))}
    made, made_args, _ = mx.contrib.quantization.quantize_model_mkldnn(
        symbol, args, {}, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, batch_size=2),
        quantized_dtype=dtype, quantize_mode="full",
    )  # fmt: skip
    assert "_sg_mkldnn_conv" in operators(made).values()
    found = made.bind(mx.cpu(), {**made_args, "data": mx.nd.array(data)}).forward()[0].asnumpy()
    wanted = symbol.bind(mx.cpu(), {**args, "data": mx.nd.array(data)}).forward()[0].asnumpy()
    np.testing.assert_allclose(found, wanted, atol=0.03 * np.abs(wanted).max())


@pytest.mark.parametrize("fixed", [True, False])
def test_a_gamma_that_batch_norm_takes_for_one_is_one_in_a_quantized_network(mx, fixed: bool) -> None:
    data = np.linspace(-1, 1, 24, dtype="float32").reshape(2, 3, 2, 2)
    symbol = mx.sym.BatchNorm(mx.sym.var("data"), fix_gamma=fixed, name="bn")
    args = {"bn_gamma": mx.nd.array([0.2, 3, -1]), "bn_beta": mx.nd.zeros(3)}
    auxs = {"bn_moving_mean": mx.nd.zeros(3), "bn_moving_var": mx.nd.ones(3)}
    made, made_args, _ = mx.contrib.quantization.quantize_model(
        symbol, args, auxs, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, batch_size=2),
        quantize_mode="full",
    )  # fmt: skip
    assert "quantized_bn" in operators(made)
    inputs = {"data": mx.nd.array(data)}
    found = made.bind(mx.cpu(), {**made_args, **inputs}, aux_states=auxs).forward(is_train=False)[0].asnumpy()
    wanted = symbol.bind(mx.cpu(), {**args, **inputs}, aux_states=auxs).forward(is_train=False)[0].asnumpy()
    np.testing.assert_allclose(found, wanted, atol=0.02 * np.abs(wanted).max())


# ----------------------------------------------------------------------------- what stays float32


def test_what_mxnet_cannot_compute_on_integers_stays_in_float32(mx) -> None:
    image, line = mx.sym.var("data"), mx.sym.var("line")
    symbol = mx.sym.Group(
        [
            mx.sym.Pooling(image, global_pool=True, pool_type="avg", name="no_kernel"),
            mx.sym.Pooling(image, kernel=(2, 2), name="windows"),
            mx.sym.Pooling(line, kernel=(2,), name="one_axis"),
            mx.sym.BatchNorm(image, axis=3, name="last_axis"),
            mx.sym.BatchNorm(image, name="channels"),
        ]
    )
    arguments, _, states = symbol.infer_shape(data=(1, 2, 4, 4), line=(1, 2, 4))
    args = {n: mx.nd.ones(s) for n, s in zip(symbol.list_arguments(), arguments, strict=True)}
    auxs = {n: mx.nd.ones(s) for n, s in zip(symbol.list_auxiliary_states(), states, strict=True)}
    data = {"data": np.ones((1, 2, 4, 4), "float32"), "line": np.ones((1, 2, 4), "float32")}
    made, _, _ = mx.contrib.quantization.quantize_model(
        symbol, {n: a for n, a in args.items() if n not in data}, auxs, data_names=list(data), label_names=None,
        calib_mode="naive", calib_data=mx.io.NDArrayIter(data, batch_size=1), quantize_mode="full",
    )  # fmt: skip
    quantized = {name for name, op in operators(made).items() if op.startswith("_contrib_quantized_")}
    assert quantized == {"quantized_windows", "quantized_channels"}


@pytest.mark.parametrize("size", [2, 4, 6])
def test_a_batch_norm_along_another_axis_is_no_part_of_a_convolution(mx, size: int) -> None:
    layer = mx.sym.Convolution(mx.sym.var("data"), kernel=(1, 1), num_filter=4, name="c")
    symbol = mx.sym.BatchNorm(layer, axis=3, fix_gamma=False, name="bn")
    random = np.random.RandomState(0)
    data = random.rand(2, 2, 4, size).astype("float32")
    shapes, _, states = symbol.infer_shape(data=data.shape)
    args = {n: mx.nd.array(random.randn(*s)) for n, s in zip(symbol.list_arguments(), shapes, strict=True)}
    args.pop("data")
    auxs = {n: mx.nd.array(random.rand(*s) + 0.5) for n, s in zip(symbol.list_auxiliary_states(), states, strict=True)}
    made, made_args, _ = mx.contrib.quantization.quantize_model_mkldnn(
        symbol, args, auxs, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, batch_size=2),
    )  # fmt: skip
    inputs = {"data": mx.nd.array(data)}
    found = made.bind(mx.cpu(), {**made_args, **inputs}, aux_states=auxs).forward(is_train=False)[0].asnumpy()
    wanted = symbol.bind(mx.cpu(), {**args, **inputs}, aux_states=auxs).forward(is_train=False)[0].asnumpy()
    assert "_sg_mkldnn_conv" in operators(made).values()
    np.testing.assert_allclose(found, wanted, atol=0.03 * np.abs(wanted).max())


@pytest.mark.parametrize("shapes", [[("data", (2, 4))], [("data", [2, 4], "float32")]])
def test_inputs_of_a_block_are_described_by_names_and_shapes(mx, shapes: list[Any]) -> None:
    net = mx.gluon.nn.Dense(3, in_units=4)
    net.initialize()
    quantized = mx.contrib.quantization.quantize_net_v2(net, data_shapes=shapes)
    assert quantized(mx.nd.ones((2, 4))).shape == (2, 3)


def test_a_shape_without_a_name_is_no_description_of_an_input(mx) -> None:
    net = mx.gluon.nn.Dense(3, in_units=4)
    net.initialize()
    with pytest.raises(ValueError, match=r"data_shapes has \(2, 4\); expected a DataDesc or \(name, shape\)"):
        mx.contrib.quantization.quantize_net_v2(net, data_shapes=[(2, 4)])


# ----------------------------------------------------------------------------- plans


def test_a_plan_names_what_a_quantized_network_computes_in_floating_point_numbers_and_why(mx) -> None:
    x = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="first")
    x = mx.sym.Activation(x, act_type="sigmoid", name="gate")
    x = mx.sym.Deconvolution(x, kernel=(2, 2), stride=(2, 2), num_filter=4, name="up")
    x = mx.sym.Convolution(x, kernel=(1, 1), num_filter=8, name="kept")
    x = mx.sym.FullyConnected(mx.sym.Convolution(x, kernel=(3, 3), num_filter=4, name="last"), num_hidden=3, name="fc")
    symbol = mx.sym.softmax(x, name="classes")
    data = np.random.RandomState(0).rand(2, 3, 8, 8).astype("float32")
    shapes, _, _ = symbol.infer_shape(data=data.shape)
    args = {n: mx.nd.random.uniform(-1, 1, s) for n, s in zip(symbol.list_arguments(), shapes, strict=True)}
    args.pop("data")
    made = mx.contrib.quantization.quantize_model(
        symbol, args, {}, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, batch_size=2),
        excluded_sym_names=["kept"],
    )  # fmt: skip
    net = mx.gluon.SymbolBlock(made[0], mx.sym.var("data"))
    net.collect_params().load_dict(made[1])
    notes = [line for line in net.plan(mx.nd.array(data)).splitlines() if line.startswith("in floating-point numbers")]
    layers = [line.rpartition(": ")[2] for line in notes]
    assert layers == ["up (Deconvolution)", "gate (Activation), kept (Convolution)"]
    assert "no 8-bit form" in notes[0] and "does not quantize" in notes[1]
    float32 = mx.gluon.SymbolBlock(symbol, mx.sym.var("data"))
    float32.collect_params().load_dict(args)
    assert "floating-point" not in float32.plan(mx.nd.array(data))
