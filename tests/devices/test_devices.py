"""Arrays on devices, here simulated ones: what a user of a GPU sees.

The devices of this process have threads and do their work at once. Children are given other kinds
of engine, devices whose work waits until a thread asks for a result (``MXRT_SIM_MODE=scheduled``),
or whose order a seed decides.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from support import DEVICE_KIND, GPUS, last_json, run_python


def test_arrays_live_where_they_are_made(mx, sim) -> None:
    made = {
        "array": mx.nd.array([[1, 2], [3, 4]], ctx=sim),
        "zeros": mx.nd.zeros((2, 2), ctx=sim),
        "ones": mx.nd.ones((2, 2), ctx=sim, dtype="int32"),
        "full": mx.nd.full((2, 2), 7, ctx=sim),
        "empty": mx.nd.empty((2, 2), ctx=sim),
        "arange": mx.nd.arange(4, ctx=sim).reshape((2, 2)),
        "eye": mx.nd.eye(2, ctx=sim),
        "random": mx.nd.random.uniform(shape=(2, 2), ctx=sim),
    }
    for name, x in made.items():
        assert x.context == sim == x.ctx and repr(x.context) == f"{DEVICE_KIND}(0)", name
        assert x.asnumpy().shape == (2, 2), name
    assert made["zeros"].asnumpy().tolist() == [[0, 0], [0, 0]] and made["full"].asnumpy().min() == 7
    with mx.sim(1):
        assert mx.nd.ones((1,)).context == mx.sim(1)
    assert f"@{DEVICE_KIND}(0)>" in repr(made["array"])


def test_operators_run_where_their_inputs_are_and_give_the_hosts_bits(mx, sim) -> None:
    values = np.random.default_rng(1).standard_normal((64, 33)).astype(np.float32)
    results = []
    for ctx in (mx.cpu(), sim):
        x = mx.nd.array(values, ctx=ctx)
        y = mx.nd.softmax(mx.nd.dot(x, x, transpose_b=True) / 3)
        y += 1
        y[3:5] = x[:2, :1]
        y[[1, 7], 2] = 5
        z = mx.nd.concat(y, y.T, dim=1).sum(axis=0)
        picked = y[[3, 1], [2, 2]]
        assert y.context == z.context == picked.context == ctx
        results.append([a.asnumpy() for a in (y, z, picked, mx.nd.topk(y, k=3), y[::3, 5])])
    for host, device in zip(*results, strict=True):
        assert host.tobytes() == device.tobytes()


def test_an_operator_may_write_what_it_reads(mx, sim) -> None:
    x = mx.nd.array(np.arange(12).reshape(3, 4), ctx=sim)
    mx.nd.transpose(x.reshape((4, 3)), out=x)
    assert x.asnumpy().tolist() == np.arange(12).reshape(4, 3).T.tolist()
    x[:2] = x[1:]
    assert x.asnumpy()[:, 0].tolist() == [1, 2, 2]
    mx.nd.broadcast_add(x, x, out=x)
    assert x.asnumpy()[:, 0].tolist() == [2, 4, 4]


def test_copies_between_all_memories(mx, sim) -> None:
    contexts = [mx.cpu(), mx.cpu(1), sim, mx.sim(1)]
    values = np.arange(30, dtype=np.float32).reshape(5, 6)
    for one in contexts:
        x = mx.nd.array(values, ctx=one)
        for other in contexts:
            y = x.as_in_context(other)
            assert (y is x) == (one == other) and y.context == other
            assert np.array_equal(y.asnumpy(), values)
            z = mx.nd.zeros((5, 6), ctx=other)
            x.copyto(z)
            z[1:3] = x[:2]
            z[0, ::2] = x[4, ::2]
            wanted = values.copy()
            wanted[1:3], wanted[0, ::2] = values[:2], values[4, ::2]
            assert np.array_equal(z.asnumpy(), wanted), (one, other)
            assert mx.nd.array(x, ctx=other).context == other
    assert x.as_in_ctx(mx.cpu()).context == mx.cpu()


def test_a_large_copy_goes_in_pieces_and_arrives_whole(mx, sim) -> None:
    # The chunks that copies go through have 8 MB; a view begins in the middle of one.
    values = np.random.default_rng(3).integers(0, 255, (5 << 20) + 3).astype(np.float32)
    there = mx.nd.array(values, ctx=sim)
    assert np.array_equal(there.asnumpy(), values)
    part = there[1_000_001:4_000_000]
    assert np.array_equal(part.as_in_context(mx.sim(1)).asnumpy(), values[1_000_001:4_000_000])
    part[:] = mx.nd.array(values[:2_999_999])
    expected = values.copy()
    expected[1_000_001:4_000_000] = values[:2_999_999]
    assert np.array_equal(there.copyto(mx.cpu()).asnumpy(), expected)


def test_a_copy_takes_the_value_of_its_time(mx, sim) -> None:
    x = mx.nd.array([1, 2, 3])
    there = x.as_in_context(sim)
    x[:] = 9
    back = there.as_in_context(mx.cpu())
    there[:] = 5
    assert there.asnumpy().tolist() == [5, 5, 5] and back.asnumpy().tolist() == [1, 2, 3]


def test_files_and_pickles(mx, sim, tmp_path: Path) -> None:
    x = mx.nd.array([[1, 2], [3, 4]], ctx=sim, dtype="int32")
    on_host = tmp_path / "host.params"
    on_device = tmp_path / "device.params"
    mx.nd.save(str(on_host), {"x": x.as_in_context(mx.cpu())})
    mx.nd.save(str(on_device), {"x": x})
    if DEVICE_KIND == "sim":
        assert on_host.read_bytes() == on_device.read_bytes(), "a file that MXNet can read names no simulated device"
    loaded = mx.nd.load(str(on_device))["x"]
    assert loaded.context == mx.cpu() and loaded.asnumpy().tolist() == [[1, 2], [3, 4]]
    again = pickle.loads(pickle.dumps(x))
    assert again.context == sim and again.asnumpy().tolist() == [[1, 2], [3, 4]]


def test_arrays_on_different_devices_do_not_mix(mx, sim) -> None:
    x, y, z = mx.nd.ones((2,)), mx.nd.ones((2,), ctx=sim), mx.nd.ones((2,), ctx=mx.sim(1))
    for left, right in ((x, y), (y, z), (z, x)):
        with pytest.raises(mx.base.MXNetDeviceError) as raised:
            left + right
        text = str(raised.value)
        assert str(left.context) in text and str(right.context) in text and "as_in_context" in text
    with pytest.raises(mx.base.MXNetDeviceError, match=rf"out= is on cpu\(0\).*{DEVICE_KIND}\(0\)"):
        mx.nd.relu(y, out=x)
    data = mx.sym.var("data")
    net = mx.gluon.SymbolBlock(mx.sym.FullyConnected(data, num_hidden=2, name="fc"), data)
    net.collect_params().initialize(ctx=sim)
    net(mx.nd.ones((1, 3), ctx=sim))
    with pytest.raises(mx.base.MXNetError, match=r"not initialized on context sim\(1\)"):
        net(mx.nd.ones((1, 3), ctx=mx.sim(1)))


@pytest.mark.parametrize("name", ["sim(2)", "gpu(2)", "sim(-1)"])
def test_devices_that_are_not_there(mx, name: str) -> None:
    kind, _, number = name.rstrip(")").partition("(")
    with pytest.raises(mx.base.MXNetDeviceError, match=name.replace("(", r"\(").replace(")", r"\)")):
        mx.nd.ones((1,), ctx=mx.Context(kind, int(number)))
    assert mx.num_gpus() == (0 if DEVICE_KIND == "sim" else GPUS)
    with pytest.raises(KeyError):
        mx.Context("tpu")


def test_memory_is_counted_bounded_and_given_back(mx) -> None:
    done = run_python(
        """
        import gc, json, mxrt as mx
        sim = mx.sim(0)
        x = mx.nd.ones((1024, 1024), ctx=sim)
        x.wait_to_read()
        before = sim.memory_info()
        sim.set_memory_limit(6 << 20)
        good = mx.nd.ones((8,), ctx=sim)
        failed = []
        for make in (lambda: x + 1, lambda: mx.nd.concat(x, x, dim=0)):
            try:
                make().wait_to_read()
            except MemoryError as error:
                kind = type(error).__name__
                failed.append([kind, error.op, error.device, isinstance(error, mx.base.MXNetMemoryError)])
        assert (good * 2).sum().asscalar() == 16 and x.sum().asscalar() == 1 << 20
        sim.set_memory_limit(None)
        assert (x + 1).asnumpy().min() == 2
        del x
        gc.collect()
        mx.nd.waitall()
        mid = sim.memory_info()
        sim.empty_cache()
        print(json.dumps([before, failed, mid, sim.memory_info()]))
        """
    )
    before, failed, mid, after = last_json(done)
    assert before["in_use"] >= 4 << 20 and before["total"] >= 4 << 30 and before["limit"] is None
    assert failed == [
        ["MXNetMemoryError", "_plus_scalar", f"{DEVICE_KIND}(0)", True],
        ["MXNetMemoryError", "Concat", f"{DEVICE_KIND}(0)", True],
    ]
    assert mid["in_use"] < 1 << 20 < mid["cached"] and after["cached"] < 1 << 20 and after["peak"] >= 8 << 20


def test_simulated_gpus(mx) -> None:
    done = run_python(
        """
        import json, mxrt as mx
        assert mx.num_gpus() == mx.context.num_gpus() == 2
        # Nothing is freed between the two readings that was taken before the first.
        free, total = mx.context.gpu_memory_info(1)
        net = mx.sym.exp(mx.sym.var("x"))
        y = net.bind(mx.gpu(1), {"x": mx.nd.ones((2, 2), ctx=mx.gpu(1))}).forward()[0]
        assert y.context == mx.gpu(1) and y.as_in_context(mx.sim(0)).context == mx.sim(0)
        kept = mx.nd.ones((1024, 1024), ctx=mx.gpu(1))
        kept.wait_to_read()
        less, _ = mx.context.gpu_memory_info(1)
        print(json.dumps([repr(y.context), total, free - less, float(y.asnumpy()[0, 0])]))
        """,
        env={"MXRT_SIM_GPUS": "2", "MXRT_SIM_MEMORY_MB": "64"},
    )
    name, total, taken, value = last_json(done)
    assert (name, total) == ("gpu(1)", 64 << 20) and taken >= 4 << 20 and value == pytest.approx(np.e)


def test_settings_of_simulated_devices_are_checked(mx) -> None:
    for name, value in (("MXRT_SIM_DEVICES", "many"), ("MXRT_SIM_MODE", "real")):
        done = run_python("import mxrt as mx; mx.nd.ones((1,)).asnumpy()", env={name: value})
        assert done.returncode == 1 and name in done.stderr and value in done.stderr
    done = run_python("import mxrt as mx; mx.nd.ones((1,), ctx=mx.sim(2)).asnumpy()", env={"MXRT_SIM_DEVICES": "3"})
    assert done.returncode == 0, done.stderr
