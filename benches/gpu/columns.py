"""ResNet-18 by mxrt in three columns: its kernels on the CPU, cuDNN, its kernels on gpu(0).

    columns.py [--seconds N] [--size PIXELS] [--json FILE] [DTYPE/BATCH ...]

A cell has milliseconds of a call that is waited for, and of a call among many that are not:
medians of the rounds. Each column is a process of its own, because libraries are chosen for a whole
process. The columns of a row are measured in turn. cuDNN is MXRT_GPU_LIBRARIES=cudnn,cublaslt; what
a library has no algorithm for, mxrt's kernels compute, and the notes of the plan below the table
name it. Exits with 1 if a column is not computed, or is farther from that of the CPU in float32
than rounding explains.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

NETWORK = "resnet18_v1"
COLUMNS = {"CPU": {}, "cuDNN": {"MXRT_GPU_LIBRARIES": "cudnn,cublaslt"}, "CUDA": {}}
ROWS = [f"{dtype}/{batch}" for dtype in ("float32", "float16") for batch in (1, 8, 64)]
ROUNDS = 3
# As in table.py, of the CPU in float32.
APART = {"float32": 4e-5, "float16": 3e-2}


class Child:
    """The process of a column: it gets a row in a line, and answers in one."""

    def __init__(self, column: str, seconds: float, size: int) -> None:
        command = [sys.executable, __file__, "--column", column, "--seconds", str(seconds), "--size", str(size)]
        env = {**os.environ, "MXRT_GPU_LIBRARIES": "", **COLUMNS[column]}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, text=True)

    def ask(self, row: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(f"{row}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        return json.loads(answer) if answer else {"error": "the process has ended"}


def serve(column: str, seconds: float, size: int) -> None:
    """The work of a child."""
    import models
    import mxrt as mx

    ctx = mx.cpu() if column == "CPU" else mx.gpu(0)
    known: dict[str, Any] = {}
    for line in sys.stdin:
        dtype, batch = line.strip().split("/")
        try:
            if line not in known:
                image = np.random.default_rng(1).standard_normal((int(batch), 3, size, size), dtype="float32")
                net, x = models.zoo_block(mx, NETWORK, ctx, dtype), mx.nd.array(image, ctx=ctx, dtype=dtype)
                answer = net(x).asnumpy().astype("float64").tolist()
                notes = [note for note in net.plan_report(x, measure=False)["notes"] if str(ctx) in note]
                known = {line: (net, x, {"answer": answer, "notes": notes})}
            net, x, facts = known[line]
            alone, many = measure(lambda net=net, x=x: net(x), seconds)
            made = {"alone": alone, "many": many, **facts}
        except (RuntimeError, ValueError, mx.base.MXNetError) as error:
            made = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(made), flush=True)


def measure(call: Any, seconds: float) -> tuple[float, float]:
    """Milliseconds: of a call that is waited for, of a call among many."""
    for _ in range(2):
        call().wait_to_read()
    begin = time.perf_counter()
    call().wait_to_read()
    once = time.perf_counter() - begin
    count = max(2, min(500, int(seconds / 2 / max(once, 1e-6))))
    alone = []
    for _ in range(count):
        begin = time.perf_counter()
        call().wait_to_read()
        alone.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    for _ in range(count):
        last = call()
    last.wait_to_read()
    return statistics.median(alone) * 1e3, (time.perf_counter() - begin) / count * 1e3


def row(key: str, children: dict[str, Child], wanted: dict[str, Any]) -> dict[str, Any]:
    """The cells of a row. `wanted` has the answers of the CPU in float32, by batch."""
    dtype, batch = key.split("/")
    found: dict[str, Any] = {"row": key, "notes": []}
    rounds: dict[str, list[dict[str, Any]]] = {column: [] for column in children}
    for _ in range(ROUNDS):
        for column, child in children.items():
            rounds[column].append(child.ask(key))
    for column, seen in rounds.items():
        if errors := [one["error"] for one in seen if "error" in one]:
            found[column] = {"error": errors[0]}
            continue
        answer = np.array(seen[0]["answer"])
        if column == "CPU" and dtype == "float32":
            wanted[batch] = answer
        apart = float(np.abs(answer - wanted[batch]).max() / np.abs(wanted[batch]).max()) if batch in wanted else None
        times = {name: statistics.median(one[name] for one in seen) for name in ("alone", "many")}
        found[column] = {**times, "apart": apart}
        found["notes"] += seen[0]["notes"]
    return found


def cell(one: dict[str, Any]) -> str:
    return "-" if "error" in one else f"{one['alone']:.3f} / {one['many']:.3f}"


def wrong(found: dict[str, Any]) -> list[str]:
    """The faults of a row, in words."""
    said = []
    for column in COLUMNS:
        one = found[column]
        if "error" in one:
            said.append(f"{found['row']} {column}: {one['error'][:300]}")
        elif one["apart"] is not None and not one["apart"] <= APART[found["row"].split("/")[0]]:
            said.append(f"{found['row']} {column}: {one['apart']:.1e} apart")
    return said


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=0.3, help="of a cell in a round")
    options.add_argument("--size", type=int, default=224)
    options.add_argument("--json", type=Path)
    options.add_argument("--column", choices=COLUMNS, help=argparse.SUPPRESS)
    options.add_argument("rows", nargs="*")
    given = options.parse_args()
    if given.column:
        serve(given.column, given.seconds, given.size)
        return 0
    children = {column: Child(column, given.seconds, given.size) for column in COLUMNS}
    done: list[dict[str, Any]] = []
    answers: dict[str, Any] = {}
    print("| ResNet-18, ms | CPU | cuDNN | CUDA |", flush=True)
    for key in given.rows or ROWS:
        done.append(row(key, children, answers))
        print("| " + " | ".join([key, *(cell(done[-1][column]) for column in COLUMNS)]) + " |", flush=True)
        if given.json:
            given.json.write_text(json.dumps(done, indent=1))
    for child in children.values():
        child.process.communicate()
    for note in sorted({note for found in done for note in found["notes"]}):
        print(note)
    failed = [line for found in done for line in wrong(found)]
    print("wrong: " + ("; ".join(failed) or "nothing"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
