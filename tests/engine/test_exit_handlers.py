"""Exit handlers, daemon threads and the end of the interpreter: everything works until the last
handler has returned.

Some of these ways once hung, others took five seconds longer. The limit is far above what ending
takes and below that.
"""

from __future__ import annotations

import time

import pytest

from support import run_python

LIMIT = 4.0

BEFORE = """
import asyncio, atexit, logging, os, sys, threading, time
said = []
def say(text):
    os.write(1, (text + "\\n").encode())
"""

IMPORT = """
import numpy as np
import mxrt as mx
a = mx.nd.ones((64, 64))

def slow(steps=30):
    x = mx.nd.ones((300, 300))
    for _ in range(steps):
        x = mx.nd.dot(x, x) * 1e-3
    return x

def until(stop):
    count = 0
    while not stop.is_set():
        assert (mx.nd.dot(a, a) + 1).asnumpy()[0, 0] == 65
        count += 1
    return count

async def one():
    return (await slow()).shape
"""

#: Program before the import, after it, and what it prints.
WAYS: dict[str, tuple[str, str, str]] = {
    "a daemon thread logs arrays": (
        "",
        """
logging.basicConfig(stream=open(os.devnull, "w"))
def work():
    while True:
        logging.warning("%s", a + 1)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
""",
        "",
    ),
    "an older handler joins a thread that computes": (
        """
def older():
    stop.set()
    thread.join()
    say("joined")
atexit.register(older)
""",
        """
stop = threading.Event()
thread = threading.Thread(target=until, args=(stop,), daemon=True)
thread.start()
time.sleep(0.05)
""",
        "joined\n",
    ),
    "an older handler computes": (
        "atexit.register(lambda: say(str(float((a + 1).asnumpy()[0, 0]))))",
        "(a + 1).asnumpy()",
        "2.0\n",
    ),
    "a younger handler joins a thread that computes": (
        "",
        """
stop = threading.Event()
thread = threading.Thread(target=until, args=(stop,), daemon=True)
thread.start()
def younger():
    stop.set()
    thread.join()
    say("joined")
atexit.register(younger)
""",
        "joined\n",
    ),
    "an older handler wants a lock that a waiting daemon thread holds": (
        """
lock = threading.Lock()
def older():
    with lock:
        say("locked")
atexit.register(older)
""",
        """
def work():
    while True:
        with lock:
            slow(3).wait_to_read()
        time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
""",
        "locked\n",
    ),
    "an older handler awaits": (
        "atexit.register(lambda: say(str(asyncio.run(one()))))",
        "asyncio.run(one())",
        "(300, 300)\n",
    ),
    "await was used": ("", "say(str(asyncio.run(one())))", "(300, 300)\n"),
    "a callback was called": (
        "",
        """
done = threading.Event()
a.add_done_callback(lambda array: done.set())
done.wait()
""",
        "",
    ),
    "a callback runs for ever": (
        "",
        """
started = threading.Event()
def callback(array):
    started.set()
    threading.Event().wait()
a.add_done_callback(callback)
started.wait()
""",
        "",
    ),
    "a daemon thread awaits": (
        "",
        """
async def forever():
    while True:
        await one()
threading.Thread(target=lambda: asyncio.run(forever()), daemon=True).start()
time.sleep(0.1)
""",
        "",
    ),
    "threads wait for each other's arrays and one calls sys.exit": (
        "",
        """
def leave():
    slow().wait_to_read()
    sys.exit(3)
thread = threading.Thread(target=leave)
thread.start()
thread.join()
""",
        "",
    ),
    "what runs behind the last handler is refused": (
        "",
        """
class Late:
    def __init__(self):
        self.array, self.say = a, say
    def __del__(self):
        try:
            (self.array + 1).wait_to_read()
        except RuntimeError as error:
            self.say(f"refused: {'closed' in str(error)}")
late = Late()
""",
        "refused: True\n",
    ),
    "errors are raised in daemon threads": (
        "",
        """
def work():
    while True:
        try:
            mx.nd.random_normal(0, -1, (2, 3)).asnumpy()
        except mx.MXNetError:
            pass
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
""",
        "",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_process_ends(way: str) -> None:
    before, after, printed = WAYS[way]
    code = BEFORE + before + IMPORT + after + '\nos.write(1, f"ends at {time.time()}\\n".encode())\n'
    # On a busy machine ending may take longer now and then.
    for _ in range(4):
        result = run_python(code)
        end = time.time()
        assert (result.returncode, result.stderr) == (0, "")
        lines = result.stdout.splitlines(keepends=True)
        [begin] = [float(line.split()[-1]) for line in lines if line.startswith("ends at")]
        assert "".join(line for line in lines if not line.startswith("ends at")) == printed
        if end - begin < LIMIT:
            break
    assert end - begin < LIMIT, f"ending took {end - begin:.1f} s"
