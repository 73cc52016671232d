"""Calls of a network as requests: place in the queue, deadlines, cancelling, batches next to single
calls, rest.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, block_of, digits, in_threads, last_json, run_python

KINDS = ["NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice"]

# A network, an input, and a way to queue several things before the first of them can start.
BUSY = """
import json, sys, time
import numpy as np
import mxrt as mx

folder = sys.argv[1]
net = mx.gluon.SymbolBlock.imports(folder + "/digits_cnn-symbol.json", ["data"], folder + "/digits_cnn-0000.params")
x = mx.nd.array(np.random.RandomState(0).rand(256, 1, 8, 8))
net(x).wait_to_read()

# Calls `act` with a zero that is not there before it has returned, and returns what it returned.
def before(act):
    while True:
        blocker = mx.nd.ones((900, 900))
        for _ in range(40):
            blocker = mx.nd.dot(blocker, blocker) * 1e-3
        zero = (blocker[:1, :1] * 0).reshape((1, 1, 1, 1))
        result = act(zero)
        if not zero.is_ready():
            return result
        try:  # The machine was busy with something else: again.
            mx.nd.waitall()
        except mx.base.MXNetError:
            pass
"""


def told(code: str, kind: str = "ThreadedEnginePerDevice") -> object:
    return last_json(run_python(BUSY + code, DIGITS, env={"MXNET_ENGINE_TYPE": kind, "MXRT_CORES": "1"}))


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_past_its_deadline_raises_an_error_of_its_own(kind: str) -> None:
    code = """
said = []
try:
    late = net(x, deadline=0)
    late.asnumpy()
except TimeoutError as error:
    said += [type(error).__name__, isinstance(error, mx.base.MXNetError), str(error)]
said.append(net(x, deadline=3600).shape[0])
said.append(float(net(x).asnumpy().sum()) == float(net(x, priority=3, deadline=60.0).asnumpy().sum()))
mx.nd.waitall()
print(json.dumps(said))
"""
    name, is_mxnet, text, rows, same = told(code, kind)
    assert (name, is_mxnet, rows, same) == ("MXNetTimeoutError", True, 256, True)
    assert "deadline" in text and "allow more time" in text


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e30])
def test_a_deadline_is_a_number_of_seconds_from_now(mx, seconds: float) -> None:
    net, x = block_of(mx), mx.nd.array(digits(1)[0])
    with pytest.raises(ValueError, match=rf"deadline={re.escape(repr(seconds))} \(.*: expected .* 0 or more and below"):
        net(x, deadline=seconds)


def test_arguments_of_a_request_are_refused_by_name(mx) -> None:
    net, x = block_of(mx), mx.nd.array(digits(1)[0])
    with pytest.raises(TypeError, match=r"^priority='high' \(str\): expected a whole number from -2147483648 to"):
        net(x, priority="high")
    with pytest.raises(TypeError, match=r"priority=1\.5 \(float\)"):
        net(x, priority=1.5)
    with pytest.raises(ValueError, match=r"^priority=2147483648 \(int\): expected .* to 2147483647"):
        net(x, priority=2**31)
    with pytest.raises(TypeError, match=r"^deadline='1' \(str\): expected a number of seconds from now"):
        net(x, deadline="1")
    with pytest.raises(TypeError, match=r"^cancel_on_drop=1 \(int\): expected True or False"):
        net(x, cancel_on_drop=1)
    with pytest.raises(TypeError, match="unknown keyword 'hurry'; known: priority, deadline, cancel_on_drop"):
        mx.nd.CachedOp(mx.sym.var("data") + 1)(x, hurry=True)
    with pytest.raises(TypeError, match="hurry"):
        net(x, hurry=True)
    assert net(x, priority=np.int64(1), deadline=np.float32(60)).shape[0] == 1


@pytest.mark.parametrize("kind", KINDS[1:])
def test_urgent_calls_overtake_others(kind: str) -> None:
    code = """
def act(zero):
    order, late = [], mx.nd.broadcast_add(x, zero)
    for priority in (0, -1, 2, 1):
        net(late, priority=priority).add_done_callback(lambda _, priority=priority: order.append(priority))
    return order

order = before(act)
mx.nd.waitall()
while len(order) < 4:
    time.sleep(0.01)
print(json.dumps(order))
"""
    assert told(code, kind) == [2, 1, 0, -1]


@pytest.mark.parametrize("kind", KINDS[1:])
def test_what_nobody_wants_is_not_computed_if_that_was_asked_for(kind: str) -> None:
    code = """
s = mx.sym.take(mx.sym.var("table"), mx.sym.var("index"), mode="raise", name="picked")
op = mx.nd.CachedOp(s)
table = mx.nd.ones((3,))

def raised(act):
    kept = before(lambda zero: act(zero.reshape((1,)) + 9))
    try:
        mx.nd.waitall()
        return None
    except mx.base.MXNetError as error:
        return error.node

def cancelled(bad):
    y = op(table, bad)
    y.cancel()
    return y

print(json.dumps([
    raised(lambda bad: (op(table, bad), None)[1]),
    raised(lambda bad: (op(table, bad, cancel_on_drop=True), None)[1]),
    raised(lambda bad: op(table, bad, cancel_on_drop=True).reshape((1, 1))),
    raised(cancelled),
]))
"""
    assert told(code, kind) == ["picked", None, "picked", None]


def test_awaiting_a_call_and_giving_up_cancels_it() -> None:
    code = """
import asyncio

async def give_up(y):
    async def wait():
        return await y
    try:
        await asyncio.wait_for(asyncio.ensure_future(wait()), 0.001)
    except asyncio.TimeoutError:
        pass

def act(zero):
    y = net(mx.nd.broadcast_add(x, zero))
    asyncio.run(give_up(y))
    return y

try:
    before(act).asnumpy()
    print(json.dumps("answered"))
except mx.base.MXNetError as error:
    print(json.dumps(str(error)))
"""
    assert "cancelled" in told(code)


def test_modules_and_compiled_graphs_take_the_same_options(mx) -> None:
    data = mx.sym.var("data")
    symbol = mx.sym.FullyConnected(data, num_hidden=3, name="fc")
    module = mx.mod.Module(symbol, label_names=None)
    module.bind([("data", (2, 4))], for_training=False)
    module.init_params(mx.init.One())
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 4))]), priority=1, deadline=60)
    assert module.get_outputs()[0].asnumpy().tolist() == [[4.0] * 3] * 2
    op = mx.nd.CachedOp(symbol)
    weight, bias = mx.nd.ones((3, 4)), mx.nd.ones((3,))
    bound = op.bind([None, weight, bias])
    assert bound(mx.nd.ones((2, 4)), priority=-1).asnumpy().tolist() == [[5.0] * 3] * 2
    bias[:] = 2
    assert bound(mx.nd.ones((2, 4))).asnumpy().tolist() == [[6.0] * 3] * 2
    with pytest.raises(mx.base.MXNetError, match="requires 3 inputs"):
        op.bind([None, weight])
    with pytest.raises(mx.base.MXNetError, match="takes 1 inputs besides its parameters, got 2"):
        bound(mx.nd.ones((2, 4)), weight)
    with pytest.raises(mx.base.MXNetError, match="same context"):
        bound(mx.nd.ones((2, 4), ctx=mx.cpu(1)))


@pytest.mark.parametrize("callers", [1, 2, 8, 64])
def test_answers_have_the_same_bits_whatever_the_load_and_the_priorities(mx, resnet18: Path, callers: int) -> None:
    net = mx.gluon.SymbolBlock.imports(
        str(resnet18 / "resnet18_v1-symbol.json"), ["data"], str(resnet18 / "resnet18_v1-0000.params")
    )
    images = np.load(resnet18 / "resnet18_v1-input.npy")
    single = np.concatenate([net(mx.nd.array(images[i : i + 1])).asnumpy() for i in range(4)])

    def work(index: int) -> None:
        for round_ in range(2):
            rows = images[index % 4 :] if index % 3 == 0 else images[index % 4 : index % 4 + 1]
            answer = net(mx.nd.array(rows), priority=(index + round_) % 3 - 1).asnumpy()
            assert np.array_equal(answer, single[index % 4 : index % 4 + len(rows)]), f"caller {index}"

    in_threads(callers, work)


def test_a_large_batch_is_run_in_parts_and_says_so(mx, resnet18: Path) -> None:
    net = mx.gluon.SymbolBlock.imports(
        str(resnet18 / "resnet18_v1-symbol.json"), ["data"], str(resnet18 / "resnet18_v1-0000.params")
    )
    x = mx.nd.array(np.load(resnet18 / "resnet18_v1-input.npy"))
    report = net.plan_report(x)
    lines = report["text"].splitlines()
    assert report["parts"] == {"rows": 4, "rows_of_a_part": 1, "side_by_side": True}
    assert lines[0] == "4 rows in parts of 1, several at a time, each on one core; of a part:"
    assert lines[1].startswith("plan for float32(1, 3, 224, 224)")
    assert all(line.endswith(" us") for line in lines[2:-1])
    assert net.plan_cache_info()["plans"] == 2


# ---- memory and rest -----------------------------------------------------------------------------

SHAPES = """
import json, os, sys
import numpy as np
import mxrt as mx

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

folder = sys.argv[1]
net = mx.gluon.SymbolBlock.imports(
    folder + "/resnet18_v1-symbol.json", ["data"], folder + "/resnet18_v1-0000.params")
seen = []
for i in range(4 * 20):  # four times the same shapes; the caches are full after two
    size, rows = 32 + 32 * (i % 5), 1 + i % 4
    net(mx.nd.array(np.ones((rows, 3, size, size), np.float32))).asnumpy()
    seen.append(resident())
facts = net.plan_cache_info()
raw = sum(p.data().size * 4 for p in net.collect_params().values()) / 1e6
print(json.dumps([max(seen[60:]) - max(seen[20:40]), facts, raw, seen]))
"""


@pytest.mark.timeout(180)
def test_image_and_batch_sizes_that_change_with_every_call_do_not_grow_memory(resnet18: Path) -> None:
    growth, facts, raw, seen = last_json(run_python(SHAPES, resnet18, timeout=150))
    assert growth < 15, f"{growth:.0f} MB more in the fourth round of the same shapes than in the second: {seen}"
    assert max(seen) < 8 * raw, f"{max(seen):.0f} MB for a network of {raw:.0f} MB"
    # Packed weights are bounded, so plans go where those of all sizes do not fit together.
    assert facts["built"] - facts["evicted"] == facts["plans"] >= 5, facts
    assert facts["constant_bytes"] / 1e6 < 4 * raw, facts


REST = """
import json, os, sys, time
import numpy as np
import mxrt as mx

folder = sys.argv[1]
net = mx.gluon.SymbolBlock.imports(folder + "/digits_cnn-symbol.json", ["data"], folder + "/digits_cnn-0000.params")
x = mx.nd.array(np.random.RandomState(0).rand(2048, 1, 8, 8))

def switches():
    found = {}
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/status") as f:
            facts = dict(line.rstrip().split(":", 1) for line in f)
        if facts["Name"].strip().startswith("mxrt-"):
            found[task] = int(facts["voluntary_ctxt_switches"])
    return found

for _ in range(20):
    net(x).asnumpy()
kept = mx._mxrt.info()["memory_cached"]
until = time.monotonic() + 100
while (left := mx._mxrt.info()["memory_cached"]) and time.monotonic() < until:
    time.sleep(0.2)
# The last one that looked may fall asleep only now.
for _ in range(10):
    before, ran = switches(), time.process_time()
    time.sleep(2)
    # Reading takes its time on a slow machine.
    ran = time.process_time() - ran
    after = switches()
    if before == after:
        break
print(json.dumps([kept, left, before, after, ran]))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux' /proc")
@pytest.mark.timeout(600)
def test_at_rest_memory_goes_back_and_nothing_wakes_up() -> None:
    kept, left, before, after, ran = last_json(run_python(REST, DIGITS, timeout=150))
    assert kept > 1e6, "arenas are kept for the next call"
    assert left == 0, "after a rest they are not"
    assert before and before == after, "a thread of the engine woke up"
    assert ran < 0.02


def test_fewer_threads_compute_when_the_environment_says_so() -> None:
    code = "import json, mxrt as mx; print(json.dumps(mx._mxrt.info()['cores']))"
    everything = len(os.sched_getaffinity(0))
    assert last_json(run_python(code, env={"OMP_NUM_THREADS": "1"})) == 1
    assert last_json(run_python(code, env={"OMP_NUM_THREADS": "1", "MXNET_CPU_WORKER_NTHREADS": "2"})) <= min(
        2, everything
    )
    assert last_json(run_python(code, env={"OMP_NUM_THREADS": "4096"})) <= everything
    one = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    assert last_json(run_python(one + code)) == 1


def test_a_quota_of_the_control_group_is_respected(tmp_path: Path) -> None:
    group = Path("/sys/fs/cgroup/cpu") / f"mxrt-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text("100000")
        (group / "cpu.cfs_period_us").write_text("100000")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    code = f"""
    import json, os
    with open({str(group / "cgroup.procs")!r}, "w") as f:
        f.write(str(os.getpid()))
    import mxrt as mx
    print(json.dumps(mx._mxrt.info()["cores"]))
    """
    try:
        assert last_json(run_python(code)) == 1
    finally:
        group.rmdir()
