"""Everything that `mxrt bench` measures, as plain data."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _mxrt
from ..cli.info import processor
from ..gluon import SymbolBlock
from ..ndarray import array, from_numpy, waitall
from . import saved
from .compare import RAMP, TRY_SECONDS, Peers, Task
from .peer import engines, load

__all__ = ["Task", "conditions", "measure"]

# Engines are compared in turns, at least so many. What shares the machine slows it down for tenths
# of a second to some, which many brief turns meet evenly; none is briefer than so many seconds, or
# so many answers of a caller take.
TURNS, BRIEF_SECONDS, ANSWERS = 3, 0.2, 20
# What becomes of the numbers of several turns.
TOGETHER: dict[str, Callable[[Any], Any]] = {
    "requests": sum,
    "seconds": sum,
    "images_per_second": statistics.median,
    # Clocks of the system tick too seldom for one brief turn.
    "others": statistics.fmean,
    "resident_mb": max,
}

Note = Callable[[str], None]


def conditions(task: Task, rate: float | None) -> dict[str, Any]:
    """The part of the report that is known before anything is measured."""
    facts = _mxrt.info()
    return {
        "model": str(task.symbol_file),
        "parameters": task.params,
        "precision": task.precision,
        "inputs": {name: list(shape) for name, shape in task.shapes.items()},
        "images": task.images.facts() if task.images is not None else None,
        "rate": rate,
        "version": facts["version"],
        "processor": processor(),
        "cores": facts["cores"],
    }


def measure(
    task: Task,
    callers: Sequence[int],
    seconds: float,
    peers: Mapping[str, str],
    note: Note,
    rate: float | None = None,
) -> dict[str, Any]:
    """The report on one model; `note` is called with what is being done. `rate` is the
    number of requests that arrive in a second, whether or not earlier ones are answered.
    """
    begin = time.perf_counter()
    shapes = task.shapes
    net = _net(task, task.precision)
    loaded = time.perf_counter()
    numbers = engines.random_inputs(list(shapes.values()))
    feeds = [array(one) for one in numbers]
    answer = _listed(net(*feeds))
    expected = [one.asnumpy() for one in answer]
    first = time.perf_counter()
    batch = next(iter(shapes.values()))[0]

    make = _callers(task, net, numbers)

    def ask(count: int, seconds: float) -> dict[str, Any]:
        note(f"mxrt, callers: {count}")
        waitall()
        window, ramp = seconds * (1 - RAMP), seconds * RAMP
        if rate is None:
            seen = load.closed_loop(make, count, window, ramp)
        else:
            seen = load.open_loop(make, count, rate, window, ramp, seed=0)
        return load.summary(seen, batch, times=True)

    others = Peers(peers, task, net, note)
    try:
        others.compare(expected)
        runs = [_run(count, seconds, ask, others) for count in callers]
    finally:
        others.close()
    waitall()
    plan = net.plan_report(*feeds)
    other = None
    if task.precision == "auto":
        chosen = "bf16" if "precision auto: bf16" in plan["text"] else "default"
        other = _with_other_precision(task, chosen, numbers, seconds, note)
    return {
        **conditions(task, rate),
        "other_precision": other,
        "load_ms": (loaded - begin) * 1e3,
        "first_answer_ms": (first - loaded) * 1e3,
        "runs": runs,
        "peers": others.report(),
        "peers_left_out": others.left_out,
        "memory": _memory(net, _mxrt.info()),
        "plan": plan,
    }


def _net(task: Task, precision: str) -> SymbolBlock:
    """The network of a task, with a precision."""
    net = SymbolBlock.imports(str(task.symbol_file), list(task.shapes), task.params)
    if task.params is None:
        net.initialize()
    net.hybridize(precision=precision)
    return net


def _memory(net: SymbolBlock, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Memory of the process, of arrays, and of the network's plans."""
    return {
        "resident_mb": load.memory_mb("VmRSS"),
        "resident_peak_mb": load.memory_mb("VmHWM"),
        "arrays_mb": facts["memory_in_use"] / 1e6,
        "arrays_peak_mb": facts["memory_peak"] / 1e6,
        **{name: value for name, value in net.plan_cache_info().items() if name.endswith("_bytes")},
    }


def _run(count: int, seconds: float, ask: Callable[[int, float], dict[str, Any]], others: Peers) -> dict[str, Any]:
    """Measures one number of callers; what the others did is stored with them."""
    own, rest = _turns(count, seconds, ask, others)
    for name, one in rest.items():
        others.runs[name].append(one)
    return {"callers": count, **own}


def _with_other_precision(
    task: Task, chosen: str, numbers: engines.Arrays, seconds: float, note: Note
) -> dict[str, Any]:
    """Throughput of one caller with the precision that `auto` did not choose."""
    precision = "default" if chosen == "bf16" else "bf16"
    note(f"mxrt, precision {precision}")
    net = _net(task, precision)
    batch = next(iter(task.shapes.values()))[0]
    seen = load.closed_loop(_callers(task, net, numbers), 1, seconds * (1 - RAMP), seconds * RAMP)
    rate = load.summary(seen, batch, times=True)["images_per_second"]
    return {"chosen": chosen, "precision": precision, "images_per_second": rate}


def _callers(task: Task, net: SymbolBlock, numbers: engines.Arrays) -> load.MakeCaller:
    """Callers that decode images, or that have the same numbers each."""
    if task.images is None:
        return lambda _: _caller(net, numbers)
    return task.images.callers(net)


def _caller(net: SymbolBlock, numbers: engines.Arrays) -> Callable[[], object]:
    """A caller that behaves as a server does: from its own numpy arrays, read in place as peers do,
    to numpy arrays.
    """
    own = [np.array(one) for one in numbers]
    return lambda: [one.asnumpy() for one in _listed(net(*[from_numpy(one) for one in own]))]


def _listed(outputs: Any) -> list[Any]:
    return outputs if isinstance(outputs, list) else [outputs]


def _turns(
    count: int, seconds: float, ask: Callable[[int, float], dict[str, Any]], others: Peers
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Measures one number of callers: mxrt alone, or interleaved with the others."""
    if not others.loaded:
        return _together([ask(count, seconds)]), {}
    others.choose(count)
    times = _how_many(seconds, _together([ask(count, min(seconds, TRY_SECONDS))])["p50_ms"] * 1e-3)
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in ("mxrt", *others.loaded)}
    names = list(turns)
    for number in range(times):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(load.PAUSE)
            one = ask(count, seconds / times) if name == "mxrt" else others.ask(name, count, seconds / times)
            if one is not None:
                turns[name].append(one)
    result = _together(turns.pop("mxrt"))
    chosen = {
        name: {"callers": count, "setting": others.setting[name], **_together(seen)}
        for name, seen in turns.items()
        if seen
    }
    for one in chosen.values():
        one["mxrt_is_faster_by"] = result["images_per_second"] / one["images_per_second"]
    return result, chosen


def _how_many(seconds: float, answer: float) -> int:
    """Into how many turns the seconds of a measurement are divided, where an answer takes so
    long.
    """
    return max(TURNS, int(seconds / max(BRIEF_SECONDS, ANSWERS * answer)))


def _together(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One line of the table from several turns."""
    values = {key: [one[key] for one in turns if one[key] is not None] for key in TOGETHER}
    out = {key: TOGETHER[key](seen) if seen else None for key, seen in values.items()}
    times = [ms for one in turns for ms in one["times_ms"]]
    return {**out, **load.percentiles(times), "blocks_ms": saved.blocks(times)}
