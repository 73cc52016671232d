#!/usr/bin/env python3
"""Full-size resnet-18 in mxrt and its peers, in turns, on the same machine, in one run.

    make bench-peers
    python benches/peers/compare.py [--rounds N] [--seconds S] [--engines mxrt mxnet ...]

MXNet 1.9.1, onnxruntime and OpenVINO are installed into environments of their own under --build (the first
time; about 1 GB). Every engine lives in a worker process that is driven over pipes; the workers take turns within
each round, and before each turn everything is left alone for a moment so that spinning pools go quiet. All
compute in float32 with the settings a user gets by default, OpenVINO with INFERENCE_PRECISION_HINT=f32.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
QUIET_SECONDS = 0.05

# engine -> (environment, needs a Python older than)
PEERS = {"mxnet": (3, 12), "onnxruntime": (3, 99), "openvino": (3, 99)}


def say(text: str) -> None:
    print(text, flush=True)


def call(command: list[str], what: str, timeout: float = 900) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise RuntimeError(f"{what} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def base_python(older_than: tuple[int, int]) -> str:
    """An interpreter that the engine still supports."""
    names = ["python3", "python3.11", "python3.10", "python3.12", "python3.13"]
    for candidate in [sys.executable, *filter(None, map(shutil.which, names))]:
        probe = f"import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] < {older_than})"
        if subprocess.run([candidate, "-c", probe], capture_output=True).returncode == 0:
            return candidate
    raise RuntimeError(f"no Python from 3.10 to before {older_than[0]}.{older_than[1]} found")


def environment(build: Path, engine: str) -> str:
    """The interpreter of the engine's own environment, made when missing or when its requirements changed."""
    requirements = ROOT / "requirements" / f"peer-{engine}.txt"
    folder = build / engine
    stamp = folder / "requirements.txt"
    python = str(folder / "bin" / "python")
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        say(f"installing {engine} into {folder} ...")
        call([base_python(PEERS[engine]), "-m", "venv", "--clear", str(folder)], "making the environment")
        call([python, "-m", "pip", "install", "--quiet", "-r", str(requirements)], f"installing {engine}")
        shutil.copyfile(requirements, stamp)
    return python


class Worker:
    """One engine in a process of its own; answers one line of JSON to one line of JSON."""

    def __init__(self, engine: str, python: str, model: Path, log: Path) -> None:
        self.engine, self.log = engine, log
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [python, str(HERE / "worker.py"), engine, str(model)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.version = self.read()["version"]

    def read(self) -> dict:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.engine} ended: {self.log.read_text()[-1500:]}")
        return json.loads(line)

    def ask(self, **request: object) -> dict:
        assert self.process.stdin is not None
        time.sleep(QUIET_SECONDS)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def start(engines: list[str], build: Path) -> list[Worker]:
    """Workers of all engines that can be had here; says why of those that cannot."""
    model = ROOT / "build" / "zoo"
    if not (model / "resnet18_v1-input.npy").exists():
        make = ROOT / "tests" / "models" / "make_zoo.py"
        call([sys.executable, str(make), str(model), "resnet18_v1"], "computing the weights")
    workers = []
    for engine in engines:
        try:
            python = sys.executable if engine == "mxrt" else environment(build, engine)
            if engine in ("onnxruntime", "openvino") and not (model / "resnet18_v1.onnx").exists():
                exporter = environment(build, "onnxruntime")
                call([exporter, str(HERE / "export_onnx.py"), str(model)], "writing the ONNX model")
            worker = Worker(engine, python, model, build / f"{engine}.log")
            off = worker.ask(task="check")["largest_difference"]
            say(f"{engine} {worker.version}: largest difference to MXNet's recorded answer {off:.1e}")
            workers.append(worker)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            say(f"{engine} is left out: {error}")
    return workers


def compare(workers: list[Worker], callers: int, rounds: int, seconds: float) -> None:
    """One table: every engine with this many callers."""
    rates: dict[str, list[float]] = {w.engine: [] for w in workers}
    middles: dict[str, list[float]] = {w.engine: [] for w in workers}
    for round_ in range(rounds + 1):
        # Whoever comes after a hot neighbour is a different one each round.
        for worker in workers[round_ % len(workers) :] + workers[: round_ % len(workers)]:
            result = worker.ask(task="serve", callers=callers, seconds=seconds)
            if round_:  # the first round warms up
                rates[worker.engine].append(result["images"] / result["seconds"])
                middles[worker.engine].append(statistics.median(result["latencies"]) * 1e3)
    say(f"\nresnet-18, {callers} caller{'s' if callers > 1 else ''}, {rounds} rounds of {seconds:g} s")
    say(f"  {'engine':13s}{'images/s best':>14s}{'median':>9s}{'p50 ms best':>13s}{'median':>9s}   mxrt against it")
    own = statistics.median(rates["mxrt"]) if "mxrt" in rates else None
    for engine, seen in rates.items():
        middle = statistics.median(seen)
        ratio = f"{own / middle:12.2f} x" if own and engine != "mxrt" else ""
        low, mid = min(middles[engine]), statistics.median(middles[engine])
        say(f"  {engine:13s}{max(seen):14.1f}{middle:9.1f}{low:13.1f}{mid:9.1f}   {ratio}")


def compare_push(workers: list[Worker], rounds: int) -> None:
    """The cost of one small imperative operator."""
    both = [w for w in workers if w.engine in ("mxrt", "mxnet")]
    times: dict[str, list[float]] = {w.engine: [] for w in both}
    for round_ in range(rounds + 1):
        for worker in both:
            result = worker.ask(task="add", count=5000)
            if round_:
                times[worker.engine].append(result["seconds"] / 5000 * 1e6)
    if times:
        say("\nb + 1 of 16 numbers, 5000 times, then wait: microseconds each")
        for engine, seen in times.items():
            say(f"  {engine:13s} best {min(seen):6.2f}   median {statistics.median(seen):6.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "peers")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one turn")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--engines", nargs="+", default=["mxrt", *PEERS], choices=["mxrt", *PEERS])
    args = parser.parse_args()
    args.build.mkdir(parents=True, exist_ok=True)
    workers = start(args.engines, args.build)
    if not workers:
        return 1
    try:
        for callers in args.callers:
            compare(workers, callers, args.rounds, args.seconds)
        compare_push(workers, args.rounds)
    finally:
        for worker in workers:
            worker.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
