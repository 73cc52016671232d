"""The costs and gains of `mxrt serve`, interleaved on this machine (`make bench-serve`).

    python benches/serve [ROW...] [--seconds 3] [--rounds 5] [--uvicorn PYTHON] [--kserve PYTHON]

A row is one line of JSON. Turns of a round follow each other at once, ratios are of one round, and
the median of the rounds counts; `spread` is the least and the largest of them. Clients run on the
cores of the server. While threads call the model, clients ask a server for its health as often as
the other clients ask for inference, so that both sides pay for a client. The program `wrk` is
needed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import machine
import numpy as np
import servers

import mxrt as mx
from clients import Call, Connection, Measured, Post, in_turns, open_loop, show, wrk
from serving import golden
from support import DIGITS, zoo_artifacts

DIGIT_SHAPE, IMAGE_SHAPE, WIDTHS = "-1,1,8,8", "-1,3,224,224", (1024, 4096, 4096, 4096, 1000)


@dataclass
class Bench:
    """The common state of all rows."""

    folder: Path
    seconds: float
    rounds: int
    uvicorn: str | None
    kserve: str | None

    def digits(self) -> tuple[Path, np.ndarray]:
        """digits_cnn, 30 us a row, and one row for it."""
        return DIGITS / "digits_cnn", golden("digits_cnn", 1)[0]

    def resnet(self) -> tuple[Path, np.ndarray]:
        """resnet-18 and an image."""
        folder = zoo_artifacts("resnet18_v1")
        return folder / "resnet18_v1", np.load(folder / "resnet18_v1-input.npy")[:1]

    def perceptron(self) -> tuple[Path, np.ndarray]:
        """Four dense layers of 42 million weights, and one row for them."""
        prefix, random = self.folder / "perceptron", np.random.RandomState(1)
        if not prefix.with_name("perceptron-symbol.json").exists():
            net, params = mx.sym.var("data"), {}
            for at, (wide, high) in enumerate(pairwise(WIDTHS)):
                net = mx.sym.FullyConnected(net, num_hidden=high, name=f"fc{at}")
                params[f"arg:fc{at}_weight"] = mx.nd.array(random.normal(0, wide**-0.5, (high, wide)))
                params[f"arg:fc{at}_bias"] = mx.nd.zeros(high)
                net = mx.sym.Activation(net, act_type="relu") if high != WIDTHS[-1] else net
            net.save(f"{prefix}-symbol.json")
            mx.nd.save(f"{prefix}-0000.params", params)
        return prefix, random.uniform(-1, 1, (1, WIDTHS[0])).astype("float32")

    def compare(self, first: Callable[[], Measured], second: Callable[[], Measured]) -> dict[str, Any]:
        """Compares the first with the second, interleaved."""
        rounds = [(first(), second()) for _ in range(self.rounds)]
        ratios = [one.rate / other.rate for one, other in rounds]
        found: dict[str, Any] = {"ratio": statistics.median(ratios), "spread": [round(min(ratios), 3)]}
        found["spread"].append(round(max(ratios), 3))
        for name, place in (("this", 0), ("peer", 1)):
            of = [pair[place] for pair in rounds]
            values = ([m.rate for m in of], [m.p50 for m in of], [m.p99 for m in of])
            found[name] = [round(statistics.median(value), 3) for value in values]
        return found


def direct(prefix: Path, given: np.ndarray) -> Callable[[], Any]:
    """A call in this process."""
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    array = mx.nd.array(given)
    return lambda: net(array).asnumpy()


def against_threads(bench: Bench, kind: str) -> Iterator[dict[str, Any]]:
    """Requests against the same calls from threads."""
    prefix, given = bench.resnet()
    call = direct(prefix, given)
    with servers.mxrt(prefix, IMAGE_SHAPE) as server:
        for connections in (1, 8, 64):
            if kind == "http":
                asking = [Connection(server.port, Post.of(prefix.name, given)).ask for _ in range(connections)]
                echoing = [Connection(server.port, None).ask for _ in range(connections)]
            else:
                asking = [Call(server.grpc, prefix.name, given).ask for _ in range(connections)]
                echoing = [Call(server.grpc, prefix.name, None).ask for _ in range(connections)]
            beside = [lambda echo=echo: (echo(), call()) for echo in echoing]
            in_turns(0.5, asking), in_turns(0.5, beside)
            found = bench.compare(partial(in_turns, bench.seconds, asking), partial(in_turns, bench.seconds, beside))
            yield {"connections": connections} | found


def small(bench: Bench) -> Iterator[dict[str, Any]]:
    """A model of 30 us against other servers around it."""
    prefix, given = bench.digits()
    post = Post.of(prefix.name, given)
    whole = int(max(1, bench.seconds))
    peers = {"uvicorn": (bench.uvicorn, servers.uvicorn), "kserve": (bench.kserve, servers.kserve)}
    with servers.mxrt(prefix, DIGIT_SHAPE) as server:
        for name, (python, start) in peers.items():
            if python is None:
                yield {"peer": name, "left out": f"no --{name} PYTHON"}
                continue
            with start(python, prefix) as peer:
                for connections in (1, 8, 64):
                    ours, theirs = (partial(wrk, of.port, post, connections, whole) for of in (server, peer))
                    found = bench.compare(ours, theirs)
                    yield {"against": name, "connections": connections} | found


def lone(bench: Bench) -> Iterator[dict[str, Any]]:
    """Milliseconds that a kept connection adds to one request at a time."""
    prefix, given = bench.digits()
    call, added, requests = direct(prefix, given), [], []
    with servers.mxrt(prefix, DIGIT_SHAPE) as server:
        for _ in range(bench.rounds):
            called = in_turns(bench.seconds, [call]).p50
            requests.append(wrk(server.port, Post.of(prefix.name, given), 1, int(max(1, bench.seconds))).p50)
            added.append(requests[-1] - called)
    spread = [round(min(added), 3), round(max(added), 3)]
    yield {"added ms": statistics.median(added), "spread": spread, "request ms": statistics.median(requests)}


def as_json(bench: Bench) -> Iterator[dict[str, Any]]:
    """Milliseconds that 150,528 numbers in JSON cost beyond the same in bytes."""
    prefix, given = bench.resnet()
    with servers.mxrt(prefix, IMAGE_SHAPE) as server:
        binary = Connection(server.port, Post.of(prefix.name, given)).ask
        text = Connection(server.port, Post.of(prefix.name, given, binary=False)).ask
        more = []
        for _ in range(bench.rounds):
            more.append(in_turns(bench.seconds, [text]).p50 - in_turns(bench.seconds, [binary]).p50)
    yield {"added ms": statistics.median(more), "spread": [round(min(more), 3), round(max(more), 3)]}


def batches(bench: Bench) -> Iterator[dict[str, Any]]:
    """Joining of requests against the same server with `off`."""
    whole = int(max(1, bench.seconds))
    cases = [("perceptron", "-1,1024", 32), ("perceptron", "-1,1024", 1), ("resnet", IMAGE_SHAPE, 8)]
    cases += [("digits", DIGIT_SHAPE, 1), ("digits", DIGIT_SHAPE, 32)]
    for name, shape, connections in cases:
        prefix, given = getattr(bench, name)()
        post = Post.of(prefix.name, given)
        with servers.mxrt(prefix, shape, "--batch=auto") as joined, servers.mxrt(prefix, shape, "--batch=off") as alone:
            both = [partial(wrk, server.port, post, connections, whole) for server in (joined, alone)]
            for ask in both:
                ask()
            yield {"model": prefix.name, "connections": connections} | bench.compare(*both)


def sparse(bench: Bench) -> Iterator[dict[str, Any]]:
    """A factorisation machine over a million features, with one row of 40 values a request."""
    prefix = bench.folder / "machine"
    machine.symbol(mx).save(f"{prefix}-symbol.json")
    mx.nd.save(f"{prefix}-0000.params", {f"arg:{name}": array for name, array in machine.weights(mx).items()})
    post = Post.of_tensors(prefix.name, {f"data.{name}": part for name, part in machine.row().items()})
    whole = int(max(1, bench.seconds))
    for option in ("off", "auto"):
        with servers.mxrt(prefix, None, f"--batch={option}") as server:
            before = server.status("VmRSS")
            for connections in (1, 8, 64):
                found = [wrk(server.port, post, connections, whole) for _ in range(bench.rounds)]
                grown = {"grown MB": (server.status("VmRSS") - before) / 1e6}
                medians = {key: statistics.median(getattr(one, key) for one in found) for key in ("rate", "p50", "p99")}
                yield {"batch": option, "connections": connections} | medians | grown


def overload(bench: Bench) -> Iterator[dict[str, Any]]:
    """Three times as many requests as can be computed, each with a deadline of 0.25 s."""
    prefix, given = bench.perceptron()
    post, deadline = Post.of(prefix.name, given), 0.25
    with servers.mxrt(prefix, "-1,1024", "--batch=off", f"--deadline={deadline}") as server:
        capacity = statistics.median(wrk(server.port, post, 16, 3).rate for _ in range(3))
        open_loop(server.port, post, 3 * capacity, 2, 512)
        before, seconds = server.status("VmRSS"), 20 * bench.seconds
        found = open_loop(server.port, post, 3 * capacity, seconds, 512)
        grown = server.status("VmRSS") - before
    answered, refused = found.pop(200), found.get(429, []) + found.get(504, [])
    yield {
        "capacity": capacity,
        "offered": sum(map(len, found.values()), len(answered)) / seconds,
        "goodput": len(answered) / seconds / capacity,
        "answered p99 ms": 1000 * float(np.percentile(answered, 99)),
        "refused p50 ms": 1000 * float(np.percentile(refused, 50)),
        "refused within 50 ms": sum(time <= 0.05 for time in refused) / len(refused),
        "by status": {status: len(times) for status, times in found.items()},
        "memory grew MB": grown / 1e6,
    }


def crowd(bench: Bench) -> Iterator[dict[str, Any]]:
    """A thousand kept connections: memory beyond none, and a core's share while they are idle."""
    prefix, given = bench.digits()
    with servers.mxrt(prefix, DIGIT_SHAPE) as server:
        post = Post.of(prefix.name, given)
        for _ in range(200):
            Connection(server.port, post).ask()
        before = server.status("VmRSS")
        open_ones = [Connection(server.port, post) for _ in range(1000)]
        for connection in open_ones:
            connection.ask()
        grown, used = server.status("VmRSS") - before, server.seconds()
        time.sleep(10)
        yield {"memory MB": grown / 1e6, "idle % of a core": 10 * (server.seconds() - used)}


def start(bench: Bench) -> Iterator[dict[str, Any]]:
    """Seconds from the start of the process to its first readiness."""
    prefix, _ = bench.resnet()
    took = []
    for _ in range(bench.rounds):
        began = time.perf_counter()
        with servers.mxrt(prefix, IMAGE_SHAPE):
            took.append(time.perf_counter() - began)
    yield {"seconds": statistics.median(took), "spread": [round(min(took), 3), round(max(took), 3)]}


ROWS: dict[str, Callable[[Bench], Iterator[dict[str, Any]]]] = {
    "http": lambda bench: against_threads(bench, "http"),
    "grpc": lambda bench: against_threads(bench, "grpc"),
    "small": small,
    "lone": lone,
    "json": as_json,
    "batches": batches,
    "sparse": sparse,
    "overload": overload,
    "crowd": crowd,
    "start": start,
}


def main() -> None:
    """Prints the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=3, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--uvicorn", help="an interpreter that has uvicorn and mxrt")
    parser.add_argument("--kserve", help="an interpreter that has kserve and mxrt")
    args = parser.parse_args()
    unknown = [name for name in args.rows if name not in ROWS]
    if unknown:
        parser.error(f"no row {', '.join(unknown)}; rows are {', '.join(ROWS)}")
    if shutil.which("wrk") is None:
        parser.error("wrk is not there, which asks the server; Debian's package wrk has it")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), args.seconds, args.rounds, args.uvicorn, args.kserve)
        for name in args.rows or ROWS:
            for row in ROWS[name](bench):
                show(row=name, **row)


if __name__ == "__main__":
    main()
