"""Models and arrays through pickle, copies and processes that are started anew: same bits, nothing
shared.
"""

from __future__ import annotations

import copy
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from support import block_of, digits, run


@pytest.fixture
def net(mx):
    return block_of(mx)


def dense(mx):
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(3))
    net.initialize()
    return net


def through_pickle(value):
    return [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]


def copies(value):
    return [*through_pickle(value), copy.deepcopy(value)]


def test_a_loaded_model_gives_the_same_bits(mx, net) -> None:
    x = mx.nd.array(digits(5)[0])
    fresh = copies(net)
    want = net(x).asnumpy()
    for other in [*fresh, *copies(net)]:
        assert np.array_equal(other(x).asnumpy(), want)
        assert list(other.collect_params()) == list(net.collect_params())


def test_a_copy_has_parameters_of_its_own(mx, net) -> None:
    x = mx.nd.array(digits(5)[0])
    want = net(x).asnumpy()
    for other in copies(net):
        other.collect_params()["digitsnet_dense0_bias"].set_data(mx.nd.ones(10))
        assert not np.array_equal(other(x).asnumpy(), want)
    assert np.array_equal(net(x).asnumpy(), want)


@pytest.mark.parametrize("state", ["deferred", "used", "hybridized", "compiled"])
def test_blocks_in_every_state(mx, state: str) -> None:
    net, x = dense(mx), mx.nd.ones((2, 5))
    if state != "deferred":
        net(x)
    if state in ("hybridized", "compiled"):
        net.hybridize()
    if state == "compiled":
        net(x)
    for other in copies(net):
        if state == "deferred":
            assert other(x).shape == (2, 3)
        else:
            assert np.array_equal(other(x).asnumpy(), net(x).asnumpy())
            assert other._active == net._active


def test_the_check_of_parameters_survives(mx, net) -> None:
    for other in copies(net):
        with pytest.raises(mx.MXNetError, match="digitsnet_dense0_bias"):
            other.collect_params().load_dict({"digitsnet_dense0_bias": mx.nd.ones(3)}, allow_missing=True)


def test_parameters_arrays_symbols_contexts_and_errors(mx, net) -> None:
    parameter = net.collect_params()["digitsnet_dense0_weight"]
    for other in copies(parameter):
        assert np.array_equal(other.data().asnumpy(), parameter.data().asnumpy())
    for array in (mx.nd.arange(6).reshape((2, 3)), mx.nd.array(np.ones((2, 0))), mx.nd.ones(3, dtype="float16")):
        for other in copies(array):
            assert (other.shape, other.dtype) == (array.shape, array.dtype)
            assert np.array_equal(other.asnumpy(), array.asnumpy())
    for other in copies(net._symbol):
        assert other.tojson() == net._symbol.tojson()
    assert copies(mx.cpu(1)) == [mx.cpu(1)] * len(copies(0))
    with pytest.raises(mx.MXNetError) as caught:
        net(mx.nd.ones((1, 3, 8, 8)))
    for other in copies(caught.value):
        assert (type(other), str(other), other.node) == (type(caught.value), str(caught.value), caught.value.node)


SPAWN = """
import json, multiprocessing, pickle, sys
import numpy as np

def answer(job):
    net, x = job
    return net(x).asnumpy().tobytes()

if __name__ == "__main__":
    import mxrt as mx
    method, path = sys.argv[1:]
    with open(path, "rb") as file:
        net, dense, x = pickle.load(file)
    jobs = [(net, mx.nd.array(x)), (dense, mx.nd.ones((2, 5))), (net, x)]
    here = [answer(job) for job in jobs]
    with multiprocessing.get_context(method).Pool(2) as pool:
        there = pool.map(answer, jobs)
    print(json.dumps([one == two for one, two in zip(here, there, strict=True)]))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_models_are_sent_to_processes(mx, net, tmp_path: Path, method: str) -> None:
    model = dense(mx)
    model.hybridize()
    model(mx.nd.ones((2, 5)))
    (tmp_path / "job").write_bytes(pickle.dumps((net, model, digits(3)[0])))
    script = tmp_path / "jobs.py"
    script.write_text(SPAWN)
    result = run([sys.executable, str(script), method, str(tmp_path / "job")])
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[-1]) == [True, True, True]
