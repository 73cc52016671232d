"""The most that a GPU can do, by the driver alone: reads from the second-level cache and from
memory, the time between kernels, copies to the host.

    ceilings.py [--seconds N] [--json FILE]

Prints each next to its prediction. Needs neither mxrt nor torch, only libcuda.so.1. Exits with 1 if
one cannot be measured.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peaks

# Threads read pieces of 16 bytes of all data, in rounds, past the first-level cache. The store
# keeps the loads: it is done for one sum of 2^32.
PTX = b"""//
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry read_pieces(.param .u64 data, .param .u64 bytes, .param .u32 rounds) {
    .reg .b64 %base, %end, %first, %at, %step;
    .reg .b32 %left, %block, %threads, %thread, %blocks, %a, %b, %c, %d, %sum;
    .reg .pred %over, %again, %store;
    ld.param.u64 %base, [data];
    ld.param.u64 %end, [bytes];
    ld.param.u32 %left, [rounds];
    cvta.to.global.u64 %base, %base;
    add.s64 %end, %base, %end;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %blocks, %nctaid.x;
    mov.u32 %sum, 0;
    mad.lo.u32 %thread, %block, %threads, %thread;
    mul.lo.u32 %blocks, %blocks, %threads;
    mul.wide.u32 %step, %blocks, 16;
    mad.wide.u32 %first, %thread, 16, %base;
next_round:
    mov.u64 %at, %first;
next_piece:
    setp.ge.u64 %over, %at, %end;
    @%over bra round_over;
    ld.global.cg.v4.u32 {%a, %b, %c, %d}, [%at];
    xor.b32 %a, %a, %b;
    xor.b32 %c, %c, %d;
    xor.b32 %sum, %sum, %a;
    xor.b32 %sum, %sum, %c;
    add.s64 %at, %at, %step;
    bra next_piece;
round_over:
    sub.u32 %left, %left, 1;
    setp.ne.u32 %again, %left, 0;
    @%again bra next_round;
    setp.eq.u32 %store, %sum, 0x9e3779b9;
    @%store st.global.u32 [%base], %sum;
    ret;
}
\0"""
MULTIPROCESSORS = 16  # the attribute of a device
BLOCK = 256


class Driver:
    """The primary context of GPU 0, and a stream."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        context = self.made("cuDevicePrimaryCtxRetain", self.device)
        self.call("cuCtxSetCurrent", context)
        self.stream = self.made("cuStreamCreateWithPriority", 1, 0)

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: CUDA error {code}")

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """The result that a function stores at its first argument."""
        result = ctypes.c_void_p()
        self.call(name, ctypes.byref(result), *arguments)
        return result

    def name(self) -> str:
        text = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", text, 100, self.device)
        return text.value.decode()

    def kernel(self, name: bytes) -> ctypes.c_void_p:
        module = self.made("cuModuleLoadData", PTX)
        return self.made("cuModuleGetFunction", module, name)

    def launch(self, kernel: ctypes.c_void_p, blocks: int, *values: Any) -> None:
        addresses = [ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values]
        array = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self.call("cuLaunchKernel", kernel, blocks, 1, 1, BLOCK, 1, 1, 0, self.stream, array, None)

    def on_gpu(self, work: Callable[[], None]) -> float:
        """Seconds of work that is submitted, by events around it."""
        begin, end = self.made("cuEventCreate", 0), self.made("cuEventCreate", 0)
        self.call("cuEventRecord", begin, self.stream)
        work()
        self.call("cuEventRecord", end, self.stream)
        self.call("cuCtxSynchronize")
        milliseconds = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
        for event in (begin, end):
            self.call("cuEventDestroy_v2", event)
        return milliseconds.value / 1e3

    def on_host(self, work: Callable[[], None]) -> float:
        """Seconds until the host knows that work is done."""
        begin = time.perf_counter()
        work()
        self.call("cuCtxSynchronize")
        return time.perf_counter() - begin


def median(measure: Callable[[], float], seconds: float) -> float:
    """The median of runs that follow a first one."""
    measure()
    seen, end = [measure()], time.perf_counter() + seconds
    while time.perf_counter() < end and len(seen) < 1000:
        seen.append(measure())
    return statistics.median(seen)


def read_rate(driver: Driver, seconds: float, size: int, rounds: int) -> float:
    """Bytes a second that all threads read of data of a size."""
    count = ctypes.c_int()
    driver.call("cuDeviceGetAttribute", ctypes.byref(count), MULTIPROCESSORS, driver.device)
    kernel, data = driver.kernel(b"read_pieces"), driver.made("cuMemAlloc_v2", ctypes.c_size_t(size))
    driver.call("cuMemsetD8Async", data, ctypes.c_ubyte(0), ctypes.c_size_t(size), driver.stream)
    values = (data, ctypes.c_uint64(size), ctypes.c_uint32(rounds))
    try:
        took = median(lambda: driver.on_gpu(lambda: driver.launch(kernel, 8 * count.value, *values)), seconds)
    finally:
        driver.call("cuMemFree_v2", data)
    return size * rounds / took


def launch_gap(driver: Driver, seconds: float) -> float:
    """Seconds from a kernel without work to the next one of a stream."""
    kernel, count = driver.kernel(b"nothing"), 1000

    def submit() -> None:
        for _ in range(count):
            driver.launch(kernel, 1)

    return median(lambda: driver.on_gpu(submit), seconds) / count


def copy_seconds(driver: Driver, seconds: float, size: int) -> float:
    """Seconds until the host has data of a size in pinned memory."""
    data = driver.made("cuMemAlloc_v2", ctypes.c_size_t(size))
    place = driver.made("cuMemHostAlloc", ctypes.c_size_t(size), 0)
    copy = ("cuMemcpyAsync", place, data, ctypes.c_size_t(size), driver.stream)
    try:
        return median(lambda: driver.on_host(lambda: driver.call(*copy)), seconds)
    finally:
        driver.call("cuMemFreeHost", place)
        driver.call("cuMemFree_v2", data)


def rows(driver: Driver, seconds: float) -> dict[str, tuple[Callable[[], float], str]]:
    """Measurements by what they show, each with the name of its prediction."""
    large = 1 << 26
    return {
        "L2 reads, bytes/s": (lambda: read_rate(driver, seconds, 1 << 24, 256), "l2"),
        "memory reads, bytes/s": (lambda: read_rate(driver, seconds, 1 << 30, 4), "memory"),
        "from kernel to kernel, s": (lambda: launch_gap(driver, seconds), "launch"),
        "64 MiB to the host, bytes/s": (lambda: large / copy_seconds(driver, seconds, large), "to_host"),
        "4 KiB to the host, s": (lambda: copy_seconds(driver, seconds, 4096), "answer"),
    }


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=1.0, help="of each row")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    driver = Driver()
    gpu = driver.name()
    rates = peaks.of(gpu)
    print(gpu, flush=True)
    found: dict[str, float | str] = {"gpu": gpu}
    failed = 0
    for name, (measure, rate) in rows(driver, given.seconds).items():
        try:
            found[name] = value = measure()
        except RuntimeError as error:
            print(f"{name}: {error}", flush=True)
            failed += 1
            continue
        print(f"{name}: {value:.3g}; {peaks.compared(value, getattr(rates, rate, None))}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
