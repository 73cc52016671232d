"""Arrays of devices in other libraries, and the other way round.

The devices of this process have threads and do their work at once. Children are given other kinds
of engine, devices whose work waits until a thread asks for a result (``MXRT_SIM_MODE=scheduled``),
or whose order a seed decides.
"""

from __future__ import annotations

import ctypes

from support import ASYNC, ROOT, run_python


def test_the_consumers_stream_waits_and_the_host_does_not(mx) -> None:
    done = run_python(
        """
        import ctypes, gc, sys, numpy as np, mxrt as mx
        sys.path[:0] = sys.argv[1:3]
        from test_device_exchange import address_of
        sim = mx.sim(0)
        stream = mx.testing.new_stream(sim)
        assert stream.number > 2**32
        x = mx.nd.array(np.arange(6), ctx=sim)
        kept = x + 1
        y = kept * 2
        capsule = y.__dlpack__(stream=stream.number)
        assert mx.testing.pending(sim) > 0 and not y.is_ready(), "the host waited"
        kind, number, address = address_of(capsule)
        assert (kind, number) == (12, 0) == y.__dlpack_device__()
        before = sim.memory_info()["in_use"]
        del y
        read = np.frombuffer(stream.read(address, 24), np.float32)
        assert read.tolist() == [2, 4, 6, 8, 10, 12], read
        stream.write(address, np.full(6, 7, np.float32).tobytes())
        assert sim.memory_info()["in_use"] == before, "the capsule keeps the memory"
        del capsule
        gc.collect()
        mx.nd.waitall()
        assert sim.memory_info()["in_use"] < before
        z = x * 3
        for wanted in (None, 1, 2, -1):
            z.__dlpack__(stream=wanted)
        for wrong, error in ((0, ValueError), (-2, ValueError), ("s", TypeError), (1.0, TypeError)):
            try:
                z.__dlpack__(stream=wrong)
                print("accepted", wrong)
            except error:
                pass
        host = np.from_dlpack(z, device="cpu") if np.__version__ >= "2.1" else z.asnumpy()
        print(host.tolist())
        """,
        ROOT / "tests",
        ROOT / "tests" / "devices",
        env={"MXNET_ENGINE_TYPE": ASYNC[0], "MXRT_SIM_MODE": "scheduled"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[0.0, 3.0, 6.0, 9.0, 12.0, 15.0]", 0, "")


def test_an_import_comes_after_the_producers_work(mx) -> None:
    done = run_python(
        """
        import gc, numpy as np, mxrt as mx
        sim = mx.sim(0)
        asked = []

        class Producer:
            def __init__(self, array):
                self.array = array

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

            def __dlpack__(self, stream=None, max_version=None):
                asked.append(stream)
                return self.array.__dlpack__(stream=stream, max_version=max_version)

        x = mx.nd.array(np.arange(6), ctx=sim)
        taken = mx.nd.from_dlpack(Producer(x + 1))
        assert taken.context == sim and asked[0] > 2**32
        y = taken * 2
        assert not y.is_ready(), "the host waited"
        assert y.asnumpy().tolist() == [2, 4, 6, 8, 10, 12]
        source = mx.nd.zeros((4,), ctx=sim)
        shared = mx.nd.from_dlpack(source)
        shared[:] = 5
        shared.wait_to_read()
        assert source.asnumpy().tolist() == [5] * 4
        before = sim.memory_info()["in_use"]
        del taken, y, shared
        gc.collect()
        mx.nd.waitall()
        mx.nd.zeros((1,)).asnumpy()
        assert sim.memory_info()["in_use"] < before
        print(mx.testing.check(sim)[0])
        """,
        env={"MXNET_ENGINE_TYPE": ASYNC[1], "MXRT_SIM_MODE": "scheduled", "MXRT_SIM_CHECK": "1"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[]", 0, "")


def address_of(capsule: object) -> tuple[int, int, int]:
    """Device and address in a DLPack capsule without a version."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    pointer = get(capsule, b"dltensor")
    data = ctypes.c_uint64.from_address(pointer).value
    kind, number = (ctypes.c_int32 * 2).from_address(pointer + 8)
    return kind, number, data + ctypes.c_uint64.from_address(pointer + 40).value
