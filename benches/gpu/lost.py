"""A GPU that is lost, on a real one: a kernel of another library writes to memory that is not
there.

Prints `done` if each of 64 callers got the error that says so, later calls fail at once, and the
CPU keeps working.
"""

from __future__ import annotations

import ctypes
import threading
import time

import mxrt as mx

PTX = b""".version 6.0
.target sm_60
.address_size 64
.visible .entry bad() { .reg .b64 %a; mov.u64 %a, 64; st.global.u32 [%a], 1; ret; }
\0"""


def break_it() -> None:
    """Launches the kernel in the primary context, which is ours too."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert cuda.cuCtxPushCurrent_v2(context) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), PTX) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"bad") == 0
    assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
    cuda.cuCtxPopCurrent_v2(ctypes.byref(context))


def main() -> None:
    gpu = mx.gpu(0)
    x = mx.nd.ones((1000,), ctx=gpu)
    assert (x + 1).asnumpy().sum() == 2000
    texts: list[str] = []
    barrier = threading.Barrier(65)

    def call() -> None:
        barrier.wait()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                assert (x * 2 + 1).asnumpy()[0] == 3
            except mx.base.MXNetDeviceError as error:
                texts.append(str(error))
                return
        texts.append("no error")

    threads = [threading.Thread(target=call) for _ in range(64)]
    for thread in threads:
        thread.start()
    barrier.wait()
    time.sleep(0.05)
    break_it()
    for thread in threads:
        thread.join()
    print(len(texts), sorted(set(texts))[:3])
    assert len(texts) == 64 and all("gpu(0) is lost" in text for text in texts), texts
    begin = time.monotonic()
    for use in (lambda: x + 1, lambda: x[1:], lambda: mx.nd.ones((2,), ctx=gpu)):
        try:
            use().asnumpy()
            raise AssertionError("a call on a lost GPU succeeded")
        except mx.base.MXNetDeviceError as error:
            assert "is lost" in str(error), error
    assert time.monotonic() - begin < 1
    assert (mx.nd.ones((3,)) * 3).asnumpy().tolist() == [3, 3, 3]
    print("done")


if __name__ == "__main__":
    main()
