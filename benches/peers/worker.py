#!/usr/bin/env python3
"""One engine with resnet-18 loaded, driven over pipes: `worker.py ENGINE FOLDER`.

Reads a JSON request a line and answers with a JSON line:
    {"task": "check"}                              largest difference to MXNet's recorded answer
    {"task": "serve", "callers": N, "seconds": S}  N threads ask one image at a time for S seconds
    {"task": "add", "count": N}                    N times b + 1, then wait (mxrt and MXNet)
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "models" / "zoo" / "resnet18_v1" / "golden.npz"


class MXNetApi:
    """mxrt, or MXNet itself: the same program. MXNet's blocks are not safe from threads, so it gets a lock."""

    def __init__(self, module: str, folder: Path) -> None:
        import importlib

        self.mx = importlib.import_module(module)
        self.version = self.mx.__version__
        base = str(folder / "resnet18_v1")
        self.net = self.mx.gluon.SymbolBlock.imports(f"{base}-symbol.json", ["data"], f"{base}-0000.params")
        self.net.hybridize(static_alloc=True, static_shape=True)
        self.lock = threading.Lock() if module == "mxnet" else None

    def caller(self, callers: int) -> Callable[[np.ndarray], np.ndarray]:
        def ask(image: np.ndarray) -> np.ndarray:
            return self.net(self.mx.nd.array(image)).asnumpy()

        def ask_locked(image: np.ndarray) -> np.ndarray:
            with self.lock:
                return ask(image)

        return ask_locked if self.lock and callers > 1 else ask

    def add(self, count: int) -> None:
        b = self.mx.nd.ones((16,))
        for _ in range(count):
            c = b + 1
        c.wait_to_read()
        self.mx.nd.waitall()


class OnnxRuntime:
    def __init__(self, folder: Path) -> None:
        import onnxruntime

        self.version = onnxruntime.__version__
        path = str(folder / "resnet18_v1.onnx")
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def caller(self, callers: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda image: self.session.run(None, {"data": image})[0]


class OpenVino:
    """Compiled twice: its own hint for one caller is latency, for several throughput."""

    def __init__(self, folder: Path) -> None:
        import openvino

        self.version = openvino.__version__
        core = openvino.Core()
        model = core.read_model(str(folder / "resnet18_v1.onnx"))
        self.compiled = {
            hint: core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": hint})
            for hint in ("LATENCY", "THROUGHPUT")
        }

    def caller(self, callers: int) -> Callable[[np.ndarray], np.ndarray]:
        request = self.compiled["LATENCY" if callers == 1 else "THROUGHPUT"].create_infer_request()
        return lambda image: request.infer({"data": image})[0]


def engine(name: str, folder: Path):
    if name in ("mxrt", "mxnet"):
        return MXNetApi(name, folder)
    return {"onnxruntime": OnnxRuntime, "openvino": OpenVino}[name](folder)


def serve(engine, images: np.ndarray, callers: int, seconds: float) -> dict:
    """Latencies of all answers that `callers` threads got within about `seconds`."""
    gate = threading.Barrier(callers + 1)
    latencies: list[list[float]] = [[] for _ in range(callers)]
    begin = 0.0

    def work(index: int) -> None:
        ask = engine.caller(callers)
        image = np.ascontiguousarray(images[index % len(images)][None])
        gate.wait()
        while True:
            start = time.perf_counter()
            ask(image)
            end = time.perf_counter()
            latencies[index].append(end - start)
            if end - begin >= seconds:
                return

    threads = [threading.Thread(target=work, args=(i,)) for i in range(callers)]
    for thread in threads:
        thread.start()
    begin = time.perf_counter()
    gate.wait()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    flat = [value for mine in latencies for value in mine]
    return {"images": len(flat), "seconds": took, "latencies": flat}


def main() -> None:
    # Whatever an engine prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    name, folder = sys.argv[1], Path(sys.argv[2])
    images = np.load(folder / "resnet18_v1-input.npy")
    this = engine(name, folder)
    say({"version": this.version})
    for line in sys.stdin:
        request = json.loads(line)
        if request["task"] == "check":
            with np.load(GOLDEN) as saved:
                off = np.abs(this.caller(1)(images[:1]) - saved["b1"]).max()
            say({"largest_difference": float(off)})
        elif request["task"] == "serve":
            say(serve(this, images, request["callers"], request["seconds"]))
        else:
            begin = time.perf_counter()
            this.add(request["count"])
            say({"seconds": time.perf_counter() - begin})


if __name__ == "__main__":
    main()
