"""The engine as Python programs see it: futures, bulks, kinds, the profiler, dumps."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import threading
import time

import numpy as np
import pytest

from support import DIGITS, last_json, run_python

KINDS = ["NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice"]


def slow(mx, size: int = 600):
    """An array that takes a while to compute."""
    x = mx.nd.ones((size, size))
    for _ in range(6):
        x = mx.nd.dot(x, x) * 1e-3
    return x


# ---- arrays as futures ---------------------------------------------------------------------------


def test_an_array_tells_when_it_is_ready(mx) -> None:
    y = slow(mx)
    y.wait_to_read()
    assert y.is_ready() is True
    called = threading.Event()
    seen = []

    def done(array) -> None:
        seen.append((array is y, threading.current_thread().name))
        called.set()

    y.add_done_callback(done)
    assert called.wait(60)
    assert seen == [(True, "mxrt-notifier")]


def test_a_callback_comes_once_and_after_the_value(mx) -> None:
    counts: dict[int, list[bool]] = {}
    finished = threading.Semaphore(0)
    arrays = [slow(mx, 100) + i for i in range(50)]
    for i, array in enumerate(arrays):

        def done(a, i=i) -> None:
            counts.setdefault(i, []).append(a.is_ready())
            finished.release()

        array.add_done_callback(done)
    for _ in arrays:
        assert finished.acquire(timeout=60)
    assert counts == {i: [True] for i in range(50)}


def test_a_callback_that_raises_is_printed_and_the_next_one_is_called(mx) -> None:
    result = run_python(
        """
        import sys, threading, mxrt as mx
        called = threading.Event()
        x = mx.nd.ones((2,))
        x.add_done_callback(lambda a: 1 / 0)
        x.add_done_callback(lambda a: sys.exit(3))
        x.add_done_callback(lambda a: called.set())
        print(called.wait(60))
        """
    )
    assert (result.returncode, result.stdout) == (0, "True\n")
    assert "ZeroDivisionError" in result.stderr and "SystemExit" not in result.stderr


def test_only_functions_can_be_called_back(mx) -> None:
    with pytest.raises(TypeError, match="expected a function of the array, not int"):
        mx.nd.ones((1,)).add_done_callback(3)


def test_arrays_can_be_awaited_without_a_thread_each(mx) -> None:
    async def one(i: int) -> float:
        array = await (slow(mx, 64) * 0 + i)
        return float(array[0, 0].asscalar())

    async def all_of_them() -> list[float]:
        return await asyncio.gather(*(one(i) for i in range(100)))

    before = threading.active_count()
    assert asyncio.run(all_of_them()) == list(range(100))
    assert threading.active_count() <= before + 1


def test_awaiting_a_failed_array_raises_its_error(mx) -> None:
    async def wait() -> None:
        await mx.nd.reshape(mx.nd.ones((6,)), shape=(4, 2))

    with pytest.raises(mx.base.MXNetError):
        asyncio.run(wait())


def test_a_ready_array_can_be_awaited(mx) -> None:
    async def wait():
        x = mx.nd.ones((2,))
        x.wait_to_read()
        return await x

    assert asyncio.run(wait()).asnumpy().tolist() == [1, 1]


def test_cancelled_work_does_not_run_and_says_so() -> None:
    result = run_python(
        """
        import json, mxrt as mx
        mx.engine.set_type("ThreadedEngine")
        blocker = mx.nd.ones((900, 900))
        for _ in range(8):
            blocker = mx.nd.dot(blocker, blocker) * 1e-3
        y = mx.nd.exp(blocker)
        z = y + 1
        y.cancel()
        kinds = []
        for array in (y, z):
            try:
                array.asnumpy()
                kinds.append(None)
            except mx.base.MXNetError as error:
                kinds.append(getattr(error, "kind", type(error).__name__))
        mx.nd.waitall()
        y[:] = 2
        kinds.append(float(y.asnumpy()[0, 0]))
        print(json.dumps([kinds, str(blocker.asnumpy().shape)]))
        """,
        env={"MXRT_CORES": "1"},
    )
    (first, second, healed), shape = last_json(result)
    assert first is not None and first == second and "ancel" in first
    assert (healed, shape) == (2.0, "(900, 900)")


def test_cancelling_the_coroutine_cancels_the_array() -> None:
    result = run_python(
        """
        import asyncio, json, mxrt as mx
        async def main():
            blocker = mx.nd.ones((900, 900))
            for _ in range(8):
                blocker = mx.nd.dot(blocker, blocker) * 1e-3
            y = mx.nd.exp(blocker)
            async def wait():
                return await y
            task = asyncio.ensure_future(wait())
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                pass
            try:
                y.asnumpy()
            except mx.base.MXNetError as error:
                print(json.dumps(str(error)))
        asyncio.run(main())
        """,
        env={"MXRT_CORES": "1"},
    )
    assert "cancelled" in last_json(result)


# ---- kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_can_be_chosen_before_the_first_use(kind: str) -> None:
    code = f"import json, mxrt as mx; mx.engine.set_type({kind!r}); print(json.dumps(mx.runtime.info()['engine']))"
    assert last_json(run_python(code, env={"MXNET_ENGINE_TYPE": "ThreadedEngine"})) == kind


def test_the_kind_cannot_be_changed_later_and_unknown_ones_are_refused(mx) -> None:
    mx.nd.ones((1,)).wait_to_read()
    mx.engine.set_type(mx.runtime.info()["engine"])
    with pytest.raises(ValueError, match="the engine runs already"):
        mx.engine.set_type("NaiveEngine")
    with pytest.raises(ValueError, match="Cannot find Engine FastEngine; known: NaiveEngine, ThreadedEngine"):
        mx.engine.set_type("FastEngine")


# ---- bulks ---------------------------------------------------------------------------------------


def test_the_size_of_a_bulk_may_be_a_number_of_numpy(mx) -> None:
    before = mx.engine.set_bulk_size(np.int64(15))
    assert mx.engine.set_bulk_size(before) == 15
    for wrong in (-1, np.int64(-1), 1.5, "15", None):
        with pytest.raises(mx.base.MXNetError, match="expected a whole number from 0"):
            mx.engine.set_bulk_size(wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bulk_computes_what_single_operators_compute(kind: str) -> None:
    result = run_python(
        """
        import json, mxrt as mx
        def work():
            x = mx.nd.array([1.0, 2.0])
            parts = []
            for i in range(40):
                x = x * 1.01 + i
                if i % 7 == 0:
                    parts.append(x + 0)
            bad = mx.nd.array([1.0, 2.0, 3.0])
            try:
                (bad + mx.nd.ones((2,))).asnumpy()
            except mx.base.MXNetError:
                parts.append(mx.nd.ones((1,)))
            return [p.asnumpy().tolist() for p in parts]
        single = work()
        with mx.engine.bulk(10):
            assert mx.engine.set_bulk_size(10) == 10
            joined = work()
        print(json.dumps([single == joined, mx.engine.set_bulk_size(0)]))
        """,
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert last_json(result) == [True, 0]


def test_another_thread_may_wait_for_a_bulk_that_is_not_full(mx) -> None:
    with mx.engine.bulk(1000):
        x = mx.nd.ones((3,)) + 1
        found = []
        reader = threading.Thread(target=lambda: found.append(x.asnumpy().tolist()))
        reader.start()
        reader.join(60)
        assert found == [[2, 2, 2]]


@pytest.mark.parametrize(
    ("env", "size"),
    [
        ({}, 0),
        ({"MXNET_EXEC_BULK_EXEC_INFERENCE": "1"}, 15),
        ({"MXNET_EXEC_BULK_EXEC_INFERENCE": "1", "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "7"}, 7),
        ({"MXNET_EXEC_BULK_EXEC_INFERENCE": "0", "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "7"}, 0),
    ],
)
def test_mxnets_variables_set_the_size(env: dict[str, str], size: int) -> None:
    code = "import json, mxrt as mx; print(json.dumps(mx.engine.set_bulk_size(3)))"
    assert last_json(run_python(code, env=env)) == size


@pytest.mark.parametrize("size", [-1, 1.5, "many"])
def test_a_size_is_a_whole_number(mx, size: object) -> None:
    with pytest.raises(ValueError, match="set_bulk_size: expected a whole number"):
        mx.engine.set_bulk_size(size)


# ---- profiler ------------------------------------------------------------------------------------


@pytest.fixture
def profiler(mx, tmp_path):
    mx.nd.waitall()
    mx.profiler.set_config(filename=str(tmp_path / "trace.json"), aggregate_stats=True, profile_all=True)
    mx.profiler.dumps(reset=True)
    yield mx.profiler
    mx.profiler.set_state("stop")
    mx.profiler.dumps(reset=True)


def test_the_profiler_counts_what_ran_while_it_was_on(mx, profiler) -> None:
    x = mx.nd.ones((50, 50))
    mx.nd.exp(x).wait_to_read()
    profiler.set_state("run")
    for _ in range(3):
        mx.nd.dot(x, x).wait_to_read()
    profiler.pause()
    mx.nd.exp(x).wait_to_read()
    profiler.resume()
    mx.nd.dot(x, x).wait_to_read()
    profiler.set_state("stop")
    operators = json.loads(profiler.dumps(format="json"))["Time"]["operator"]
    assert operators["dot"]["Count"] == 4 and "exp" not in operators
    assert 0 < operators["dot"]["Min"] <= operators["dot"]["Avg"] <= operators["dot"]["Max"]
    table = profiler.dumps(reset=True)
    head = (
        "Name                          Total Count        Time (ms)    Min Time (ms)    Max Time (ms)    Avg Time (ms)"
    )
    assert head in table.splitlines(), "the columns are MXNet's"
    row = next(line.split() for line in table.splitlines() if line.startswith("dot"))
    assert row[1] == "4" and float(row[2]) > 0
    assert "dot" not in profiler.dumps()


def test_the_trace_is_a_chrome_trace(mx, profiler, tmp_path) -> None:
    profiler.set_state("run")
    domain = profiler.Domain("mine")
    with profiler.Task(domain, 'a "task"'):
        x = mx.nd.ones((50, 50))
        y = mx.nd.dot(x, x)
        (y + 1).wait_to_read()
    domain.new_counter("things", 3).increment()
    domain.new_marker("here").mark()
    profiler.dump()
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = trace["traceEvents"]
    spans = {e["name"]: e for e in events if e["ph"] == "X"}
    assert {"dot", 'a "task"'} <= set(spans)
    assert spans["dot"]["args"]["device"] == "cpu(0)" and spans["dot"]["dur"] >= 0
    task = spans['a "task"']
    assert task["ts"] <= spans["dot"]["ts"] <= task["ts"] + task["dur"]
    assert [e["args"]["value"] for e in events if e["ph"] == "C"] == [3, 4]
    assert any(e["ph"] == "i" and e["name"] == "here" for e in events)
    starts = {e["id"] for e in events if e["ph"] == "s"}
    assert starts and starts == {e["id"] for e in events if e["ph"] == "f"}


def test_the_profile_shows_the_time_in_python_operators(mx, profiler, tmp_path, monkeypatch) -> None:
    class Doubled(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux) -> None:
            with profiler.Event("inside"):
                self.assign(out_data[0], req[0], in_data[0] * 2)

    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Doubled()

    monkeypatch.setitem(mx.operator._CUSTOM, "profiled", Prop)
    mx.nd.Custom(mx.nd.ones(3), op_type="profiled").wait_to_read()
    profiler.set_state("run")
    mx.nd.Custom(mx.nd.ones(3), op_type="profiled").wait_to_read()
    graph = mx.sym.Custom(mx.sym.var("data"), op_type="profiled")
    graph.bind(mx.cpu(), [mx.nd.ones(3)]).forward()[0].wait_to_read()
    (mx.nd.ones(3) * 2).wait_to_read()
    found = json.loads(profiler.dumps(format="json"))["Time"]
    times = found["Custom Operator"]
    profiler.dump()
    assert times["profiled::pure_python"]["Count"] == 2
    # What the operators call stands below their name, and nothing else does.
    assert times["profiled::_mul_scalar"]["Count"] == 2 and found["operator"]["_mul_scalar"]["Count"] == 1
    assert {name.partition("::")[0] for name in times} == {"profiled"}
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    outside, inside = ([e for e in events if e["name"] == name] for name in ("profiled::pure_python", "inside"))
    for around, within in zip(outside, inside, strict=True):
        assert around["cat"] == "Custom Operator" and around["tid"] == within["tid"]
        assert around["ts"] <= within["ts"] and within["dur"] <= around["dur"]


def test_the_trace_shows_requests_and_threads_by_their_names(mx, profiler, tmp_path) -> None:
    op = mx.nd.CachedOp(mx.sym.var("data") * 2)
    x = mx.nd.ones((2, 3))
    profiler.set_state("run")

    def call() -> None:
        with profiler.Event("mine"):
            op(x).wait_to_read()
            op(x).wait_to_read()

    caller = threading.Thread(target=call, name="caller-1")
    caller.start()
    caller.join()
    profiler.dump()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    mine = next(e for e in events if e["name"] == "mine")
    assert names[mine["tid"]] == "caller-1"
    requests = [e["args"]["request"] for e in events if e.get("cat") == "operator" and "request" in e["args"]]
    assert len(requests) == 2 and requests[0] < requests[1]


def bars_below(events: list[dict], request: int) -> tuple[dict, list[dict]]:
    """The bar of a request, and those of its layers, which must lie within it in its thread."""
    (bar,) = [e for e in events if e.get("cat") == "operator" and e["args"].get("request") == request]
    layers = [e for e in events if e.get("cat") == "layer" and e["args"]["request"] == request]
    for layer in layers:
        assert layer["tid"] == bar["tid"]
        assert bar["ts"] <= layer["ts"]
        assert round(layer["ts"] + layer["dur"], 3) <= round(bar["ts"] + bar["dur"], 3)
    return bar, layers


def test_the_trace_has_a_bar_for_each_layer_below_each_request(mx, profiler, tmp_path) -> None:
    data = mx.sym.var("data")
    symbol = mx.sym.FullyConnected(mx.sym.softmax(data, name="first"), num_hidden=4, name="dense")
    op = mx.nd.CachedOp(mx.sym.Activation(symbol, act_type="relu", name="last"))
    arrays = [mx.nd.ones((2, 4)), mx.nd.ones((4, 4)), mx.nd.ones((4,))]
    files = DIGITS / "digits_cnn-symbol.json", ["data"], DIGITS / "digits_cnn-0000.params"
    net = mx.gluon.SymbolBlock.imports(*map(str, files[:1]), files[1], str(files[2]))
    with np.load(DIGITS / "eval.npz") as saved:
        images = mx.nd.array(saved["in.data"])
    (op(*arrays), net(images[:4]), net(images))  # plans are built
    mx.nd.waitall()
    profiler.set_state("run")
    op(*arrays).wait_to_read()
    net(images[:4]).wait_to_read()
    net(images).wait_to_read()
    profiler.dump()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    requests = sorted({e["args"]["request"] for e in events if "request" in e.get("args", {})})
    assert len(requests) == 3
    _, layers = bars_below(events, requests[0])
    assert [(e["name"], e["args"]["operator"]) for e in layers][:1] == [("first", "softmax")]
    # A dense layer and the activation after it are one step.
    assert {e["name"] for e in layers} <= {"first", "dense", "last"} and len(layers) >= 2
    steps = [step["node"] for step in net.plan_report(images[:4])["steps"]]
    _, layers = bars_below(events, requests[1])
    assert [e["name"] for e in layers] == steps
    assert all(a["ts"] + a["dur"] <= b["ts"] + 0.001 for a, b in itertools.pairwise(layers)), "in turn"
    large = [e for e in events if e.get("cat") == "layer" and e["args"]["request"] == requests[2]]
    assert {e["name"] for e in large} == set(steps), "a large batch runs in parts, in any threads"
    profiler.set_state("run")
    net(images[:4]).wait_to_read()
    profiler.set_state("stop")
    profiler.dump()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len([e for e in events if e.get("cat") == "layer"]) == len(steps), "a dump begins anew"


def test_iterations_of_a_loop_lie_below_its_bar(mx, profiler, tmp_path) -> None:
    body = lambda row, state: (mx.sym.sin(row + state, name="sine"), state)  # noqa: E731
    outputs, _ = mx.sym.contrib.foreach(body, mx.sym.var("data"), mx.sym.var("state"), name="loop")
    op = mx.nd.CachedOp(outputs)
    profiler.set_state("run")
    op(mx.nd.ones((5, 3)), mx.nd.ones((3,))).wait_to_read()
    profiler.dump()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (request,) = {e["args"]["request"] for e in events if "request" in e.get("args", {})}
    _, layers = bars_below(events, request)
    (loop,) = [e for e in layers if e["args"]["operator"] == "_foreach"]
    inner = [e for e in layers if e["name"] == "sine"]
    assert len(inner) == 5
    for bar in inner:
        assert loop["ts"] <= bar["ts"] and bar["ts"] + bar["dur"] <= loop["ts"] + loop["dur"] + 0.001


def test_wrong_options_are_refused(mx) -> None:
    for call in (
        lambda: mx.profiler.set_config(file_name="x"),
        lambda: mx.profiler.set_state("go"),
        lambda: mx.profiler.dumps(format="xml"),
        lambda: mx.profiler.dumps(sort_by="name"),
    ):
        with pytest.raises(ValueError):
            call()


# ---- dumps ---------------------------------------------------------------------------------------


def test_a_dump_says_what_the_engine_does(mx) -> None:
    mx.nd.waitall()
    gc.collect()
    text = mx.engine.dump()
    assert "cores in use" in text and "waiting: none" in text
    deadline = time.monotonic() + 60
    seen = False
    # Where it is computed before this thread has looked: again.
    while not seen and time.monotonic() < deadline:
        y = slow(mx, 900)
        waiter = threading.Thread(target=y.wait_to_read, name="patient")
        waiter.start()
        while not seen and waiter.is_alive():
            seen = "running:\n" in (text := mx.engine.dump()) and "for variable" in text
        waiter.join()
    assert seen, text
    assert np.isfinite(y.asnumpy()).all()


def test_a_signal_prints_the_dump() -> None:
    result = run_python(
        """
        import os, signal, sys, mxrt as mx
        mx.nd.ones((2,)).wait_to_read()
        told, saying = os.pipe()
        said = os.dup(2)
        os.dup2(saying, 2)
        os.kill(os.getpid(), signal.SIGUSR1)
        text = b""
        while b"running: nothing" not in text:
            text += os.read(told, 1 << 16)
        os.dup2(said, 2)
        sys.stderr.write(text.decode())
        """,
        env={"MXRT_DEBUG": "1"},
    )
    assert result.returncode == 0
    assert "cores in use" in result.stderr and "running: nothing" in result.stderr


# ---- denormal numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("variable", [None, "1"])
def test_denormal_numbers_count_as_zeros_where_that_is_set(variable: str | None) -> None:
    code = """
    import json, threading
    import numpy as np
    import mxrt as mx

    tiny = mx.nd.array(np.full((64, 256), 1e-38, "f4"))
    halves = mx.nd.array(np.full((256, 64), 0.5 / 256, "f4"))
    net = mx.gluon.SymbolBlock(mx.sym.var("data") * 0.5, mx.sym.var("data"))

    def any_left():
        own = np.float32(1e-38) * np.float32(0.5) > 0
        made = (tiny * 0.5, mx.nd.dot(tiny, halves), net(tiny))
        return [bool((array.asnumpy() > 0).any()) for array in made] + [bool(own)]

    found = [any_left(), mx.engine.set_flush_denormals(True), any_left()]
    found += [mx.engine.set_flush_denormals(False), any_left()]
    print(json.dumps(found))
    """
    found = last_json(run_python(code, env={} if variable is None else {"MXRT_FLUSH_DENORMALS": variable}))
    as_they_are, zeros = [True] * 4, [False, False, False, True]
    before = zeros if variable else as_they_are
    assert found == [before, variable == "1", zeros, True, as_they_are]


def test_a_wrong_setting_for_denormal_numbers_is_refused() -> None:
    done = run_python("import mxrt as mx; mx.nd.ones(1)", env={"MXRT_FLUSH_DENORMALS": "yes"})
    assert done.returncode != 0
    assert "MXRT_FLUSH_DENORMALS" in done.stderr and "expected 0 or 1" in done.stderr
