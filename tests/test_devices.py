"""Models and arrays on devices, here simulated ones: what a user of a GPU sees.

The devices of this process have threads and do their work at once. Children are given other kinds of engine, devices
whose work waits until somebody asks for a result (``MXRT_SIM_MODE=scheduled``), or whose order a seed decides.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, MODELS, ROOT, last_json, run, run_python

ASYNC = ["ThreadedEngineAsync", "ThreadedEnginePerDeviceAsync"]
KINDS = ["NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice", *ASYNC]
SMALL_MODELS = sorted(path.parent.name for path in MODELS.glob("*/meta.json"))


@pytest.fixture
def sim(mx):
    return mx.sim(0)


# ---- arrays ---------------------------------------------------------------------------------------------------------


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
        assert x.context == sim == x.ctx and repr(x.context) == "sim(0)", name
        assert x.asnumpy().shape == (2, 2), name
    assert made["zeros"].asnumpy().tolist() == [[0, 0], [0, 0]] and made["full"].asnumpy().min() == 7
    with mx.sim(1):
        assert mx.nd.ones((1,)).context == mx.sim(1)
    assert "@sim(0)>" in repr(made["array"])


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
    with pytest.raises(mx.base.MXNetDeviceError, match=r"out= is on cpu\(0\).*sim\(0\)"):
        mx.nd.relu(y, out=x)
    data = mx.sym.var("data")
    net = mx.gluon.SymbolBlock(mx.sym.FullyConnected(data, num_hidden=2, name="fc"), data)
    net.collect_params().initialize(ctx=sim)
    net(mx.nd.ones((1, 3), ctx=sim))
    with pytest.raises(mx.base.MXNetError, match=r"not initialized on context sim\(1\)"):
        net(mx.nd.ones((1, 3), ctx=mx.sim(1)))


@pytest.mark.parametrize("name", ["sim(2)", "gpu(0)", "sim(-1)"])
def test_devices_that_are_not_there(mx, name: str) -> None:
    kind, _, number = name.rstrip(")").partition("(")
    with pytest.raises(mx.base.MXNetDeviceError, match=name.replace("(", r"\(").replace(")", r"\)")):
        mx.nd.ones((1,), ctx=mx.Context(kind, int(number)))
    assert mx.num_gpus() == 0
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
    assert before["in_use"] >= 4 << 20 and before["total"] == 4 << 30 and before["limit"] is None
    assert failed == [
        ["MXNetMemoryError", "_plus_scalar", "sim(0)", True],
        ["MXNetMemoryError", "Concat", "sim(0)", True],
    ]
    assert mid["in_use"] < 1 << 20 < mid["cached"] and after["cached"] < 1 << 20 and after["peak"] >= 8 << 20


# ---- failures -------------------------------------------------------------------------------------------------------


def test_a_failure_on_the_device_is_the_hosts_exception(mx, sim) -> None:
    raised = []
    for ctx in (mx.cpu(), sim):
        x = mx.nd.ones((4, 2), ctx=ctx)
        bad = mx.nd.take(x, mx.nd.array([0, 9], ctx=ctx), mode="raise")
        after, beside = bad * 2, x * 2
        assert beside.asnumpy().sum() == 16
        for array in (bad, after, after):
            with pytest.raises(mx.base.MXNetIndexError) as caught:
                array.asnumpy()
            raised.append(caught.value)
        bad[:] = 3
        assert bad.asnumpy().min() == 3, "overwriting heals"
    for error in raised:
        assert (error.op, error.shapes, error.dtypes) == ("take", ((4, 2), (2,)), ("float32", "float32"))
    assert {str(error) for error in raised[:3]} == {str(error) for error in raised[3:]}
    assert [error.device for error in raised] == ["cpu(0)"] * 3 + ["sim(0)"] * 3
    mx.nd.waitall()


@pytest.mark.parametrize("kind", ASYNC)
def test_a_model_fails_output_by_output_and_request_by_request(kind: str) -> None:
    done = run_python(
        """
        import mxrt as mx
        from concurrent.futures import ThreadPoolExecutor
        data, other = mx.sym.var("data"), mx.sym.var("other")
        rows = mx.sym.take(mx.sym.var("table"), data, mode="raise", name="rows")
        net = mx.gluon.SymbolBlock(mx.sym.Group([rows * 2, other + 1]), [data, other])
        net.collect_params()["table"].shape = (10, 3)
        net.collect_params().initialize(mx.init.One(), ctx=mx.sim(0))

        def ask(n):
            good, fine = net(mx.nd.array([n], ctx=mx.sim(0)), mx.nd.ones((2,), ctx=mx.sim(0)))
            assert fine.asnumpy().tolist() == [2, 2]
            if n < 10:
                return good.asnumpy().tolist() == [[2, 2, 2]]
            try:
                good.asnumpy()
            except mx.base.MXNetIndexError as error:
                return (error.op, error.node, error.device) == ("take", "rows", "sim(0)")

        with ThreadPoolExecutor(8) as pool:
            print(all(pool.map(ask, list(range(12)) * 10)))
        """,
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("True", 0, "")


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", *ASYNC])
def test_a_launch_that_fails_takes_its_results_and_nothing_else(kind: str) -> None:
    done = run_python(
        """
        import mxrt as mx
        sim = mx.sim(0)
        x = mx.nd.ones((4,), ctx=sim)
        x.wait_to_read()
        good = x + 1
        good.wait_to_read()  # streams have no order among themselves
        mx.testing.fail(sim, "launch", after=0)
        bad = x + 2
        after = bad * 3
        try:
            bad.wait_to_read()
            print("not raised")
        except mx.base.MXNetDeviceError:
            beside = x + 4
        assert good.asnumpy().tolist() == [2] * 4 and beside.asnumpy().tolist() == [5] * 4
        for array in (bad, after, bad):
            try:
                array.asnumpy()
                print("not raised")
            except mx.base.MXNetDeviceError as error:
                assert (error.op, error.device) == ("_plus_scalar", "sim(0)"), error
                assert "launching" in str(error) and "device error 1" in str(error), error
        assert (x * 2).asnumpy().tolist() == [2] * 4
        mx.nd.waitall()
        print("done")
        """,
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, "")


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", *ASYNC])
def test_a_lost_device_takes_what_is_on_it_and_nothing_else(kind: str) -> None:
    done = run_python(
        """
        import mxrt as mx
        sim = mx.sim(0)
        x = mx.nd.ones((4,), ctx=sim)
        x.wait_to_read()
        mx.testing.fail(sim, "execute", code=700)
        raised = 0
        for _ in range(5):
            try:
                (x + 1).asnumpy()
            except mx.base.MXNetDeviceError as error:
                raised += 1
                assert "sim(0) is lost" in str(error) and "700" in str(error), error
        assert raised == 5
        other = mx.nd.ones((4,), ctx=mx.sim(1)) + mx.nd.ones((4,), ctx=mx.sim(1))
        assert other.asnumpy().tolist() == [2] * 4 and (mx.nd.ones((4,)) * 3).asnumpy().tolist() == [3] * 4
        try:
            mx.nd.waitall()
        except mx.base.MXNetError as error:
            assert "lost" in str(error)
        print("done")
        """,
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, "")


# ---- kinds of engine ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_kinds_differ_in_what_is_done_when_a_call_returns(kind: str) -> None:
    """The devices do nothing before somebody waits: the engine, or with ``Async`` only the program."""
    done = run_python(
        """
        import json, sys, time, mxrt as mx
        mx.engine.set_type(sys.argv[1])
        a, b = mx.nd.ones((4,), ctx=mx.sim(0)), mx.nd.ones((4,), ctx=mx.sim(1))
        a.wait_to_read(), b.wait_to_read()
        x, y = a + 1, b + 1
        at_once = x.is_ready()
        if not sys.argv[1].endswith("Async"):
            while not (x.is_ready() and y.is_ready()):
                time.sleep(0.001)
        else:
            time.sleep(0.05)
        ready = [x.is_ready(), y.is_ready()]
        pending = mx.testing.pending(mx.sim(0)) > 0
        try:
            mx.nd.take(a, mx.nd.array([9], ctx=mx.sim(0)), mode="raise")
            at_call = False
        except IndexError:
            at_call = True
        values = [x.asnumpy().tolist(), y.as_in_context(mx.sim(0)).asnumpy().tolist()]
        print(json.dumps([mx.runtime.info()["engine"], at_once, ready, pending, at_call, values]))
        """,
        kind,
        env={"MXRT_SIM_MODE": "scheduled"},
    )
    name, at_once, ready, pending, at_call, values = last_json(done)
    asynchronous = kind.endswith("Async")
    assert at_once or kind != "NaiveEngine"
    assert name == kind and at_call == (kind == "NaiveEngine")
    assert ready == [not asynchronous] * 2 and pending == asynchronous
    assert values == [[2] * 4] * 2


def test_a_device_waits_for_another_without_the_host(mx) -> None:
    """A chain over two devices and back is pushed before anything has run."""
    done = run_python(
        """
        import mxrt as mx
        x = mx.nd.ones((8,), ctx=mx.sim(0))
        for n in range(20):
            x = (x + 1).as_in_context(mx.sim(n % 2))
        y = x.as_in_context(mx.cpu()) * 2  # an operator of the host, parked until the devices are done
        assert not x.is_ready() and not y.is_ready() and mx.testing.pending(mx.sim(0)) > 40
        print(int(y.sum().asscalar()), mx.testing.check(mx.sim(0))[0])
        """,
        env={"MXNET_ENGINE_TYPE": ASYNC[1], "MXRT_SIM_MODE": "scheduled", "MXRT_SIM_CHECK": "1"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == (f"{21 * 8 * 2} []", 0, "")


# ---- models ---------------------------------------------------------------------------------------------------------


def device_models(kind: str, seeds: int, names: list[str], *options: str, **env: str) -> dict:
    command = [sys.executable, str(ROOT / "tests" / "device_models.py"), "--seeds", str(seeds), *options, *names]
    return last_json(run(command, 300, {"MXNET_ENGINE_TYPE": kind, **env}))


@pytest.mark.timeout(320)
@pytest.mark.parametrize("kind", ASYNC)
def test_models_give_the_hosts_bits_whatever_the_order(mx, kind: str) -> None:
    """8 threads over two devices, several orders of the work, and every operator by itself."""
    found = device_models(kind, 4, SMALL_MODELS)
    assert found["engine"] == kind
    there = [model for model in found["models"] if "calls" in model]
    assert {model["model"] for model in there} >= {"digits_cnn", "half_cnn", "module_mlp", "transformer", "wide_deep"}
    for model in there:
        assert model["calls"] >= 4 * 8 and model["nodes"] > 0 and model["pairs"] > 100, model
        assert model["violations"] == [], model


@pytest.mark.timeout(320)
@pytest.mark.parametrize("kind", ASYNC)
def test_a_full_size_network_gives_the_hosts_bits(mx, resnet18: Path, kind: str) -> None:
    found = device_models(kind, 1, ["zoo/resnet18_v1"], "--zoo-dir", str(resnet18), "--threads", "4")
    (model,) = found["models"]
    assert model["calls"] == 8 and model["nodes"] > 60 and model["violations"] == []


def test_sixteen_threads_share_the_memory_of_a_device(mx) -> None:
    found = device_models(
        ASYNC[0], 10, ["transformer"], "--threads", "16", MXRT_SIM_MODE="threaded", MXRT_SIM_DELAY_US="50"
    )
    assert found["models"][0]["calls"] >= 16 * 20


def test_an_engine_that_forgot_its_events_would_be_noticed(mx) -> None:
    """The same run on devices that ignore waits: wrong values, or work that nothing orders."""
    command = [sys.executable, str(ROOT / "tests" / "device_models.py"), "--seeds", "5", "transformer"]
    done = run(command, 120, {"MXNET_ENGINE_TYPE": ASYNC[0], "MXRT_SIM_IGNORE_WAITS": "1"})
    assert done.returncode != 0 or last_json(done)["models"][0]["violations"]


def test_module_and_executor_on_a_device(mx, sim) -> None:
    prefix = MODELS / "module_mlp" / "module_mlp"
    symbol, arguments, states = mx.model.load_checkpoint(str(prefix), 5)
    with np.load(MODELS / "module_mlp" / "golden.npz") as golden:
        batch = golden["b16.in.data"]
    answers = []
    for ctx in (mx.cpu(), sim):
        module = mx.mod.Module(symbol, label_names=["softmax_label"], context=ctx)
        module.bind(data_shapes=[("data", batch.shape)], for_training=False)
        module.set_params(arguments, states)
        module.forward(mx.io.DataBatch([mx.nd.array(batch)], None), is_train=False)
        (out,) = module.get_outputs()
        assert out.context == ctx
        given = {"data": mx.nd.array(batch, ctx=ctx), "softmax_label": mx.nd.zeros((16,), ctx=ctx)}
        given.update({name: value.as_in_context(ctx) for name, value in arguments.items()})
        held = {name: value.as_in_context(ctx) for name, value in states.items()}
        (again,) = symbol.bind(ctx, given, aux_states=held).forward()
        predicted = module.predict(mx.io.NDArrayIter(batch, batch_size=5))
        answers.append([a.asnumpy().tobytes() for a in (out, again, predicted)])
    assert answers[0] == answers[1] and answers[0][0] == answers[0][1]


def test_parameters_move_between_contexts(mx, sim) -> None:
    net = mx.gluon.SymbolBlock.imports(f"{DIGITS}/digits_cnn-symbol.json", ["data"], f"{DIGITS}/digits_cnn-0000.params")
    with np.load(DIGITS / "golden.npz") as golden:
        batch = golden["b3.in.data"]
    wanted = net(mx.nd.array(batch)).asnumpy()
    for contexts in ([sim], [mx.sim(1), mx.cpu()], [mx.cpu(), sim, mx.sim(1)]):
        net.collect_params().reset_ctx(contexts)
        for ctx in contexts:
            assert net(mx.nd.array(batch, ctx=ctx)).asnumpy().tobytes() == wanted.tobytes(), ctx
    assert "measured" in net.plan(mx.nd.array(batch, ctx=sim), measure=True)


@pytest.mark.parametrize("kind", ASYNC)
def test_an_update_of_all_parameters_is_seen_whole_or_not_at_all(kind: str) -> None:
    done = run_python(
        """
        import os, threading, numpy as np, mxrt as mx
        sim = mx.sim(0)
        data = mx.sym.var("data")
        out = data
        for n in range(12):
            out = mx.sym.FullyConnected(out, num_hidden=8, no_bias=True, name=f"fc{n}")
        net = mx.gluon.SymbolBlock(out, data)
        net.collect_params().initialize(ctx=sim)
        x = mx.nd.ones((1, 8), ctx=sim)
        net(x)
        files = []
        for scale in (0.25, 0.125):
            values = {f"fc{n}_weight": mx.nd.full((8, 8), scale) for n in range(12)}
            mx.nd.save(f"update-{os.getpid()}-{scale}.params", values)
            files.append(f"update-{os.getpid()}-{scale}.params")
        net.load_parameters(files[0], ctx=sim)
        allowed = {2.0 ** 12, 1.0}
        seen, wrong, stop = set(), [], threading.Event()

        def call():
            while not stop.is_set():
                value = set(net(x).asnumpy().ravel().tolist())
                seen.update(value)
                if len(value) != 1 or not value <= allowed:
                    wrong.append(value)

        threads = [threading.Thread(target=call) for _ in range(8)]
        [t.start() for t in threads]
        for n in range(2000):
            net.load_parameters(files[(n + 1) % 2], ctx=sim)
            if n > 60 and seen == allowed:
                break
        stop.set()
        [t.join() for t in threads]
        [os.remove(file) for file in files]
        weight = net.collect_params()["fc3_weight"]
        weight.set_data(mx.nd.zeros((8, 8)))
        print(wrong[:3], seen == allowed, net(x).asnumpy().max())
        """,
        env={"MXNET_ENGINE_TYPE": kind, "MXRT_SIM_DELAY_US": "20"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[] True 0.0", 0, "")


def test_simulated_gpus(mx) -> None:
    done = run_python(
        """
        import json, mxrt as mx
        assert mx.num_gpus() == mx.context.num_gpus() == 2
        net = mx.sym.exp(mx.sym.var("x"))
        y = net.bind(mx.gpu(1), {"x": mx.nd.ones((2, 2), ctx=mx.gpu(1))}).forward()[0]
        assert y.context == mx.gpu(1) and y.as_in_context(mx.sim(0)).context == mx.sim(0)
        free, total = mx.context.gpu_memory_info(1)
        kept = mx.nd.ones((1024, 1024), ctx=mx.gpu(1))
        kept.wait_to_read()
        less, _ = mx.context.gpu_memory_info(1)
        print(json.dumps([repr(y.context), total, free - less, float(y.asnumpy()[0, 0])]))
        """,
        env={"MXRT_SIM_GPUS": "2", "MXRT_SIM_MEMORY_MB": "64"},
    )
    name, total, taken, value = last_json(done)
    assert (name, total) == ("gpu(1)", 64 << 20) and taken >= 4 << 20 and value == pytest.approx(np.e)


# ---- other libraries ------------------------------------------------------------------------------------------------


def test_the_consumers_stream_waits_and_the_host_does_not(mx) -> None:
    done = run_python(
        """
        import ctypes, gc, sys, numpy as np, mxrt as mx
        sys.path.insert(0, sys.argv[1])
        from test_devices import address_of
        sim = mx.sim(0)
        stream = mx.testing.new_stream(sim)
        assert stream.number > 2**32
        x = mx.nd.array(np.arange(6), ctx=sim)
        y = (x + 1) * 2
        capsule = y.__dlpack__(stream=stream.number)
        assert mx.testing.pending(sim) > 0 and not y.is_ready(), "the host waited"
        kind, number, address = address_of(capsule)
        assert (kind, number) == (12, 0) == y.__dlpack_device__()
        before = sim.memory_info()["in_use"]
        del y
        read = np.frombuffer(stream.read(address, 24), np.float32)
        assert read.tolist() == [2, 4, 6, 8, 10, 12], read
        stream.write(address, np.full(6, 7, np.float32).tobytes())
        assert sim.memory_info()["in_use"] == before, "the capsule keeps the memory"
        del capsule
        gc.collect()
        mx.nd.waitall()
        assert sim.memory_info()["in_use"] < before
        z = x * 3
        for wanted in (None, 1, 2, -1):
            z.__dlpack__(stream=wanted)
        for wrong, error in ((0, ValueError), (-2, ValueError), ("s", TypeError), (1.0, TypeError)):
            try:
                z.__dlpack__(stream=wrong)
                print("accepted", wrong)
            except error:
                pass
        host = np.from_dlpack(z, device="cpu") if np.__version__ >= "2.1" else z.asnumpy()
        print(host.tolist())
        """,
        str(ROOT / "tests"),
        env={"MXNET_ENGINE_TYPE": ASYNC[0], "MXRT_SIM_MODE": "scheduled"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[0.0, 3.0, 6.0, 9.0, 12.0, 15.0]", 0, "")


def test_an_import_comes_after_the_producers_work(mx) -> None:
    done = run_python(
        """
        import gc, numpy as np, mxrt as mx
        sim = mx.sim(0)
        asked = []

        class Producer:
            def __init__(self, array):
                self.array = array

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

            def __dlpack__(self, stream=None, max_version=None):
                asked.append(stream)
                return self.array.__dlpack__(stream=stream, max_version=max_version)

        x = mx.nd.array(np.arange(6), ctx=sim)
        taken = mx.nd.from_dlpack(Producer(x + 1))
        assert taken.context == sim and asked[0] > 2**32
        y = taken * 2
        assert not y.is_ready(), "the host waited"
        assert y.asnumpy().tolist() == [2, 4, 6, 8, 10, 12]
        source = mx.nd.zeros((4,), ctx=sim)
        shared = mx.nd.from_dlpack(source)
        shared[:] = 5
        shared.wait_to_read()
        assert source.asnumpy().tolist() == [5] * 4
        before = sim.memory_info()["in_use"]
        del taken, y, shared
        gc.collect()
        mx.nd.waitall()
        mx.nd.zeros((1,)).asnumpy()
        assert sim.memory_info()["in_use"] < before
        print(mx.testing.check(sim)[0])
        """,
        env={"MXNET_ENGINE_TYPE": ASYNC[1], "MXRT_SIM_MODE": "scheduled", "MXRT_SIM_CHECK": "1"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[]", 0, "")


def address_of(capsule: object) -> tuple[int, int, int]:
    """Device and address in a DLPack capsule without a version."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    pointer = get(capsule, b"dltensor")
    data = ctypes.c_uint64.from_address(pointer).value
    kind, number = (ctypes.c_int32 * 2).from_address(pointer + 8)
    return kind, number, data + ctypes.c_uint64.from_address(pointer + 40).value


# ---- the profiler ---------------------------------------------------------------------------------------------------


def test_the_profile_shows_what_devices_did_and_when(mx, tmp_path: Path) -> None:
    done = run_python(
        """
        import json, sys, mxrt as mx
        mx.profiler.set_config(filename=sys.argv[1])
        x = mx.nd.ones((64, 64), ctx=mx.sim(0))
        x.wait_to_read()
        mx.profiler.set_state("run")
        made = [mx.nd.dot(x, x) for _ in range(3)]
        for y in made:
            y.wait_to_read()
        z = y.as_in_context(mx.sim(1)).asnumpy()
        mx.nd.waitall()
        text, times = mx.profiler.dumps(), json.loads(mx.profiler.dumps(format="json"))["Time"]
        mx.profiler.dump()
        with open(sys.argv[1]) as file:
            events = json.load(file)["traceEvents"]
        lanes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        spans = [e for e in events if e.get("cat") == "device"]
        print(json.dumps([text, times["device"], sorted(set(lanes.values())), spans, lanes]))
        """,
        tmp_path / "trace.json",
        env={"MXNET_ENGINE_TYPE": ASYNC[0]},
    )
    text, device, names, spans, lanes = last_json(done)
    assert "device\n====" in text and "dot @sim(0)" in text
    assert device["dot @sim(0)"]["Count"] == 3 and 0 < device["dot @sim(0)"]["Min"] <= device["dot @sim(0)"]["Avg"]
    assert {"sim(0)", "sim(1)"} <= set(names)
    dots = [span for span in spans if span["name"] == "dot"]
    assert len(dots) == 3 and all(lanes[str(span["pid"])] == "sim(0)" and span["dur"] > 0 for span in dots)
    assert all(span["args"]["submitted_us"] <= span["ts"] and not span["args"]["failed"] for span in dots)


# ---- processes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", *ASYNC])
def test_a_forked_child_computes_on_the_cpu_only(kind: str) -> None:
    done = run_python(
        """
        import os, sys, mxrt as mx
        x = mx.nd.ones((4,), ctx=mx.sim(0))
        x.wait_to_read()
        y = mx.nd.ones((4,))
        child = os.fork()
        if child == 0:
            good = (y + 1).asnumpy().tolist() == [2] * 4
            texts = []
            for use in (lambda: x + 1, lambda: x.asnumpy(), lambda: mx.nd.ones((2,), ctx=mx.sim(0)).asnumpy()):
                try:
                    use().wait_to_read()
                except mx.base.MXNetDeviceError as error:
                    texts.append("forked" in str(error) and "sim(0)" in str(error))
            sys.stdout.flush()
            os._exit(0 if good and texts == [True] * 3 else 3)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), (x + 1).asnumpy().tolist())
        """,
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("0 [2.0, 2.0, 2.0, 2.0]", 0, "")


@pytest.mark.parametrize("mode", ["threaded", "pumped", "scheduled"])
@pytest.mark.parametrize("kind", ASYNC)
def test_the_process_ends_while_devices_work(kind: str, mode: str) -> None:
    done = run_python(
        """
        import mxrt as mx
        x = mx.nd.ones((64, 64), ctx=mx.sim(0))
        for n in range(200):
            x = mx.nd.dot(x, x) / 64
            y = x.as_in_context(mx.sim(1))
        z = y.as_in_context(mx.cpu()) + 1
        bad = mx.nd.take(x, mx.nd.array([99], ctx=mx.sim(0)), mode="raise")
        capsule = x.__dlpack__()
        """,
        env={"MXNET_ENGINE_TYPE": kind, "MXRT_SIM_MODE": mode, "MXRT_SIM_DELAY_US": "2000"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_settings_of_simulated_devices_are_checked(mx) -> None:
    for name, value in (("MXRT_SIM_DEVICES", "many"), ("MXRT_SIM_MODE", "real")):
        done = run_python("import mxrt as mx; mx.nd.ones((1,)).asnumpy()", env={name: value})
        assert done.returncode == 1 and name in done.stderr and value in done.stderr
    done = run_python("import mxrt as mx; mx.nd.ones((1,), ctx=mx.sim(2)).asnumpy()", env={"MXRT_SIM_DEVICES": "3"})
    assert done.returncode == 0, done.stderr
