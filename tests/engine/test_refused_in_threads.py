"""Threads that find no memory for a moment: an error for who started them, never the end of the
process, and nobody who waits for them forever.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from support import DIGITS, ROOT, run_python

#: Refuses memory to all threads but the first, while `refuse` is set.
REFUSING = """
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);

int refuse;

static int refused(void) { return refuse && syscall(SYS_gettid) != getpid(); }

void *malloc(size_t size) { return refused() ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size) { return refused() ? NULL : __libc_calloc(count, size); }
"""

#: Says whether the library asks.
BY_LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);

int refuse;

static int by_library(void *caller) {
    Dl_info info;
    return dladdr(caller, &info) && strstr(info.dli_fname, "_mxrt");
}
"""

#: Refuses what the library asks for outside the first thread, until memory goes back to the system.
REFUSING_UNTIL_UNMAPPED = (
    BY_LIBRARY
    + """
void *malloc(size_t size) {
    int here = refuse && syscall(SYS_gettid) != getpid();
    return here && by_library(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

int munmap(void *start, size_t size) {
    refuse = 0;
    return syscall(SYS_munmap, start, size);
}
"""
)

#: Refuses what the server asks for before it starts a thread.
REFUSING_64K = (
    BY_LIBRARY
    + """
void *malloc(size_t size) {
    int here = refuse && size == 65536;
    return here && by_library(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}
"""
)

BEGIN = """
import ctypes, os, sys, threading
import numpy as np
import mxrt as mx

def threads(begin):
    names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    return sum(name.startswith(begin) for name in names)

refuse = ctypes.c_int.in_dll(ctypes.CDLL(None), "refuse")
"""

NEW_THREADS = {
    "workers": """
x = mx.nd.array(np.ones((1 << 20,), "float32"))
assert threads("mxrt-") == 0
refuse.value = 1
for _ in range(4):
    x = mx.nd.relu(x)
mx.waitall()
assert threads("mxrt-") == 0, "a thread that has no memory does not work"
refuse.value = 0
assert float(mx.nd.sum(mx.nd.relu(x)).asscalar()) == 1 << 20
assert threads("mxrt-") > 0
""",
    "an iterator": """
path = sys.argv[1] + "/a.csv"
with open(path, "w") as file:
    file.write("1,2\\n" * 10)
def read():
    return next(mx.io.CSVIter(data_csv=path, data_shape=(2,), batch_size=10)).data[0].asnumpy().sum()
assert read() == 30
refuse.value = 1
try:
    read()
    print("answered without a thread")
except (MemoryError, mx.base.MXNetError) as error:
    assert "no thread or no memory" in str(error), error
refuse.value = 0
assert read() == 30
""",
    "a thread of Python": """
def read():
    data = mx.gluon.data.DataLoader(np.ones((4, 2), "float32"), batch_size=2, num_workers=1, thread_pool=True)
    return sum(batch.asnumpy().sum() for batch in data)
# The interpreter's own start of a thread waits forever for one that finds no memory. So memory is
# refused as soon as the thread runs.
from mxrt._system import native
allowed = bytearray
def asks(size):
    refuse.value = 1
    return allowed(size)
native.bytearray = asks
try:
    read()
    print("answered without a thread")
except MemoryError as error:
    assert "no memory for the thread mxrt-data-0" in str(error), error
refuse.value = 0
del native.bytearray
assert read() == 8
""",
}

FIRST_USE = """
x = mx.nd.ones((1000,))
x.wait_to_read()
sums = []

def first_use():
    refuse.value = 1
    mx.waitall()
    sums.append(float(mx.nd.sum(x).asscalar()))

for _ in range(2):
    thread = threading.Thread(target=first_use)
    thread.start()
    thread.join()
assert refuse.value == 0 and sums == [1000, 1000], (refuse.value, sums)
"""


SERVER = """
import http.client, json

model = sys.argv[2] + "/digits_cnn"
shapes = {"data": [-1, 1, 8, 8]}

def served():
    server = mx.serve.Server({"digits": mx.serve.Model(model, shapes=shapes)}, port=0, io_threads=1)
    server.start()
    return server

def refused(call):
    refuse.value = 1
    try:
        return call()
    except (MemoryError, mx.base.MXNetError) as error:
        return str(error)
    finally:
        refuse.value = 0

assert "memory" in refused(served)
server = served()
body = {"inputs": [{"name": "data", "shape": [512, 1, 8, 8], "datatype": "FP32", "data": [0.5] * (512 * 64)}]}

def status():
    connection = http.client.HTTPConnection(server.url.split("//")[1].strip("/"))
    connection.request("POST", "/v2/models/digits/infer", json.dumps(body))
    return connection.getresponse().status

assert refused(status) == 503
assert status() == 200
server.stop(grace=0)

net = mx.gluon.SymbolBlock.imports(model + "-symbol.json", ["data"], model + "-0000.params")
batcher = lambda: mx.serve.Batcher(net, rows=8)(mx.nd.ones((1, 1, 8, 8))).shape
assert "memory" in refused(batcher)
assert batcher() == (1, 10)
"""


def usable_while_refused(allocator: str, code: str, folder: Path, *args: object) -> None:
    """Fails if a process with this allocator, which runs this code, ends otherwise than usable."""
    if platform.libc_ver()[0] != "glibc" or shutil.which("cc") is None:
        pytest.skip("compiles an allocator that calls that of glibc")
    source, library = folder / "refusing.c", folder / "refusing.so"
    source.write_text(allocator)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    is_usable(BEGIN + code, folder, *args, env={"LD_PRELOAD": str(library)})


def is_usable(code: str, *args: object, env: dict[str, str] | None = None) -> None:
    """Fails if a process that runs this code ends otherwise than usable."""
    result = run_python(code + '\nprint("usable")', *args, env=env)
    assert result.returncode == 0, f"{result.returncode}\n{result.stderr[-2000:]}"
    assert result.stdout.split() == ["usable"], result.stdout


@pytest.mark.parametrize("flow", NEW_THREADS)
def test_a_new_thread_that_finds_no_memory_ends_no_process(flow: str, tmp_path) -> None:
    usable_while_refused(REFUSING, NEW_THREADS[flow], tmp_path)


def test_the_first_use_in_a_thread_finds_memory(tmp_path) -> None:
    usable_while_refused(REFUSING_UNTIL_UNMAPPED, FIRST_USE, tmp_path)


def test_a_server_refuses_what_needs_a_thread_without_memory(tmp_path) -> None:
    usable_while_refused(REFUSING_64K, SERVER, tmp_path, DIGITS)


def test_a_thread_that_ends_before_it_begins_is_an_error(mx, monkeypatch) -> None:
    from mxrt._system import native

    ran: list[int] = []
    monkeypatch.setattr(threading.Thread, "run", lambda self: None)
    with pytest.raises(MemoryError, match="no memory for the thread mxrt-test"):
        native.start_thread(ran.append, 1, name="mxrt-test")
    assert not ran


def test_a_thread_may_begin_late(mx, monkeypatch) -> None:
    from mxrt._system import native

    own, looks, ran = threading.Thread.run, threading.Semaphore(0), threading.Event()

    class Lock:
        """A lock whose waits end in vain, without a wait, until the thread may begin."""

        def __init__(self) -> None:
            self._lock = threading.Lock()

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            looks.release()
            return self._lock.acquire(blocking, timeout)

        def release(self) -> None:
            self._lock.release()

    def late(thread: threading.Thread) -> None:
        for _ in range(5):
            looks.acquire()
        own(thread)

    monkeypatch.setattr(native, "allocate_lock", Lock)
    monkeypatch.setattr(native, "_LOOK", 0.0)
    monkeypatch.setattr(threading.Thread, "run", late)
    native.start_thread(ran.set, name="mxrt-test")
    ran.wait()


#: Files that start threads otherwise than by `start_thread`, and why none ends the process.
STARTS = {
    "crates/engine/src/process/start.rs": "defines it; without glibc threads have their variables at once",
    "crates/serve/src/background.rs": "looks for memory first",
    "crates/serve/src/batch/local.rs": "looks for memory first",
    "crates/serve/src/server.rs": "looks for memory first",
    "crates/sim/src/world/mod.rs": "is for tests",
}


def test_every_thread_is_started_where_there_is_memory() -> None:
    found = set()
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        text = re.split(r"#\[cfg\((?:all\()?(?:test|loom)", path.read_text())[0]
        tests = "loom" in path.stem or "models" in path.parts
        if not tests and re.search(r"thread::(\{?Builder|spawn)|spawn_blocking|new_multi_thread", text):
            found.add(path.relative_to(ROOT).as_posix())
    assert found == set(STARTS)


REFUSED_ONCE = """
import asyncio, threading
import mxrt as mx

def once_refused(real):
    left = [True]
    def call(*args):
        if left:
            left.clear()
            raise MemoryError
        return real(*args)
    return call

for name in ("next_notices", "next_custom_call", "finish_custom_call"):
    setattr(mx._mxrt, name, once_refused(getattr(mx._mxrt, name)))

calls = []

class Twice(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        calls.append(1)
        self.assign(out_data[0], req[0], in_data[0] * 2)

@mx.operator.register("twice")
class TwiceProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Twice()

x = mx.nd.ones((3,))

async def awaited():
    loop = asyncio.get_running_loop()
    loop.call_soon_threadsafe = once_refused(loop.call_soon_threadsafe)
    return (await mx.nd.Custom(x, op_type="twice")).asnumpy().tolist()

for _ in range(2):
    told = threading.Event()
    x.add_done_callback(lambda array: told.set())
    told.wait()
    assert mx.nd.Custom(x, op_type="twice").asnumpy().tolist() == [2, 2, 2]
    assert asyncio.run(awaited()) == [2, 2, 2]
assert len(calls) == 4
"""


def test_threads_that_serve_others_go_on_after_a_moment_without_memory() -> None:
    is_usable(REFUSED_ONCE)


NO_NUMBERS = """
import _testcapi
import mxrt as mx

def refused(at, call):
    try:
        _testcapi.set_nomemory(at)
        try:
            return call()
        finally:
            _testcapi.remove_mem_hooks()
    except MemoryError:
        return None

x = mx.nd.ones((3,))
x.wait_to_read()
refusals = 0
for at in range(6):
    numbers = [(at << 40) + i for i in (1001, 1002, 1003)]
    for number in numbers:
        mx._mxrt.notify_when_ready(x, number)
    told = refused(at, mx._mxrt.next_notices)
    refusals += told is None
    told = told or []
    while len(told) < 3:
        told += mx._mxrt.next_notices()
    assert told == numbers, (at, told)
assert refusals > 2, refusals

from mxrt import _custom
_custom.start_thread = lambda run, name: None

class PlusProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        class Plus(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] + 1)
        return Plus()

mx.operator.register("plus")(PlusProp)
y = mx.nd.Custom(x, op_type="plus")
next_call = lambda: mx._mxrt.next_custom_call(True)
# Python keeps the memory of pairs that are gone.
pairs = [tuple([i, i]) for i in range(5000)]
assert refused(0, next_call) is None
taken = next_call()
assert taken[1], "nobody else waits for calls"
_custom._threads._answer(*taken)
assert y.asnumpy().tolist() == [2, 2, 2]
"""


def test_a_number_for_which_python_has_no_memory_is_told_later() -> None:
    pytest.importorskip("_testcapi")
    is_usable(NO_NUMBERS)
