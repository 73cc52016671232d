"""GPUs, on a machine without one: children find a stand-in for the CUDA driver
(crates/cuda-standin), or nothing.
"""

from __future__ import annotations

import os
import sys

import pytest

from support import ASYNC, ROOT, mxrt, run, run_python

pytestmark = pytest.mark.skipif("MXRT_TEST_DEVICES" in os.environ, reason="the others of this run are children of it")

# Where the host can address the memory of the stand-in, its operators run there.
HOST_MEMORY = {"STANDIN_HOST_MEMORY": "1", "STANDIN_DELAY_US": "20"}


def test_the_cpu_needs_nothing_of_cuda(mx, gpus) -> None:
    done = run_python(
        """
        import mxrt as mx

        def libraries():
            with open("/proc/self/maps") as maps:
                return sorted({line.split()[-1] for line in maps if "libcuda" in line or "libmxrt_standin" in line})

        x = mx.nd.ones((2, 2))
        assert (mx.nd.dot(x, x) + 1).asnumpy().tolist() == [[3, 3], [3, 3]]
        net = mx.sym.exp(mx.sym.var("x")).bind(mx.cpu(), {"x": x}).forward()
        y = mx.nd.from_dlpack(x.__dlpack__()) + mx.nd.ones((2, 2), ctx=mx.sim(0)).as_in_context(mx.cpu())
        mx.runtime.info(), mx.nd.waitall()
        before = libraries()
        count = mx.num_gpus()
        print(before, count, len(libraries()))
        """,
        env=gpus,
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[] 2 1", 0, "")


def test_memory_and_copies(mx, gpus) -> None:
    done = run_python(
        """
        import numpy as np, mxrt as mx
        values = np.random.default_rng(1).integers(0, 255, (5 << 20) + 3).astype(np.float32)
        there = mx.nd.array(values, ctx=mx.gpu(0))
        other = there[1:].as_in_context(mx.gpu(1))
        assert np.array_equal(other.asnumpy(), values[1:]) and other.context == mx.gpu(1)
        assert np.array_equal(there.as_in_context(mx.sim(0)).asnumpy(), values)
        assert mx.nd.zeros((2, 2), ctx=mx.gpu(0)).asnumpy().tolist() == [[0, 0], [0, 0]]
        mx.nd.waitall()
        free, total = mx.context.gpu_memory_info(0)
        assert total == 64 << 20 and total - free >= values.nbytes + (8 << 20), "other processes use 8 MiB"
        info = mx.gpu(0).memory_info()
        assert free == info["free"] == total - (8 << 20) - info["in_use"], info
        mx.gpu(0).set_memory_limit(info["in_use"] + 4096)
        assert mx.context.gpu_memory_info(0)[0] == 4096
        assert mx.runtime.Features().is_enabled("CUDA")
        assert there.__dlpack_device__() == (2, 0) and other.__dlpack_device__() == (2, 1)
        print("done")
        """,
        env={**gpus, "STANDIN_MEMORY_MB": "64", "STANDIN_OTHERS_MB": "8"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, "")


@pytest.mark.parametrize("reach", ["1", "0"])
def test_gpus_copy_to_each_other_whether_they_reach_each_others_memory_or_not(reach: str, gpus) -> None:
    done = run_python(
        """
        import ctypes, numpy as np, mxrt as mx
        values = np.random.default_rng(1).standard_normal(1 << 20).astype("f4")
        first = mx.nd.array(values, ctx=mx.gpu(0))
        second = first.as_in_context(mx.gpu(1)) * 2
        back = second.as_in_context(mx.gpu(0)) + first
        assert np.allclose(back.asnumpy(), values * 3)
        pairs = ctypes.c_size_t()
        ctypes.CDLL("libcuda.so.1").mxrt_standin_peers(ctypes.byref(pairs))
        print(pairs.value)
        """,
        env={**gpus, "STANDIN_PEERS": reach},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ({"1": "2", "0": "0"}[reach], 0, "")


def test_doctor_says_what_is_there_and_why_something_is_not(mx, gpus) -> None:
    done = mxrt("doctor", "--gpu", env=gpus)
    assert done.returncode == 0, done.stderr
    assert "serves CUDA 13.0" in done.stdout and "gpu(1)        simulated GPU, compute capability 9.0" in done.stdout
    for library, remedy in (("NVRTC", "cuda13"), ("cuBLASLt", "nvidia-cublas"), ("cuDNN", "nvidia-cudnn")):
        line = next(line for line in done.stdout.splitlines() if line.startswith(library))
        assert "absent" not in line or remedy in line, line
    for env, words in (
        ({**gpus, "CUDA_VISIBLE_DEVICES": ""}, "none: all GPUs are hidden by CUDA_VISIBLE_DEVICES=''"),
        ({**gpus, "MXRT_CUDA": "0"}, "none: GPUs are switched off by MXRT_CUDA=0"),
        ({**gpus, "STANDIN_INIT": "100"}, "none: the driver finds no GPU"),
        ({"MXRT_SIM_GPUS": "2"}, "none: GPUs are simulated (MXRT_SIM_GPUS=2)"),
    ):
        for command in (("doctor", "--gpu"), ("info",)):
            assert words in mxrt(*command, env=env).stdout, (command, env)
    said = mxrt("info", env=gpus).stdout
    assert "gpu(0)" in said and "NVRTC  " in said
    assert "NVRTC" not in mxrt("info", env={**gpus, "MXRT_CUDA": "0"}).stdout


def test_a_process_that_counted_gpus_may_fork(gpus) -> None:
    done = run_python(
        """
        import os, mxrt as mx
        mx.nd.ones((2,)).wait_to_read()
        count = mx.num_gpus()
        child = os.fork()
        if child == 0:
            good = (mx.nd.ones((2,)) + 1).asnumpy().tolist() == [2, 2] and mx.num_gpus() == count
            try:
                mx.nd.array([1, 2], ctx=mx.gpu(0))
                good = False
            except mx.base.MXNetDeviceError as error:
                good = good and "before this process was forked" in str(error) and "spawn" in str(error)
            os._exit(0 if good else 3)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), mx.nd.array([1, 2], ctx=mx.gpu(0)).asnumpy().tolist())
        """,
        env=gpus,
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("0 [1.0, 2.0]", 0, "")


def test_a_child_that_was_forked_before_may_use_gpus(gpus) -> None:
    done = run_python(
        """
        import os, mxrt as mx
        mx.nd.ones((2,)).wait_to_read()
        child = os.fork()
        if child == 0:
            os._exit(0 if mx.nd.array([1, 2], ctx=mx.gpu(1)).asnumpy().tolist() == [1, 2] else 3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        env=gpus,
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("0", 0, "")


def test_a_consumers_stream_may_be_dead_and_its_capsule_late(gpus) -> None:
    done = run_python(
        """
        import gc, mxrt as mx
        x = mx.nd.array([1, 2, 3], ctx=mx.gpu(0))
        try:
            (x.as_in_context(mx.gpu(1))).__dlpack__(stream=0x7F5A00001234)
            print("accepted")
        except mx.base.MXNetDeviceError as error:
            assert "gpu(1)" in str(error) and "400" in str(error), error
        held = [x.__dlpack__(stream=stream) for stream in (None, 1, 2, -1)]
        before = mx.gpu(0).memory_info()["in_use"]
        del x
        mx.nd.waitall()
        assert mx.gpu(0).memory_info()["in_use"] == before
        del held
        gc.collect()
        mx.nd.waitall()
        assert mx.gpu(0).memory_info()["in_use"] < before
        last = mx.nd.array([1], ctx=mx.gpu(0)).__dlpack__()
        print("done")
        """,
        env={**gpus, "STANDIN_DELAY_US": "50000", "MXNET_ENGINE_TYPE": ASYNC[0]},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, "")


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", *ASYNC])
def test_the_process_ends_while_gpus_work(kind: str, gpus) -> None:
    """Work in flight is neither waited for nor touched again; the driver refuses calls then."""
    done = run_python(
        """
        import numpy as np, mxrt as mx
        kept = []
        for n in range(60):
            x = mx.nd.array(np.full(100_000, n), ctx=mx.gpu(n % 2))
            kept.append(x.as_in_context(mx.gpu((n + 1) % 2)).as_in_context(mx.cpu()))
            late = kept[-1] + 1
        capsule = x.__dlpack__()
        """,
        env={**gpus, "MXNET_ENGINE_TYPE": kind, "STANDIN_DELAY_US": "5000"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_lost_gpu_fails_all_its_callers_and_nothing_else(gpus) -> None:
    done = run_python(
        """
        import threading, numpy as np, mxrt as mx
        wrong, lost, right = [], [], []

        def call(number):
            values = np.full(1000, number, np.float32)
            for _ in range(30):
                try:
                    there = mx.nd.array(values, ctx=mx.gpu(number % 2))
                    if not np.array_equal(there.as_in_context(mx.cpu()).asnumpy(), values):
                        wrong.append(number)
                    right.append(number)
                except mx.base.MXNetDeviceError as error:
                    if "gpu(0) is lost: CUDA error 719, CUDA_ERROR_LAUNCH_FAILED" not in str(error):
                        wrong.append(str(error))
                    lost.append(number)

        threads = [threading.Thread(target=call, args=(n,)) for n in range(64)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(wrong[:2], {n % 2 for n in lost}, right.count(1), (mx.nd.ones((2,)) * 3).asnumpy().tolist())
        try:
            mx.nd.waitall()
        except mx.base.MXNetDeviceError:
            pass
        """,
        env={**gpus, "MXNET_ENGINE_TYPE": ASYNC[0], "STANDIN_FAULTS": "execute:500:719"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[] {0} 30 [3.0, 3.0]", 0, "")


LEFT_OUT = "full_size or update_of_all or sixteen"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "left_out"),
    [
        (ASYNC[0], f"{LEFT_OUT} or ssd_digits"),
        pytest.param(ASYNC[0], LEFT_OUT, marks=pytest.mark.slow),
        (ASYNC[1], f"{LEFT_OUT} or hosts_bits"),
    ],
    ids=[ASYNC[0], f"{ASYNC[0]} and detection", ASYNC[1]],
)
def test_the_tests_of_devices_pass_on_gpus_whose_memory_the_host_can_address(kind: str, left_out: str, gpus) -> None:
    """The kernels are the host's, and run as functions in the streams of the driver."""
    files = ["devices", "device_engines", "device_failures", "device_profile", "device_exchange", "device_models"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    command += [str(ROOT / "tests" / "devices" / f"test_{name}.py") for name in files]
    command += ["-k", f"not ({left_out})"]
    env = {**gpus, **HOST_MEMORY, "MXRT_TEST_DEVICES": "gpu", "MXNET_ENGINE_TYPE": kind}
    env |= {"PYTEST_XDIST_WORKER": f"gpu-{kind}", "PYTEST_ADDOPTS": ""}
    done = run(command, 590, env)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "passed" in done.stdout


@pytest.mark.timeout(200)
def test_the_tests_of_devices_pass_on_gpus_with_kernels_of_their_own(gpus) -> None:
    """Bits are excepted: they are not those of the host's kernels."""
    files = ["devices", "device_engines", "device_failures", "device_profile", "device_exchange"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    command += [*(str(ROOT / "tests" / "devices" / f"test_{name}.py") for name in files), "-k", "not hosts_bits"]
    env = {**gpus, "MXRT_TEST_DEVICES": "gpu", "MXNET_ENGINE_TYPE": ASYNC[0]}
    env |= {"PYTEST_XDIST_WORKER": "gpu-own-kernels", "PYTEST_ADDOPTS": ""}
    done = run(command, 190, env)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "passed" in done.stdout


def test_a_gpu_that_could_not_be_opened_leaves_nothing_and_is_opened_later(mx, gpus) -> None:
    done = run_python(
        """
        import ctypes, pathlib, time, mxrt as mx

        def streams():
            made = ctypes.c_size_t()
            ctypes.CDLL("libcuda.so.1").mxrt_standin_streams(ctypes.byref(made))
            return made.value

        def threads():
            names = [file.read_text().strip() for file in pathlib.Path("/proc/self/task").glob("*/comm")]
            return names.count("mxrt-cuda")

        assert mx.num_gpus() == 2
        try:
            mx.nd.ones((2,), ctx=mx.gpu(0))
            raise SystemExit("opened")
        except mx.base.MXNetError as error:
            assert "opening gpu(0)" in str(error), error
        for _ in range(1200):
            if threads() == 0:
                break
            time.sleep(0.05)
        assert (streams(), threads()) == (0, 0), (streams(), threads())
        assert mx.nd.ones((2,), ctx=mx.gpu(0)).asnumpy().tolist() == [1, 1]
        print("done", streams() > 4, threads())
        """,
        env={**gpus, "STANDIN_FAULTS": "stream:3:1"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done True 1", 0, "")


def test_a_driver_that_was_not_ready_is_asked_again(mx, gpus) -> None:
    done = run_python(
        """
        import os, time, mxrt as mx
        begin = time.monotonic()
        assert mx.num_gpus() == 0
        del os.environ["STANDIN_INIT"]
        # On a busy machine a second may have passed.
        assert mx.num_gpus() == 0 or time.monotonic() - begin >= 1, "not at every call"
        time.sleep(1.1)
        assert mx.num_gpus() == 2
        assert mx.nd.ones((2,), ctx=mx.gpu(1)).asnumpy().tolist() == [1, 1]
        print("done")
        """,
        env={**gpus, "STANDIN_INIT": "802"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, "")
