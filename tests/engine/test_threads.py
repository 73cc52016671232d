"""Many threads, one process: every answer right, memory small, failures with whom they belong
to.
"""

from __future__ import annotations

import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, FREE_THREADED, MODELS, PEAK_KIB, block_of, digits, last_json, run_python


def in_threads(count: int, body: Callable[[int], None]) -> None:
    """Runs body(0..count) in threads started together; raises the first exception any of them
    had.
    """
    gate = threading.Barrier(count)
    errors: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            gate.wait()
            body(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise AssertionError(f"{len(errors)} of {count} threads failed") from errors[0]


# Each caller holds an input of its own; what is counted is everything else the process has in
# memory.
CROWD = (
    PEAK_KIB
    + """
import json, sys, threading, time
import numpy as np
import mxrt as mx

folder, (callers, side) = sys.argv[1], map(int, sys.argv[2:])
net = mx.gluon.SymbolBlock.imports(
    folder + "/resnet18_v1-symbol.json", ["data"], folder + "/resnet18_v1-0000.params")
images = np.load(folder + "/resnet18_v1-input.npy")[:, :, :side, :side].copy()
expected = [net(mx.nd.array(images[i:i + 1])).asnumpy() for i in range(4)]
gate = threading.Barrier(callers)
answers, errors = [None] * callers, []

def call(index):
    try:
        x = mx.nd.array(images[index % 4:index % 4 + 1])
        gate.wait()
        answers[index] = net(x).asnumpy()
    except BaseException as error:
        errors.append(repr(error))

begin = time.perf_counter()
threads = [threading.Thread(target=call, args=(i,)) for i in range(callers)]
for t in threads:
    t.start()
for t in threads:
    t.join()
right = sum(a is not None and np.array_equal(a, expected[i % 4]) for i, a in enumerate(answers))
own = callers * (images[:1].nbytes + expected[0].nbytes)
peak = peak_kib() * 1024
print(json.dumps({"right": right, "errors": errors[:3], "extra_mb": (peak - own) / 1e6,
                  "seconds": time.perf_counter() - begin}))
"""
)


@pytest.mark.timeout(330)
@pytest.mark.parametrize("side", [112, pytest.param(224, marks=pytest.mark.slow)])
def test_960_threads_on_one_resnet18_get_their_answers_in_little_memory(
    mx, side: int, resnet18: Path, final_table
) -> None:
    said = last_json(run_python(CROWD, resnet18, 960, side, timeout=300))
    final_table(
        f"960 threads on one resnet-18, images of {side} x {side}\n"
        "{extra_mb:.0f} MB beyond inputs and outputs, {seconds:.1f} s".format(**said)
    )
    assert said["errors"] == []
    assert said["right"] == 960
    assert said["extra_mb"] < 500


def test_different_threads_may_use_different_batch_sizes(mx) -> None:
    images = digits(64)[0]
    net = block_of(mx)
    sizes = [1, 2, 3, 5, 8, 13, 16, 21]
    alone = [net(mx.nd.array(images[:size])).asnumpy() for size in sizes]

    def work(index: int) -> None:
        for round_ in range(20):
            which = (index + round_) % len(sizes)
            answer = net(mx.nd.array(images[: sizes[which]])).asnumpy()
            assert np.array_equal(answer, alone[which]), f"batch {sizes[which]} in thread {index}"

    in_threads(8, work)


def test_new_shapes_may_arrive_from_all_threads_at_once(mx) -> None:
    images = digits(64)[0]
    reference = block_of(mx)
    alone = {size: reference(mx.nd.array(images[:size])).asnumpy() for size in range(1, 33)}
    net = block_of(mx)  # has never been called

    def work(index: int) -> None:
        for size in range(1, 33):
            which = (size * 7 + index) % 32 + 1
            assert np.array_equal(net(mx.nd.array(images[:which])).asnumpy(), alone[which]), which

    in_threads(8, work)


@pytest.mark.filterwarnings("ignore:Loading symbol saved", "ignore:Symbol successfully upgraded")
def test_several_models_answer_at_once(mx) -> None:
    images = digits(16)[0]
    flat = images.reshape(16, 64)

    def mlp(name: str):
        net = mx.gluon.SymbolBlock.imports(
            str(MODELS / name / f"{name}-symbol.json"),
            ["data", "softmax_label"],
            str(MODELS / name / f"{name}-0005.params"),
        )
        return lambda: net(mx.nd.array(flat), mx.nd.zeros((16,))).asnumpy()

    first, second = block_of(mx), block_of(mx)
    calls = [
        lambda: first(mx.nd.array(images)).asnumpy(),
        lambda: second(mx.nd.array(images[:3])).asnumpy(),
        mlp("module_mlp"),
        mlp("legacy_mlp"),
    ]
    alone = [call() for call in calls]

    def work(index: int) -> None:
        for round_ in range(25):
            which = (index + round_) % len(calls)
            assert np.array_equal(calls[which](), alone[which]), f"model {which} in thread {index}"

    in_threads(8, work)


def test_threads_may_load_and_drop_models_of_their_own(mx) -> None:
    images = digits(4)[0]
    want = block_of(mx)(mx.nd.array(images)).asnumpy()

    def work(index: int) -> None:
        for _ in range(10):
            assert np.array_equal(block_of(mx)(mx.nd.array(images)).asnumpy(), want)

    in_threads(8, work)


def test_a_result_may_be_awaited_by_threads_that_did_not_ask_for_it(mx) -> None:
    images = digits(32)[0]
    net = block_of(mx)
    x = mx.nd.array(images)
    want = net(x).asnumpy()
    results = [net(x) for _ in range(16)]

    def work(index: int) -> None:
        for result in results[index:] + results[:index]:
            assert np.array_equal(result.asnumpy(), want)

    in_threads(16, work)


def test_one_bad_request_among_50_fails_alone(mx) -> None:
    images = digits(50)[0]
    net = block_of(mx)
    alone = [net(mx.nd.array(images[i : i + 1])).asnumpy() for i in range(50)]
    for bad in (0, 23, 49):
        failed: list[int] = []

        def work(index: int, bad: int = bad, failed: list[int] = failed) -> None:
            x = mx.nd.zeros((1, 3, 8, 8)) if index == bad else mx.nd.array(images[index : index + 1])
            try:
                answer = net(x).asnumpy()
            except mx.base.MXNetError:
                failed.append(index)
                return
            assert np.array_equal(answer, alone[index])

        in_threads(50, work)
        assert failed == [bad]


def test_a_failure_travels_to_what_is_computed_from_it_and_to_nothing_else(mx) -> None:
    good = mx.nd.ones((2, 3))
    bad = mx.nd.random_normal(0, -1, (2, 3))
    from_bad = (bad + good) * 2
    from_good = (good + good) * 2
    for _ in range(2):
        with pytest.raises(mx.base.MXNetError):
            from_bad.asnumpy()
    with pytest.raises(mx.base.MXNetError):
        bad.wait_to_read()
    assert (from_good.asnumpy() == 4).all()
    try:
        mx.nd.waitall()
    except mx.base.MXNetError:
        pass
    mx.nd.waitall()
    with pytest.raises(mx.base.MXNetError):
        from_bad.wait_to_read()


def test_results_have_the_same_bits_on_every_engine_and_any_number_of_cores() -> None:
    code = """
    import hashlib, json, sys
    import numpy as np
    import mxrt as mx
    folder = sys.argv[1]
    net = mx.gluon.SymbolBlock.imports(folder + "/digits_cnn-symbol.json", ["data"], folder + "/digits_cnn-0000.params")
    with np.load(folder + "/eval.npz") as saved:
        images = saved["in.data"]
    y = [net(mx.nd.array(images[:n])).asnumpy().tobytes() for n in (1, 7, 360)]
    print(json.dumps(hashlib.sha256(b"".join(y)).hexdigest()))
    """
    one_core = "import os\nos.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    code = textwrap.dedent(code)
    seen = {
        last_json(run_python(prefix + code, DIGITS, env={"MXNET_ENGINE_TYPE": engine}))
        for engine in ("NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice")
        for prefix in ("", one_core)
    }
    assert len(seen) == 1


SLEEPERS = """
import json, threading
import mxrt as mx

def switches():
    with open("/proc/thread-self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("voluntary"))

seen = []

def wait(read):
    value = mx.nd.ones((900, 900))
    for _ in range(100):
        value = mx.nd.dot(value, value) * 1e-3
    before = switches()
    read(value)
    seen.append(switches() - before)

for read in (mx.nd.NDArray.asnumpy, mx.nd.NDArray.wait_to_read, mx.nd.NDArray.wait_to_write):
    thread = threading.Thread(target=wait, args=(read,))
    thread.start()
    thread.join()
print(json.dumps(seen))
"""


@pytest.mark.skipif(not Path("/proc/thread-self/status").exists(), reason="needs Linux' /proc")
def test_waiting_threads_sleep_until_they_are_woken() -> None:
    # About a second. The main one, which looks up twenty times a second because of Ctrl-C, would
    # wake 20 times; a few times are for Python's own lock.
    seen = last_json(run_python(SLEEPERS, env={"MXRT_CORES": "1"}))
    assert max(seen) <= 5, seen


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="this Python allows no stack that is too small")
@pytest.mark.skipif(FREE_THREADED, reason="this Python runs nothing itself on such a stack")
def test_a_thread_with_too_little_stack_gets_an_error() -> None:
    code = """
    import json, threading
    import mxrt as mx

    net = mx.gluon.SymbolBlock(mx.sym.var("data") * 2, mx.sym.var("data"))
    ready = mx.nd.ones((2, 2))
    said = []

    def work():
        for call in (lambda: mx.nd.ones((2, 2)).asnumpy(), lambda: net(ready).asnumpy()):
            try:
                said.append(bool(call().sum() > 0))
            except mx.base.MXNetError as error:
                said.append(str(error))

    for size in (32 << 10, 64 << 10):
        threading.stack_size(size)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    print(json.dumps(said))
    """
    small, small_call, *large = last_json(run_python(code))
    for words in (small, small_call):
        assert "needs a stack of 64 KiB or more" in words and "threading.stack_size(65536)" in words
    assert large == [True, True]


def test_the_first_thread_may_call_from_deep_in_its_stack() -> None:
    # musl tells of its stack only what is mapped when it is asked, about 128 KiB.
    code = """
    import json, sys
    import mxrt as mx

    sys.setrecursionlimit(5000)
    said = {float(mx.nd.ones((2,)).sum().asscalar())}

    def below(depth):
        try:
            said.add(float(mx.nd.ones((2,)).sum().asscalar()))
        except mx.base.MXNetError as error:
            said.add(str(error))
        # A function of C in between, so that each call takes some of its stack.
        return sorted([depth], key=lambda _: below(depth - 1) if depth else 0)

    below(400)
    print(json.dumps(list(said)))
    """
    assert last_json(run_python(code)) == [2.0]
