"""Callers at once on one GPU: calls per second of resnet18_v1 with a batch of 1, in float32 and
float16, and whether their bits are those of a call alone. The rate of one caller in float16 has a
prediction next to it.

    callers.py [--seconds N]

Exits with 1 if they are not.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from typing import Any

import ceilings
import numpy as np
import peaks

import models
import mxrt as mx

GPU = mx.gpu(0)


def measure(net: Any, inputs: list[Any], wanted: list[bytes], callers: int, seconds: float) -> tuple[float, int]:
    """Calls per second, and how many had other bits."""
    end = time.perf_counter() + seconds
    counts, wrong = [0] * callers, [0] * callers

    def work(number: int) -> None:
        while time.perf_counter() < end:
            which = (number + counts[number]) % len(inputs)
            made = net(inputs[which]).asnumpy()
            wrong[number] += made.tobytes() != wanted[which]
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(callers)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin), sum(wrong)


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=1.5)
    given = options.parse_args()
    others = 0
    rates = peaks.of(ceilings.Driver().name())
    numbers = np.random.default_rng(2)
    for dtype in ("float32", "float16"):
        net = models.zoo_block(mx, "resnet18_v1", GPU, dtype)
        inputs = [mx.nd.array(numbers.standard_normal((1, 3, 224, 224)), ctx=GPU, dtype=dtype) for _ in range(16)]
        wanted = [net(x).asnumpy().tobytes() for x in inputs]
        first = 0.0
        for callers in (1, 8, 16, 64):
            _, early = measure(net, inputs, wanted, callers, 0.3)
            rate, wrong = measure(net, inputs, wanted, callers, given.seconds)
            others += early + wrong
            first = first or rate
            line = f"{dtype}, {callers} callers: {rate:.0f} calls/s, {rate / first:.2f} of one; {wrong} with other bits"
            if callers == 1 and dtype == "float16":
                line += f"; {peaks.compared(rate, rates.calls if rates else None)}"
            print(line, flush=True)
    print(f"{others} calls in all had other bits")
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main())
