"""The time of a call's parts: the kernels of a model, by the GPU's own clock.

    kernels.py [--each] MODEL/DTYPE/BATCH ...

With --each the kernels of one call follow, in their order. CUDA's profiling interface sees the
kernels of the whole process, so torch's profiler shows ours.
"""

from __future__ import annotations

import sys
from collections import defaultdict

import torch
from table import ours
from torch.profiler import ProfilerActivity, profile

import mxrt as mx

CALLS = 10


def main() -> None:
    torch.zeros(1, device="cuda")
    each_kernel = "--each" in sys.argv
    for key in [word for word in sys.argv[1:] if word != "--each"]:
        name, dtype, batch = key.split("/")
        engine, _ = ours(name, dtype, int(batch))
        for _ in range(4):
            engine.wait(engine.call())
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for _ in range(CALLS):
                engine.wait(engine.call())
            mx.nd.waitall()
            torch.cuda.synchronize()
        times: dict[str, list[float]] = defaultdict(list)
        on_gpu = torch.autograd.DeviceType.CUDA
        events = [event for event in seen.events() if event.device_type == on_gpu]
        for event in events:
            times[event.name].append(event.device_time_total)
        total = sum(map(sum, times.values()))
        print(f"{key}: {total / CALLS:.0f} us of kernels in a call, {sum(map(len, times.values())) // CALLS} kernels")
        for kernel, each in sorted(times.items(), key=lambda item: -sum(item[1]))[:14]:
            mean = sum(each) / len(each)
            print(f"  {sum(each) / CALLS:8.1f} us {len(each) / CALLS:5.1f} x {mean:7.1f} us  {kernel[:70]}")
        if each_kernel:
            events.sort(key=lambda event: event.time_range.start)
            last = events[-(len(events) // CALLS) :]
            print("  " + ", ".join(f"{event.name} {event.device_time_total:.1f}" for event in last))


if __name__ == "__main__":
    main()
