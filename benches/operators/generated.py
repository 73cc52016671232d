"""Generated rows: every registered operator at three sizes, by mxrt, MXNet and NumPy.

A row is the name of an operator, often a variant of its call, and a size: `softmax:channel-large`.
Ratios are MXNet's least time of a call by mxrt's.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import cases
import numpy as np
from cases import SIZES
from cases.calls import of_numpy

RESULTS = Path(__file__).resolve().parents[2] / "build" / "operators"
GOAL, STREAMED = 0.8, 0.8
ENGINES = ("mxrt", "mxnet", "numpy")
# A row below its goal is measured so often again, and so is one that other programs disturbed.
REPEATS = 2
# Before each turn threads of the engine before it go to sleep.
PAUSE = 0.02
# Copies by which the bandwidth is found.
COPIES, COPIED = 12, 1 << 26


@dataclass
class Result:
    """A measured row: least and median seconds of a call by engine, and what an engine refused."""

    row: str
    bytes: int = 0
    times: dict[str, tuple[float, float]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    # Cores that other programs used.
    others: float = 0.0

    def ratio(self, peer: str = "mxnet") -> float | None:
        """The peer's least time by mxrt's."""
        both = self.times.get(peer), self.times.get("mxrt")
        return None if both[0] is None or both[1] is None else both[0][0] / both[1][0]

    def rate(self) -> float:
        """Gigabytes per second that mxrt read and wrote."""
        return self.bytes / self.times["mxrt"][0] / 1e9 if "mxrt" in self.times else 0.0


def rows(names: list[str], sizes: Iterable[str] = SIZES) -> list[str]:
    """The rows of these sizes whose names begin with one of these, or all."""
    every = [f"{name}-{size}" for name, row in cases.CASES.items() for size in row.sizes() if size in sizes]
    return [row for row in every if not names or any(row.startswith(name) for name in names)]


def copy_bandwidth() -> float:
    """Gigabytes per second that two threads read and write in a copy."""
    source, target = np.ones(COPIED // 4, "float32"), np.zeros(COPIED // 4, "float32")
    half, seconds = len(source) // 2, []
    for _ in range(COPIES):
        parts = [slice(0, half), slice(half, None)]
        threads = [threading.Thread(target=np.copyto, args=(target[part], source[part])) for part in parts]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds.append(time.perf_counter() - begin)
    return 2 * source.nbytes / min(seconds) / 1e9


class Measurement:
    """The processes of the engines, which all rows use."""

    def __init__(self, start: Callable[[str], object], peers: Iterable[str], rounds: int, seconds: float) -> None:
        self.start, self.rounds, self.seconds = start, rounds, seconds
        self.engines = ["mxrt", *(peer for peer in ENGINES[1:] if peer in peers)]
        self.lanes: dict = {}

    def ask(self, engine: str, **what: object) -> dict:
        """The answer of an engine, whose process is started again if it has ended."""
        if engine not in self.lanes:
            self.lanes[engine] = self.start(engine)
        try:
            return self.lanes[engine].ask(**what)
        except RuntimeError:
            if self.lanes[engine].ended:
                self.lanes.pop(engine).close()
            raise

    def close(self) -> None:
        """Ends the processes."""
        for lane in self.lanes.values():
            lane.close()

    def row(self, row: str, quiet: float) -> Result:
        """Measures a row, and again while it is below its goal or was disturbed."""
        result = Result(row)
        ready = self._prepared(result)
        for _ in range(1 + REPEATS if "mxrt" in ready else 0):
            self._turns(result, ready)
            ratio = result.ratio()
            if result.others <= quiet and (ratio is None or ratio >= GOAL):
                break
        return result

    def _prepared(self, result: Result) -> list[str]:
        """The engines that make the call."""
        name, _, size = result.row.rpartition("-")
        ready = []
        for engine in self.engines:
            if engine == "numpy" and of_numpy(cases.CASES[name]) is None:
                continue
            try:
                answer = self.ask(engine, generated=name, size=size)
            except RuntimeError as error:
                result.refused[engine] = " ".join(str(error).split())[:300]
                continue
            result.bytes = max(result.bytes, answer["bytes"])
            ready.append(engine)
        return ready

    def _turns(self, result: Result, ready: list[str]) -> None:
        """Turns of each engine; each round begins with another one."""
        before, begin = self._others(), time.perf_counter()
        for number in range(self.rounds):
            turn = number % len(ready)
            for engine in [*ready[turn:], *ready[:turn]]:
                time.sleep(PAUSE)
                # A call that fills a turn needs no others before it.
                slow = engine in result.times and result.times[engine][0] > self.seconds / 3
                try:
                    times = self.ask(engine, warm=0 if slow else self.seconds / 3, seconds=self.seconds)["times"]
                except RuntimeError as error:
                    result.refused[engine] = str(error)
                    ready.remove(engine)
                    return
                old = result.times.get(engine, (times[0], statistics.median(times)))
                result.times[engine] = (min(old[0], *times), min(old[1], statistics.median(times)))
        result.others = max(0.0, self._others() - before) / (time.perf_counter() - begin)

    def _others(self) -> float:
        """Seconds that processors worked for other programs than the engines and this one."""
        tick = os.sysconf("SC_CLK_TCK")
        fields = [int(part) for part in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        busy = sum(fields) - fields[3] - fields[4]
        for process in (os.getpid(), *(lane.process.pid for lane in self.lanes.values())):
            used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            busy -= int(used[11]) + int(used[12])
        return busy / tick


def save(result: Result) -> None:
    """Keeps the row for the table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{result.row}.json").write_text(json.dumps(asdict(result)) + "\n")


def saved(chosen: list[str]) -> list[Result]:
    """The rows that were measured before."""
    files = [RESULTS / f"{row}.json" for row in chosen]
    return [Result(**json.loads(file.read_text())) for file in files if file.exists()]


def table(results: list[Result], copied: float | None = None) -> str:
    """The rows by ratio, the lowest first; those that miss a goal; those that failed."""
    ranked = sorted(results, key=lambda one: (one.ratio() is None, one.ratio() or 0.0))
    lines = ["| row | mxrt | mxnet | numpy | x mxnet | x numpy | GB/s |", "| --- " * 7 + "|"]
    lines += [_line(one) for one in ranked]
    low = [one for one in ranked if (one.ratio() or GOAL) < GOAL]
    lines += ["", f"{len(low)} of {len(results)} rows are below {GOAL} x MXNet:", *map(_short, low)]
    if copied is not None:
        slow = [one for one in results if _streams(one) and one.rate() < STREAMED * copied]
        lines += ["", f"A copy by two threads moves {copied:.1f} GB/s. Below {STREAMED} x of it:"]
        lines += [f"{one.row} {one.rate():.1f} GB/s" for one in sorted(slow, key=Result.rate)]
    refusals = [f"{one.row} by {engine}: {text}" for one in results for engine, text in one.refused.items()]
    refusals = [text for text in refusals if " by numpy: " not in text]
    return "\n".join([*lines, "", "Not measured:", *refusals])


def _streams(one: Result) -> bool:
    name, _, size = one.row.rpartition("-")
    return "mxrt" in one.times and size == "large" and cases.CASES[name].streams


def _line(one: Result) -> str:
    def cell(times: tuple[float, float] | None) -> str:
        return "" if times is None else f"{times[1] * 1e3:.3g} / {times[0] * 1e3:.3g}"

    ratios = ["" if ratio is None else f"{ratio:.2f}" for ratio in map(one.ratio, ENGINES[1:])]
    cells = [*(cell(one.times.get(engine)) for engine in ENGINES), *ratios, f"{one.rate():.1f}"]
    return f"| {one.row} | {' | '.join(cells)} |"


def _short(one: Result) -> str:
    times = [f"{one.times[engine][0] * 1e3:.3g} ms by {engine}" for engine in ("mxrt", "mxnet")]
    return f"{one.row} {one.ratio():.2f}: {', '.join(times)}"


def run(chosen: list[str], measurement: Measurement, quiet: float) -> int:
    """Measures, keeps and prints rows; the exit status says whether mxrt made every call."""
    results: list[Result] = []
    copied = copy_bandwidth()
    try:
        for number, row in enumerate(chosen):
            result = measurement.row(row, quiet)
            save(result)
            results.append(result)
            print(f"{number + 1}/{len(chosen)} {_line(result)}", file=sys.stderr, flush=True)
    finally:
        measurement.close()
        print(table(results, copied), flush=True)
    return 1 if any("mxrt" in one.refused for one in results) else 0
