"""Boolean masks: arrays whose shape is known when the mask is, alone and inside models."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

X = np.arange(12, dtype="float32").reshape(6, 2)
W = np.array([[1, 2], [3, 4], [5, 6]], dtype="float32")


def masked(mx: Any) -> Any:
    """The rows of 2 x that a mask picks, followed by a layer."""
    rows = mx.sym.contrib.boolean_mask(mx.sym.var("data") * 2, mx.sym.var("mask"))
    return mx.sym.FullyConnected(rows, mx.sym.var("fc_weight"), num_hidden=3, no_bias=True, name="fc")


def expected(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return (2 * x[mask != 0]) @ W.T


@pytest.fixture
def block(mx: Any, tmp_path: Path) -> Any:
    masked(mx).save(str(tmp_path / "net-symbol.json"))
    mx.nd.save(str(tmp_path / "net-0000.params"), {"arg:fc_weight": mx.nd.array(W)})
    files = [str(tmp_path / name) for name in ("net-symbol.json", "net-0000.params")]
    return mx.gluon.SymbolBlock.imports(files[0], ["data", "mask"], files[1])


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
def test_a_call_of_the_operator_picks_rows(mx: Any, dtype: str) -> None:
    mask = np.array([1, 0, 0, 1, 1, 0], dtype)
    rows = mx.nd.contrib.boolean_mask(mx.nd.array(X), mx.nd.array(mask, dtype=dtype))
    assert (rows.shape, rows.dtype, rows.size, rows.ndim) == ((3, 2), np.float32, 6, 2)
    np.testing.assert_array_equal(rows.asnumpy(), X[mask != 0])
    np.testing.assert_array_equal((rows + 1).asnumpy(), X[mask != 0] + 1)
    none = mx.nd.contrib.boolean_mask(mx.nd.array(X), mx.nd.zeros(6, dtype=dtype))
    assert none.shape == (0, 2)
    out = mx.nd.zeros((3, 2))
    assert mx.nd.contrib.boolean_mask(mx.nd.array(X), mx.nd.array(mask, dtype=dtype), out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), X[mask != 0])


def test_shapes_that_do_not_fit_are_errors_of_the_call(mx: Any) -> None:
    with pytest.raises(mx.base.MXNetShapeError, match=r"index has shape \(4,\)"):
        mx.nd.contrib.boolean_mask(mx.nd.array(X), mx.nd.ones(4))
    with pytest.raises(mx.base.MXNetValueError, match="only axis=0"):
        mx.nd.contrib.boolean_mask(mx.nd.array(X), mx.nd.ones(6), axis=1)


def test_failures_reach_the_shape(mx: Any) -> None:
    failed = mx.nd.contrib.boolean_mask(mx.nd.array(X), mx.nd.array([1, 1, 0, 0, 0, 0]))
    wrong = mx.nd.take(mx.nd.ones(6), mx.nd.array([np.nan] * 6), mode="raise")
    late = mx.nd.contrib.boolean_mask(mx.nd.array(X), wrong)
    for read in (lambda: late.shape, late.asnumpy, late.wait_to_read, lambda: late + 1):
        with pytest.raises(mx.base.MXNetError):
            read()
    assert failed.shape == (2, 2)


def test_a_block_with_a_mask_gives_every_size_from_many_threads(mx: Any, block: Any) -> None:
    def call(seed: int) -> None:
        random = np.random.RandomState(seed)
        x = random.uniform(-1, 1, (20, 2)).astype("float32")
        mask = random.randint(0, 2, 20).astype("float32")
        y = block(mx.nd.array(x), mx.nd.array(mask))
        assert y.shape == (int(mask.sum()), 3)
        np.testing.assert_allclose(y.asnumpy(), expected(x, mask), rtol=1e-5, atol=1e-6)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(call, range(160)))


def test_the_call_returns_before_the_shape_is_known(mx: Any, block: Any) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            entered.set()
            assert leave.wait(60)
            self.assign(out_data[0], req[0], in_data[0])

    @mx.operator.register("slow_mask_of_unknown_length")
    class SlowProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return Slow()

    mask = mx.nd.Custom(mx.nd.array([1, 0, 0, 0, 0, 1]), op_type="slow_mask_of_unknown_length")
    y = block(mx.nd.array(X), mask)
    assert entered.wait(60)
    assert not y.is_ready()
    leave.set()
    assert y.shape == (2, 3)


def test_executors_and_cached_ops_and_json(mx: Any) -> None:
    symbol = mx.sym.load_json(masked(mx).tojson())
    args = {"data": mx.nd.array(X), "mask": mx.nd.array([0, 1, 1, 0, 0, 1]), "fc_weight": mx.nd.array(W)}
    executor = symbol.bind(mx.cpu(), args)
    want = expected(X, args["mask"].asnumpy())
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), want, rtol=1e-6)
    executor.forward(mask=mx.nd.array([1, 1, 1, 1, 1, 1]))
    assert executor.outputs[0].shape == (6, 3)
    (y,) = symbol.eval(ctx=mx.cpu(), **args)
    np.testing.assert_allclose(y.asnumpy(), expected(X, np.ones(6)), rtol=1e-6)
    simple = symbol.simple_bind(mx.cpu(), data=(6, 2), mask=(6,))
    assert simple.forward(mask=mx.nd.array([1, 0, 0, 0, 0, 0]))[0].shape == (1, 3)


def test_a_module_with_a_mask(mx: Any) -> None:
    module = mx.mod.Module(masked(mx), data_names=["data", "mask"], label_names=None)
    module.bind([("data", (6, 2)), ("mask", (6,))], for_training=False)
    module.init_params()
    module.set_params({"fc_weight": mx.nd.array(W)}, {})
    for mask in ([1, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]):
        module.forward(mx.io.DataBatch([mx.nd.array(X), mx.nd.array(mask)]))
        found = module.get_outputs()[0].asnumpy()
        np.testing.assert_allclose(found, expected(X, np.array(mask)), rtol=1e-6)


def test_hybrid_blocks_mask_as_they_do_when_run_step_by_step(mx: Any) -> None:
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any, mask: Any) -> Any:
            return F.contrib.boolean_mask(F.relu(x - 3), mask) * 2

    net = Net()
    arguments = mx.nd.array(X), mx.nd.array([1, 0, 1, 1, 0, 0])
    plain = net(*arguments).asnumpy()
    net.hybridize()
    np.testing.assert_array_equal(net(*arguments).asnumpy(), plain)
    assert plain.shape == (3, 2)


def test_memory_does_not_grow_with_changing_sizes(mx: Any, block: Any) -> None:
    x = mx.nd.array(np.ones((600, 2), "float32"))

    def run(sizes: range) -> int:
        for rows in sizes:
            mask = np.zeros(600, "float32")
            mask[:rows] = 1
            assert block(x, mx.nd.array(mask)).shape == (rows, 3)
        mx.nd.waitall()
        return int(mx.runtime.info()["memory_in_use"])

    first = run(range(1, 200))
    assert run(range(200, 500)) <= first + (1 << 20)
    info = block.plan_cache_info()
    # Two segments, each with a cache of its own.
    assert info["plans"] <= 2 * info["max_plans"] and info["evicted"] > 0


def test_a_graph_with_a_mask_on_a_device_is_computed_by_the_host(mx: Any, sim: Any, block: Any) -> None:
    """The arrays are copied to the host and back; results and failures are as on the host."""
    net = block
    net.collect_params().reset_ctx(sim)
    data = mx.nd.array(X, ctx=sim)
    for picks in ([1, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 1], [0] * 6):
        found = net(data, mx.nd.array(picks, ctx=sim))
        assert found.context == sim
        np.testing.assert_allclose(found.asnumpy(), expected(X, np.array(picks)), rtol=1e-5)
    wrong = mx.nd.gather_nd(data, mx.nd.array([[99]], ctx=sim))
    with pytest.raises(mx.MXNetError, match="gather_nd"):
        net(mx.nd.broadcast_add(data, wrong), mx.nd.array([1] * 6, ctx=sim)).asnumpy()
