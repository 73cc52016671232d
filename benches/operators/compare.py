#!/usr/bin/env python3
"""Single operators of mxrt and its peers, interleaved on the same machine.

    make bench-operators                                  every row
    make bench-operators ARGS="topk lstm-1"     these rows
    make bench-operators ARGS=--list            their names
    make bench-operators ARGS="--generated"     every registered operator at three sizes
    make bench-operators ARGS="--generated softmax- transpose:"   those whose names begin so
    make bench-operators ARGS="--generated --table"               what was measured, by ratio

Every engine runs in its own process. Engines take turns, and each round begins with another one. A
cell is the median of the medians of the turns and, after the stroke, the least time of a call.
Ratios are a peer's median by mxrt's: above 1 mxrt is faster. The rows of detectors read
ssd300-symbol.json, yolov3-symbol.json and the .params next to them from the folder --models.
With --generated the ratios are of least times, and rows are kept in build/operators.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import generated
import np_rows
import rows

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))

# Of recurrent layers: against the better of the two.
RECURRENT_GOAL = 0.9
# Rows of mxrt in less than float32, with their goals.
REDUCED = {row: 2.0 if row.endswith("-bf16") else RECURRENT_GOAL for row in rows.ROWS if row.endswith(rows.PRECISIONS)}
REDUCED["lstm-1-w8"] = 2.5
GOALS = {
    **dict.fromkeys(rows.ROWS, ("mxnet", 1.0)),
    **{row: ("onnxruntime", goal) for row, goal in REDUCED.items()},
    **dict.fromkeys(("lstm-1", "lstm-16", "gru_bidirectional"), ("mxnet", 1.2)),
    **{
        row: ("mxnet", 1.5)
        for row in rows.ROWS
        if row.startswith(("lstm_unrolled", "resize", "upsampling", "adaptive"))
    },
    **dict.fromkeys(("deformable", "ssd300-1", "ssd300-8", "yolov3-1", "yolov3-8"), ("mxnet", 1.5)),
    **dict.fromkeys(rows.NUMPY, ("numpy", 0.5)),
    **{row: ("numpy", np_rows.goal(row)) for row in np_rows.rows()},
    **dict.fromkeys(rows.ND, ("nd", 1 / 1.2)),
    "hybrid_block": ("symbol_block", 1 / 1.2),
    "plain_resnet18_v1": ("mxnet", 1.25),
    "sparse_dot": ("mxnet", 1.5),
}
# mxrt itself, by different interfaces.
OWN = ("mxrt", "symbol_block", "nd")
# Engines with a column of the table.
COLUMNS = ("mxrt", "mxnet", "numpy", "scipy", "onnxruntime", "torch")


class Lane:
    """The process of one engine."""

    def __init__(self, engine: str, python: str, folder: Path) -> None:
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
        if engine not in OWN:
            env["PYTHONPATH"] = str(HERE)
        self.ended = False
        self.process = subprocess.Popen(
            [python, str(HERE / "lane.py"), engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
            cwd=folder,
        )

    def ask(self, **what: object) -> dict:
        """The answer; an error of the engine is raised."""
        try:
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.ended = True
            raise RuntimeError("the process has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        """Ends the process."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def engines_of(row: str, wanted: list[str]) -> list[str]:
    """The engines that have the row, mxrt first."""
    tables = {
        "mxnet": rows.ROWS.keys() - REDUCED.keys(),
        "numpy": rows.NUMPY,
        "scipy": rows.SCIPY,
        "onnxruntime": rows.ONNX,
        "torch": rows.TORCH,
        "symbol_block": rows.SYMBOL_BLOCK,
        "nd": rows.ND,
    }
    return ["mxrt", *(engine for engine in wanted if row in tables[engine])]


def measure(row: str, lanes: dict[str, Lane], rounds: int, seconds: float) -> dict[str, tuple[float, float]]:
    """Median and least seconds of a call, by engine."""
    names, medians, least = list(lanes), {}, {}
    for lane in lanes.values():
        lane.ask(row=row)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            times = lanes[name].ask(warm=seconds / 3, seconds=seconds)["times"]
            medians.setdefault(name, []).append(statistics.median(times))
            least[name] = min(least.get(name, times[0]), *times)
    return {name: (statistics.median(medians[name]), least[name]) for name in names}


def cell(times: tuple[float, float] | None) -> str:
    """Milliseconds."""
    return "" if times is None else f"{times[0] * 1e3:.3g} / {times[1] * 1e3:.3g}"


def line(row: str, found: dict[str, tuple[float, float]]) -> str:
    """A row of the table."""
    peer, goal = GOALS[row]
    ratios = {name: times[0] / found["mxrt"][0] for name, times in found.items() if name != "mxrt"}
    wanted = {"scipy": 1.0, "onnxruntime": RECURRENT_GOAL, "torch": RECURRENT_GOAL, peer: goal}
    met = all(ratio >= wanted[name] * 0.95 for name, ratio in ratios.items() if name in wanted)
    measured = ", ".join(f"{ratio:.2f} x {name}" for name, ratio in ratios.items())
    cells = [cell(found.get(name)) for name in COLUMNS]
    goals = ", ".join(f"{wanted[name]:.3g} x {name}" for name in ratios if name in wanted)
    return f"| {row} | {' | '.join(cells)} | {measured} | {goals} | {'yes' if met else 'no'} |"


def main() -> int:
    """Measures and prints the table; the exit status says whether every row could be measured."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows to measure, or how their names begin (all)")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--generated", action="store_true", help="rows made for every registered operator")
    parser.add_argument("--table", action="store_true", help="print the generated rows that were measured before")
    parser.add_argument("--sizes", nargs="*", default=list(generated.SIZES), help="of generated rows (all)")
    parser.add_argument("--rounds", type=int, help="9; of generated rows 3")
    parser.add_argument("--seconds", type=float, help="of a turn (0.3; of generated rows 0.05)")
    parser.add_argument("--quiet", type=float, default=0.3, help="cores that others may use in a generated row")
    parser.add_argument("--peers", nargs="*", default=[*COLUMNS[1:], *OWN[1:]])
    parser.add_argument("--python", action="append", default=[], metavar="ENGINE=PATH", help="interpreter of an engine")
    parser.add_argument("--models", type=Path, default=Path.cwd(), help="folder of the detectors")
    args = parser.parse_args()
    if args.generated:
        return _generated(args)
    if args.list:
        print("\n".join(rows.ROWS))
        return 0
    chosen = [row for row in rows.ROWS if not args.rows or any(row.startswith(name) for name in args.rows)]
    pythons = dict(one.split("=", 1) for one in args.python)
    failed = False
    print(
        "| row | mxrt | mxnet | numpy | scipy | onnxruntime | torch | measured | goal | met |\n" + "| --- " * 10 + "|"
    )
    for row in chosen:
        lanes = {}
        try:
            for engine in engines_of(row, args.peers):
                lanes[engine] = Lane(engine, _python(engine, pythons), args.models)
            print(line(row, measure(row, lanes, args.rounds or 9, args.seconds or 0.3)), flush=True)
        except RuntimeError as error:
            failed = True
            print(f"{row} was not measured: {error}", file=sys.stderr, flush=True)
        finally:
            for lane in lanes.values():
                lane.close()
    return 1 if failed else 0


def _generated(args: argparse.Namespace) -> int:
    """Measures rows of every registered operator, or prints what there is."""
    chosen = generated.rows(args.rows, args.sizes)
    if args.list:
        print("\n".join(chosen))
        return 0
    if args.table:
        print(generated.table(generated.saved(chosen)))
        return 0
    pythons = dict(one.split("=", 1) for one in args.python)
    measurement = generated.Measurement(
        lambda engine: Lane(engine, _python(engine, pythons), args.models),
        args.peers,
        args.rounds or 3,
        args.seconds or 0.05,
    )
    return generated.run(chosen, measurement, args.quiet)


def _python(engine: str, given: dict[str, str]) -> str:
    """The interpreter of an engine."""
    if engine in OWN and engine != "mxrt":
        return _python("mxrt", given)
    if engine in given:
        return given[engine]
    import environments

    # numpy 1.23.5 with OpenBLAS is in MXNet's environment, and scipy with onnxruntime.
    return environments.interpreter({"numpy": "mxnet", "scipy": "onnxruntime"}.get(engine, engine))


if __name__ == "__main__":
    sys.exit(main())
