"""A service under a crowd: callers in hundreds of threads, of which one call in a hundred is wrong.
Every answer is right, every wrong call gets its own error, and memory stays flat.

A few seconds; ``make soak-callers`` five minutes (``MXRT_MANY_CALLERS_SECONDS`` sets the seconds).
"""

from __future__ import annotations

import os

import pytest

from support import DIGITS, last_json, run_python

SECONDS = float(os.environ.get("MXRT_MANY_CALLERS_SECONDS", "5"))
CALLERS = 960

CROWD = """
import json, random, sys, threading, time
import numpy as np
import mxrt as mx

folder, seconds, callers = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
threading.stack_size(256 << 10)
# Each thread that waits for the interpreter wakes up once in each interval: with hundreds of threads
# that took most of the time.
sys.setswitchinterval(0.1)
net = mx.gluon.SymbolBlock.imports(
    folder + "/digits_cnn-symbol.json", ["data"], folder + "/digits_cnn-0000.params")
with np.load(folder + "/eval.npz") as saved:
    images = saved["in.data"].astype("float32")
# Bits depend on the size of the batch, and on nothing else.
jobs = [(random.Random(i).randrange(len(images) - 4), (1, 1, 1, 2, 4)[i % 5]) for i in range(200)]
expected = [net(mx.nd.array(images[first:first + rows])).asnumpy() for first, rows in jobs]
counts = {"right": 0, "refused": 0}
made = [0] * callers
wrong, lock, go, stop = [], threading.Lock(), threading.Event(), threading.Event()

def failed():
    # An array that another operator failed to compute.
    return mx.nd.random_normal(0, -1, (2, 1, 8, 8))

BAD = [
    (lambda: mx.nd.ones((2, 3, 8, 8)), "channels"),
    (lambda: mx.nd.ones((2, 1, 8, 8), dtype="float64"), "float32"),
    (lambda: mx.nd.ones((2, 64)), "data"),
    (failed, "scale"),
]

def caller(number):
    rng = random.Random(number)
    right = refused = 0
    go.wait()
    while not stop.is_set():
        made[number] += 1
        # One in a hundred of all, also where each calls only a few times.
        if (made[number] + number) % 100 == 0:
            make, _ = BAD[rng.randrange(len(BAD))]
            try:
                net(make()).asnumpy()
                wrong.append("a bad call was answered")
            except mx.base.MXNetError:
                refused += 1
            except BaseException as error:
                wrong.append(f"a bad call ended in {error!r}")
            continue
        job = rng.randrange(len(jobs))
        first, rows = jobs[job]
        try:
            answer = net(mx.nd.array(images[first:first + rows])).asnumpy()
        except BaseException as error:
            wrong.append(f"a good call ended in {error!r}")
            continue
        if np.array_equal(answer, expected[job]):
            right += 1
        else:
            wrong.append(f"rows {first} to {first + rows} are wrong")
    with lock:
        counts["right"] += right
        counts["refused"] += refused

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 1e6

threads = [threading.Thread(target=caller, args=(i,)) for i in range(callers)]
# All start before the first calls: among callers, each new thread waits for a turn of all of them.
for thread in threads:
    thread.start()
go.set()
# Memory grows until all have called.
while min(made) < 3:
    time.sleep(0.01)
begin = time.monotonic()
sizes = []
while time.monotonic() < begin + seconds or len(sizes) < 8 or sum(made) < 20 * callers:
    time.sleep(seconds / 50)
    sizes.append(resident())
stop.set()
for thread in threads:
    thread.join()
mx.nd.waitall()
print(json.dumps({**counts, "wrong": wrong[:3], "sizes": sizes}))
"""


@pytest.mark.timeout(120 + 2 * SECONDS)
def test_a_crowd_with_bad_callers_gets_right_answers_in_flat_memory(final_table) -> None:
    result = last_json(run_python(CROWD, DIGITS, SECONDS, CALLERS, timeout=90 + 2 * SECONDS))
    calls = result["right"] + result["refused"]
    sizes = result["sizes"]
    early, late = max(sizes[len(sizes) // 4 : len(sizes) // 2]), max(sizes[len(sizes) // 2 :])
    final_table(
        f"{CALLERS} callers for {SECONDS:g} s: {calls} calls, {result['refused']} of them bad\n"
        f"{early:.0f} MB in the second quarter, {late:.0f} MB at most in the second half"
    )
    assert result["wrong"] == []
    assert result["refused"] > 0.005 * calls > 0
    assert late < 1.05 * early + 8, f"memory grows: {[round(size) for size in sizes]} MB"
