"""Networks of the zoo on gpu(0): how far its answers are from MXNet's in float64.

    networks.py NAME ...

For each network one line of JSON: the largest difference, relative to the largest answer, of the
CPU and of the GPU in float32 and float16, and of the GPU from the CPU in float32; how many of 16
threads x 12 calls had other bits than a call alone. "rounded" is the CPU in float32 with
parameters and images that were rounded to float16: what float16 costs before anything is computed.
Exits with 1 if an answer is farther from MXNet's than rounding explains, or bits differ.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import models
import mxrt as mx

GPU = mx.gpu(0)
# How far float32 may be from MXNet, about four times the largest seen, and float16 relative to the
# cost of rounding its numbers.
SINGLE, HALF = 5e-5, 3.0


def apart(a: Any, b: Any) -> float:
    return float(np.abs(a.astype("float64") - b).max() / np.abs(b).max())


def check(name: str) -> dict[str, Any]:
    prefix = models.zoo_file(name)
    x = np.load(f"{prefix}-input.npy")
    with np.load(models.MODELS / "zoo" / name / "golden.npz") as golden:
        wanted = golden["b4_float64"]
    found: dict[str, Any] = {"network": name}
    on_cpu = models.zoo_block(mx, name, mx.cpu())(mx.nd.array(x)).asnumpy()
    found["cpu"] = apart(on_cpu, wanted)
    net = models.zoo_block(mx, name, GPU)
    there = mx.nd.array(x, ctx=GPU)
    once = net(there).asnumpy()
    found["gpu"], found["gpu from cpu"] = apart(once, wanted), apart(once, on_cpu)

    def call(_: int) -> int:
        return sum(net(there).asnumpy().tobytes() != once.tobytes() for _ in range(12))

    with ThreadPoolExecutor(16) as pool:
        found["other bits"] = sum(pool.map(call, range(16)))
    rounded = models.zoo_block(mx, name, mx.cpu(), "float16")
    for parameter in rounded.collect_params().values():
        parameter.cast("float32")
    found["rounded"] = apart(rounded(mx.nd.array(x.astype("float16"), dtype="float32")).asnumpy(), wanted)
    half = models.zoo_block(mx, name, GPU, "float16")
    found["gpu float16"] = apart(half(mx.nd.array(x, ctx=GPU, dtype="float16")).asnumpy(), wanted)
    return found


def wrong(found: dict[str, Any]) -> list[str]:
    """Limits that a network exceeds; NaN is too large."""
    limits = {"gpu": SINGLE, "gpu from cpu": 2 * SINGLE, "gpu float16": HALF * found["rounded"], "other bits": 0}
    return [f"{key}: {found[key]} > {most}" for key, most in limits.items() if not found[key] <= most]


def main() -> int:
    code = 0
    for name in sys.argv[1:]:
        found = check(name)
        found["wrong"] = wrong(found)
        code |= bool(found["wrong"])
        print(json.dumps(found), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
