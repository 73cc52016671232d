"""Child processes of every kind."""

from __future__ import annotations

import sys

import pytest

from support import DIGITS, last_json, run, run_python

WORKER = """
import json, os, sys, threading, time
import multiprocessing
import numpy as np
import mxrt as mx

folder = sys.argv[1] if len(sys.argv) > 1 else None

def load():
    files = (folder + "/digits_cnn-symbol.json", folder + "/digits_cnn-0000.params")
    return mx.gluon.SymbolBlock.imports(files[0], ["data"], files[1])

def classify(net):
    with np.load(folder + "/eval.npz") as saved:
        images = saved["in.data"][:4]
    return net(mx.nd.array(images)).asnumpy().argmax(1).tolist()

def in_worker(argument):
    global folder
    folder = argument
    return classify(load())
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.timeout(180)
def test_processes_of_every_start_method_compute(method: str, tmp_path) -> None:
    # spawn and forkserver import the main module again, so it has to be a file.
    script = tmp_path / "main_module.py"
    script.write_text(
        WORKER
        + f"""
if __name__ == "__main__":
    here = in_worker(folder)
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        there = pool.map(in_worker, [folder] * 4)
    print(json.dumps([here == other for other in there]))
"""
    )
    result = run([sys.executable, str(script), str(DIGITS)], timeout=150)
    assert last_json(result) == [True] * 4


def test_a_model_loaded_before_the_fork_serves_in_every_child() -> None:
    result = run_python(
        WORKER
        + """
net = load()
expected = classify(net)
before = mx.nd.ones((3,)) * 7
with np.load(folder + "/eval.npz") as saved:
    queued = net(mx.nd.array(np.tile(saved["in.data"], (8, 1, 1, 1))[:64]))
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        try:
            good = classify(net) == expected and before.asnumpy().tolist() == [7, 7, 7]
            good = good and queued.asnumpy().shape[0] == 64 and (before + 1).asnumpy().tolist() == [8, 8, 8]
            mx.nd.waitall()
        finally:
            os._exit(0 if good else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(json.dumps([codes, classify(net) == expected]))
""",
        DIGITS,
    )
    assert last_json(result) == [[0] * 4, True]


def test_forking_while_other_threads_call_the_model_is_safe() -> None:
    result = run_python(
        WORKER
        + """
net = load()
expected = classify(net)
stop = threading.Event()

def work():
    while not stop.is_set():
        classify(net)

threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
codes = []
for _ in range(25):
    child = os.fork()
    if child == 0:
        os._exit(0 if classify(net) == expected else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
[t.join() for t in threads]
print(json.dumps(codes))
""",
        DIGITS,
        timeout=120,
    )
    assert last_json(result) == [0] * 25


def test_a_child_may_write_what_threads_of_its_parent_were_reading() -> None:
    result = run_python(
        WORKER
        + """
x = mx.nd.ones((4000, 4000))
x.wait_to_read()
stop = threading.Event()

def read():
    while not stop.is_set():
        x.asnumpy()

threads = [threading.Thread(target=read) for _ in range(2)]
[t.start() for t in threads]
codes = []
for _ in range(10):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        x[:] = 2
        os._exit(0 if x[0, 0].asscalar() == 2 else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
[t.join() for t in threads]
print(json.dumps([codes, float(x[0, 0].asscalar())]))
""",
        timeout=120,
    )
    assert last_json(result) == [[0] * 10, 1]


GUNICORN = """
import os, signal, socket
import numpy as np
import mxrt as mx

net = load()
expected = classify(net)
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(64)

def serve():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"right" if classify(net) == expected else b"wrong")

workers = {}
def spawn():
    worker = os.fork()
    if worker == 0:
        serve()
    workers[worker] = True

def ask(_):
    with socket.create_connection(listener.getsockname(), timeout=30) as connection:
        return connection.recv(16)

[spawn() for _ in range(3)]
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    answers = list(pool.map(ask, range(40)))
    # A worker dies and is replaced while the others serve; the parent computes too.
    dead = next(iter(workers))
    os.kill(dead, signal.SIGKILL)
    os.waitpid(dead, 0)
    del workers[dead]
    own = classify(net) == expected
    spawn()
    answers += list(pool.map(ask, range(40)))
for worker in workers:
    os.kill(worker, signal.SIGTERM)
codes = [os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers]
print(json.dumps([answers.count(b"right"), own, codes]))
"""


def test_workers_forked_by_a_master_that_has_loaded_the_model_serve_like_gunicorns() -> None:
    result = run_python(WORKER + GUNICORN, DIGITS, timeout=120)
    assert last_json(result) == [80, True, [0] * 3]
    assert result.stderr == ""


def test_callbacks_work_in_a_forked_child() -> None:
    result = run_python(
        """
import os, threading, mxrt as mx
called = threading.Event()
mx.nd.ones((2,)).add_done_callback(lambda a: called.set())
assert called.wait(60)
child = os.fork()
if child == 0:
    again = threading.Event()
    (mx.nd.ones((2,)) + 1).add_done_callback(lambda a: again.set())
    os._exit(0 if again.wait(60) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert last_json(result) == 0
