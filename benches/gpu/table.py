"""mxrt and torch on one GPU, in one process, interleaved.

    table.py [--seconds N] [--peers NAME,...] [--warm] [--json FILE] [MODEL/DTYPE/BATCH ...]

A row is a model, a type and a batch: milliseconds of a call that is waited for, and of a call among
many that are not, each the smallest and the median of the rounds. `floor` is the larger of the time
that a tensor core (float32: a plain one) needs for the arithmetic and that the memory needs for
every layer's data once; the arithmetic and the sizes are those of the networks. `predicted` is the
same by the rates of peaks.py, with the steps between kernels. The ratio to the best opponent is
that of calls that are waited for / among many.

Opponents are ways of torch: `eager` and `graph` (a CUDA graph) if none are named; `compile`, and
`max-autotune`, the mode of torch.compile that tries kernels, which takes minutes a model without
its cache (TORCHINDUCTOR_CACHE_DIR). With --warm torch compiles the rows' models into that cache,
and nothing is measured. MXNET_ENGINE_TYPE chooses the engine of mxrt. Exits with 1 if a row is not
computed, or the two are farther apart than rounding explains.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import peaks
import peers
import torch

import models
import mxrt as mx

GPU = mx.gpu(0)
TYPES = {"float32": torch.float32, "float16": torch.float16}
# Multiply-adds, parameters, and elements that layers read and write, of one image or sequence.
SIZES = {
    "resnet18_v1": (1.81e9, 11.7e6, 6.4e6),
    "resnet50_v1": (3.86e9, 25.5e6, 27.3e6),
    "encoder": (11.2e9, 84.9e6, 17.3e6),
}
ROWS = [
    f"{name}/{dtype}/{batch}"
    for name in ("resnet18_v1", "resnet50_v1", "encoder")
    for dtype in ("float32", "float16")
    for batch in (1, 8, 64)
]
ROUNDS = 3
PEERS = ("eager", "graph", "compile", "max-autotune")
# How far apart the answers may be, relative to the largest: about four times what was seen.
# Networks that are not trained amplify the rounding of float16.
APART = {
    "resnet18_v1": {"float32": 4e-5, "float16": 3e-2},
    "resnet50_v1": {"float32": 3e-4, "float16": 4e-1},
    "encoder": {"float32": 1e-5, "float16": 2e-2},
}


def limits() -> dict[str, float]:
    """The rates of this GPU per second: bytes copied, and operations of large products."""
    n = 1 << 28
    a, b = torch.empty(n, device="cuda"), torch.empty(n, device="cuda")
    found = {"bytes": 8 * n / gpu_seconds(lambda: b.copy_(a))}
    for name, dtype, size in (("float16", torch.float16, 8192), ("float32", torch.float32, 4096)):
        x, y = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
        found[name] = 2 * size**3 / gpu_seconds(lambda x=x, y=y: x @ y)
    return found


def gpu_seconds(call: Callable[[], Any]) -> float:
    """Median of a call, by events."""
    call()
    seen = []
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        seen.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(seen)


class Engine:
    """A way to compute a row."""

    def __init__(self, call: Callable[[], Any], wait: Callable[[Any], Any]) -> None:
        self.call, self.wait = call, wait

    def measure(self, seconds: float) -> tuple[float, float]:
        """Milliseconds: of a call that is waited for, of a call among many."""
        begin = time.perf_counter()
        self.wait(self.call())
        once = time.perf_counter() - begin
        count = max(5, min(500, int(seconds / 2 / max(once, 1e-6))))
        alone = []
        for _ in range(count):
            begin = time.perf_counter()
            self.wait(self.call())
            alone.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        for _ in range(count):
            last = self.call()
        self.wait(last)
        return statistics.median(alone) * 1e3, (time.perf_counter() - begin) / count * 1e3


def data(name: str, batch: int) -> np.ndarray[Any, Any]:
    shape = (batch, models.STEPS, models.WIDTH) if name == "encoder" else (batch, 3, 224, 224)
    return np.random.default_rng(1).standard_normal(shape, dtype="float32")


def ours(name: str, dtype: str, batch: int) -> tuple[Engine, Callable[[], np.ndarray[Any, Any]]]:
    net = models.encoder_block(mx, GPU, dtype) if name == "encoder" else models.zoo_block(mx, name, GPU, dtype)
    values = data(name, batch)
    values = values.swapaxes(0, 1).copy() if name == "encoder" else values
    x = mx.nd.array(values, ctx=GPU, dtype=dtype)

    def answer() -> np.ndarray[Any, Any]:
        made = net(x).asnumpy().astype("float32")
        return made.swapaxes(0, 1) if name == "encoder" else made

    return Engine(lambda: net(x), lambda y: y.wait_to_read()), answer


def theirs(name: str, dtype: str, batch: int, wanted: list[str]) -> dict[str, Engine]:
    """Ways of torch, and `answer`, whose call gives the result on the host."""
    net = peers.model(name, TYPES[dtype])
    x = torch.from_numpy(data(name, batch)).cuda().to(TYPES[dtype])
    x = x if name == "encoder" else x.to(memory_format=torch.channels_last)

    def wait(_: Any) -> None:
        torch.cuda.synchronize()

    made = {way: Engine(opponent(way, net, x), wait) for way in wanted}
    made["answer"] = Engine(lambda: net(x).float().cpu().numpy(), wait)
    return made


def opponent(way: str, net: Any, x: torch.Tensor) -> Callable[[], Any]:
    """A call of a network in a way of PEERS."""
    if way == "eager":
        return lambda: net(x)
    if way == "graph":
        graph = peers.captured(net, x)
        return lambda: graph(x)
    faster = torch.compile(net, dynamic=False, mode=None if way == "compile" else way)
    faster(x)
    return lambda: faster(x)


def floors(name: str, dtype: str, batch: int, most: dict[str, float]) -> dict[str, float]:
    """Milliseconds that a row needs at least, by rates measured before and by those of peaks.py."""
    macs, weights, moved = SIZES[name]
    operations, size = 2 * macs * batch, (weights + moved * batch) * (2 if dtype == "float16" else 4)
    found = {"floor_ms": max(operations / most[dtype], size / most["bytes"]) * 1e3}
    if rates := peaks.of(torch.cuda.get_device_name()):
        found["predicted_ms"] = peaks.roofline(rates, dtype, operations, size, peaks.KERNELS[name]) * 1e3
    return found


def row(key: str, seconds: float, wanted_peers: list[str], most: dict[str, float]) -> dict[str, Any]:
    name, dtype, number = key.split("/")
    batch = int(number)
    found: dict[str, Any] = {"row": key}
    with torch.inference_mode():
        engine, answer = ours(name, dtype, batch)
        engines = theirs(name, dtype, batch, wanted_peers)
        wanted = engines.pop("answer").call()
        found["apart"] = float(np.abs(answer() - wanted).max() / np.abs(wanted).max())
        engines = {"mxrt": engine, **engines}
        for each in engines.values():
            for _ in range(3):
                each.wait(each.call())
        rounds: dict[str, list[tuple[float, float]]] = {key: [] for key in engines}
        for _ in range(ROUNDS):
            for key, each in engines.items():
                rounds[key].append(each.measure(seconds / ROUNDS / len(engines)))
    found |= floors(name, dtype, batch, most)
    for key, seen in rounds.items():
        alone, many = zip(*seen, strict=True)
        found[key] = {"alone": [min(alone), statistics.median(alone)], "many": [min(many), statistics.median(many)]}
    return found


def shown(found: dict[str, Any], wanted_peers: list[str]) -> str:
    """A line of the table."""
    predicted = found.get("predicted_ms")
    cells = [found["row"], f"{found['floor_ms']:.3f}", f"{predicted:.3f}" if predicted else "-"]
    for key in ("mxrt", *wanted_peers):
        cells.append(f"{found[key]['alone'][1]:.3f} / {found[key]['many'][1]:.3f}")
    ratios = []
    for way in ("alone", "many"):
        best = min((found[key][way][1] for key in wanted_peers), default=float("nan"))
        ratios.append(f"{found['mxrt'][way][1] / best:.2f}")
    cells += [" / ".join(ratios), f"{100 * found['floor_ms'] / found['mxrt']['many'][1]:.0f} %"]
    return "| " + " | ".join([*cells, f"{found['apart']:.1e}"]) + " |"


def chosen(text: str) -> list[str]:
    """Opponents by name."""
    names = text.split(",") if text else []
    if unknown := [name for name in names if name not in PEERS]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: none of {', '.join(PEERS)}")
    return names


def warm(rows: list[str], wanted_peers: list[str]) -> None:
    """Compiles what the rows need."""
    with torch.inference_mode():
        for key in rows:
            name, dtype, batch = key.split("/")
            theirs(name, dtype, int(batch), wanted_peers)


def too_far(found: dict[str, Any]) -> bool:
    name, dtype, _ = found["row"].split("/")
    return not found["apart"] <= APART[name][dtype]


def heading(most: dict[str, float], wanted_peers: list[str]) -> dict[str, Any]:
    """Prints what precedes the rows; returns what is kept of it."""
    gpu, kind = torch.cuda.get_device_name(), os.environ.get("MXNET_ENGINE_TYPE") or "the default engine"
    print(f"{gpu}, torch {torch.__version__}, {kind}")
    for rate, value in most.items():
        expected = getattr(peaks.of(gpu), "memory" if rate == "bytes" else rate, None)
        print(f"{rate}/s: {value:.3g}; {peaks.compared(value, expected)}")
    heads = ["row", "floor, ms", "predicted", "mxrt", *wanted_peers, "mxrt : best", "floor : mxrt", "apart"]
    print("| " + " | ".join(heads) + " |", flush=True)
    return {"limits": most, "gpu": gpu, "torch": torch.__version__, "engine": kind}


def measure(given: argparse.Namespace) -> list[str]:
    """Measures and prints all rows; returns what is wrong with them."""
    if given.json:
        given.json.unlink(missing_ok=True)
    most = limits()
    done = [heading(most, given.peers)]
    failed: list[str] = []
    for key in given.rows or ROWS:
        try:
            done.append(row(key, given.seconds, given.peers, most))
            print(shown(done[-1], given.peers), flush=True)
            failed += [f"{key}: {done[-1]['apart']:.1e} apart"] if too_far(done[-1]) else []
        except (RuntimeError, ValueError, mx.base.MXNetError) as error:
            print(f"{key}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            failed.append(f"{key}: {type(error).__name__}")
            traceback.print_exc(file=sys.stdout)
        torch.cuda.empty_cache()
        GPU.empty_cache()
        if given.json:
            given.json.write_text(json.dumps(done, indent=1))
    return failed


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=0.6)
    options.add_argument("--peers", type=chosen, default=["eager", "graph"], help=f"of {', '.join(PEERS)}")
    options.add_argument("--warm", action="store_true")
    options.add_argument("--json", type=Path)
    options.add_argument("rows", nargs="*")
    given = options.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    # One for each row, where dynamo gives up after eight.
    torch._dynamo.config.recompile_limit = 100
    if given.warm:
        warm(given.rows or ROWS, given.peers)
        return 0
    failed = measure(given)
    print("wrong: " + ("; ".join(failed) or "nothing"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
