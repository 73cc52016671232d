"""The promises of the two documents that mxrt implements, one script each, on every kind of engine.

The documents are MXNet's designs for exceptions that travel along the data and for inference from
many threads. The same program has to keep the promise whatever runs it; with the naive engine a
failure is raised at the call.
"""

from __future__ import annotations

import textwrap

import pytest

from support import DIGITS, run_python

KINDS = (
    "NaiveEngine",
    "ThreadedEngine",
    "ThreadedEnginePerDevice",
    "ThreadedEngineAsync",
    "ThreadedEnginePerDeviceAsync",
)

PRELUDE = """
import os, pickle, sys, threading
import numpy as np
import mxrt as mx
from concurrent.futures import ThreadPoolExecutor
MXNetError = mx.base.MXNetError
naive = os.environ["MXNET_ENGINE_TYPE"] == "NaiveEngine"
folder = sys.argv[1]

def load():
    files = (folder + "/digits_cnn-symbol.json", folder + "/digits_cnn-0000.params")
    return mx.gluon.SymbolBlock.imports(files[0], ["data"], files[1])

with np.load(folder + "/eval.npz") as saved:
    images = saved["in.data"]

def bad(shape=(2, 3)):
    '''An operator that fails when it runs; what the naive engine raises at the call is kept in the array as well.'''
    y = mx.nd.zeros(shape)
    try:
        mx.nd.random_normal(0, -1, shape, out=y)
    except MXNetError:
        assert naive
    return y

def error_of(call, *arguments):
    try:
        call(*arguments)
    except MXNetError as error:
        return error
    raise SystemExit(f"no error from {call} {arguments}")

def lazily(call):
    '''The result of a call; None when it raised, which only the naive engine does.'''
    try:
        return call()
    except MXNetError:
        assert naive
        return None

def in_threads(count, work):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))

def conv():
    net = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="conv")
    rng = np.random.RandomState(0)
    weight = mx.nd.array(rng.randn(4, 2, 3, 3))
    return net, weight, mx.nd.array(rng.randn(4)), mx.nd.array(rng.randn(1, 2, 6, 6))
"""

PROMISES = {
    # ---- exceptions
    "the first example raises where it is awaited and the process goes on": """
        seen = 0
        for _ in range(3):
            try:
                mx.nd.random_normal(0, -1, (2, 3))
                mx.nd.waitall()
            except MXNetError as error:
                seen += 1
                assert "scale" in str(error) and error.op, error
                assert "Stack trace" not in str(error)
        assert seen == 3
        assert (mx.nd.ones((2,)) + 1).asnumpy().tolist() == [2, 2]
    """,
    "the second example raises for the row that does not fit": """
        path = f"promises-{os.getpid()}.csv"
        with open(path, "w") as file:
            file.write("1,2,3,4\\n2,3,4,5\\n3,4,5,6\\n4,5,6,7\\n")
        try:
            data = mx.io.CSVIter(data_csv=path, data_shape=(4, 10), batch_size=1)
            for batch in iter(data):
                data.getdata().asnumpy()
            raise SystemExit("no error")
        except mx.base.MXNetError as error:
            assert "shape=[4,10]" in str(error) and "row-length=4" in str(error), error
        good = mx.io.CSVIter(data_csv=path, data_shape=(4,), batch_size=2)
        assert [b.data[0].shape for b in good] == [(2, 4), (2, 4)]
        os.remove(path)
    """,
    "a failure is raised by every wait until the array is overwritten": """
        y = bad()
        for wait in (y.asnumpy, y.wait_to_read, y.asnumpy, lambda: print(y), lambda: y[0].asnumpy()):
            assert "scale" in str(error_of(wait))
        y[:] = 5
        assert y.asnumpy().tolist() == [[5] * 3] * 2
        mx.nd.waitall()
    """,
    "every thread that waits gets the failure": """
        y = bad()
        told = in_threads(16, lambda i: str(error_of(y.asnumpy if i % 2 else y.wait_to_read)))
        assert len(set(told)) == 1
    """,
    "a failure travels along the data with its origin, and spares everything else": """
        good = mx.nd.ones((2, 3))
        y = bad()
        last = y
        for _ in range(20):
            last = lazily(lambda: last * 2 + good)
            if last is None:
                break
        fine = (good + good) * 3
        if not naive:
            first, error = error_of(y.asnumpy), error_of(last.asnumpy)
            assert (error.op, str(error)) == (first.op, str(first))
        assert (fine.asnumpy() == 6).all()
        assert (good.asnumpy() == 1).all()
    """,
    "operators behind a failure do not run": """
        y = bad((4,))
        kept = mx.nd.array([7, 8, 9, 10])
        lazily(lambda: mx.nd.elemwise_add(y, y, out=kept))
        error_of(kept.asnumpy)
        kept[:] = 1
        assert kept.asnumpy().tolist() == [1] * 4
        lazily(lambda: mx.nd.elemwise_add(kept, kept, out=y))
        assert y.asnumpy().tolist() == [2] * 4, "a whole write heals"
    """,
    "a partial write does not heal": """
        y = bad((2, 3))
        y[0] = 1
        error_of(y.asnumpy)
        y[:] = 2
        assert (y.asnumpy() == 2).all()
    """,
    "waitall raises what no wait has returned, all of it, once, and touches no array": """
        kept = [bad((i + 1,)) for i in range(3)]
        if not naive:
            seen = error_of(kept[0].asnumpy)
            error = error_of(mx.nd.waitall)
            assert isinstance(error, mx.base.MultipleErrors) and len(error.errors) == 2, error
        mx.nd.waitall()
        for array in kept:
            error_of(array.asnumpy)
        mx.nd.waitall()
    """,
    "one bad request among 50 in flight fails alone": """
        net = load()
        right = [net(mx.nd.array(images[i : i + 1])).asnumpy() for i in range(50)]
        inputs = [mx.nd.array(images[i : i + 1]) for i in range(50)]
        mx.nd.waitall()
        inputs[17] = bad(images[:1].shape)
        answers = [lazily(lambda: net(x)) for x in inputs]
        for i, answer in enumerate(answers):
            if i == 17:
                assert naive or error_of(answer.asnumpy)
            else:
                assert np.array_equal(answer.asnumpy(), right[i])
        assert np.array_equal(net(inputs[3]).asnumpy(), right[3]), "the parameters are as they were"
    """,
    "one misshaped request among 50 threads fails alone": """
        net = load()
        def request(i):
            try:
                return net(mx.nd.zeros((1, 3, 8, 8)) if i == 30 else mx.nd.array(images[i : i + 1])).asnumpy()
            except MXNetError as error:
                return error
        answers = in_threads(50, request)
        assert [i for i, a in enumerate(answers) if isinstance(a, MXNetError)] == [30]
        assert answers[30].op and answers[30].node and answers[30].shapes and answers[30].device == "cpu(0)"
    """,
    "parameters are not poisoned by calls that read them": """
        weight = mx.nd.ones((3, 3))
        y = bad((3, 3))
        lazily(lambda: mx.nd.dot(weight, y)), lazily(lambda: y + weight)
        assert (weight.asnumpy() == 1).all()
        assert (mx.nd.dot(weight, weight).asnumpy() == 3).all()
    """,
    "errors are of the classes Python expects, say what they are about, and survive pickling": """
        error = error_of(bad((2, 3)).asnumpy)
        assert isinstance(error, RuntimeError) and isinstance(error, MXNetError)
        assert (error.op, error.device, error.attrs["scale"]) == ("_random_normal", "cpu(0)", "-1"), vars(error)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and vars(again) == vars(error) and str(again) == str(error)
        shape = error_of(lambda: mx.nd.ones((2, 3)) + mx.nd.ones((4, 5)))
        assert isinstance(shape, ValueError) and shape.shapes == ((2, 3), (4, 5)) and shape.op == "broadcast_add"
        assert shape.device == "cpu(0)" and shape.dtypes == ("float32", "float32")
        net = load()
        image = bad(images[:1].shape)
        error = error_of(lambda: net(image).asnumpy())
        assert error.op == "_random_normal", "the original event"
    """,
    "an error of a model names its node and its request": """
        data = mx.sym.var("data")
        net = mx.sym.random_normal(loc=0, scale=-1, shape=(2, 3), name="noise") + data
        op = mx.nd.CachedOp(net)
        x = mx.nd.ones((2, 3))
        first = error_of(lambda: op(x).asnumpy())
        second = error_of(lambda: op(x).asnumpy())
        assert (first.op, first.node) == ("_random_normal", "noise"), vars(first)
        assert first.attrs["scale"] == "-1" and first.device == "cpu(0)"
        assert first.request is not None and second.request > first.request
    """,
    "a failure in a callback ends nothing": """
        called = threading.Event()
        x = mx.nd.ones((2,))
        x.add_done_callback(lambda a: 1 / 0)
        x.add_done_callback(lambda a: called.set())
        assert called.wait(60)
        assert (x + 1).asnumpy().tolist() == [2, 2]
    """,
    "an iterator's error comes out of next(), batches before it are good, and it can be used again": """
        path = f"promises-{os.getpid()}.csv"
        with open(path, "w") as file:
            file.write("1,2\\n3,4\\n5,six\\n7,8\\n")
        rows = mx.io.CSVIter(data_csv=path, data_shape=(2,), batch_size=1)
        for _ in range(2):
            good = [next(rows).data[0].asnumpy().tolist() for _ in range(2)]
            assert good == [[[1, 2]], [[3, 4]]], good
            assert "six" in str(error_of(next, rows))
            rows.reset()
        os.remove(path)
    """,
    "what failed and was never read is not printed at the end": """
        for _ in range(20):
            bad()
    """,
    # ---- threads
    "a cached op of one convolution is called by 20 threads": """
        net, weight, bias, x = conv()
        for flags in ((), (("static_alloc", True), ("static_shape", True)), (("inline_limit", 0),)):
            op = mx.nd.CachedOp(net, flags)
            right = op(x, weight, bias).asnumpy()
            for answer in in_threads(20, lambda i: [op(x, weight, bias).asnumpy() for _ in range(10)]):
                assert all(np.array_equal(a, right) for a in answer)
    """,
    "a whole model is called by 64 threads with shared parameters": """
        net = load()
        right = net(mx.nd.array(images[:8])).asnumpy()
        answers = in_threads(64, lambda i: net(mx.nd.array(images[:8])).asnumpy())
        assert all(np.array_equal(a, right) for a in answers)
    """,
    "there may be several instances, made and dropped by any thread": """
        right = load()(mx.nd.array(images[:2])).asnumpy()
        assert all(np.array_equal(load()(mx.nd.array(images[:2])).asnumpy(), right) for _ in range(3))
        answers = in_threads(8, lambda i: load()(mx.nd.array(images[:2])).asnumpy())
        assert all(np.array_equal(a, right) for a in answers)
    """,
    "shapes may change from call to call in every thread": """
        net = load()
        right = {n: net(mx.nd.array(images[:n])).asnumpy() for n in (1, 2, 3, 5, 8)}
        def work(i):
            return all(np.array_equal(net(mx.nd.array(images[:n])).asnumpy(), right[n]) for n in list(right) * 2)
        assert all(in_threads(16, work))
    """,
    "waiting for arrays and for everything is possible from all threads at once": """
        net = load()
        ys = [net(mx.nd.array(images[:16])) for _ in range(30)]
        right = ys[0].asnumpy()
        def work(i):
            if i % 3 == 0:
                mx.nd.waitall()
            for y in ys[i:] + ys[:i]:
                y.wait_to_read() if i % 3 == 1 else None
                assert np.array_equal(y.asnumpy(), right)
            return True
        assert all(in_threads(24, work))
    """,
    "operators are bulked without changing results": """
        x = mx.nd.array(images[0, 0])
        right = ((x * 2 + 1) * 3).asnumpy()
        with mx.engine.bulk(10):
            y = ((x * 2 + 1) * 3)
        assert np.array_equal(y.asnumpy(), right)
        def work(i):
            with mx.engine.bulk(4):
                z = x
                for _ in range(9):
                    z = z + 1
                return np.array_equal(z.asnumpy(), (x + 9).asnumpy())
        assert all(in_threads(8, work))
    """,
    "a failure inside a bulk stays with what depends on it": """
        if naive:
            sys.exit(0)
        with mx.engine.bulk(20):
            fine = mx.nd.ones((3,)) + 1
            y = bad((3,))
            from_bad = y + 1
            from_fine = fine + 1
        error_of(from_bad.asnumpy)
        assert from_fine.asnumpy().tolist() == [3] * 3
    """,
    "operators pushed by many threads over the same arrays all take place": """
        total = mx.nd.zeros((4,))
        lock = threading.Lock()
        def work(i):
            for _ in range(50):
                with lock:
                    total[:] = total + 1
            return True
        in_threads(8, work)
        assert total.asnumpy().tolist() == [400] * 4
    """,
    "threads come and go and may drop what they asked for": """
        net = load()
        x = mx.nd.array(images[:4])
        right = net(x).asnumpy()
        for _ in range(10):
            threads = [threading.Thread(target=lambda: [net(x) for _ in range(5)]) for _ in range(16)]
            [t.start() for t in threads]
            [t.join() for t in threads]
        mx.nd.waitall()
        assert np.array_equal(net(x).asnumpy(), right)
    """,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.timeout(120)
def test_promise(promise: str, kind: str) -> None:
    script = PRELUDE + textwrap.dedent(PROMISES[promise]) + "\n"
    result = run_python(script, DIGITS, timeout=60, env={"MXNET_ENGINE_TYPE": kind})
    expected = "ZeroDivisionError" if "callback" in promise else ""
    assert result.returncode == 0, result.stderr
    assert (expected in result.stderr) if expected else result.stderr == ""


ORIGIN = (
    PRELUDE
    + """
y = bad((2, 2))
error = error_of(y.asnumpy)
line = next(i for i, text in enumerate(open(__file__), 1) if "mx.nd.random_normal(0, -1, shape, out=y)" in text)
assert error.pushed_at == f"{__file__}:{line}", error.pushed_at
assert pickle.loads(pickle.dumps(error)).pushed_at == error.pushed_at
op = mx.nd.CachedOp(mx.sym.random_normal(loc=0, scale=-1, shape=(2, 3), name="noise") + mx.sym.var("data"))
if not naive:
    z = op(mx.nd.ones((2, 3)))  # this line
    error = error_of(z.asnumpy)
    line = next(i for i, text in enumerate(open(__file__), 1) if text.endswith("# this line\\n"))
    assert error.pushed_at == f"{__file__}:{line}" and error.request, vars(error)
"""
)


@pytest.mark.parametrize("kind", KINDS)
def test_with_debugging_an_error_names_the_line_that_pushed_the_operator(kind: str, tmp_path) -> None:
    script = tmp_path / "service.py"
    script.write_text(ORIGIN)
    code = f"import runpy, sys; runpy.run_path({str(script)!r}, run_name='__main__')"
    result = run_python(code, DIGITS, env={"MXNET_ENGINE_TYPE": kind, "MXRT_DEBUG": "1"})
    assert (result.returncode, result.stderr) == (0, "")
    quiet = run_python(code, DIGITS, env={"MXNET_ENGINE_TYPE": kind})
    assert quiet.returncode != 0 and "None" in quiet.stderr, "without debugging no line is noted"
