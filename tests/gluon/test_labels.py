"""Labels of losses need no value, whatever their names; what the outputs depend on is an input,
whatever its name. The graph decides.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving import answer, connect, exchange, request
from support import run_python

#: How a label gets from its variable to the loss.
WAYS: dict[str, Any] = {
    "as it is": lambda mx, y: y,
    "reshaped": lambda mx, y: mx.sym.Reshape(y, shape=(-1,)),
    "without gradient": lambda mx, y: mx.sym.BlockGrad(mx.sym.Cast(y, dtype="float32")),
}
WEIGHTS = np.arange(6, dtype="float32").reshape(2, 3) / 7
DATA = np.array([[1, 2, 3], [3, 1, 0]], "float32")


def saved(mx, folder: Path, way: str, label: str = "truth") -> Path:
    """A checkpoint of a softmax loss."""
    scores = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    loss = mx.sym.SoftmaxOutput(scores, WAYS[way](mx, mx.sym.var(label)), name="softmax")
    mx.model.save_checkpoint(str(folder / "net"), 0, loss, {"fc_weight": mx.nd.array(WEIGHTS)}, {})
    return folder / "net"


def expected() -> np.ndarray:
    scores = np.exp(DATA @ WEIGHTS.T)
    return scores / scores.sum(1, keepdims=True)


@pytest.fixture(params=list(WAYS))
def net(request, mx, tmp_path: Path) -> Path:
    return saved(mx, tmp_path, request.param)


def test_the_benchmark_asks_for_no_label(mx, net: Path) -> None:
    command = "import sys; from mxrt.__main__ import main; sys.exit(main(sys.argv[1:]))"
    done = run_python(command, "bench", net, "--shape", "data=2,3", "--seconds", "0.05", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["inputs"] == {"data": [2, 3], "truth": [2]}


def test_feed_forward_asks_for_no_label(mx, net: Path) -> None:
    with pytest.warns(DeprecationWarning):
        model = mx.model.FeedForward.load(str(net), 0)
    found = model.predict(DATA)
    np.testing.assert_allclose(found, expected(), rtol=1e-5)


def test_the_server_asks_for_no_label(mx, net: Path) -> None:
    with (
        mx.serve.Server({"net": mx.serve.Model(net.parent)}, port=0) as server,
        contextlib.closing(connect(server)) as connection,
    ):
        metadata = json.loads(exchange(connection, "/v2/models/net")[1])
        assert [one["name"] for one in metadata["inputs"]] == ["data"]
        body, headers = request(["data"], [DATA])
        _, (found,) = answer(*exchange(connection, "/v2/models/net/infer", body, headers))
        np.testing.assert_allclose(found, expected(), rtol=1e-5)


def conditional(mx, folder: Path) -> Path:
    """A network with a condition that is called like a label."""
    shift = mx.sym.Reshape(mx.sym.var("class_label"), shape=(-1, 1))
    scores = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    out = mx.sym.broadcast_add(scores, shift)
    mx.model.save_checkpoint(str(folder / "net"), 0, out, {"fc_weight": mx.nd.array(WEIGHTS)}, {})
    return folder / "net"


def test_an_input_that_is_called_like_a_label_needs_a_value(mx, tmp_path: Path) -> None:
    """Zeros in its place would be a wrong answer."""
    net = conditional(mx, tmp_path)
    command = "import sys; from mxrt.__main__ import main; sys.exit(main(sys.argv[1:]))"
    done = run_python(command, "bench", net, "--shape", "data=2,3", "--seconds", "0.05")
    assert done.returncode != 0
    assert "the shape of class_label is not known" in done.stderr
    with (
        mx.serve.Server({"net": mx.serve.Model(net.parent)}, port=0) as server,
        contextlib.closing(connect(server)) as connection,
    ):
        path = "/v2/models/net/infer"
        body, headers = request(["data"], [DATA])
        response, data = exchange(connection, path, body, headers)
        assert (response.status, b"class_label" in data) == (400, True), data
        body, headers = request(["data", "class_label"], [DATA, np.array([1, 5], "float32")])
        _, (found,) = answer(*exchange(connection, path, body, headers))
        np.testing.assert_allclose(found, DATA @ WEIGHTS.T + [[1], [5]], rtol=1e-5)


def test_the_predict_interface_of_c_asks_for_no_label(mx, net: Path) -> None:
    lib = ctypes.CDLL(mx._mxrt.__file__)
    lib.MXGetLastError.restype = ctypes.c_char_p
    uints = ctypes.c_uint * 2
    params = net.with_name("net-0000.params").read_bytes()
    predictor = ctypes.c_void_p()

    def check(code: int) -> None:
        assert code == 0, lib.MXGetLastError()

    symbol = net.with_name("net-symbol.json").read_bytes()
    names = (ctypes.c_char_p * 1)(b"data")
    file = (symbol, params, len(params))
    check(lib.MXPredCreate(*file, 1, 0, 1, names, uints(0, 2), uints(2, 3), ctypes.byref(predictor)))
    data = (ctypes.c_float * 6)(*DATA.ravel())
    check(lib.MXPredSetInput(predictor, b"data", data, 6))
    check(lib.MXPredForward(predictor))
    found = (ctypes.c_float * 4)()
    check(lib.MXPredGetOutput(predictor, 0, found, 4))
    np.testing.assert_allclose(np.array(found).reshape(2, 2), expected(), rtol=1e-5)
    check(lib.MXPredFree(predictor))
