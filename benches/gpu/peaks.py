"""Rates of GPUs, from which scripts predict what they are about to measure.

A prediction says how fast something could be, or how fast it was; where the measurement is far
from it, one of the two is worth a look. `seen` figures were measured on the GPU; `expected` ones
come from data sheets and arithmetic, and no GPU has confirmed them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peaks:
    """Rates per second, and seconds."""

    float16: float  # operations of a large product, seen
    float32: float  # the same, without TF32; seen
    memory: float  # bytes copied, seen
    l2: float  # bytes read from the second-level cache, expected
    launch: float  # from a kernel to the next one of a stream, expected
    step: float  # from a kernel to the next one of a CUDA graph, seen
    to_host: float  # bytes copied to the host, expected
    answer: float  # until the host has a few bytes, expected
    calls: float  # of ResNet-18 in float16 by one caller, seen


PEAKS = {
    "H100": Peaks(739e12, 51e12, 2.97e12, 5.5e12, 2.3e-6, 1.7e-6, 52e9, 10e-6, 2360),
    "H200": Peaks(768e12, 51e12, 4.2e12, 5.5e12, 2.3e-6, 1.7e-6, 52e9, 10e-6, 2424),
}
# Kernels in a call of the networks of table.py, most of them seen at batch 64.
KERNELS = {"resnet18_v1": 28, "resnet50_v1": 61, "encoder": 122}


def of(gpu: str) -> Peaks | None:
    """The rates of a GPU by the driver's name of it; None for one of which nothing is known."""
    return next((peaks for name, peaks in PEAKS.items() if name in gpu), None)


def roofline(peaks: Peaks, dtype: str, operations: float, data: float, kernels: int) -> float:
    """Seconds of a call: the slower of arithmetic and memory, and the steps between its kernels."""
    return max(operations / getattr(peaks, dtype), data / peaks.memory) + kernels * peaks.step


def compared(measured: float, predicted: float | None) -> str:
    """The prediction next to a measurement in the same unit, for a line of a table."""
    if predicted is None:
        return "no prediction"
    return f"predicted {predicted:.3g}, measured {measured / predicted:.2f} of it"
