"""Leaving in the middle of everything: no hang, no crash, nothing printed, and the exit status that
was asked for.

8 times each way; ``make soak-exits`` 1,000 times (``MXRT_EXITS`` sets another number).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import DIGITS, run_python

REPETITIONS = int(os.environ.get("MXRT_EXITS", "8"))
# Few runs have short and long pauses, too: it has no divisor in common with 25, the number of
# pauses, nor with the numbers by which the ways vary.
STRIDE = 7

PRELUDE = """
import asyncio, os, sys, threading, time
import numpy as np
import mxrt as mx
folder, number = sys.argv[1], int(sys.argv[2])

def pause():
    time.sleep(0.002 * (number % 25))

def slow(size=300, steps=30):
    x = mx.nd.ones((size, size))
    for _ in range(steps):
        x = mx.nd.dot(x, x) * 1e-3
    return x

def in_daemon(work, count=1):
    inside = threading.Semaphore(0)
    def run():
        inside.release()
        work()
    for _ in range(count):
        threading.Thread(target=run, daemon=True).start()
    for _ in range(count):
        inside.acquire()
"""

NET = """
net = mx.gluon.SymbolBlock.imports(folder + "/digits_cnn-symbol.json", ["data"], folder + "/digits_cnn-0000.params")
with np.load(folder + "/eval.npz") as saved:
    batch = (1, 16, 256, 1024)[number % 4]
    x = mx.nd.array(np.tile(saved["in.data"], (4, 1, 1, 1))[:batch])
"""

#: Way of leaving: what the program does, and its exit status.
WAYS = {
    "the end while operators run": ("y = slow()\npause()", 0),
    "the end while threads wait": (
        """
y = slow()
waits = (y.wait_to_read, y.asnumpy, mx.nd.waitall)
for wait in waits:
    in_daemon(wait, 2)
pause()
""",
        0,
    ),
    "the end while daemon threads are inside a model": (
        NET
        + """
def work():
    while True:
        y = net(x)
        (y.asnumpy, y.wait_to_read, mx.nd.waitall)[number % 3]()

in_daemon(work, 8)
pause()
""",
        0,
    ),
    "the end while daemon threads take batches of processes": (
        """
batches = mx.gluon.data.DataLoader(list(range(10**6)), 2, num_workers=2)
begun = threading.Semaphore(0)

def work():
    for batch in batches:
        begun.release()

in_daemon(work)
begun.acquire()
pause()
""",
        0,
    ),
    "os._exit while operators run and threads wait": (
        "y = slow()\nin_daemon(y.wait_to_read, 4)\npause()\nos._exit(7)",
        7,
    ),
    "sys.exit while operators run and threads wait": (
        "y = slow()\nin_daemon(y.asnumpy, 4)\npause()\nsys.exit(7)",
        7,
    ),
    "sys.exit in a callback": (
        """
y = slow()
mx.nd.ones((1,)).add_done_callback(lambda a: sys.exit(5))
y.add_done_callback(lambda a: sys.exit(5))
pause()
sys.exit(7)
""",
        7,
    ),
    "the end while a callback runs": (
        """
started = threading.Event()
def callback(array):
    started.set()
    time.sleep(0.05)
mx.nd.ones((1,)).add_done_callback(callback)
started.wait()
pause()
""",
        0,
    ),
    "the end while arrays are awaited": (
        """
async def one(array):
    await array

async def main():
    tasks = [asyncio.ensure_future(one(slow(100) + i)) for i in range(10)]
    await asyncio.sleep(0.002 * (number % 25))
    os._exit(7) if number % 2 else sys.exit(7)

try:
    asyncio.run(main())
except SystemExit as leaving:
    sys.exit(leaving.code)
""",
        7,
    ),
    "the end with a bulk, a profile and failures that no wait has returned": (
        """
mx.profiler.set_state("run")
mx.engine.set_bulk_size(1000)
y = slow(50) + 1
mx.nd.random_normal(0, -1, (2, 3))
y.cancel()
pause()
""",
        0,
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.timeout(60 + 10 * REPETITIONS)
def test_leaving_by(way: str) -> None:
    code, status = WAYS[way]

    def once(number: int) -> tuple[int, str, str]:
        result = run_python(PRELUDE + code, DIGITS, number, timeout=60)
        return result.returncode, result.stdout, result.stderr

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(once, range(0, STRIDE * REPETITIONS, STRIDE)))
    bad = [(number, *result) for number, result in enumerate(results) if result != (status, "", "")]
    assert not bad, f"{len(bad)} of {REPETITIONS} did not end cleanly; number, exit code, stdout, stderr: {bad[0]}"
