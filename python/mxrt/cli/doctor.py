"""`mxrt doctor`: the machine, what is missing or slow on it, and what to do."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sysconfig
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import __version__, _mxrt
from ..base import MXNetError
from . import _variables
from ._errors import BAD, GOOD
from ._gpus import gpu_rows, kernel_rows, library_rows
from ._out import megabytes, print_json, style
from .info import processor

__all__ = ["add_arguments", "main"]

# What processors call features, and what mxrt calls those that it uses.
_FEATURES = {
    "avx2": "avx2",
    "avx512f": "avx512f",
    "avx512_vnni": "avx512vnni",
    "avx512_bf16": "avx512bf16",
    "amx_bf16": "amx_bf16",
}
_OPENMP = ("libgomp", "libiomp5", "libomp", "libopenblas", "libscipy_openblas", "libmkl")
_TEST_SECONDS = 5


class Finding(NamedTuple):
    """One line. `level` is ok, note (could be better) or bad; `remedy` says what to do."""

    level: str
    subject: str
    words: str
    remedy: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    parser.add_argument("--gpu", action="store_true", help="GPUs alone; status 1 without one")
    parser.add_argument(
        "--no-test", action="store_true", help=f"leave out the test of a model, which takes {_TEST_SECONDS} seconds"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 where something does not work."""
    if args.gpu:
        rows = [*gpu_rows(), *library_rows(), *kernel_rows()]
        if args.json:
            print_json(dict(rows))
        else:
            for key, value in rows:
                print(f"{key:14s}{value}")
        return GOOD if _mxrt.device_count("gpu") > 0 else BAD
    findings: list[Finding] = []
    for look in (*_LOOKS, *(() if args.no_test else (_self_test,))):
        try:
            found = list(look())
        except MXNetError as error:  # a variable of the environment is refused
            found = [Finding("bad", "settings", str(error), "set the variable to such a value, or leave it out")]
        for finding in found:
            if finding in findings:
                continue
            findings.append(finding)
            if not args.json:
                print(_as_text(finding), flush=True)
    if args.json:
        print_json({"findings": [finding._asdict() for finding in findings]})
    return BAD if any(finding.level == "bad" for finding in findings) else GOOD


def _as_text(finding: Finding) -> str:
    mark = {"ok": style("ok  ", "green"), "note": style("note", "yellow"), "bad": style("BAD ", "red")}[finding.level]
    line = f"{mark}  {finding.subject:14s}{finding.words}"
    return line if finding.remedy is None else f"{line}\n      {'':14s}-> {finding.remedy}"


# ---- what is looked at ---------------------------------------------------------------------------


def _versions() -> Iterator[Finding]:
    # Python finds no version of musl.
    other = "musl" if "musl" in (sysconfig.get_config_var("SOABI") or "") else "unknown libc"
    libc = " ".join(filter(None, platform.libc_ver())) or other
    yield Finding(
        "ok", "versions", f"mxrt {__version__}, Python {platform.python_version()}, numpy {np.__version__}, {libc}"
    )


def _processor() -> Iterator[Finding]:
    found = _mxrt.info()["cpu_features"]
    if platform.machine() != "x86_64":
        yield Finding("ok", "processor", f"{processor()}; used: {', '.join(found) or 'no vector instructions'}")
        return
    used = set(found)
    flags = set(_read("/proc/cpuinfo").partition("flags")[2].partition("\n")[0].split())
    best = [name for name in _FEATURES.values() if name in used]
    yield Finding("ok", "processor", f"{processor()}; used: {', '.join(best) or 'no vector instructions beyond SSE'}")
    for flag, name in _FEATURES.items():
        if flag in flags and name not in used:
            remedy = (
                "the kernel or a sandbox refuses it" if name.startswith("amx") else "look for a setting that limits it"
            )
            yield Finding(
                "note", "processor", f"it has {flag}, which mxrt does not use", f"{remedy}: mxrt info --settings"
            )
    if flags and "avx2" not in flags:
        yield Finding("note", "processor", "it has no AVX2: everything is several times slower", "take a newer machine")


def _cores() -> Iterator[Finding]:
    used = int(_mxrt.info()["cores"])
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cpu_quota()
    limit = allowed if quota is None else min(allowed, max(1, int(quota + 0.5)))
    of = f"{used} used; {os.cpu_count()} in the machine, {allowed} allowed to this process"
    of += "" if quota is None else f", quota {quota:g}"
    if used > limit:
        yield Finding("bad", "cores", of, "MXRT_CORES or OMP_NUM_THREADS asks for more than there are: leave it out")
    elif used < limit:
        yield Finding("note", "cores", of, "MXRT_CORES or OMP_NUM_THREADS asks for fewer: leave it out to use all")
    else:
        yield Finding("ok", "cores", of)


def _cpu_quota() -> float | None:
    """Processors that the control group may use."""
    words = _read("/sys/fs/cgroup/cpu.max").split()
    if len(words) == 2 and words[0].isdigit():
        return int(words[0]) / int(words[1])
    quota, period = (_read(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _memory() -> Iterator[Finding]:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    words = f"{megabytes(total)} in the machine"
    group = _read("/sys/fs/cgroup/memory.max").strip() or _read("/sys/fs/cgroup/memory/memory.limit_in_bytes").strip()
    limit = _mxrt.info()["memory_limit"]
    if group.isdigit() and int(group) < total:
        words += f", {megabytes(int(group))} for this control group"
        if limit is None:
            wanted = int(int(group) * 0.8 / 1e6)
            yield Finding(
                "note",
                "memory",
                f"{words}, no limit of mxrt: a process that takes more is ended",
                f"MXRT_MEMORY_LIMIT_MB={wanted} makes a request fail in its place",
            )
            return
    yield Finding("ok", "memory", words + ("" if limit is None else f", limit of mxrt {megabytes(limit)}"))


def _huge_pages() -> Iterator[Finding]:
    text = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    chosen = re.search(r"\[(\w+)\]", text)
    if chosen is None:
        yield Finding("ok", "huge pages", "the system says nothing of them")
    elif chosen[1] == "never":
        yield Finding(
            "note",
            "huge pages",
            "never: large models are some per cent slower",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)",
        )
    else:
        yield Finding("ok", "huge pages", chosen[1])


def _openmp() -> Iterator[Finding]:
    loaded = sorted({
        Path(line.split()[-1]).name
        for line in _read("/proc/self/maps").splitlines()
        if any(Path(line.split()[-1]).name.startswith(name) for name in _OPENMP)
    })  # fmt: skip
    runtimes = [name for name in loaded if name.startswith(("libgomp", "libiomp5", "libomp"))]
    if runtimes:
        yield Finding(
            "note",
            "OpenMP",
            f"loaded: {', '.join(runtimes)}; threads of it may spin while mxrt computes",
            "OMP_WAIT_POLICY=passive keeps them quiet",
        )
    else:
        yield Finding(
            "ok", "OpenMP", f"no other runtime is loaded{' (' + ', '.join(loaded) + ' of numpy)' if loaded else ''}"
        )


def _settings() -> Iterator[Finding]:
    known = _variables.known()
    unknown = [name for name in sorted(os.environ) if name.startswith("MXRT_") and name not in known]
    for name in unknown:
        yield Finding(
            "note", "settings", f"{name} is set, and mxrt reads no such variable", "mxrt info --settings lists all"
        )
    there = [name for name in sorted(os.environ) if name in known]
    if not unknown:
        yield Finding("ok", "settings", "set: " + (", ".join(there) or "none"))


def _cache() -> Iterator[Finding]:
    """The folder of kernels that are compiled at run time, which is silently not used if others
    could have written what is in it.
    """
    found = _mxrt.cache_folder()
    if found is None:
        words = "there is neither a home folder nor XDG_CACHE_HOME: kernels are compiled in each process"
        yield Finding("note", "cache", words, "name a folder by MXRT_CACHE_DIR")
        return
    folder, refused = Path(found[0]), found[1]
    if refused is not None:
        words, _, remedy = refused.partition(". ")
        yield Finding("note", "cache", words, remedy or "name another folder by MXRT_CACHE_DIR")
        return
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        what = "is no folder" if not there.is_dir() else "cannot be written"
        words = f"'{folder}' is not used as a cache: '{there}' {what}"
        yield Finding("note", "cache", words, "name another folder by MXRT_CACHE_DIR, or take the obstacle away")
    else:
        yield Finding("ok", "cache", f"{folder}{'' if folder.exists() else ', made when it is needed'}")


def _gpus() -> Iterator[Finding]:
    for key, value in gpu_rows():
        yield Finding("ok", key, value)
    if _mxrt.device_count("gpu") > 0:
        for key, value in [*library_rows(), *kernel_rows()]:
            absent = value.startswith(("absent", "none", "not compiled"))
            remedy = "docs/gpu.md, Diagnosis, says what needs it" if absent else None
            yield Finding("note" if absent else "ok", key, value, remedy)


def _self_test() -> Iterator[Finding]:
    """Answers of a small trained model, from many threads, as they were recorded."""
    from ..gluon import SymbolBlock
    from ..ndarray import from_numpy

    folder = Path(__file__).parent.parent / "demo" / "data"
    net = SymbolBlock.imports(str(folder / "digits_cnn-symbol.json"), ["data"], str(folder / "digits_cnn-0000.params"))
    with np.load(folder / "digits_cnn-eval.npz") as saved:
        images, labels = saved["in.data"], saved["label"]
    wanted = float(json.loads((folder / "digits_cnn-meta.json").read_text())["scores"]["accuracy"])
    first: Any = net(from_numpy(images)).asnumpy()
    accuracy = float((first.argmax(1) == labels).mean())
    end = time.perf_counter() + _TEST_SECONDS

    def ask(_: int) -> tuple[int, bool]:
        count, same = 0, True
        while time.perf_counter() < end:
            same &= bool(np.array_equal(net(from_numpy(images)).asnumpy(), first))
            count += len(images)
        return count, same

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(ask, range(8)))
    rate = sum(count for count, _ in done) / _TEST_SECONDS
    words = f"accuracy {accuracy:.4f}, recorded {wanted:.4f}; {rate:,.0f} images/s"
    if abs(accuracy - wanted) > 1e-6 or not all(same for _, same in done):
        yield Finding("bad", "self-test", f"{words}; answers differ", "report it with the output of mxrt info")
    else:
        yield Finding("ok", "self-test", f"{words} from 8 threads, all answers the same")


def _read(path: str) -> str:
    """The text of a file of the system; empty where there is none."""
    try:
        with open(path) as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


_LOOKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _versions,
    _processor,
    _cores,
    _memory,
    _huge_pages,
    _openmp,
    _settings,
    _cache,
    _gpus,
)
