"""One engine: sets rows up and measures turns, as lines of JSON on its standard input ask."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time

import rows
from cases import calls


def _make(engine: str, row: str) -> rows.Call:
    if engine == "numpy":
        return rows.NUMPY[row]()
    if engine == "scipy":
        return rows.SCIPY[row]()
    if engine == "onnxruntime":
        return rows.ONNX[row]()
    if engine == "torch":
        return rows.TORCH[row]()
    if engine == "symbol_block":
        return rows.SYMBOL_BLOCK[row](importlib.import_module("mxrt"))
    if engine == "nd":
        return rows.ND[row]()
    return rows.ROWS[row](importlib.import_module(engine))


def _generated(engine: str, row: str, size: str) -> tuple[rows.Call, int]:
    mx = None if engine == "numpy" else importlib.import_module(engine)
    return calls.prepare(engine, mx, row, size)


def _turn(call: rows.Call, seconds: float) -> list[float]:
    """Seconds of each call of a turn."""
    end, times = time.perf_counter() + seconds, []
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return times


def main() -> None:
    """Answers until the input ends."""
    engine, call = sys.argv[1], None
    # What the engine prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "generated" in asked:
                call, moved = _generated(engine, asked["generated"], asked["size"])
                answer: dict = {"bytes": moved}
            elif "row" in asked:
                call = _make(engine, asked["row"])
                call()
                answer = {}
            else:
                if asked["warm"]:
                    _turn(call, asked["warm"])
                answer = {"times": _turn(call, asked["seconds"])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
