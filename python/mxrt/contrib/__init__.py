"""Further modules: ``mx.contrib``."""

from __future__ import annotations

from . import amp, autograd, io, ndarray, onnx, quantization, symbol, tensorboard, text
from . import ndarray as nd
from . import quantization as quant
from . import symbol as sym

__all__ = [
    "amp",
    "autograd",
    "io",
    "nd",
    "ndarray",
    "onnx",
    "quant",
    "quantization",
    "sym",
    "symbol",
    "tensorboard",
    "text",
]
