#!/usr/bin/env python3
"""Processor time of one image on one core: `taskset -c 1 one_core.py ENGINE FOLDER NAME [CALLS]`.

ENGINE is mxrt, onnxruntime or openvino (float32, one thread). FOLDER holds NAME's files, and NAME.onnx (see
export_onnx.py) for the peers. Processor time leaves out what other programs take of the core, though not what they
take of caches and memory: run the engines in turns and compare only such runs.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "models" / "zoo"


def load(engine: str, base: str) -> Callable[[np.ndarray], np.ndarray]:
    if engine == "mxrt":
        import mxrt

        net = mxrt.gluon.SymbolBlock.imports(f"{base}-symbol.json", ["data"], f"{base}-0000.params")
        return lambda image: net(mxrt.nd.array(image)).asnumpy()
    if engine == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(f"{base}.onnx", options, providers=["CPUExecutionProvider"])
        return lambda image: session.run(None, {"data": image})[0]
    if engine == "openvino":
        import openvino

        core = openvino.Core()
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
        request = core.compile_model(core.read_model(f"{base}.onnx"), "CPU", settings).create_infer_request()
        return lambda image: request.infer({"data": image})[0]
    raise SystemExit(f"no engine {engine!r}: mxrt, onnxruntime or openvino")


def main() -> None:
    engine, folder, name = sys.argv[1:4]
    calls = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    image = np.load(f"{folder}/{name}-input.npy")[:1]
    ask = load(engine, f"{folder}/{name}")
    for _ in range(4):
        answer = ask(image)
    times = []
    for _ in range(calls):
        start = time.process_time()
        ask(image)
        times.append((time.process_time() - start) * 1e3)
    with np.load(GOLDEN / name / "golden.npz") as saved:
        off = np.abs(answer - saved["b1"]).max()
    best, median = min(times), statistics.median(times)
    print(f"{name:18s}{engine:13s} best {best:8.3f} ms   median {median:8.3f} ms   off by {off:.1e}")


if __name__ == "__main__":
    main()
