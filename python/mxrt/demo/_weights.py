"""Full-size resnet-18 for the demo: weights and images computed from a fixed stream of bits.

The parameters of a full-size network are large and training one is not the point here, so they are
computed: every value comes from raw 64-bit words of PCG64, turned into float32 by exact integer and
IEEE operations. All NumPy versions give the same bits, which checksums confirm.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

DATA = Path(__file__).resolve().parent / "data"
MODEL = "resnet18_v1"
IMAGES = 4


def _uniform01(label: str, count: int) -> FloatArray:
    """`count` float32 values in [0, 1), multiples of 2**-24, fixed by `label`."""
    bits = np.random.PCG64(zlib.crc32(label.encode("ascii")))
    words = bits.random_raw((count + 1) // 2).astype("<u8").view("<u4")[:count]
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def _uniform(label: str, shape: tuple[int, ...], low: float, high: float) -> FloatArray:
    values = _uniform01(label, math.prod(shape)) * np.float32(high - low) + np.float32(low)
    return values.reshape(shape)


def _parameter(
    name: str, shape: tuple[int, ...], measured: dict[str, FloatArray], scales: dict[str, float]
) -> FloatArray:
    if name in measured:
        return np.ascontiguousarray(measured[name], np.float32).reshape(shape)
    label = f"{MODEL}/{name}"
    if name.endswith("gamma"):
        return _uniform(label, shape, 0.5, 1.5)
    if name.endswith("beta"):
        return _uniform(label, shape, -0.5, 0.5)
    if name.endswith("bias"):
        return _uniform(label, shape, -0.1, 0.1)
    # He's bound keeps the size of the activations from layer to layer.
    bound = math.sqrt(6.0 / math.prod(shape[1:])) * scales.get(name, 1.0)
    return _uniform(label, shape, -bound, bound)


def parameters() -> Iterator[tuple[str, FloatArray]]:
    """Every parameter as (name with `arg:` or `aux:`, value), in the order of the file MXNet would
    write.
    """
    spec = json.loads((DATA / f"{MODEL}-shapes.json").read_text())
    with np.load(DATA / f"{MODEL}-calib.npz") as saved:
        measured = {name: saved[name] for name in saved.files}
    crc = 0
    for entry in spec["params"]:
        value = _parameter(entry["name"].split(":", 1)[1], tuple(entry["shape"]), measured, spec["scales"])
        crc = zlib.crc32(value.tobytes(), crc)
        yield entry["name"], value
    if crc != spec["params_crc32"]:
        raise RuntimeError(
            f"the computed weights of {MODEL} have checksum {crc:08x} instead of {spec['params_crc32']:08x}: "
            f"NumPy {np.__version__} drew other bits than recorded; please report this"
        )


def images() -> FloatArray:
    """Four images of coloured patches, (4, 3, 224, 224), each with a grain and contrast of its
    own.
    """
    size = json.loads((DATA / f"{MODEL}-shapes.json").read_text())["input_size"]
    batch = np.zeros((IMAGES, 3, size, size), np.float32)
    for index, image in enumerate(batch):
        label = f"input/{MODEL}/{index}"
        knobs = _uniform01(f"{label}/knobs", 16)
        for j, grid in enumerate((3, 7, 14, 28, 56, size)):
            cells = _uniform(f"{label}/{grid}", (3, grid, grid), -1.0, 1.0)
            where = np.arange(size) * grid // size
            image += cells[:, where][:, :, where] * (np.float32(0.2) + knobs[j])
        image += (knobs[8:11] - np.float32(0.5)).reshape(3, 1, 1)
        image *= np.float32(0.5) + knobs[11]
    return batch


def mxnet_answers() -> tuple[FloatArray, float, float]:
    """The answers of MXNet 1.9.1 for the four images, with the absolute and relative tolerance."""
    spec = json.loads((DATA / f"{MODEL}-shapes.json").read_text())
    with np.load(DATA / f"{MODEL}-golden.npz") as saved:
        return saved["b4"], float(spec["atol"]), float(spec["rtol"])
