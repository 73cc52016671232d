"""Arrays in a library that captures its stream, as ``torch.cuda.graph`` does, on a machine without
a GPU.

The library is this test, which calls the stand-in for the CUDA driver. That spoils a capture for
what the driver's documentation forbids, and a captured copy runs when its graph is launched.
"""

from __future__ import annotations

import os

import pytest

from support import ASYNC, ROOT, run_python

pytestmark = pytest.mark.skipif("MXRT_TEST_DEVICES" in os.environ, reason="the others of this run are children of it")
KINDS = ["NaiveEngine", "ThreadedEnginePerDevice", *ASYNC]

#: The other library: it copies 24 bytes from an array into memory of its own.
LIBRARY = """
import ctypes, gc, sys, numpy as np, mxrt as mx
sys.path[:0] = sys.argv[1:3]
from ctypes import byref, c_size_t, c_uint, c_uint64, c_void_p
from test_device_exchange import address_of

gpu = mx.gpu(0)
x = mx.nd.array(np.arange(6), ctx=gpu)
x.wait_to_read()
cuda = ctypes.CDLL("libcuda.so.1")

def made(function, *arguments):
    result = c_void_p()
    assert function(byref(result), *arguments) == 0, function
    return result

def use_context():
    assert cuda.cuCtxSetCurrent(made(cuda.cuDevicePrimaryCtxRetain, 0)) == 0

use_context()
mine = made(cuda.cuMemAlloc_v2, c_size_t(24))
NON_BLOCKING = 1

def new_stream(flags=NON_BLOCKING):
    return made(cuda.cuStreamCreateWithPriority, c_uint(flags), 0)

def begin(stream):
    assert cuda.cuStreamBeginCapture_v2(stream, 0) == 0

def end(stream):
    graph = c_void_p()
    return cuda.cuStreamEndCapture(stream, byref(graph)), graph

def take(capsule, stream):
    assert cuda.cuMemcpyAsync(mine, c_uint64(address_of(capsule)[2]), c_size_t(24), stream) == 0

def launched(graph, stream):
    assert cuda.cuGraphLaunch(made(cuda.cuGraphInstantiateWithFlags, graph, c_uint64(0)), stream) == 0
    assert cuda.cuCtxSynchronize() == 0
    return np.frombuffer(ctypes.string_at(mine.value, 24), np.float32).tolist()

def in_use():
    gc.collect()
    mx.nd.waitall()
    return gpu.memory_info()["in_use"]

stream = new_stream()
"""


def check(gpus: dict[str, str], code: str, **env: str) -> None:
    """Runs code after `LIBRARY`; it prints `done`."""
    variables = {**gpus, "STANDIN_DELAY_US": "500", "MXNET_ENGINE_TYPE": ASYNC[0], **env}
    folders = (ROOT / "tests", ROOT / "tests" / "devices")
    done = run_python(LIBRARY + code + '\nprint("done")', *folders, env=variables)
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, ""), done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_capture_holds_the_librarys_work_alone(kind: str, gpus) -> None:
    check(
        gpus,
        """
def captured(y, meanwhile=lambda: None):
    begin(stream)
    take(y.__dlpack__(stream=stream.value), stream)
    meanwhile()
    code, graph = end(stream)
    assert code == 0, code
    return graph

def compute():
    assert (x + 1).asnumpy().tolist() == [1, 2, 3, 4, 5, 6]

y = (x + 1) * 2
# A capture cannot wait for it: it is complete before.
assert launched(captured(y), stream) == [2, 4, 6, 8, 10, 12]
graph = captured(y, compute)
assert launched(graph, stream) == [2, 4, 6, 8, 10, 12]
y[:] = x
y.wait_to_read()
assert launched(graph, stream) == [0, 1, 2, 3, 4, 5]
assert (y * 2).asnumpy().tolist() == [0, 2, 4, 6, 8, 10]
""",
        MXNET_ENGINE_TYPE=kind,
    )


@pytest.mark.parametrize("spoiled", [False, True])
def test_memory_is_kept_until_the_capture_is_over(spoiled: bool, gpus) -> None:
    check(
        gpus,
        f"""
y = x + 1
before = in_use()
begin(stream)
capsule = y.__dlpack__(stream=stream.value)
del y, capsule
assert in_use() == before, "the capture may read it"
if {spoiled}:
    assert cuda.cuCtxSynchronize() == 900
    assert in_use() == before, "its library has not ended it"
gpu.empty_cache()
assert end(stream)[0] == {901 if spoiled else 0}
assert in_use() < before
assert (x + 1).asnumpy().tolist() == [1, 2, 3, 4, 5, 6]
""",
    )


def test_memory_of_a_capture_is_there_for_the_next_operator(gpus) -> None:
    check(
        gpus,
        """
big = mx.nd.ones((1 << 20,), ctx=gpu)
big.wait_to_read()
gpu.set_memory_limit(gpu.memory_info()["in_use"] + 4096)
begin(stream)
capsule = big.__dlpack__(stream=stream.value)
del big, capsule
gc.collect()
try:
    mx.nd.ones((1 << 20,), ctx=gpu).wait_to_read()
    raise AssertionError("memory of a capture was given out")
except mx.base.MXNetMemoryError:
    pass
assert end(stream)[0] == 0
assert mx.nd.ones((1 << 20,), ctx=gpu).asnumpy().sum() == 1 << 20
""",
    )


def test_a_use_that_began_before_the_capture_ends_after_it(gpus) -> None:
    check(
        gpus,
        """
y = x + 1
capsule = y.__dlpack__(stream=stream.value)
take(capsule, stream)
begin(stream)
before = in_use()
del y, capsule
assert in_use() == before
assert end(stream)[0] == 0
assert in_use() < before
assert np.frombuffer(ctypes.string_at(mine.value, 24), np.float32).tolist() == [1, 2, 3, 4, 5, 6]
""",
    )


@pytest.mark.parametrize("flags", ["NON_BLOCKING", "0"])
def test_a_capsule_without_synchronisation_leaves_captures_alone(flags: str, gpus) -> None:
    check(
        gpus,
        f"""
other = new_stream({flags})
begin(other)
y = x + 1
y.wait_to_read()
capsule = y.__dlpack__(stream=-1)
before = in_use()
del y, capsule
in_use()
assert (x + 1).asnumpy().tolist() == [1, 2, 3, 4, 5, 6]
assert end(other)[0] == 0
assert in_use() < before
""",
    )


def test_an_array_that_is_made_in_a_capture_is_refused(gpus) -> None:
    check(
        gpus,
        """
class Producer:
    def __init__(self, array, stream):
        self.array, self.stream = array, stream

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream=None, max_version=None):
        event = made(cuda.cuEventCreate, c_uint(2))
        assert cuda.cuEventRecord(event, self.stream) == 0
        assert cuda.cuStreamWaitEvent(c_void_p(stream), event, 0) == 0
        return self.array.__dlpack__(stream=-1)

begin(stream)
try:
    mx.nd.from_dlpack(Producer(x, stream))
    raise AssertionError("accepted")
except mx.base.MXNetDeviceError as error:
    assert "is capturing a graph" in str(error) and "lost" not in str(error), error
for _ in range(9):
    assert (x + 1).asnumpy().tolist() == [1, 2, 3, 4, 5, 6], "streams of operators are not in the capture"
free = new_stream()
assert (mx.nd.from_dlpack(Producer(x, free)) * 2).asnumpy().tolist() == [0, 2, 4, 6, 8, 10]
assert end(stream)[0] == 904, "the stream that was drawn in did not come back"
assert (mx.nd.from_dlpack(Producer(x, stream)) * 3).asnumpy().tolist() == [0, 3, 6, 9, 12, 15]
""",
    )


def test_a_destroyed_stream_of_another_library_does_not_cost_the_gpu(gpus) -> None:
    """The driver may say of such a handle that the context is gone."""
    done = run_python(
        """
        import ctypes, mxrt as mx
        driver, gpu = ctypes.CDLL("libcuda.so.1"), mx.gpu(0)
        x = mx.nd.zeros((4,), ctx=gpu)
        mx.nd.waitall()
        for _ in range(60):
            x = x + 1
        submitted = x.__dlpack__(stream=-1)
        assert not x.is_ready()
        WAIT = 3
        assert driver.mxrt_standin_fail(0, WAIT, ctypes.c_uint64(0), 709) == 0
        try:
            x.__dlpack__(stream=1)
            raise SystemExit("no error")
        except mx.base.MXNetDeviceError as error:
            assert "709" in str(error) and "is lost" not in str(error), error
        assert (x * 3).asnumpy().tolist() == [180] * 4
        x.__dlpack__(stream=1)
        print("done")
        """,
        env={**gpus, "STANDIN_DELAY_US": "20000", "MXNET_GPU_WORKER_NTHREADS": "1", "MXNET_ENGINE_TYPE": ASYNC[0]},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, "")
