"""Helpers of several test files: paths, child processes with a limit, a small model written by
hand.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from host_kernels import host_kernels

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "tests" / "models"
CONFORMANCE = ROOT / "tests" / "conformance"
# Answers of MXNet 1.9.1, and the programs that recorded them.
RECORDED = ROOT / "tests" / "recorded"
BUILD = ROOT / "build"
# Where children run: a folder for each of the processes that tests are spread over.
WORK = BUILD / "tests" / os.environ.get("PYTEST_XDIST_WORKER", "main")

DIGITS = MODELS / "digits_cnn"
# Whether this Python has no global lock.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
# Kinds of engine.
ASYNC = ["ThreadedEngineAsync", "ThreadedEnginePerDeviceAsync"]
KINDS = ["NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice", *ASYNC]
# The devices of test_device*.py: simulated ones, or GPUs, which test_cuda.py asks for.
DEVICE_KIND = os.environ.get("MXRT_TEST_DEVICES", "sim")
# How many GPUs there are then. On a machine with one it takes the place of the second as well.
GPUS = int(os.environ.get("MXRT_TEST_GPUS", "2"))


# For the code of a child: the most memory it has held, in KiB. `ru_maxrss` would begin with what
# the parent held: exec carries it over.
PEAK_KIB = """
def peak_kib():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1])
"""


# Programs that end as the command `mxrt` with these arguments.
RUN_MXRT = "import sys; from mxrt.cli._main import main; sys.exit(main(sys.argv[1:]))"


def run_python(
    code: str, *args: object, timeout: float = 60, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a child; one that hangs for `timeout` fails the test with the stacks of its
    threads. Where tests run on GPUs `mx.sim(i)` is `mx.gpu(i)`, and what needs the controls
    of simulated devices is skipped.
    """
    code = textwrap.dedent(code)
    if DEVICE_KIND != "sim":
        if "mx.testing" in code or any(name.startswith("MXRT_SIM_") for name in env or ()):
            pytest.skip("needs the controls of simulated devices")
        code = re.sub(r"\bsim\((?=\w)", f"{DEVICE_KIND}(", code)
        code = code if GPUS > 1 else code.replace(f"{DEVICE_KIND}(1)", f"{DEVICE_KIND}(0)")
    # From Python 3.12 on a fork of a process with threads is warned of.
    options = ["-X", "faulthandler", "-W", "ignore:This process:DeprecationWarning"]
    return run([sys.executable, *options, "-c", code, *map(str, args)], timeout, env)


def output_of(child: subprocess.Popen[str], timeout: float) -> tuple[str, str]:
    """Output of a child until it ends. On a busy machine it may take ten times `timeout` seconds,
    as long as it uses a thousandth of each of them on a processor.

    Raises `subprocess.TimeoutExpired` if it does not.
    """
    used = 0.0
    for look in range(10):
        try:
            return child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            before, used = used, processor_seconds(child.pid)
            if used - before < timeout / 1000 or look == 9:
                raise
    raise AssertionError("the last look returns or raises")


def processor_seconds(pid: int) -> float:
    """Processor time of a process, of its children that have ended, and of all that it started."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        started = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it has just ended
        return 0.0
    own = sum(map(int, stat.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_seconds(int(child)) for children in started for child in children)


#: Where programs of the environment are, `mxrt` among them, whether or not it is activated.
SCRIPTS = Path(sys.executable).parent


def run(command: list[str], timeout: float = 60, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command without input and outside the repository, so that only what is installed is
    found.
    """
    WORK.mkdir(parents=True, exist_ok=True)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=WORK,
        env={**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}", **(env or {})},
    )
    try:
        out, err = output_of(child, timeout)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGABRT)  # faulthandler prints the stacks
        try:
            out, err = child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
        pytest.fail(f"no end after {timeout:g} s: {' '.join(command)[:300]}\n{out[-2000:]}\n{err[-6000:]}")
    return subprocess.CompletedProcess(command, child.returncode, out, err)


# What an operator without a kernel on a GPU says.
NO_KERNEL = "has no kernel for gpu("
# Recorded cases that a GPU answers otherwise. MXNet's sum makes NaN of an infinity, as it
# compensates for what it rounds off.
ON_GPUS = {"nansum-036"}


def standin() -> dict[str, str]:
    """Variables for a child with the stand-in for the CUDA driver, which is built if it is not."""
    if shutil.which("cargo") is None:
        pytest.skip("the stand-in for the CUDA driver is built by cargo, which is not there")
    # Of the workspace, as `make test-rust` builds it: with other features all would be built again.
    command = ["cargo", "test", "--quiet", "--locked", "--workspace", "--test=faults", "--no-run"]
    command += ["--message-format=json"]
    built = subprocess.run(command, check=True, cwd=ROOT, timeout=600, stdout=subprocess.PIPE, text=True).stdout
    files = [file for line in built.splitlines() for file in json.loads(line).get("filenames", [])]
    [library] = [file for file in files if file.endswith("/libmxrt_standin.so")]
    folder = WORK / "standin"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("libcuda.so", "libcuda.so.1"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(library)
    kernels = {"STANDIN_KERNELS": str(host_kernels()), "MXRT_CACHE_DIR": str(WORK / "compiled")}
    return {"LD_LIBRARY_PATH": str(folder), "STANDIN_DEVICES": "2", **kernels}


def with_compiler(env: dict[str, str], folder: Path, *majors: int) -> dict[str, str]:
    """Variables for a child that finds NVRTC of these major versions as well: the stand-in under
    other names, in `folder`. Compiled code is kept there too, and listed in `compiled`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library = (Path(env["LD_LIBRARY_PATH"]) / "libcuda.so.1").resolve()
    for major in majors:
        (folder / f"libnvrtc.so.{major}").symlink_to(library)
    kept = {"MXRT_CACHE_DIR": str(folder / "kept"), "STANDIN_COMPILED": str(folder / "compiled")}
    return {**env, "LD_LIBRARY_PATH": f"{env['LD_LIBRARY_PATH']}:{folder}", **kept}


def with_libraries(env: dict[str, str], folder: Path, *files: str) -> dict[str, str]:
    """Variables for a child that finds these libraries of NVIDIA as well: the stand-in under other
    names, in `folder`. Their calls are listed in `calls`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library = (Path(env["LD_LIBRARY_PATH"]) / "libcuda.so.1").resolve()
    for file in files:
        (folder / file).symlink_to(library)
    path = f"{env['LD_LIBRARY_PATH']}:{folder}"
    return {**env, "LD_LIBRARY_PATH": path, "STANDIN_LIBRARY_CALLS": str(folder / "calls")}


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Calls `work` with 0, 1, ... in as many threads at once, and waits for them; the first error
    is raised here.
    """
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, number) for number in range(count)]:
            done.result()


def together(work: Callable[[int], object], threads: int = 16) -> list:
    """The results of `work` with 0, 1, ... in threads that begin together.

    Without the interpreter's lock they run at the same moment. With it they take turns as often as
    they can.
    """
    start, before = threading.Barrier(threads), sys.getswitchinterval()

    def run(number: int) -> object:
        start.wait()
        return work(number)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            return [done.result() for done in [pool.submit(run, number) for number in range(threads)]]
    finally:
        sys.setswitchinterval(before)


def last_json(result: subprocess.CompletedProcess[str]) -> dict:
    """The last line a child printed, as JSON; the child must have ended well."""
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
    return json.loads(result.stdout.strip().splitlines()[-1])


def zoo_artifacts(name: str) -> Path:
    """Folder with NAME-symbol.json, NAME-0000.params and NAME-input.npy, computed once per
    checkout.
    """
    folder = BUILD / "zoo"
    complete = folder / f"{name}.complete"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            command = [sys.executable, str(MODELS / "make_zoo.py"), str(folder), name]
            made = subprocess.run(command, capture_output=True, text=True, timeout=600)
            assert made.returncode == 0, made.stdout + made.stderr
            complete.touch()
    return folder


def recorded(name: str):
    """The answers of MXNet 1.9.1: a file that tests/recorded/record.py wrote."""
    return json.loads((RECORDED / f"{name}.json").read_text())


def block_of(
    mx, folder: Path = DIGITS, prefix: str = "digits_cnn", inputs: tuple[str, ...] = ("data",), epoch: int = 0
):
    """A SymbolBlock of one of the trained models."""
    return mx.gluon.SymbolBlock.imports(
        str(folder / f"{prefix}-symbol.json"), ["data"], str(folder / f"{prefix}-{epoch:04d}.params")
    )


def digits(count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of the evaluation set of digits_cnn."""
    with np.load(DIGITS / "eval.npz") as saved:
        return saved["in.data"][:count], saved["label"][:count]


def params_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """float32 arrays as MXNet's `.params` format, version 2, written by hand."""
    out = [struct.pack("<QQQ", 0x112, 0, len(arrays))]
    for value in arrays.values():
        out.append(struct.pack(f"<IiI{value.ndim}q", 0xF993FAC9, 0, value.ndim, *value.shape))
        out.append(struct.pack("<iii", 1, 0, 0) + value.astype("<f4").tobytes())
    out.append(struct.pack("<Q", len(arrays)))
    for name in arrays:
        out.append(struct.pack("<Q", len(name)) + name.encode())
    return b"".join(out)


def tiny_model() -> tuple[bytes, bytes, np.ndarray, np.ndarray]:
    """Symbol JSON and parameters of a small network (2 KB at most each), an input and its answer by
    NumPy.

    Convolution 1x1, relu, 2x2 mean pooling, dense layer: a mistake in any of their attributes
    shows.
    """
    rng = np.random.RandomState(7)
    cw, cb = rng.randn(3, 2, 1, 1).astype("f4"), rng.randn(3).astype("f4")
    dw, db = rng.randn(4, 12).astype("f4"), rng.randn(4).astype("f4")

    def node(op: str, name: str, inputs: list[int], **attrs: str) -> dict:
        entry: dict = {"op": op, "name": name}
        if attrs:
            entry["attrs"] = attrs
        return {**entry, "inputs": [[i, 0, 0] for i in inputs]}

    nodes = [
        node("null", "data", []),
        node("null", "cw", []),
        node("null", "cb", []),
        node("Convolution", "conv", [0, 1, 2], kernel="(1, 1)", num_filter="3"),
        node("Activation", "relu", [3], act_type="relu"),
        node("Pooling", "pool", [4], kernel="(2, 2)", stride="(2, 2)", pool_type="avg"),
        node("Flatten", "flat", [5]),
        node("null", "dw", []),
        node("null", "db", []),
        node("FullyConnected", "dense", [6, 7, 8], num_hidden="4"),
    ]
    symbol = {
        "nodes": nodes,
        "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"],
        "node_row_ptr": list(range(len(nodes) + 1)),
        "heads": [[len(nodes) - 1, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    params = params_bytes({"arg:cw": cw, "arg:cb": cb, "arg:dw": dw, "arg:db": db})
    x = rng.randn(2, 2, 4, 4).astype("f4")
    hidden = np.maximum(np.einsum("oi,nihw->nohw", cw[:, :, 0, 0], x) + cb[:, None, None], 0)
    pooled = hidden.reshape(2, 3, 2, 2, 2, 2).mean(axis=(3, 5)).reshape(2, 12)
    return json.dumps(symbol, separators=(",", ":")).encode(), params, x, pooled @ dw.T + db


def mxrt(*arguments: str, timeout: float = 60, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the command that the wheel installed."""
    command = shutil.which("mxrt", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert command, "the wheel installed no `mxrt` command"
    return run([command, *arguments], timeout, env)
