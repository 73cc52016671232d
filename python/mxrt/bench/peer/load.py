"""Callers that keep an engine busy, and what they see. Needs numpy and nothing of mxrt: peers run
it as well.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Load", "TooFewThreads", "closed_loop", "memory_mb", "open_loop", "percentiles", "summary"]

# Makes one caller: a function that asks once and returns when the answer is there.
MakeCaller = Callable[[int], Callable[[], object]]

# How often the threads' counters and the memory of the process are looked at.
LOOK_SECONDS = 0.05
# Above this share of one core, other programs are said to have disturbed a measurement.
QUIET = 0.05
# Before each turn everything is left alone for so many seconds, so that spinning threads of other
# engines go quiet.
PAUSE = 0.05


class TooFewThreads(RuntimeError):
    """The machine does not allow as many threads as there are callers."""


@dataclass
class Load:
    """The observations of one run's callers: (begin, end) of every request, and the window in which
    they count.
    """

    begin: float = 0.0
    end: float = 0.0
    requests: list[tuple[float, float]] = field(default_factory=list)
    # Cores that other programs used within the window; None where the system does not tell.
    others: float | None = None
    resident_mb: float | None = None


def closed_loop(
    make_caller: MakeCaller, callers: int, seconds: float, ramp: float, each: int = 0, patience: float = 60.0
) -> Load:
    """Threads that ask again as soon as they have an answer.

    The window opens after `ramp` seconds, or later, when every caller has had an answer: from then
    on as many requests end as begin. It lasts `seconds`, or longer, until every caller has had
    `each` answers in it. Neither is waited for beyond `patience`.
    """
    crowd = _Crowd(make_caller, callers)
    load = Load()
    with crowd.started():
        crowd.sleep(ramp)
        crowd.sleep_until_each_has(1, patience)
        before = min(len(one) for one in crowd.done)
        busy = _Busy()
        load.begin = time.perf_counter()
        crowd.sleep(seconds)
        crowd.sleep_until_each_has(before + each, patience)
        load.end = time.perf_counter()
        load.others = busy.others()
    load.resident_mb = crowd.resident_mb
    load.requests = [request for one in crowd.done for request in one]
    return load


def open_loop(make_caller: MakeCaller, clients: int, rate: float, seconds: float, ramp: float, seed: int) -> Load:
    """Requests that arrive at random times (Poisson, the same for the same seed) whether or not
    others are answered.

    A request begins when it arrives, also when all `clients` are still busy with earlier ones.
    """
    gaps = np.random.RandomState(seed).exponential(1.0 / rate, int((ramp + seconds) * rate * 2) + 16)
    arrivals = np.cumsum(gaps)
    pending = iter(arrivals[arrivals < ramp + seconds].tolist())
    take = threading.Lock()
    load = Load()

    def client(_: int) -> Iterator[float]:
        while True:
            with take:
                arrival = next(pending, None)
            if arrival is None:
                return
            due = crowd.start + arrival
            if (wait := due - time.perf_counter()) > 0:
                time.sleep(wait)
            yield due

    crowd = _Crowd(make_caller, clients, client)
    with crowd.started():
        crowd.sleep(ramp)
        busy = _Busy()
        load.begin = time.perf_counter()
        crowd.sleep(seconds)
        load.end = time.perf_counter()
        load.others = busy.others()
    load.resident_mb = crowd.resident_mb
    load.requests = [request for one in crowd.done for request in one]
    return load


def summary(load: Load, batch: int, times: bool = False) -> dict[str, Any]:
    """Throughput and latency within the window of a load; with `times` those of every request as
    well.
    """
    begin, end = load.begin, load.end
    counted = [(a, b) for a, b in load.requests if begin <= a < end]
    if not counted:  # Every request takes longer than the window: take what there is.
        counted = load.requests
        begin, end = min(a for a, _ in counted), max(b for _, b in counted)
    # A request that began before or ended after the window belongs to it with the part that lies
    # inside.
    share = sum(max(0.0, min(b, end) - max(a, begin)) / max(b - a, 1e-12) for a, b in load.requests)
    took = [(b - a) * 1e3 for a, b in counted]
    return {
        "requests": len(counted),
        "seconds": end - begin,
        "images_per_second": share * batch / max(end - begin, 1e-12),
        **percentiles(took),
        "others": load.others,
        "resident_mb": load.resident_mb,
        **({"times_ms": took} if times else {}),
    }


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """The reported percentiles of the times of requests, in ms."""
    p50, p99, most = np.percentile(times, [50, 99, 100])
    return {"p50_ms": float(p50), "p99_ms": float(p99), "max_ms": float(most)}


class _Crowd:
    """Threads that start together and stop together."""

    def __init__(
        self, make_caller: MakeCaller, count: int, turns: Callable[[int], Iterator[float]] | None = None
    ) -> None:
        self.done: list[list[tuple[float, float]]] = [[] for _ in range(count)]
        self.errors: list[BaseException] = []
        self.resident_mb: float | None = None
        self._stop = False
        self.start = 0.0
        self._gate = threading.Barrier(count + 1, action=self._open)
        self._make_caller = make_caller
        self._turns = turns or self._at_once
        self._threads = [threading.Thread(target=self._run, args=(index,), daemon=True) for index in range(count)]

    def _open(self) -> None:
        self.start = time.perf_counter()

    def _at_once(self, _: int) -> Iterator[float]:
        yield time.perf_counter()
        while not self._stop:
            yield time.perf_counter()

    def _run(self, index: int) -> None:
        try:
            ask = self._make_caller(index)
            self._gate.wait()
            for begin in self._turns(index):
                ask()
                self.done[index].append((begin, time.perf_counter()))
                if self.errors:
                    return
        except threading.BrokenBarrierError:
            return
        except BaseException as error:
            self.errors.append(error)
            self._gate.abort()

    @contextmanager
    def started(self) -> Iterator[None]:
        """Inside, all threads ask; afterwards all have had their last answer. Raises what one of
        them raised.
        """
        old = threading.stack_size(512 << 10)  # a thousand threads need little
        try:
            for number, thread in enumerate(self._threads):
                try:
                    thread.start()
                except RuntimeError as error:
                    self._gate.abort()
                    raise TooFewThreads(
                        f"this machine allowed {number} of {len(self._threads)} threads ({error}); raise its limit "
                        "(ulimit -u, or the container's pids limit) or take fewer callers"
                    ) from None
        finally:
            threading.stack_size(old)
        try:
            self._gate.wait()
        except threading.BrokenBarrierError:
            raise self.errors[0] from None
        try:
            yield
        finally:
            self._stop = True
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def sleep(self, seconds: float) -> None:
        """Lets the threads work; checks memory periodically, and returns at once when one has
        failed.
        """
        end = time.perf_counter() + seconds
        while not self.errors and (left := end - time.perf_counter()) > 0:
            time.sleep(min(left, LOOK_SECONDS))
            now = memory_mb("VmRSS")
            if now is not None:
                self.resident_mb = max(now, self.resident_mb or 0.0)

    def sleep_until_each_has(self, answers: int, patience: float) -> None:
        """Sleeps until every thread has had `answers` answers, or patience has come to its end."""
        end = time.perf_counter() + patience
        while not self.errors and min(map(len, self.done)) < answers and time.perf_counter() < end:
            self.sleep(LOOK_SECONDS)


class _Busy:
    """Processor time of all other programs, from now on."""

    def __init__(self) -> None:
        self._begin = (time.perf_counter(), self._now())

    @staticmethod
    def _now() -> float | None:
        """Seconds that all processors together worked, this process left out."""
        try:
            with open("/proc/stat") as f:
                ticks = [int(part) for part in f.readline().split()[1:9]]
        except (OSError, ValueError):
            return None
        user, nice, system, _idle, _iowait, irq, softirq, stolen = ticks
        own = os.times()
        return (user + nice + system + irq + softirq + stolen) / os.sysconf("SC_CLK_TCK") - own.user - own.system

    def others(self) -> float | None:
        then, before = self._begin
        after = self._now()
        if before is None or after is None:
            return None
        return max(0.0, after - before) / (time.perf_counter() - then)


def memory_mb(name: str) -> float | None:
    """A line of /proc/self/status in MB; None where the system has no such thing."""
    try:
        with open("/proc/self/status") as f:
            lines = [line.split() for line in f if line.startswith(name + ":")]
    except OSError:
        return None
    return int(lines[0][1]) * 1.024e-3 if lines else None
