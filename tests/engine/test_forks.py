"""Forks during many kinds of call: whatever other threads were doing, the child computes, compiles
and loads.

A few forks during each; ``MXRT_FORKS`` sets another number. Devices are absent: a fork during a
copy from one may wait for all of its patience.
"""

from __future__ import annotations

import os

import pytest

from support import DIGITS, run_python

FORKS = int(os.environ.get("MXRT_FORKS", "8"))

PRELUDE = """
import os, random, signal, sys, tempfile, threading, time
import numpy as np
import mxrt as mx
folder, forks = sys.argv[1], int(sys.argv[2])
files = folder + "/digits_cnn-symbol.json", ["data"], folder + "/digits_cnn-0000.params"
load = lambda: mx.gluon.SymbolBlock.imports(*files)
net = load()
with np.load(folder + "/eval.npz") as saved:
    images = saved["in.data"]
x = mx.nd.array(images[:4])
right = net(x).asnumpy()
text = net._symbol.tojson()
spare = tempfile.mkdtemp()
"""

#: What other threads do all the time; ``i`` counts.
BESIDE = {
    "compile": "net(mx.nd.array(images[: 1 + i % 60])).wait_to_read()",
    "load": "load()(x).wait_to_read()",
    "parse": "mx.sym.load_json(text).list_arguments()",
    "bind": "mx.sym.load_json(text).simple_bind(mx.cpu(), data=(1 + i % 9, *images.shape[1:])).forward()",
    "operators": "(mx.nd.dot(mx.nd.ones((40, 40)), mx.nd.ones((40, 40 + i % 7))) + 1).asnumpy()",
    "lazy arrays": "mx.nd.zeros((50 + i % 50, 1000)).asnumpy()",
    "random numbers": "mx.nd.random.uniform(shape=(10 + i % 10, 3)).asnumpy()",
    "export": "net.export(f'{spare}/{threading.get_ident()}')",
    "save and load": "mx.nd.save(name := f'{spare}/{threading.get_ident()}', {'x': x}); mx.nd.load(name)",
    "set_memory_limit": "mx.set_memory_limit(None if i % 2 else 10**10)",
    "profiler": "mx.profiler.set_state('run'); net(x).asnumpy(); mx.profiler.set_state('stop'); mx.profiler.dumps()",
    "parameters": "[p.set_data(p.data()) for p in net.collect_params().values()]; net(x).wait_to_read()",
    "awaits": "done = threading.Event(); (x + i).add_done_callback(lambda a: done.set()); done.wait()",
    "names": "mx.sym.relu(mx.sym.var('data')) + 1",
}

FORK = """
def work():
    i = 0
    while True:
        BESIDE
        i += 1

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()

def child(number):
    signal.alarm(300)
    assert np.array_equal(net(x).asnumpy(), right), "old signature"
    assert net(mx.nd.array(images[: 61 + number])).shape[0] == 61 + number, "new signature"
    assert np.array_equal(load()(x).asnumpy(), right), "loading"
    assert (mx.nd.zeros((3, 5)) + 1).asnumpy().sum() == 15
    mx.nd.waitall()

for number in range(forks):
    time.sleep(random.random() / 50)
    pid = os.fork()
    if pid == 0:
        try:
            child(number)
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode())
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    if status:
        os.write(2, f" fork {number}: {os.waitstatus_to_exitcode(status)}, -14 means that it hung".encode())
        os._exit(1)
os._exit(0)
"""


@pytest.mark.parametrize("call", BESIDE)
@pytest.mark.timeout(120 + 10 * FORKS)
def test_a_child_computes_whatever_its_parent_was_doing(call: str) -> None:
    code = PRELUDE + FORK.replace("BESIDE", BESIDE[call])
    result = run_python(code, DIGITS, FORKS, timeout=100 + 10 * FORKS)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_signal_handler_may_fork_and_wait_while_the_main_thread_waits() -> None:
    code = (
        PRELUDE
        + """
ends = []
def handler(*_):
    pid = os.fork()
    if pid == 0:
        signal.alarm(300)
        ends.append("child")
        return
    ends.append(os.waitpid(pid, 0)[1])
    mx.nd.waitall()

signal.signal(signal.SIGUSR1, handler)
for wait in (mx.nd.waitall, lambda: y.wait_to_read()):
    ends.clear()
    y = mx.nd.ones((600, 600))
    for _ in range(60):
        y = mx.nd.dot(y, y) * 1e-3
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    wait()
    assert np.array_equal(net(x).asnumpy(), right)
    if "child" in ends:
        os._exit(0)
    assert ends == [0], ends
"""
    )
    result = run_python(code, DIGITS, 0, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
