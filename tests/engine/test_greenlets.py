"""Everything that waits, under gevent and eventlet: before mxrt is imported they may have put
their own into the place of Python's threads and locks, or after.
"""

from __future__ import annotations

import importlib.util
import textwrap

import pytest

from support import run_python

PATCHES = {
    "gevent": "from gevent import monkey; monkey.patch_all(); from gevent import sleep, spawn",
    "eventlet": "import eventlet; eventlet.monkey_patch(); from eventlet import sleep, spawn",
}
PRELUDE = """
import asyncio, os, queue, threading
import numpy as np

def finished(greenlet):
    return greenlet.get() if hasattr(greenlet, "get") else greenlet.wait()

def doubling():
    class Double(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("double")
    class DoubleProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Double()

def doubled():
    return mx.nd.Custom(mx.nd.ones((3,)), op_type="double").asnumpy().tolist()

def called_back():
    got = []
    mx.nd.dot(mx.nd.ones((64, 64)), mx.nd.ones((64, 64))).add_done_callback(got.append)
    while not got:
        sleep(0.001)
    return got[0].shape
"""
CALLS = {
    "add_done_callback": "assert called_back() == (64, 64)",
    "an event that a callback sets": """
        done, answers = threading.Event(), queue.Queue()
        array = mx.nd.dot(mx.nd.ones((600, 600)), mx.nd.ones((600, 600)))
        array.add_done_callback(lambda _: done.set())
        array.add_done_callback(answers.put)
        done.wait()
        assert answers.get().shape == (600, 600)
    """,
    "a callback that waits": """
        first, second = threading.Event(), threading.Event()
        mx.nd.ones((2,)).add_done_callback(lambda _: (first.wait(), second.set()))
        spawn(first.set)
        second.wait()
    """,
    "await": """
        async def main():
            return (await mx.nd.dot(mx.nd.ones((600, 600)), mx.nd.ones((600, 600)))).shape
        assert asyncio.run(main()) == (600, 600)
    """,
    "Custom": """
        doubling()
        assert doubled() == [2, 2, 2]
        assert [finished(one) for one in [spawn(doubled) for _ in range(4)]] == [[2, 2, 2]] * 4
    """,
    "waitall": """
        made = [mx.nd.dot(mx.nd.ones((64, 64)), mx.nd.ones((64, 64))) for _ in range(4)]
        mx.nd.waitall()
    """,
    "DataLoader": """
        data = mx.gluon.data.ArrayDataset(np.arange(40).reshape(20, 2))
        for options in ({}, {"thread_pool": True}):
            loader = mx.gluon.data.DataLoader(data, batch_size=4, num_workers=2, **options)
            assert [len(batch) for batch in loader] == [4] * 5
    """,
    "iterators": """
        np.savetxt("rows.csv", np.ones((4, 2)), delimiter=",")
        rows = mx.io.CSVIter(data_csv="rows.csv", data_shape=(2,), batch_size=2)
        assert len(list(mx.io.PrefetchingIter(rows))) == 2
    """,
    "Batcher": """
        net = mx.gluon.nn.Dense(2, in_units=3)
        net.initialize()
        net.hybridize()
        net(mx.nd.ones((1, 3)))
        batcher = mx.serve.Batcher(net)
        calls = [spawn(lambda: batcher(mx.nd.ones((1, 3))).asnumpy().shape) for _ in range(4)]
        assert [finished(one) for one in calls] == [(1, 2)] * 4
    """,
    "fork": """
        doubling()
        assert called_back() == (64, 64) and doubled() == [2, 2, 2]
        done = threading.Event()
        mx.nd.dot(mx.nd.ones((600, 600)), mx.nd.ones((600, 600))).add_done_callback(lambda _: done.set())
        child = os.fork()
        if child == 0:
            os._exit(7 if called_back() == (64, 64) and doubled() == [2, 2, 2] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        done.wait()
    """,
}


@pytest.mark.parametrize("order", ["patched first", "mxrt first"])
@pytest.mark.parametrize("library", list(PATCHES))
def test_calls_that_wait_come_back_among_greenlets(library: str, order: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}")
    lines = ["import warnings; warnings.simplefilter('ignore')", PATCHES[library], "import mxrt as mx"]
    if order == "mxrt first":
        lines[1:] = reversed(lines[1:])
    lines.append(PRELUDE)
    for name, body in CALLS.items():
        lines += [textwrap.dedent(body), f"print({name!r}, flush=True)"]
    done = run_python("\n".join(lines), timeout=50)
    assert done.stdout.splitlines() == list(CALLS), done.stderr[-3000:]


def test_await_says_what_to_do_where_there_is_no_loop_of_asyncio() -> None:
    """Trio drives its tasks in the way that this test does."""
    code = """
        import mxrt as mx

        async def main(array):
            await array

        large = mx.nd.ones((2000, 2000))
        task = main(mx.nd.dot(large, large))
        try:
            task.send(None)
        except RuntimeError as error:
            print(error)
    """
    done = run_python(code)
    assert "asyncio" in done.stdout and "trio.to_thread.run_sync(array.wait_to_read)" in done.stdout, done.stderr
