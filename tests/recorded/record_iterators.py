"""Records the batches that iterators of MXNet 1.9.1 give: ``python record_iterators.py`` in its
environment writes iterators.npz again, with the files that they were read from.
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
from pathlib import Path

import cv2
import mxnet as mx
import numpy as np
from mxnet import recordio

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from iterator_cases import CASES, batches

PATH = Path(__file__).parent / "iterators.npz"
SIZES = [(20, 30), (34, 25), (16, 16), (9, 40), (50, 12)]


def image(random: np.random.RandomState, height: int, width: int, channels: int = 3) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    made = np.stack([(x * 3 + y * 2 + k * 40) % 256 for k in range(channels)], -1).astype("uint8")
    part = made[height // 4 : height // 2, width // 4 : width // 2]
    part[:] = random.randint(0, 255, part.shape)
    return made


def write(name: str, images: list[np.ndarray], labels: list, kind: str = ".png", first: int = 0) -> None:
    file = recordio.MXIndexedRecordIO(name + ".idx", name + ".rec", "w")
    for i, (pixels, label) in enumerate(zip(images, labels, strict=False)):
        _, encoded = cv2.imencode(kind, pixels)
        file.write_idx(i, recordio.pack(recordio.IRHeader(0, label, first + i, 0), encoded.tobytes()))
    file.close()


def files() -> None:
    random = np.random.RandomState(3)
    images = [image(random, *size) for size in SIZES]
    write("png", images, [i * 1.5 for i in range(5)], first=10)
    write("jpg", images, [float(i) for i in range(5)], ".jpg")
    write("labels", images, [np.array([i, i + 0.5, i * 2], "float32") for i in range(5)])
    write("rgba", [image(random, 20, 22, 4) for _ in range(5)], [float(i) for i in range(5)])
    boxes = [[[k, 0.1 + 0.1 * k, 0.2, 0.5 + 0.1 * k, 0.9] for k in range(i % 2 + 1)] for i in range(5)]
    write("det", images, [np.array([2, 5, *np.ravel(some)], "float32") for some in boxes])
    Path("list.lst").write_text("".join(f"{10 + i}\t{i * 7}\t{i * 9}\tx{i}.png\n" for i in range(5)))
    digits = random.randint(0, 256, (8, 4, 5)).astype("uint8")
    Path("images").write_bytes(struct.pack(">IIII", 0x803, *digits.shape) + digits.tobytes())
    Path("digits").write_bytes(struct.pack(">II", 0x801, 8) + bytes(range(8)))
    Path("rows.svm").write_text("1.5 0:1 2:2.5\n-2 1:-3\n3 \n4 0:1 1:2 2:3 3:4 4:5\n5 4:7e2\n")
    Path("labels.svm").write_text("".join(f"0 0:{i} 2:{i + 0.5}\n" for i in range(5)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        files()
        recorded = {"file_" + path.name: np.frombuffer(path.read_bytes(), "uint8") for path in Path().iterdir()}
        for name, kind, arguments in CASES:
            verbose = {} if kind in ("LibSVMIter", "MNISTIter") else {"preprocess_threads": 1, "verbose": False}
            for key, values in batches(mx, kind, {**arguments, **verbose}).items():
                recorded[f"{name}_{key}"] = values
    np.savez_compressed(PATH, **recorded)
