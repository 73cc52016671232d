"""Models and arrays through pickle, copies and new processes: same bits, nothing shared."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, block_of, digits, run


@pytest.fixture
def net(mx):
    return block_of(mx)


def dense(mx):
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(3))
    net.initialize()
    return net


def through_pickle(value):
    return [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]


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


def module_of(mx):
    module = mx.mod.Module.load(str(DIGITS / "digits_cnn"), 0, data_names=["data"], label_names=None)
    module.bind([("data", (5, 1, 8, 8))], for_training=False)
    return module


def outputs_of(mx, module, images):
    module.forward(mx.io.DataBatch([mx.nd.array(images)]))
    return module.get_outputs()[0].asnumpy()


def test_modules_give_the_same_bits(mx) -> None:
    images = digits(5)[0]
    bound = module_of(mx)
    fresh = copies(bound)
    want = outputs_of(mx, bound, images)
    for other in [*fresh, *copies(bound)]:
        assert np.array_equal(outputs_of(mx, other, images), want)
        assert (other.data_shapes, other.output_shapes) == (bound.data_shapes, bound.output_shapes)
        assert list(other.get_params()[0]) == list(bound.get_params()[0])
        other.logger.debug("it has a logger")
    unbound = mx.mod.Module.load(str(DIGITS / "digits_cnn"), 0, data_names=["data"], label_names=None)
    for other in copies(unbound):
        assert not other.binded
        other.bind([("data", (5, 1, 8, 8))], for_training=False)
        assert np.array_equal(outputs_of(mx, other, images), want)


def test_a_copy_of_a_module_has_parameters_of_its_own(mx) -> None:
    images = digits(5)[0]
    module = module_of(mx)
    want = outputs_of(mx, module, images)
    for other in copies(module):
        arguments, states = other.get_params()
        other.set_params({name: value * 0 for name, value in arguments.items()}, states)
        assert not np.array_equal(outputs_of(mx, other, images), want)
    assert np.array_equal(outputs_of(mx, module, images), want)


def bucket_of(key):
    import mxrt as mx

    return mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, flatten=False, name="dense"), ["data"], None


def test_modules_of_modules_survive(mx) -> None:
    bucketing = mx.mod.BucketingModule(bucket_of, default_bucket_key=6)
    bucketing.bind([("data", (2, 6, 4))], for_training=False)
    bucketing.init_params(mx.init.One())
    sequential = mx.mod.SequentialModule()
    sequential.add(mx.mod.Module(mx.sym.relu(mx.sym.var("data")), label_names=None))
    sequential.add(mx.mod.Module(bucket_of(0)[0], label_names=None), auto_wiring=True)
    sequential.bind([("data", (2, 4))], for_training=False)
    sequential.init_params(mx.init.One())
    for module, shape in ((bucketing, (2, 6, 4)), (sequential, (2, 4))):
        batch = mx.io.DataBatch([mx.nd.ones(shape)], bucket_key=shape[1], provide_data=[("data", shape)])
        module.forward(batch)
        want = module.get_outputs()[0].asnumpy()
        for other in copies(module):
            other.forward(batch)
            assert np.array_equal(other.get_outputs()[0].asnumpy(), want)


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


def test_copies_of_symbols_and_blocks_of_mx_np_stay_that(mx) -> None:
    symbol = mx.sym.np.abs(mx.sym.var("x").as_np_ndarray())
    for made in [copy.copy(symbol), *copies(symbol)]:
        assert type(made) is type(symbol) and made.tojson() == symbol.tojson()
    with mx.util.np_shape(True), mx.util.np_array(True):
        net = mx.gluon.SymbolBlock(symbol, [mx.sym.var("x").as_np_ndarray()])
        x = mx.np.array([-1.0, 2.0])
        for block in [net, *copies(net)]:
            found = block(x)
            assert type(found) is mx.np.ndarray and found.tolist() == [1, 2]
