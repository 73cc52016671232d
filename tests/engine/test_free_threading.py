"""Threads that run Python code of mxrt at the same moment: the interpreter's lock would hide races.
Blocks, modules and symbols have tests of their own in tests/gluon/test_blocks_at_once.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from support import FREE_THREADED, block_of, last_json, run_python, together

THREADS = 16


# ---- the interpreter -----------------------------------------------------------------------------


@pytest.mark.skipif(not FREE_THREADED, reason="this Python has the lock")
def test_importing_does_not_switch_the_lock_on() -> None:
    code = """
    import json, sys, warnings
    warnings.simplefilter("error")
    import mxrt as mx
    after = [sys._is_gil_enabled()]
    for name in mx.__all__:
        getattr(mx, name)
    mx.nd.ones(3).asnumpy()
    after.append(sys._is_gil_enabled())
    print(json.dumps(after))
    """
    assert last_json(run_python(code)) == [False] * 2


FIRST_USES = """
import json, random, sys, threading
sys.setswitchinterval(1e-6)
import mxrt as mx

start, errors, found = threading.Barrier(16), [], []

def work(number):
    try:
        names = [*mx._LAZY, *mx._ALIASES]
        random.Random(number).shuffle(names)
        start.wait()
        seen = {name: getattr(mx, name) for name in names}
        parts = [*mx.gluon._LAZY, "contrib.nn", "contrib.data", "contrib.rnn", "model_zoo.vision", "nn.conv_layers"]
        random.Random(number).shuffle(parts)
        for name in parts:
            place = mx.gluon
            for part in name.split("."):
                place = getattr(place, part)
            seen[name] = place
        operators = ["relu", "softmax", "Convolution", "concat", "broadcast_add"]
        random.Random(number).shuffle(operators)
        for name in operators:
            assert callable(getattr(mx.nd, name)) and callable(getattr(mx.sym, name))
        assert "box_nms" in mx.nd.contrib.__dict__
        assert mx.np.add(mx.np.ones(2), 1).asnumpy().tolist() == [2, 2]
        assert mx.sym.np is not mx.nd.np and mx.nd.npx.relu is not None
        assert mx.init.create("xavier") is not mx.metric.create("acc")
        found.append(seen)
    except BaseException as error:
        errors.append(f"{type(error).__name__}: {error}")

threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
same = all(one[name] is found[0][name] for one in found for name in one)
print(json.dumps([errors, len(found), same]))
"""


def test_the_first_uses_of_all_modules_may_be_at_once() -> None:
    for _ in range(3):
        assert last_json(run_python(FIRST_USES, timeout=120)) == [[], 16, True]


FIRST_NUMPY_CALL = """
import json, sys, threading
import numpy as np
sys.setswitchinterval(1e-6)
import mxrt as mx

x, start, kinds = mx.np.arange(6).reshape(2, 3), threading.Barrier(16), []

def work():
    start.wait()
    kinds.append(type(np.transpose(x)) is mx.np.ndarray)

threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(kinds))
"""


def test_functions_of_numpy_find_their_own_at_the_first_call() -> None:
    for _ in range(3):
        assert last_json(run_python(FIRST_NUMPY_CALL)) == [True] * 16


LEAVING = """
import sys, threading
import mxrt as mx
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(64), mx.gluon.nn.Dense(8))
net.initialize()
net.hybridize()
inside = threading.Semaphore(0)

def work(number):
    x = mx.nd.ones((number + 1, 32))
    while True:
        net(x).asnumpy()
        mx.nd.relu(x[0] + number).add_done_callback(lambda y: y.asnumpy())
        inside.release()

for number in range(16):
    threading.Thread(target=work, args=(number,), daemon=True).start()
for _ in range(64):
    inside.acquire()
"""


def test_a_program_may_end_while_threads_are_everywhere() -> None:
    for _ in range(5):
        result = run_python(LEAVING)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


# ---- arrays and operators ------------------------------------------------------------------------


def test_operators_of_all_threads_get_their_own_results(mx) -> None:
    def work(number: int) -> None:
        rng = np.random.RandomState(number)
        for _ in range(30):
            a, b = rng.rand(2, 3, 4).astype("float32")
            x, y = mx.nd.array(a), mx.nd.array(b)
            assert np.allclose((x * 2 + y).asnumpy(), a * 2 + b)
            assert np.allclose(mx.nd.dot(x, y, transpose_b=True).asnumpy(), a @ b.T, rtol=1e-5)
            assert np.allclose(mx.nd.concat(x, y, dim=0)[2:4].asnumpy(), np.concatenate([a, b])[2:4])
            assert np.allclose(x.sum(axis=1).asnumpy(), a.sum(1), rtol=1e-5)

    together(work)


def test_threads_write_their_own_views_of_one_array(mx) -> None:
    whole = mx.nd.zeros((THREADS, 64))

    def work(number: int) -> None:
        row = whole[number]
        for value in range(50):
            row[:] = value
            whole[number, 1] += number
            assert whole[number].asnumpy().tolist() == [value, value + number, *[value] * 62]

    together(work)
    want = np.full((THREADS, 64), 49.0)
    want[:, 1] += np.arange(THREADS)
    assert np.array_equal(whole.asnumpy(), want)


def test_a_capsule_is_taken_by_one_thread(mx) -> None:
    capsules = [mx.nd.full((3,), number).to_dlpack_for_read() for number in range(2000)]

    def work(_: int) -> list[int]:
        taken = []
        for number, capsule in enumerate(capsules):
            try:
                assert mx.nd.from_dlpack(capsule).asnumpy().tolist() == [number] * 3
                taken.append(number)
            except ValueError as error:
                assert "taken already" in str(error)
        return taken

    assert sorted(number for taken in together(work) for number in taken) == list(range(2000))


def test_the_elements_of_a_numpy_array_have_one_writer(mx) -> None:
    for _ in range(100):
        source = np.zeros(64, "float32")
        arrays = together(lambda _, source=source: mx.nd.from_numpy(source))
        assert not source.flags.writeable
        writers = 0
        for number, array in enumerate(arrays, 1):
            array[:] = number
            assert array.asnumpy()[0] == number
            writers += int(source[0] == number)
        assert writers == 1


def test_arrays_are_saved_and_loaded_by_all_threads(mx, tmp_path: Path) -> None:
    shared = str(tmp_path / "shared.params")
    mx.nd.save(shared, {"w": mx.nd.arange(5)})

    def work(number: int) -> None:
        own = str(tmp_path / f"{number}.params")
        for value in range(20):
            mx.nd.save(own, {"a": mx.nd.full((2, 2), value), "b": mx.nd.ones(number + 1)})
            loaded = mx.nd.load(own)
            assert loaded["a"].asnumpy().tolist() == [[value] * 2] * 2 and loaded["b"].shape == (number + 1,)
            assert mx.nd.load(shared)["w"].asnumpy().tolist() == [0, 1, 2, 3, 4]

    together(work)


def test_a_kind_of_dense_copy_is_warned_of_once(mx, monkeypatch) -> None:
    sparse = sys.modules["mxrt.ndarray._sparse_arrays"]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        said: list[str] = []
        monkeypatch.setattr(sparse, "warn", lambda text, kind: said.append(text))
        for number in range(100):
            monkeypatch.setattr(sparse, "_WARNED", {})
            together(lambda _, number=number: sparse.warn_of_dense_copies(f"kind {number}"))
    assert said == [f"kind {number}" for number in range(100)] and not found


# ---- callbacks and coroutines --------------------------------------------------------------------


def test_every_callback_is_called_once(mx) -> None:
    called, done = [], threading.Semaphore(0)

    def work(number: int) -> None:
        for value in range(50):
            array = mx.nd.full((2,), number) * value

            def ready(y, place=(number, value)) -> None:
                called.append((place, float(y.asnumpy()[0])))
                done.release()

            array.add_done_callback(ready)

    together(work)
    for _ in range(THREADS * 50):
        done.acquire()
    assert sorted(called) == [((n, v), float(n * v)) for n in range(THREADS) for v in range(50)]


def test_each_thread_awaits_in_a_loop_of_its_own(mx) -> None:
    async def run(number: int) -> list[float]:
        arrays = [mx.nd.full((4, 4), number) + value for value in range(20)]
        return [float((await array).asnumpy()[0, 0]) for array in arrays]

    found = together(lambda number: asyncio.run(run(number)))
    assert found == [[float(number + value) for value in range(20)] for number in range(THREADS)]


# ---- operators of programs, servers, files, profiles ---------------------------------------------


def test_operators_of_programs_run_for_all_threads(mx) -> None:
    class Double(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("free_threading_double")
    class DoubleProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Double()

    def work(number: int) -> None:
        for value in range(10):
            x = mx.nd.full((number + 1,), value)
            y = mx.nd.Custom(x, op_type="free_threading_double")
            assert y.asnumpy().tolist() == [2 * value] * (number + 1)

    together(work)


def test_calls_that_are_joined_get_their_own_rows(mx) -> None:
    batcher = mx.serve.Batcher(block_of(mx), rows=8)
    net = block_of(mx)
    rng = np.random.RandomState(0)
    images = rng.rand(THREADS, 1, 1, 8, 8).astype("float32")
    want = [net(mx.nd.array(image)).asnumpy() for image in images]

    def work(number: int) -> None:
        for _ in range(20):
            found = batcher(mx.nd.array(images[number])).asnumpy()
            assert np.allclose(found, want[number], rtol=1e-4, atol=1e-6)

    together(work)


def test_records_are_written_by_all_threads(mx, tmp_path: Path) -> None:
    index, path = str(tmp_path / "x.idx"), str(tmp_path / "x.rec")
    writer = mx.recordio.MXIndexedRecordIO(index, path, "w")

    def work(number: int) -> None:
        for value in range(50):
            assert writer.tell() >= 0
            writer.write_idx(number * 50 + value, b"%d" % (number * 50 + value))

    together(work)
    together(lambda _: writer.close())
    reader = mx.recordio.MXIndexedRecordIO(index, path, "r")
    order = random.Random(0).sample(range(THREADS * 50), THREADS * 50)

    def read(number: int) -> None:
        for key in order[number::THREADS]:
            if number == 0 and key % 8 == 0:
                reader.idx, reader.keys = reader._read_index()
            assert reader.read_idx(key) == b"%d" % key

    together(read)
    reader.close()


def test_a_file_of_records_may_be_closed_while_it_is_written(mx, tmp_path: Path) -> None:
    for turn in range(20):
        writer = mx.recordio.MXRecordIO(os.fspath(tmp_path / f"{turn}.rec"), "w")

        def work(number: int, writer=writer) -> None:
            for _ in range(20):
                try:
                    writer.close() if number == 0 else writer.write(b"x" * 100)
                except mx.base.MXNetValueError as error:
                    assert "is closed" in str(error)

        together(work)


def test_profiles_are_switched_and_counted_by_all_threads(mx, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    mx.profiler.set_config(filename=os.fspath(path))
    counter = mx.profiler.Domain("d").new_counter("calls", 0)

    def work(number: int) -> None:
        for _ in range(50):
            if number == 0:
                mx.profiler.set_state("run")
            elif number == 1:
                mx.profiler.pause()
                mx.profiler.resume()
            with mx.profiler.Task(mx.profiler.Domain("d"), f"task {number}"):
                (mx.nd.ones(3) + 1).wait_to_read()
            mx.profiler.dumps()

    def count(_: int) -> None:
        for _ in range(1000):
            counter.increment()
            counter.__iadd__(1)
            counter.decrement()

    try:
        together(work)
        mx.profiler.set_state("stop")
        together(count)
    finally:
        mx.profiler.dump()
    assert counter._value == THREADS * 1000
    assert json.loads(path.read_text())["traceEvents"]
