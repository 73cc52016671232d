"""Networks in 8 bits: MXNet's form for mxrt, and the form of onnxruntime's quantizer for peers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import environments
import numpy as np
from environments import say

import mxrt
from mxrt.bench.peer import engines
from mxrt.contrib.quantization import quantize_model_mkldnn

# The program that onnxruntime's environment runs: its quantizer, with ranges of these images.
QUANTIZE = """
import sys
import numpy as np
from onnxruntime.quantization import (
    CalibrationDataReader, QuantFormat, QuantType, quant_pre_process, quantize_static
)

class Images(CalibrationDataReader):
    def __init__(self, file):
        self.images = iter(np.load(file))

    def get_next(self):
        image = next(self.images, None)
        return None if image is None else {"data": image[None]}

model, images, out = sys.argv[1:]
quant_pre_process(model, out, skip_symbolic_shape=True)
quantize_static(
    out, out, Images(images), quant_format=QuantFormat.QDQ, per_channel=True,
    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
)
"""
IMAGES = 8


def _images(name: str) -> Path:
    """Images that ranges are taken from: the network's own input, scaled and shifted."""
    file = environments.BUILD / f"{name}-images.npy"
    if not file.exists():
        image = np.load(f"{environments.network(name)}-input.npy")[0]
        random = np.random.default_rng(0)
        factors = random.uniform(0.7, 1.0, (IMAGES, *[1] * image.ndim)).astype("float32")
        np.save(file, image[None] * factors)
    return file


def _for_mxrt(name: str) -> str:
    """Prefix of MXNet's form."""
    base = environments.BUILD / f"{name}-int8"
    if not Path(f"{base}-0000.params").exists():
        say(f"quantizing {name} ...")
        symbol, args, states = mxrt.model.load_checkpoint(environments.network(name), 0)
        images = mxrt.io.NDArrayIter(np.load(_images(name)), batch_size=1)
        symbol, args, states = quantize_model_mkldnn(
            symbol, args, states, label_names=None, calib_mode="naive", calib_data=images,
            num_calib_examples=IMAGES, quantized_dtype="auto",
        )  # fmt: skip
        mxrt.model.save_checkpoint(str(base), 0, symbol, args, states)
    return str(base)


def _for_peers(name: str) -> str:
    """The quantized ONNX file."""
    out = environments.BUILD / f"{name}-int8.onnx"
    if not out.exists():
        say(f"quantizing {name} for peers ...")
        image = np.load(f"{environments.network(name)}-input.npy", mmap_mode="r").shape[1:]
        command = [environments.interpreter("onnxruntime"), "-c", QUANTIZE, environments.onnx(name, image, 1)]
        done = subprocess.run([*command, str(_images(name)), str(out)], capture_output=True, text=True)
        if done.returncode:
            out.unlink(missing_ok=True)
            raise RuntimeError(f"onnxruntime's quantizer failed:\n{done.stderr[-2000:]}")
    return str(out)


def files(name: str) -> engines.Model:
    """The files of a network in 8 bits for all engines."""
    base = _for_mxrt(name)
    return engines.Model(
        symbol=f"{base}-symbol.json", params=f"{base}-0000.params", onnx=_for_peers(name), inputs=["data"]
    )
