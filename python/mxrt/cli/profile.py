"""`mxrt profile`: the time of each layer of a model, and a trace."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .. import _mxrt
from ..ndarray import array, waitall
from ._errors import GOOD, UsageError
from ._inputs import random_arrays
from ._model import Loaded, add_model_arguments, open_model
from ._out import counted, megabytes, note, print_json, shape_text, style, table
from ._shapes import folder_of

__all__ = ["add_arguments", "main"]

# Seconds between two looks at the memory.
_LOOK = 0.002
_LONGEST = 600.0
# So many calls of each caller are in a trace at most, which a browser still shows.
_TRACED = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser)
    parser.add_argument("--seconds", type=float, default=1.0, help="time of the measurement (default 1)")
    parser.add_argument("--callers", type=int, default=1, metavar="N", help="threads that call (default 1)")
    parser.add_argument("--top", type=int, default=20, metavar="K", help="number of layers, slowest first (default 20)")
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="write a trace of some calls for https://ui.perfetto.dev: calls, layers, cores, waits, memory",
    )
    parser.add_argument(
        "--precision", choices=("default", "exact", "bf16", "w8"), default="default", help="as in hybridize"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command."""
    if not (math.isfinite(args.seconds) and 0 < args.seconds <= _LONGEST):
        raise UsageError(f"--seconds is {args.seconds:g}; expected a number over 0, at most {_LONGEST:g}")
    if not 1 <= args.callers <= 1024:
        raise UsageError(f"--callers is {args.callers}; expected a number from 1 to 1024")
    if args.top < 1:
        raise UsageError(f"--top is {args.top}; expected a positive number")
    target = folder_of(args.trace, "--trace") if args.trace is not None else None
    model = open_model(args)
    model.files.check_apart(target, "--trace")
    if model.assumed:
        note("profile", model.assumed)
    report, events = profiled(model, args.callers, args.seconds, args.precision)
    if target is not None:
        _write(target, events)
        note(
            "profile",
            f"{sum(one.get('cat') == 'call' for one in events)} calls are in '{target}': open it in https://ui.perfetto.dev",
        )
    if args.json:
        print_json(report)
    else:
        print(_as_text(report, args.top))
    return GOOD


def profiled(
    model: Loaded, callers: int, seconds: float, precision: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The times of layers as plain data, and the events of a trace."""
    net = model.net
    net.hybridize(precision=precision)
    feeds = random_arrays(model.shapes, model.dtypes)
    arrays = [array(value, dtype=model.dtypes[name]) for name, value in feeds.items()]

    def call() -> None:
        found = net(*arrays)
        for one in found if isinstance(found, list) else [found]:
            one.wait_to_read()

    for _ in range(3):
        call()
    waitall()
    times: list[float] = []
    layers: dict[tuple[str, str], list[float]] = defaultdict(list)
    order: dict[tuple[str, str], int] = {}
    waits: list[float] = []
    traced: list[dict[str, Any]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        events, took = _recorded(call, callers, min(_TRACED, max(1, int(100 / callers))), keep_memory=not traced)
        times += took
        for event in events:
            if event.get("cat") == "layer":
                key = (event["name"], event["args"]["operator"])
                order.setdefault(key, len(order))
                layers[key].append(event["dur"])
            elif event.get("cat") == "operator" and "request" in event.get("args", {}):
                waits.append(event["args"]["queued_us"])
        if not traced:
            traced = _named(events, model.files.name)
    steps = {one["node"]: one for one in net.plan_report(*arrays, measure=False)["steps"]}
    calls = len(times)
    total = sum(map(sum, layers.values()))
    rows = [
        {
            "layer": name,
            "operator": operator,
            "kernel": steps.get(name, {}).get("kernel"),
            "output": steps.get(name, {}).get("output"),
            "order": order[name, operator],
            "mean_us": sum(found) / calls,
            "min_us": min(found),
            "share": sum(found) / total if total else 0.0,
        }
        for (name, operator), found in layers.items()
    ]
    rows.sort(key=lambda one: -float(one["mean_us"]))
    report = {
        "model": model.files.name,
        "inputs": {name: list(shape) for name, shape in model.shapes.items()},
        "callers": callers,
        "cores": _mxrt.info()["cores"],
        "calls": calls,
        "call_us": {"p50": statistics.median(times), "min": min(times)},
        "layers_us": total / calls,
        "waited_us": statistics.fmean(waits) if waits else 0.0,
        "memory_peak": _mxrt.info()["memory_peak"],
        "layers": rows,
    }
    return report, traced


def _recorded(
    call: Callable[[], None], callers: int, each: int, keep_memory: bool
) -> tuple[list[dict[str, Any]], list[float]]:
    """Events of some calls from some threads, and how many microseconds each call took."""
    took: list[list[float]] = [[] for _ in range(callers)]

    def ask(number: int) -> None:
        for _ in range(each):
            begin = time.perf_counter()
            call()
            took[number].append((time.perf_counter() - begin) * 1e6)

    _mxrt.profiler_events(True)
    with ExitStack() as stack:
        _mxrt.profiler_switch(True)
        stack.callback(_mxrt.profiler_switch, False)
        memory = stack.enter_context(_Memory()) if keep_memory else None
        if callers == 1:
            ask(0)
        else:
            with ThreadPoolExecutor(callers) as pool:
                list(pool.map(ask, range(callers)))
        waitall()
    _mxrt.profiler_finish()
    events = [json.loads(text) for text in _mxrt.profiler_events(True)]
    return events + (memory.events if memory else []), [one for row in took for one in row]


class _Memory:
    """Looks at the memory of arrays and running calls, in a thread."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while True:
            held = _mxrt.info()["memory_in_use"]
            self.events.append(
                {"name": "memory", "ph": "C", "pid": 0, "ts": _mxrt.profiler_now(), "args": {"MB": held / 1e6}}
            )
            if self._stop.wait(_LOOK):
                return

    def __enter__(self) -> _Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _named(events: Sequence[Mapping[str, Any]], model: str) -> list[dict[str, Any]]:
    """The events, with calls named after the model, and a span for the time that each waited."""
    made: list[dict[str, Any]] = []
    for event in events:
        request = event.get("args", {}).get("request")
        if event.get("cat") != "operator" or request is None or event.get("ph") != "X":
            made.append(dict(event))
            continue
        made.append({**event, "name": f"{model} #{request}", "cat": "call"})
        waited = event["args"]["queued_us"]
        span = {"name": "waits", "cat": "wait", "pid": 0, "tid": event["tid"], "id": request}
        made.append({**span, "ph": "b", "ts": event["ts"] - waited, "args": {"call": f"{model} #{request}"}})
        made.append({**span, "ph": "e", "ts": event["ts"]})
    return made


def _write(target: Path, events: Sequence[Mapping[str, Any]]) -> None:
    content = json.dumps({"displayTimeUnit": "ms", "traceEvents": events}).encode()
    _mxrt.write_file(target, content)


def _as_text(report: Mapping[str, Any], top: int) -> str:
    inputs = ", ".join(f"{name} {shape_text(shape)}" for name, shape in report["inputs"].items())
    call = report["call_us"]
    lines = [
        style(report["model"], "bold") + f"  {inputs}; {counted(report['callers'], 'caller')}, "
        f"{counted(report['cores'], 'core')}",
        f"  a call takes {call['p50'] / 1e3:.3f} ms (median of {report['calls']}, best {call['min'] / 1e3:.3f} ms); "
        f"it waits {report['waited_us'] / 1e3:.3f} ms for a core",
        f"  memory of arrays and calls: at most {megabytes(report['memory_peak'])}",
        "",
    ]
    rows = [
        (one["layer"], one["operator"], f"{one['mean_us']:.1f}", f"{100 * one['share']:.1f}", one["kernel"] or "")
        for one in report["layers"][:top]
    ]
    lines.append(table(("layer", "operator", "us", "%", "kernel"), rows))
    rest = report["layers"][top:]
    if rest:
        share = 100 * sum(one["share"] for one in rest)
        lines.append(f"  and {len(rest)} more layers with {share:.1f} % (--top {len(report['layers'])}: all)")
    return "\n".join(lines)
