"""`mxrt bench`: how fast a model answers, how evenly, and in how much memory, on this machine."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _mxrt
from . import symbol as symbols
from .base import MXNetError
from .gluon import SymbolBlock
from .ndarray import NDArray, array, waitall
from .symbol import Symbol

__all__ = ["add_arguments", "main", "measure"]

# Of every measurement this part passes before anything counts: the callers start one after another.
RAMP = 0.2


class UsageError(Exception):
    """The command line does not say what is needed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    parser.add_argument(
        "model", metavar="MODEL", help="PREFIX or PREFIX-symbol.json, as export and save_checkpoint write"
    )
    parser.add_argument("--params", help="parameter file (otherwise the PREFIX-NNNN.params of the highest number)")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="[NAME=]N,C,H,W",
        help="shape of an input; the first extent is the batch (needed unless the symbol says it)",
    )
    parser.add_argument(
        "--callers", default="1,8", metavar="N,N,...", help="numbers of threads that call (default 1,8)"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each number of callers (default 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--plot", metavar="FILE", help="draw throughput and latency against callers (needs matplotlib)")


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    try:
        report = run(args)
    except (UsageError, OSError, MXNetError) as error:
        print(f"mxrt bench: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        print(as_text(report))
    if args.plot:
        print(plot(report, args.plot), file=sys.stderr)
    return 0


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Everything that is measured, as plain data."""
    callers = _counts(args.callers)
    if not (math.isfinite(args.seconds) and args.seconds > 0):
        raise UsageError(f"--seconds is {args.seconds}; expected a positive number")
    symbol_file, params_file = find(args.model, args.params)
    graph = symbols.load(str(symbol_file))
    shapes = input_shapes(graph, params_file, args.shape)
    net = SymbolBlock.imports(str(symbol_file), list(shapes), str(params_file) if params_file else None)
    if params_file is None:
        net.initialize()
    feeds = [array(np.random.RandomState(i).rand(*shape).astype("float32")) for i, shape in enumerate(shapes.values())]
    begin = time.perf_counter()
    outputs = net(*feeds)
    for out in outputs if isinstance(outputs, list) else [outputs]:
        out.wait_to_read()
    first = time.perf_counter() - begin
    batch = next(iter(shapes.values()))[0]
    runs = [{"callers": n, **measure(lambda x: _answer(net, x), feeds, n, args.seconds, batch)} for n in callers]
    waitall()
    facts = _mxrt.info()
    return {
        "model": str(symbol_file),
        "parameters": str(params_file) if params_file else None,
        "inputs": {name: list(shape) for name, shape in shapes.items()},
        "version": facts["version"],
        "cores": facts["cores"],
        "first_answer_ms": first * 1e3,
        "runs": runs,
        "memory": {
            "resident_mb": _status("VmRSS"),
            "resident_peak_mb": _status("VmHWM"),
            "arrays_mb": facts["memory_in_use"] / 1e6,
            "arrays_peak_mb": facts["memory_peak"] / 1e6,
            **{name: value for name, value in net.plan_cache_info().items() if name.endswith("_bytes")},
        },
        "plan": net.plan(*feeds, measure=True).splitlines(),
    }


def _answer(net: SymbolBlock, feeds: Sequence[NDArray]) -> None:
    out = net(*feeds)
    for one in out if isinstance(out, list) else [out]:
        one.asnumpy()


def measure(
    call: Callable[[Sequence[NDArray]], None], feeds: Sequence[NDArray], callers: int, seconds: float, batch: int
) -> dict[str, Any]:
    """Lets threads call in turn with nothing in between, each with inputs of its own."""
    own = [[feed.copy() for feed in feeds] for _ in range(callers)]
    waitall()
    done: list[list[tuple[float, float]]] = [[] for _ in range(callers)]
    errors: list[BaseException] = []
    gate = threading.Barrier(callers + 1)
    end = [0.0]

    def caller(index: int) -> None:
        try:
            gate.wait()
            while (begin := time.perf_counter()) < end[0] and not errors:
                call(own[index])
                done[index].append((begin, time.perf_counter()))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=caller, args=(index,), daemon=True) for index in range(callers)]
    for thread in threads:
        thread.start()
    start = time.perf_counter()
    end[0] = start + seconds
    gate.wait()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    requests = [request for one in done for request in one]
    return summary(requests, start + RAMP * seconds, end[0], batch)


def summary(requests: list[tuple[float, float]], begin: float, end: float, batch: int) -> dict[str, Any]:
    """Throughput and latency from (begin, end) of requests; what began before `begin` is the ramp."""
    counted = [(a, b) for a, b in requests if a >= begin]
    if not counted:  # Every request takes longer than the ramp: take what there is.
        counted = requests
        begin = min(a for a, _ in requests)
    until = max(end, *(b for _, b in counted))
    # A request that began before or ended after the window belongs to it with the part that lies inside.
    share = sum(max(0.0, min(b, until) - max(a, begin)) / max(b - a, 1e-12) for a, b in requests)
    times = np.array([b - a for a, b in counted]) * 1e3
    return {
        "requests": len(counted),
        "images_per_second": share * batch / max(until - begin, 1e-12),
        "p50_ms": float(np.percentile(times, 50)),
        "p99_ms": float(np.percentile(times, 99)),
        "max_ms": float(times.max()),
    }


def find(model: str, params: str | None) -> tuple[Path, Path | None]:
    """Symbol file and parameter file of a model."""
    given = Path(model)
    prefix = model[: -len("-symbol.json")] if model.endswith("-symbol.json") else model
    symbol = given if given.suffix == ".json" else Path(prefix + "-symbol.json")
    if not symbol.is_file():
        raise UsageError(f"there is no file '{symbol}'; MODEL is PREFIX or PREFIX-symbol.json")
    if params is not None:
        if not Path(params).is_file():
            raise UsageError(f"there is no file '{params}'")
        return symbol, Path(params)
    folder, stem = Path(prefix).parent, Path(prefix).name
    numbered = [p for p in folder.glob("*.params") if p.name.startswith(stem + "-") and p.stem[-4:].isdigit()]
    return symbol, max(numbered, default=None, key=lambda p: p.name)


def input_shapes(graph: Symbol, params_file: Path | None, given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of what is neither a parameter nor a label, in the order of the symbol."""
    from .gluon.parameter import named_arrays, strip_kind

    hints = graph._variable_attrs()
    if params_file is not None:
        held = {strip_kind(name) for name in named_arrays(str(params_file))}
        names = [name for name in graph.list_inputs() if name not in held and not name.endswith("label")]
    else:
        names = [name for name in graph.list_arguments() if not _looks_like_parameter(name)]
    named = {}
    for text in given:
        name, equals, shape = text.rpartition("=")
        if not equals and len(names) != 1:
            raise UsageError(f"the model has the inputs {', '.join(names)}: say --shape NAME=... for each")
        named[name if equals else names[0]] = _shape(shape)
    unknown = [name for name in named if name not in graph.list_inputs()]
    if unknown:
        raise UsageError(f"the model has no input '{unknown[0]}'; it has {', '.join(names)}")
    for name in names:
        hint = hints.get(name, {}).get("__shape__")
        if name not in named and hint and all(n > 0 for n in _shape(hint.strip("()[] "))):
            named[name] = _shape(hint.strip("()[] "))
    missing = [name for name in names if name not in named]
    if missing:
        raise UsageError(f"the shape of {', '.join(missing)} is not known: say --shape {missing[0]}=1,3,224,224")
    return {name: named[name] for name in graph.list_inputs() if name in named}


def _looks_like_parameter(name: str) -> bool:
    endings = ("weight", "bias", "gamma", "beta", "mean", "var", "label", "parameters", "alpha")
    return name.endswith(endings)


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(",") if part.strip())
    except ValueError:
        raise UsageError(f"'{text}' is no shape; write whole numbers with commas, such as 1,3,224,224") from None


def _counts(text: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise UsageError(f"--callers is '{text}'; expected positive whole numbers with commas, such as 1,8,64")
    return counts


def _status(name: str) -> float | None:
    """A line of /proc/self/status in MB; None where the system has no such thing."""
    try:
        with open("/proc/self/status") as f:
            lines = [line.split() for line in f if line.startswith(name + ":")]
    except OSError:
        return None
    return int(lines[0][1]) / 1e3 if lines else None


def as_text(report: dict[str, Any]) -> str:
    """The report as tables."""
    inputs = ", ".join(f"{name} {tuple(shape)}" for name, shape in report["inputs"].items())
    weights = report["parameters"] or "none found: random numbers"
    lines = [f"{report['model']}", f"parameters: {weights}", f"inputs: {inputs}; {report['cores']} cores", ""]
    lines += report["plan"]
    lines += ["", f"first answer after {report['first_answer_ms']:.1f} ms", ""]
    lines.append(f"{'callers':>8}{'images/s':>12}{'p50 ms':>11}{'p99 ms':>11}{'max ms':>11}{'requests':>11}")
    for one in report["runs"]:
        numbers = "".join(f"{one[key]:11.3f}" for key in ("p50_ms", "p99_ms", "max_ms"))
        lines.append(f"{one['callers']:8d}{one['images_per_second']:12.1f}{numbers}{one['requests']:11d}")
    few = [str(one["callers"]) for one in report["runs"] if one["requests"] < 100]
    if few:
        lines.append(f"(fewer than 100 requests at {', '.join(few)} callers: p99 says little; --seconds for more)")
    memory = report["memory"]
    if memory["resident_mb"] is not None:
        lines += ["", f"resident {memory['resident_mb']:.0f} MB, at most {memory['resident_peak_mb']:.0f} MB"]
    lines.append(
        f"arrays and running requests {memory['arrays_mb']:.1f} MB, at most {memory['arrays_peak_mb']:.1f} MB; "
        f"folded and packed weights {memory['constant_bytes'] / 1e6:.1f} MB"
    )
    return "\n".join(lines)


def plot(report: dict[str, Any], file: str) -> str:
    """Draws throughput and latency against the number of callers; says what became of it."""
    try:
        importlib.import_module("matplotlib").use("Agg")
        plt: Any = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return "mxrt bench: matplotlib is not installed, so nothing is drawn; pip install matplotlib"
    runs = report["runs"]
    callers = [one["callers"] for one in runs]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(callers, [one["images_per_second"] for one in runs], marker="o")
    left.set(xlabel="callers", ylabel="images per second", ylim=(0, None))
    for key in ("p50_ms", "p99_ms"):
        right.plot(callers, [one[key] for one in runs], marker="o", label=key.removesuffix("_ms"))
    right.set(xlabel="callers", ylabel="milliseconds until the answer", yscale="log")
    right.legend()
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(callers, [str(n) for n in callers])
        axes.grid(alpha=0.3)
    figure.suptitle(Path(report["model"]).name.removesuffix("-symbol.json"))
    figure.savefig(file)
    plt.close(figure)
    return f"mxrt bench: drawn to {file}"
