"""`mxrt demo`: real MXNet models answering many threads at once, and what happens when a request is
wrong.

Needs no network and no arguments. Uses the MXNet API only, so it reads as a user's program would.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mxrt as mx
from mxrt._system import temporary

from . import _weights
from ._terminal import Terminal, resident_megabytes

DATA = _weights.DATA

# The whole demo should take a minute and a half at most, also on two slow cores: the timed levels
# give way.
BUDGET_SECONDS = 75.0
LEVEL_SECONDS = 4.0


def in_threads(count: int, body: Callable[[int], None], watch: Callable[[], None] | None = None) -> None:
    """Runs body(0), ..., body(count - 1), each in a thread of its own, started together."""
    # A place for this thread too: no thread begins before all are there.
    gate = threading.Barrier(count + 1)

    def run(index: int) -> None:
        try:
            gate.wait()
        except threading.BrokenBarrierError:
            return
        body(index)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    for number, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError as error:
            gate.abort()
            raise RuntimeError(
                f"this machine allowed {number} of {count} threads ({error}); raise its limit (ulimit -u, or the "
                "container's pids limit) and run again"
            ) from None
    gate.wait()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.1)
            if watch is not None:
                watch()


# ---- 1. a trained model ------------------------------------------------------------------------


def classify_digits(term: Terminal) -> bool:
    """The bundled digits network over its evaluation set, from 8 threads on one block."""
    term.heading("1. A trained model, as MXNet 1.9.1 wrote it, called from 8 threads")
    meta = json.loads((DATA / "digits_cnn-meta.json").read_text())
    with np.load(DATA / "digits_cnn-eval.npz") as saved:
        images, labels = saved["in.data"], saved["label"]
    net = mx.gluon.SymbolBlock.imports(
        str(DATA / "digits_cnn-symbol.json"), ["data"], str(DATA / "digits_cnn-0000.params")
    )
    answers = np.full(len(labels), -1)
    errors: list[Exception] = []

    def classify(index: int) -> None:
        try:
            for at in range(index * 8, len(labels), 64):
                scores = net(mx.nd.array(images[at : at + 8]))
                answers[at : at + 8] = scores.asnumpy().argmax(axis=1)
        except mx.base.MXNetError as error:
            errors.append(error)

    start = time.perf_counter()
    in_threads(8, classify)
    seconds = time.perf_counter() - start
    term.say(f"  {meta['task']}: {len(labels)} images it has never seen, {seconds:.2f} s")
    if errors:
        term.verdict(False, f"{len(errors)} of 8 threads failed; the first: {errors[0]}")
        return False
    accuracy = float((answers == labels).mean())
    recorded = float(meta["scores"]["accuracy"])
    good = accuracy == recorded
    term.verdict(good, f"accuracy {accuracy:.4f}, with MXNet 1.9.1 {recorded:.4f}")
    return good


# ---- 2. many callers ---------------------------------------------------------------------------


@dataclass
class Level:
    """The observations for one number of callers."""

    callers: int
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    different: int = 0
    errors: list[Exception] = field(default_factory=list)
    resident: float | None = None

    @property
    def good(self) -> bool:
        return len(self.latencies) >= self.callers and not self.different and not self.errors

    def row(self) -> str:
        p50, p99 = (np.percentile(self.latencies, (50, 99)) * 1e3) if self.latencies else (0.0, 0.0)
        memory = "n/a" if self.resident is None else f"{self.resident:.0f}"
        same = "yes" if self.good else f"{self.different} differ, {len(self.errors)} failed"
        answers = len(self.latencies)
        rate = answers / self.seconds
        return f"  {self.callers:7d} {answers:8d} {rate:9.1f} {p50:9.1f} {p99:9.1f} {memory:>12}   {same}"


TABLE_HEAD = "  callers  answers  images/s    p50 ms    p99 ms  resident MB   same bits as one thread"


def serve(
    term: Terminal,
    net: Callable[[Any], Any],
    images: list[Any],
    expected: list[Any],
    callers: int,
    seconds: float | None,
) -> Level:
    """`callers` threads ask for `seconds`; without a time, until each has one answer."""
    level = Level(callers)
    lock = threading.Lock()
    begin = time.perf_counter()

    def ask(index: int) -> None:
        which = index % len(images)
        while True:
            start = time.perf_counter()
            try:
                answer = net(images[which]).asnumpy()
            except mx.base.MXNetError as error:
                with lock:
                    level.errors.append(error)
                return
            end = time.perf_counter()
            with lock:
                level.latencies.append(end - start)
                level.different += not np.array_equal(answer, expected[which])
            if seconds is None or end - begin >= seconds:
                return

    def watch() -> None:
        now = resident_megabytes()
        if now is not None:
            level.resident = max(now, level.resident or 0.0)
        elapsed = time.perf_counter() - begin
        part = len(level.latencies) / callers if seconds is None else elapsed / seconds
        term.progress(f"{callers:4d} callers", part)

    in_threads(callers, ask, watch)
    watch()
    level.seconds = time.perf_counter() - begin
    return level


def load_resnet() -> Callable[[Any], Any]:
    """Writes the computed weights as a .params file and loads it with the bundled graph."""
    with temporary.folder() as folder:
        params = str(folder / "resnet18_v1-0000.params")
        mx.nd.save(params, {name: mx.nd.array(value) for name, value in _weights.parameters()})
        net: Callable[[Any], Any] = mx.gluon.SymbolBlock.imports(
            str(DATA / "resnet18_v1-symbol.json"), ["data"], params
        )
        return net


def serve_resnet(term: Terminal, quick: bool) -> bool:
    """Full-size resnet-18 and 1, 2, 8, 64 and 960 callers."""
    crowd = 96 if quick else 960
    term.heading(f"2. Full-size resnet-18 (224x224 images) and up to {crowd} callers at once")
    net = load_resnet()
    batch = _weights.images()
    images = [mx.nd.array(batch[i : i + 1]) for i in range(len(batch))]

    expected = [net(image).asnumpy() for image in images]
    recorded, atol, rtol = _weights.mxnet_answers()
    got = np.concatenate(expected)
    off = float(np.abs(got - recorded).max())
    good = bool(np.allclose(got, recorded, rtol=rtol, atol=atol))
    term.verdict(good, f"answers agree with MXNet 1.9.1 (largest difference {off:.1e}, allowed {atol:.1e})")

    start = time.perf_counter()
    for image, want in zip(images, expected, strict=True):
        good &= np.array_equal(net(image).asnumpy(), want)
    rate = len(images) / (time.perf_counter() - start)
    levels = (1, 2, 8, 64)
    # What the crowd needs at the speed of one caller is set aside; the timed levels share the rest.
    seconds = min(LEVEL_SECONDS, max(1.0, (BUDGET_SECONDS - (crowd + 64) / rate) / len(levels)))
    if quick:
        seconds = 0.5
    term.say(TABLE_HEAD)
    for callers, limit in [*((n, seconds) for n in levels), (crowd, None)]:
        level = serve(term, net, images, expected, callers, limit)
        term.say(level.row())
        if level.errors:
            term.say(f"          the first error: {level.errors[0]}")
        good &= level.good
    text = "every answer equals the single-threaded one bit for bit" if good else "not every answer is right"
    term.verdict(good, text)
    return good


# ---- 3. failures -------------------------------------------------------------------------------


def one_bad_request(term: Terminal) -> bool:
    """50 requests at once, one of them of the wrong shape."""
    term.heading("3. Failures reach the caller they belong to")
    with np.load(DATA / "digits_cnn-eval.npz") as saved:
        images, labels = saved["in.data"], saved["label"]
    net = mx.gluon.SymbolBlock.imports(
        str(DATA / "digits_cnn-symbol.json"), ["data"], str(DATA / "digits_cnn-0000.params")
    )
    bad = 17
    requests = [mx.nd.array(images[i : i + 1]) for i in range(50)]
    requests[bad] = mx.nd.zeros((1, 3, 8, 8))
    want = {i: net(requests[i]).asnumpy() for i in range(50) if i != bad}
    answers: dict[int, Any] = {}
    errors: dict[int, Exception] = {}

    def ask(index: int) -> None:
        try:
            answers[index] = net(requests[index]).asnumpy()
        except mx.base.MXNetError as error:
            errors[index] = error

    in_threads(50, ask)
    good = list(errors) == [bad] and sorted(answers) == sorted(want)
    good = good and all(np.array_equal(answers[i], want[i]) for i in want)
    right = sum(int(answers[i].argmax() == labels[i]) for i in answers)
    term.verdict(
        good,
        f"50 requests at once, one with 3 channels instead of 1: {len(answers)} answers "
        f"({right} of them the right digit), {len(errors)} error",
    )
    for index, error in sorted(errors.items()):
        show(term, f"y{index} = net(x{index}); y{index}.asnumpy()", error)
    return good


def show(term: Terminal, code: str, error: Exception) -> None:
    """A failure as the user sees it."""
    for line in code.splitlines():
        term.say(f"       >>> {line}")
    text = f"{type(error).__module__}.{type(error).__name__}: {error}"
    for line in text.splitlines():
        term.say(f"       {line}")


def impossible_numbers(term: Terminal) -> bool:
    """A normal distribution of negative width; MXNet used to end the process."""
    code = "mx.nd.random_normal(0, -1, (2, 3))\nmx.nd.waitall()"
    try:
        mx.nd.random_normal(0, -1, (2, 3))
        mx.nd.waitall()
    except mx.base.MXNetError as error:
        term.verdict(True, "random numbers of negative width: caught")
        show(term, code, error)
        return True
    term.verdict(False, "random numbers of negative width: no error was raised")
    return False


def wrong_csv(term: Terminal) -> bool:
    """A CSV file with rows of 4 numbers read as rows of 4 x 10; MXNet used to end the process."""
    rows = [[k, k + 1, k + 2, k + 3] for k in (1, 2, 3, 4, 5, 6, 9, 10)]
    with temporary.folder() as folder:
        path = folder / "manual_2.csv"
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        try:
            data_train = mx.io.CSVIter(data_csv=str(path), data_shape=(4, 10), batch_size=1)
            for _ in iter(data_train):
                data_train.getdata().asnumpy()
        except mx.base.MXNetError as error:
            term.verdict(True, "a CSV file whose rows have 4 numbers instead of 40: caught")
            show(
                term,
                "data_train = mx.io.CSVIter(data_csv='manual_2.csv', data_shape=(4, 10), batch_size=1)\n"
                "for batch in iter(data_train): print(data_train.getdata().asnumpy())",
                error,
            )
            return True
    term.verdict(False, "a CSV file whose rows have 4 numbers instead of 40: no error was raised")
    return False


def still_works(term: Terminal) -> bool:
    """After all failures the process computes as before."""
    good = bool(((mx.nd.ones((2, 3)) + 1).asnumpy() == 2).all())
    mx.nd.waitall()
    term.verdict(good, "and the process continues: ones + 1 is 2")
    return good


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    parser.add_argument("--quick", action="store_true", help="a tenth of the callers and of the time")
    parser.add_argument("--json", action="store_true", help="print one JSON object; the report goes to stderr")


def main(args: argparse.Namespace) -> int:
    """Runs all parts; returns the exit status."""
    term = Terminal(sys.stderr if args.json else None)
    start = time.perf_counter()
    term.say(f"mxrt {mx.__version__}: MXNet models, answered by many threads")
    results = {"classify_digits": classify_digits(term), "serve_resnet": serve_resnet(term, args.quick)}
    results |= {part.__name__: part(term) for part in (one_bad_request, impossible_numbers, wrong_csv, still_works)}
    failed = [name for name, good in results.items() if not good]
    seconds = time.perf_counter() - start
    term.say(f"\n{len(results) - len(failed)} of {len(results)} parts as they should be, {seconds:.0f} s")
    if args.json:
        print(json.dumps({"good": not failed, "parts": results, "seconds": seconds}, indent=2))
    return 1 if failed else 0
