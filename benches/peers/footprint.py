"""Rows about memory, idling, loading, rounding, and the processor time of one image on one core."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bert
import environments
import numpy as np
from lanes import Bench, Lane, files, middle
from report import Result, best_and_median

from mxrt.bench.peer import engines

IDLE_SECONDS = 5.0
# The processor that a network has for itself in rows about one core.
PROCESSOR = 1


def memory(bench: Bench, callers: int, goal: float) -> Result:
    """Resident memory of a fresh process while `callers` callers ask, less their own inputs and
    outputs.
    """
    cells, raw, notes = {}, {}, []
    for engine in ("mxrt", *bench.options.peers):
        raw[engine] = _resident(bench, engine, "resnet18_v1", callers, notes)
        cells[engine] = f"{raw[engine]['beyond_mb']:.0f}"
    python = middle([one["python_mb"] for one in raw.values()])
    beyond = raw["mxrt"]["beyond_mb"]
    notes.append(
        f"each process held {python:.0f} MB (Python and numpy) before its engine was imported; that is included"
    )
    what = f"resnet18_v1, {callers} callers, resident MB beyond their inputs and outputs"
    return Result(f"memory-{callers}", what, cells, f"{beyond:.0f} MB", f"<= {goal:g} MB", beyond <= goal, notes, raw)


def memory_of_bert(bench: Bench, callers: int) -> Result:
    """Resident memory of BERT-base beyond its parameters, and that of a process which it serves on
    one core: what many callers add is at most the scratch memory of each core, and 0.3 times that.
    """
    notes: list[str] = []
    raw = {engine: _resident(bench, engine, bert.NAME, callers, notes) for engine in ("mxrt", *bench.options.peers)}
    one = _resident(bench, "mxrt", bert.NAME, 1, notes, processors=(PROCESSOR,))
    parameters = os.path.getsize(f"{environments.network(bert.NAME)}-0000.params") * 1e-6
    beyond = {engine: seen["beyond_mb"] - seen["python_mb"] - parameters for engine, seen in raw.items()}
    arena = one["beyond_mb"] - one["python_mb"] - parameters
    limit = 1.3 * arena * engines.cores()
    notes.append(f"parameters have {parameters:.0f} MB; mxrt's engine is in the number of one core too")
    return Result(
        f"memory-{bert.NAME}-{callers}",
        f"{bert.NAME}, {callers} callers, resident MB beyond Python, parameters, inputs and outputs",
        {engine: f"{megabytes:.0f}" for engine, megabytes in beyond.items()},
        f"{beyond['mxrt']:.0f} MB; one caller on one core {arena:.0f} MB",
        f"<= 1.3 x one core's x {engines.cores()}",
        beyond["mxrt"] <= limit,
        notes,
        {**raw, "one": one},
    )


def _resident(
    bench: Bench, engine: str, name: str, callers: int, notes: list[str], processors: tuple[int, ...] = ()
) -> dict[str, float]:
    """Memory of a fresh process of the engine in its best setting, which is noted."""
    lane = bench.lane(engine, name, processors=processors)
    if not processors:
        lane.choose(callers)
    arrays = lane.process.ask("inputs", file=environments.network(name) + "-input.npy")["megabytes"]
    with tempfile.TemporaryDirectory() as folder:
        arrays += lane.process.ask("outputs", file=str(Path(folder) / "x.npz"))["megabytes"]
    if len(lane.settings) > 1:  # what the other settings left behind does not count
        notes.append(f"{engine}: {lane.setting}")
        chosen, settings = lane.setting, lane.settings
        lane.process.close()
        lane = bench.lane(engine, name, extra=settings[chosen])
    seen = lane.process.ask("closed", callers=callers, seconds=2.0, ramp=0.5, own=True)
    beyond = seen["resident_mb"] - callers * arrays
    lane.process.close()
    return {"resident_mb": seen["resident_mb"], "arrays_mb": arrays, "beyond_mb": beyond, **lane.process.begin}


def idle(bench: Bench) -> Result:
    """The activity of a process that has served when no request comes."""
    cells, raw = {}, {}
    for engine in ("mxrt", *bench.options.peers):
        lane = bench.lane(engine, "resnet18_v1")
        lane.serve(8, 1.0)
        time.sleep(1.0)
        before = _activity(lane.process.pid)
        time.sleep(IDLE_SECONDS)
        switches, ticks = (b - a for a, b in zip(before, _activity(lane.process.pid), strict=True))
        share = ticks / os.sysconf("SC_CLK_TCK") / IDLE_SECONDS
        raw[engine] = {"switches": switches, "cores": share}
        cells[engine] = f"{switches / IDLE_SECONDS:.1f} and {share * 100:.1f} %"
    quiet = raw["mxrt"]["switches"] == 0 and raw["mxrt"]["cores"] == 0
    what = "idle after 8 callers: context switches per second and share of a core"
    return Result("idle", what, cells, cells["mxrt"], "0 and 0 %", quiet, [], raw)


def _activity(pid: int) -> tuple[int, int]:
    """Context switches and processor ticks of all threads of a process so far."""
    switches = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if "ctxt_switches" in line:
                switches += int(line.split()[1])
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return switches, int(fields[11]) + int(fields[12])


def load(bench: Bench) -> Result:
    """The time from the files of resnet-50 to the first answer, in fresh processes; the file cache
    is warm.
    """
    name = "resnet50_v1"
    _touch_memory()
    totals: dict[str, list[float]] = {}
    packing = []
    for _ in range(bench.options.rounds):
        for engine in ("mxrt", *bench.options.peers):
            lane = Lane(bench.process(engine), files(engine, name, 1))
            process = lane.process
            process.ask("inputs", file=environments.network(name) + "-input.npy")
            setting = {"PERFORMANCE_HINT": "LATENCY", "requests": 1} if engine == "openvino" else {}
            loaded = process.ask("load", model=lane.model, setting=setting)["seconds"] * 1e3
            with tempfile.TemporaryDirectory() as folder:
                first, second = (
                    process.ask("outputs", file=str(Path(folder) / "x.npz"))["seconds"] * 1e3 for _ in range(2)
                )
            totals.setdefault(engine, []).append(loaded + first)
            if engine == "mxrt":
                packing.append(first - second)
            process.close()
    cells = {engine: best_and_median(seen, False, 0) for engine, seen in totals.items()}
    total, pack = middle(totals["mxrt"]), middle(packing)
    return Result(
        "load",
        f"{name}: ms to load it and answer once (the import of the engine is not in it)",
        cells,
        f"{total:.0f} ms; first answer {pack:.0f} ms longer than the second",
        "<= 500 ms, packing <= 150 ms",
        total <= 500 and pack <= 150,
        ["the longer first answer is planning and packing together; memory had been used before"],
        {"totals": totals, "packing": packing},
    )


def _touch_memory() -> None:
    """Uses half of the free memory once.

    A virtual machine gets memory from its host when it first touches it, which takes some 2 ms a
    megabyte: many times what an engine takes to fill it.
    """
    half = "import numpy, os; numpy.zeros(os.sysconf('SC_AVPHYS_PAGES') // 2 * 4096, 'u1')[::4096] = 1"
    subprocess.run([sys.executable, "-c", half], check=True)


def error(bench: Bench) -> Result:
    """Rounding errors of resnet-18 against the same graph in float64."""
    with np.load(environments.GOLDEN / "resnet18_v1" / "golden.npz") as saved:
        truth = saved["b4_float64"]
    off = {}
    for engine in ("mxrt", *bench.options.peers):
        lane = bench.lane(engine, "resnet18_v1", batch=4)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "x.npz"
            lane.process.ask("outputs", file=str(file))
            with np.load(file) as answers:
                off[engine] = float(np.abs(answers["arr_0"] - truth).max() / np.abs(truth).max())
    cells = {engine: f"{value:.1e}" for engine, value in off.items()}
    what = "resnet18_v1: largest error of the outputs, as a part of the largest output"
    return Result("error", what, cells, cells["mxrt"], "<= 1e-5", off["mxrt"] <= 1e-5, [], off)


def one_core(bench: Bench, name: str) -> Result:
    """Processor time of one image on one core, interleaved: it leaves out the time that other
    programs take of the core.
    """
    calls, times = 6, {}
    lanes = {engine: bench.lane(engine, name, processors=(PROCESSOR,)) for engine in ("mxrt", *bench.options.peers)}
    for lane in lanes.values():
        lane.process.ask("cost", count=3)
    for _ in range(bench.options.rounds):
        for engine, lane in lanes.items():
            times.setdefault(engine, []).extend(lane.process.ask("cost", count=calls)["ms"])
    cells = {engine: best_and_median(seen, False, 2) for engine, seen in times.items()}
    best = min((engine for engine in times if engine != "mxrt"), key=lambda engine: middle(times[engine]))
    ratio = middle(times[best]) / middle(times["mxrt"])
    what = f"{name}, one core, ms of processor time"
    return Result(
        f"one-core-{name}", what, cells, f"{ratio:.2f} x {best}", "", None, [], {"times": times, "one_core": ratio}
    )


ROWS = {
    "memory-64": lambda bench: memory(bench, 64, 160),
    "memory-960": lambda bench: memory(bench, 960, 175),
    f"memory-{bert.NAME}-64": lambda bench: memory_of_bert(bench, 64),
    "idle": idle,
    "load": load,
    "error": error,
    **{f"one-core-{name}": lambda bench, name=name: one_core(bench, name) for name in environments.NETWORKS},
}
