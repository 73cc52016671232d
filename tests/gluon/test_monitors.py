"""Names and values that monitors of executors and operator hooks of blocks hear: those that MXNet's
heard (tests/recorded/record_monitors.py).
"""

from __future__ import annotations

import ctypes
import json

import numpy as np
import pytest

from support import CONFORMANCE, MODELS, recorded

# What MXNet's monitors show as well: outputs that it hides and that have no use for inference.
HIDDEN = {
    "BilinearSampler": ["tmp"],
    "CTCLoss": ["output1"],
    "Correlation": ["tmp1", "tmp2"],
    "Dropout": ["mask"],
    "GridGenerator": ["grid_dst"],
    "InstanceNorm": ["mean", "var"],
    "L2Normalization": ["norm"],
    "LRN": ["tmp_norm"],
    "ROIPooling": ["maxidx"],
    "SpatialTransformer": ["grid_dst", "grid_src"],
    "_contrib_BatchNormWithReLU": ["workspace"],
    "_contrib_box_nms": ["output1"],
    "_linalg_det": ["output1", "output2"],
    "_linalg_slogdet": ["output2", "output3"],
    "sort": ["output1"],
}


def names_heard(mx, symbol, hook: bool) -> list[str]:
    return [name for name, *_ in mx._mxrt.watched(symbol, hook, True)[1]]


def case_symbol(mx, group: str, place: int):
    case = json.loads((CONFORMANCE / "data" / group / "cases.json").read_text())[place]
    function = mx.sym
    for part in case["op"].split("."):
        function = getattr(function, part)
    attrs = {key: tuples(value) for key, value in case["attrs"].items()}
    return function(*[mx.sym.var(f"v{i}") for i in range(len(case["inputs"]))], name="node", **attrs)


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def test_monitors_and_hooks_call_values_as_in_mxnet(mx) -> None:
    wrong = {}
    found = recorded("monitors")["operators"]
    assert len(found) > 270 and found["Activation"]["hook"] == ["node_input0", "node_output"]
    assert found["exp"]["monitor"] == ["v0", "node_input0", "node_output"]
    for operator, row in found.items():
        symbol = case_symbol(mx, row["group"], row["case"])
        hidden = [f"node_{name}" for name in HIDDEN.get(operator, ())]
        wanted = [name for name in row["monitor"] if name not in hidden]
        got = names_heard(mx, symbol, hook=False), names_heard(mx, symbol, hook=True)
        if got != (wanted, row["hook"]):
            wrong[operator] = got, wanted, row["hook"]
    assert wrong == {}


@pytest.mark.parametrize("model", ["cnn_int8_fused", "mlp_int8"])
def test_monitors_and_hooks_of_quantized_models_hear_what_mxnets_hear(mx, model: str) -> None:
    symbol, args, states = mx.model.load_checkpoint(str(MODELS / model / model), 0)
    row = recorded("monitors")["models"][model]
    assert names_heard(mx, symbol, hook=True) == row["hook"]

    executor = symbol.simple_bind(mx.cpu(), data=np.load(MODELS / model / "golden.npz")["b3.in.data"].shape)
    executor.copy_params_from(args, states)
    heard: list[tuple[str, np.ndarray]] = []
    executor.set_monitor_callback(lambda name, array: heard.append((name.decode(), array.asnumpy())), monitor_all=True)
    result = executor.forward()[0].asnumpy()
    wanted = [name for name in row["monitor"] if not (name.startswith("drop") and name.endswith("_mask"))]
    assert [name for name, _ in heard] == wanted
    assert np.array_equal(heard[-1][1], result)


def test_hooks_of_blocks_and_graphs_take_arrays_by_handle(mx) -> None:
    heard = []

    def hook(name: bytes, operator: bytes, array) -> None:
        array = ctypes.cast(array, mx.base.NDArrayHandle)
        array = mx.nd.NDArray(array, writable=False)
        heard.append((operator.decode(), array.asnumpy().tolist()))

    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Activation("relu"))
    net.hybridize()
    net.register_op_hook(hook)
    net(mx.nd.array([[-1, 2]]))
    graph = mx.nd.CachedOp(mx.sym.negative(mx.sym.var("x")))
    graph._register_op_hook(hook)
    graph(mx.nd.array([3]))
    assert heard == [("Activation", [[0, 2]]), ("negative", [-3])]


def test_a_monitor_hears_the_statistics_of_normalizations(mx) -> None:
    symbol = mx.sym.LayerNorm(mx.sym.BatchNorm(mx.sym.var("data"), fix_gamma=False, name="batch"), name="layer")
    executor = symbol.simple_bind(mx.cpu(), data=(2, 4))
    executor.arg_dict["data"][:] = mx.nd.arange(8).reshape((2, 4))
    executor.arg_dict["batch_gamma"][:] = 1
    executor.aux_dict["batch_moving_mean"][:] = 3
    executor.aux_dict["batch_moving_var"][:] = 4
    heard: dict[str, np.ndarray] = {}
    executor.set_monitor_callback(lambda name, array: heard.update({name.decode(): array.asnumpy()}))
    executor.forward()
    own = [f"batch_{name}" for name in ("output", "mean", "var")]
    assert list(heard) == [*own, *[f"layer_{name}" for name in ("output", "mean", "std")]]
    assert heard["batch_mean"].tolist() == [3] * 4
    assert np.allclose(heard["batch_var"], (4 + 1e-3) ** -0.5)
    assert np.allclose(heard["layer_mean"], heard["batch_output"].mean(axis=1, keepdims=True))
