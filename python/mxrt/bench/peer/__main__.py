"""One engine in a process of its own, driven over pipes:
`python .../mxrt/bench/peer ENGINE [PROCESSOR ...]`.

With numbers of processors it stays on these. Needs numpy and the engine; of mxrt nothing, unless
that is the engine. Reads a JSON request a line and answers with a JSON line; an answer with `error`
says what went wrong, and the next request may follow.

    {"task": "load", "model": {...}, "setting": {...}}   loads the model; again: another setting
    {"task": "inputs", "shapes": [...] | "file": F}      inputs; the answer: images of a request
    {"task": "inputs", "arrays": F}                      inputs that numpy.savez wrote, in order
    {"task": "outputs", "file": F}                       writes what the engine answers as .npz
    {"task": "closed", "callers": N, "seconds": S, ...}  see load.closed_loop
    {"task": "open", "rate": R, "seconds": S, ...}       see load.open_loop
    {"task": "cost", "count": N}                         processor time of N requests of one caller
    {"task": "add", "count": N}                          N times b + 1, then wait (mxrt and MXNet)
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

# This folder is a program, not a package, when a peer runs it: its files are found beside this one.
import engines  # type: ignore[import-not-found]
import load  # type: ignore[import-not-found]
import numpy as np


class Worker:
    """The engine in its settings, and what it is asked."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.loaded: dict[str, Any] = {}
        self.now: Any = None
        self.arrays: list[Any] = []
        every = (self.load, self.inputs, self.outputs, self.closed, self.open, self.cost, self.add)
        self.tasks: dict[str, Callable[..., dict[str, Any]]] = {one.__name__: one for one in every}

    def load(self, model: dict[str, Any], setting: dict[str, Any]) -> dict[str, Any]:
        key = json.dumps([model, setting], sort_keys=True)
        importlib.import_module(self.engine.removesuffix(engines.AS_INSTALLED))
        begin = time.perf_counter()
        if key not in self.loaded:
            self.loaded[key] = engines.load(self.engine, model, setting)
        self.now = self.loaded[key]
        precision = getattr(self.now, "precision", "float32")
        return {
            "version": self.now.version,
            "precision": precision,
            "seconds": time.perf_counter() - begin,
            "resident_mb": _resident(),
        }

    def inputs(
        self,
        shapes: list[list[int]] | None = None,
        file: str | None = None,
        batch: int = 1,
        arrays: str | None = None,
    ) -> dict[str, Any]:
        if arrays is not None:
            with np.load(arrays) as saved:
                self.arrays = [saved[f"arr_{number}"] for number in range(len(saved.files))]
        elif file is None:
            self.arrays = engines.random_inputs(shapes)
        else:
            images = np.load(file)
            self.arrays = [np.resize(images, (batch, *images.shape[1:]))]  # again from the first if there are too few
        return {"batch": len(self.arrays[0]), "megabytes": sum(one.nbytes for one in self.arrays) * 1e-6}

    def outputs(self, file: str) -> dict[str, Any]:
        begin = time.perf_counter()
        answers = self.now.ask(self.arrays)
        took = time.perf_counter() - begin
        np.savez(file, *answers)
        return {"count": len(answers), "seconds": took, "megabytes": sum(one.nbytes for one in answers) * 1e-6}

    def closed(
        self, callers: int, seconds: float, ramp: float, each: int = 0, own: bool = False, times: bool = False
    ) -> dict[str, Any]:
        seen = load.closed_loop(self._caller(own), callers, seconds, ramp, each)
        return dict(load.summary(seen, len(self.arrays[0]), times))

    def open(self, rate: float, seconds: float, ramp: float, clients: int, seed: int) -> dict[str, Any]:
        seen = load.open_loop(self._caller(False), clients, rate, seconds, ramp, seed)
        return dict(load.summary(seen, len(self.arrays[0])))

    def _caller(self, own: bool) -> Callable[[int], Callable[[], object]]:
        """Callers with inputs of their own: numpy arrays as they come in, or `own`, in the engine's
        form.
        """

        def make(_: int) -> Callable[[], object]:
            mine = self.now.own(self.arrays) if own else [np.array(one) for one in self.arrays]
            ask = self.now.ask
            return lambda: ask(mine)

        return make

    def cost(self, count: int) -> dict[str, Any]:
        times = []
        for _ in range(count):
            begin = time.process_time()
            self.now.ask(self.arrays)
            times.append((time.process_time() - begin) * 1e3)
        return {"ms": times}

    def add(self, count: int) -> dict[str, Any]:
        mx = importlib.import_module(self.engine)
        b = mx.nd.ones((16,))
        begin = time.perf_counter()
        for _ in range(count):
            c = b + 1
        c.wait_to_read()
        mx.nd.waitall()
        return {"seconds": time.perf_counter() - begin}


def _resident() -> float | None:
    return load.memory_mb("VmRSS")  # type: ignore[no-any-return]


def main() -> None:
    """Answers requests until the input ends."""
    # Whatever an engine prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    if processors := {int(number) for number in sys.argv[2:]}:
        os.sched_setaffinity(0, processors)  # before the engine is imported and counts them
    worker = Worker(sys.argv[1])
    say({"python_mb": _resident()})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            say(worker.tasks[request.pop("task")](**request))
        except Exception as error:  # the other side decides what to do
            say({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
