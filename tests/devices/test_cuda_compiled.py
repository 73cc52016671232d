"""Kernels that are compiled at run time, on a machine without a GPU: the stand-in for the CUDA
driver is NVRTC too, and compiles for the host.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from host_kernels import host_kernels
from support import ROOT, last_json, mxrt, run, run_python, with_compiler

pytestmark = pytest.mark.skipif("MXRT_TEST_DEVICES" in os.environ, reason="the others of this run are children of it")

#: A folder with packages of Python, NVRTC's among them.
REAL_NVRTC = os.environ.get("MXRT_TEST_NVRTC", "")

#: Chains of functions, which plans join in float32 alone; `answers` are their results.
CHAINS = """
import numpy as np, mxrt as mx

def chains(a, b, row):
    yield mx.sym.relu(mx.sym.tanh(a * b + 0.25) * 3 - b)
    yield mx.sym.clip(mx.sym.sqrt(mx.sym.abs(a)) / (1 + mx.sym.abs(b)), 0.125, 0.75)
    yield mx.sym.broadcast_maximum(mx.sym.broadcast_mul(a, row), mx.sym.sigmoid(b)) * b
    yield mx.sym.LeakyReLU(a - b * 2, slope=0.125) + mx.sym.square(mx.sym.broadcast_add(a, row))

def answers(ctx):
    names, random = [mx.sym.var(name) for name in ("a", "b", "row")], np.random.default_rng(3)
    values = [random.integers(-40, 40, shape) / 16 for shape in ((7, 33), (7, 33), (1, 33))]
    given = {name: mx.nd.array(value, ctx=ctx) for name, value in zip(("a", "b", "row"), values)}
    bound = ((chain, chain.list_arguments()) for chain in chains(*names))
    return [chain.bind(ctx, {n: given[n] for n in used}).forward()[0].asnumpy() for chain, used in bound]

def same(found, wanted):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, wanted, strict=True))
"""


def lines(path: Path) -> list[str]:
    """Lines of a file; none if there is no file."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def check(code: str, env: dict[str, str]) -> None:
    """Runs code after `CHAINS`; it prints `done`."""
    done = run_python(CHAINS + code, env={"STANDIN_DELAY_US": "0", **env}, timeout=120)
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, ""), done.stderr


THE_SAME_ANSWERS = """
import os, pathlib
found, here = answers(mx.gpu(0)), answers(mx.cpu())
for a, b in zip(found, here, strict=True):
    assert np.allclose(a, b, 1e-5, 1e-6), (a, b)
kept = pathlib.Path(os.environ["KEPT"])
if kept.exists():
    assert same(found, [part for _, part in sorted(np.load(kept).items())])
else:
    np.savez(kept, **{f"{n:02}": one for n, one in enumerate(found)})
print("done")
"""


def test_compiled_chains_have_the_bits_of_others_and_are_compiled_once(gpus, tmp_path: Path) -> None:
    env = {**with_compiler(gpus, tmp_path / "nvrtc", 12), "KEPT": str(tmp_path / "kept.npz")}
    compiled, launched = tmp_path / "nvrtc/compiled", tmp_path / "launched"
    check(THE_SAME_ANSWERS, {**env, "MXRT_PASSES": "-compile_chains"})
    assert lines(compiled) == []
    check(THE_SAME_ANSWERS, {**env, "STANDIN_LAUNCHED": str(launched)})
    first = lines(compiled)
    assert set(first) == {"chain.cu sm_90"} and len(first) == 4
    assert lines(launched).count("compiled") == 4
    # From the disk.
    check(THE_SAME_ANSWERS, env)
    assert lines(compiled) == first
    # Other GPUs and other compilers have code of their own.
    check(THE_SAME_ANSWERS, {**env, "STANDIN_CAPABILITY": "86"})
    check(THE_SAME_ANSWERS, {**env, "STANDIN_NVRTC": "128"})
    check(THE_SAME_ANSWERS, {**env, "STANDIN_CAPABILITY": "130"})
    assert lines(compiled)[4:] == ["chain.cu sm_86"] * 4 + ["chain.cu sm_90"] * 4 + ["chain.cu compute_121"] * 4


RIGHT_ANSWERS = """
found = answers(mx.gpu(0))
assert all(np.allclose(a, b, 1e-5, 1e-6) for a, b in zip(found, answers(mx.cpu()), strict=True))
print("done")
"""


def test_what_lies_on_the_disk_may_be_damaged_or_unusable(gpus, tmp_path: Path) -> None:
    env = with_compiler(gpus, tmp_path / "nvrtc", 12)
    compiled, kept = tmp_path / "nvrtc/compiled", Path(env["MXRT_CACHE_DIR"])
    check(RIGHT_ANSWERS, env)
    files = sorted(kept.iterdir())
    assert len(files) == len(lines(compiled)) == 4
    files[0].write_bytes(files[0].read_bytes()[:-7])
    files[1].write_bytes(b"")
    check(RIGHT_ANSWERS, env)
    assert len(lines(compiled)) == 6 and sorted(kept.iterdir()) == files
    check(RIGHT_ANSWERS, env)
    assert len(lines(compiled)) == 6
    # A folder that cannot be made.
    (tmp_path / "file").write_text("")
    for _ in range(2):
        check(RIGHT_ANSWERS, {**env, "MXRT_CACHE_DIR": str(tmp_path / "file" / "folder")})
    assert len(lines(compiled)) == 14


ANSWERS_IN_THREADS = """
import threading
wanted, wrong = answers(mx.cpu()), []

def work():
    found = answers(mx.gpu(0))
    if not all(np.allclose(a, b, 1e-5, 1e-6) for a, b in zip(found, wanted, strict=True)):
        wrong.append(found)

threads = [threading.Thread(target=work) for _ in range(16)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
assert not wrong
print("done")
"""


def test_processes_and_threads_share_what_is_compiled(gpus, tmp_path: Path) -> None:
    env = with_compiler(gpus, tmp_path / "nvrtc", 12)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(check, ANSWERS_IN_THREADS, env) for _ in range(4)]:
            done.result()
    # Each process compiled each chain once at most.
    assert 4 <= len(lines(tmp_path / "nvrtc/compiled")) <= 16
    assert len([file for file in Path(env["MXRT_CACHE_DIR"]).iterdir() if file.suffix == ".kernels"]) == 4
    assert not [file for file in Path(env["MXRT_CACHE_DIR"]).iterdir() if file.suffix == ".new"]


#: A case: variables, major versions of the files that are there, and what the reason has.
COMPILERS = {
    "absent": ({}, [], "libnvrtc.so.12: cannot open shared object file"),
    "another major": ({"STANDIN_NVRTC": "118"}, [12], "is NVRTC 11.8, where 12 was expected"),
    "newer than the driver": (
        {"STANDIN_NVRTC": "130", "STANDIN_VERSION": "12040"},
        [13],
        "the driver serves CUDA 12.4",
    ),
    "it refuses": ({"STANDIN_NVRTC_FAILS": "6"}, [12], "error 6 the stand-in was told to fail"),
}


@pytest.mark.parametrize("case", COMPILERS)
def test_without_a_compiler_chains_run_as_data(case: str, gpus, tmp_path: Path) -> None:
    variables, majors, reason = COMPILERS[case]
    env = {**with_compiler(gpus, tmp_path / "nvrtc", *majors), **variables}
    check(RIGHT_ANSWERS, env)
    said = mxrt("doctor", "--no-test", env=env).stdout
    assert "kernels 9.0   yes" in said
    assert "chains 9.0    not compiled, but run as data: " in said and reason in said.split("chains 9.0")[1], said


@pytest.mark.parametrize("case", [*COMPILERS, "too new for the GPU"])
def test_a_gpu_without_image_needs_a_compiler(case: str, gpus, tmp_path: Path) -> None:
    too_new = ({"STANDIN_NVRTC": "130"}, [13], "does not compile for compute capability 7.0")
    variables, majors, reason = COMPILERS.get(case, too_new)
    env = {**with_compiler(gpus, tmp_path / "nvrtc", *majors), "STANDIN_CAPABILITY": "70", **variables}
    check(
        """
there = mx.nd.array([1, 2], ctx=mx.gpu(0))
try:
    (there + 1).asnumpy()
except mx.base.MXNetError as error:
    said = str(error)
assert "no image of its kernels for a GPU of compute capability 7.0" in said, said
assert "pip install 'mxrt[cuda12]'" in said and REASON in said, said
assert there.asnumpy().tolist() == [1, 2] and (there.as_in_context(mx.cpu()) + 1).asnumpy().tolist() == [2, 3]
print("done")
""".replace("REASON", repr(reason)),
        env,
    )


def test_a_gpu_without_image_works_with_a_compiler(gpus, tmp_path: Path) -> None:
    env = {**with_compiler(gpus, tmp_path / "nvrtc", 13, 12), "STANDIN_CAPABILITY": "70"}
    # The newest one that compiles for it.
    check(RIGHT_ANSWERS, {**env, "STANDIN_NVRTC": "129"})
    assert lines(tmp_path / "nvrtc/compiled") == ["kernels.cu sm_70"] + ["chain.cu sm_70"] * 4
    check(RIGHT_ANSWERS, {**env, "STANDIN_NVRTC": "129"})
    assert len(lines(tmp_path / "nvrtc/compiled")) == 5
    said = mxrt("doctor", "--no-test", env=env).stdout
    assert "kernels 7.0   yes" in said and "chains 7.0    compiled" in said
    assert "NVRTC         12.9, " in said


def test_gpus_before_6_0_have_no_kernels(gpus, tmp_path: Path) -> None:
    env = {**with_compiler(gpus, tmp_path / "nvrtc", 12), "STANDIN_CAPABILITY": "37"}
    said = mxrt("doctor", env=env).stdout
    assert "compute capability 3.7: it needs 6.0 or more; compute on the CPU" in said


def test_products_of_halves_need_no_tensor_cores(gpus) -> None:
    """GPUs of compute capability 6.0 to 7.2 have none; their threads exchange the factors."""
    # The host's own exchange keeps its name; only files that multiply are compiled again.
    without = "#undef HALF_PRODUCTS\n#define HALF_PRODUCTS 0\n#define mma_half mma_half_of_threads\n#if !HALF_PRODUCTS"
    kernels = host_kernels("tensor_cores.h", lambda text: text.replace("#if !HALF_PRODUCTS", without))
    assert str(kernels) != gpus["STANDIN_KERNELS"]
    command = [sys.executable, str(ROOT / "tests" / "devices" / "cuda_kernels.py"), "--orders", "1-2", "products"]
    found = last_json(run(command, 300, {**gpus, "STANDIN_KERNELS": str(kernels), "STANDIN_DELAY_US": "0"}))
    assert found["wrong"] == [] and found["calls"] > 20


@pytest.mark.skipif(not REAL_NVRTC, reason="needs NVRTC from its package: make check-cuda-images")
@pytest.mark.timeout(300)
def test_the_real_nvrtc_compiles_all_kernels_and_chains(gpus, tmp_path: Path) -> None:
    """The code runs nowhere here: the driver is the stand-in."""
    path = os.pathsep.join([REAL_NVRTC, *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**gpus, "PYTHONPATH": path, "STANDIN_CAPABILITY": "60", "MXRT_CACHE_DIR": str(tmp_path)}
    said = mxrt("doctor", "--no-test", env=env, timeout=250).stdout
    assert "kernels 6.0   yes" in said and "chains 6.0    compiled" in said, said
    assert f"NVRTC         12.9, {REAL_NVRTC}/nvidia/cuda_nvrtc/lib/libnvrtc.so.12" in said
    sizes = sorted(file.stat().st_size for file in tmp_path.iterdir())
    assert len(sizes) == 2 and sizes[0] > 1000 and sizes[1] > 500_000
    check(RIGHT_ANSWERS, {**env, "STANDIN_CAPABILITY": "90"})
    assert len([file for file in tmp_path.iterdir() if file.suffix == ".kernels"]) == 6
