"""Augmenters of images with boxes, whose results are compared with MXNet's: each case runs with
either module.

``python tests/data/detection_cases.py``, with a Python that has MXNet 1.9.1, writes
``tests/recorded/detection.npz`` again.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[1] / "recorded"
RECORDED = HERE / "detection.npz"

BOXES = np.array([[0, 0.1, 0.2, 0.5, 0.6], [2, 0.4, 0.3, 0.95, 0.9], [1, 0.7, 0.05, 0.8, 0.15]], dtype=np.float32)


def augmenters(image) -> dict:
    """Augmenters by name, made with a module ``mx.image``."""
    select = image.DetRandomSelectAug
    return {
        "flip": image.DetHorizontalFlipAug(0.5),
        "crop": image.DetRandomCropAug(),
        "crop_covering": image.DetRandomCropAug(0.7, (0.5, 2.0), (0.2, 0.9), 0.5, 20),
        "crop_fixed": image.DetRandomCropAug(0.0, 1.0, 0.5),
        "pad": image.DetRandomPadAug(),
        "pad_fixed": image.DetRandomPadAug(1.2, 2.0, 20, (1, 2, 3)),
        "select": select([image.DetHorizontalFlipAug(1), image.DetRandomPadAug(), image.DetRandomCropAug()], 0.2),
        "several": image.CreateMultiRandCropAugmenter([0.1, 0.5, 0.9], area_range=[(0.1, 1.0), (0.2, 1.0), (0.3, 0.9)]),
        "borrow": image.DetBorrowAug(image.HorizontalFlipAug(0.5)),
        "usual": image.CreateDetAugmenter(
            (3, 16, 20), 24, rand_crop=0.6, rand_pad=0.6, rand_mirror=True, mean=True, std=True, inter_method=1
        ),
        "coloured": image.CreateDetAugmenter(
            *((3, 16, 20), 0, 0.5, 0.5, 0.3),
            brightness=0.2,
            contrast=0.2,
            saturation=0.2,
            hue=0.1,
            pca_noise=0.1,
            inter_method=1,
        ),
    }


def results(mx, pixels: np.ndarray) -> dict[str, np.ndarray]:
    """Images and boxes that each augmenter makes of an image, with one of its seeds after
    another.
    """
    made = {}
    for name, found in augmenters(mx.image).items():
        steps = found if isinstance(found, list) else [found]
        for seed in range(6):
            random.seed(seed)
            np.random.seed(seed)
            image, boxes = mx.nd.array(pixels, dtype="uint8"), BOXES.copy()
            for step in steps:
                image, boxes = step(image, boxes)
            made[f"{name}_{seed}_image"] = image.asnumpy()
            made[f"{name}_{seed}_boxes"] = boxes
    return made


def listed(folder: Path) -> list[list]:
    """Files of images with one to three objects each, and their labels, as lists of images."""
    images = np.load(HERE / "images.npz")
    rows = []
    for number, name in enumerate(name for name in images if name.startswith("file_png")):
        (folder / name).write_bytes(images[name].tobytes())
        boxes = np.concatenate([BOXES] * 2)[number % 3 : number % 3 + 1 + number % 2]
        rows.append([3, 5, 0.5, *(float(value) for value in boxes.ravel()), name])
    return rows


def batches(mx, folder: Path) -> dict[str, np.ndarray]:
    """Batches of an iterator over files, for each way to end an epoch."""
    made = {}
    for handle in ("pad", "discard", "roll_over"):
        random.seed(4)
        iterator = mx.image.ImageDetIter(
            *(3, (3, 12, 14)),
            imglist=listed(folder),
            path_root=str(folder),
            shuffle=True,
            last_batch_handle=handle,
            rand_crop=0.5,
            rand_mirror=True,
            inter_method=0,
            mean=True,
        )
        for epoch in range(2):
            for number, batch in enumerate(iterator):
                made[f"{handle}_{epoch}_{number}_data"] = batch.data[0].asnumpy()
                made[f"{handle}_{epoch}_{number}_label"] = batch.label[0].asnumpy()
                made[f"{handle}_{epoch}_{number}_pad"] = np.array(batch.pad)
            iterator.reset()
    return made


def pixels() -> np.ndarray:
    return np.load(HERE / "images.npz")["smooth"][:30, :36]


if __name__ == "__main__":
    import mxnet

    with tempfile.TemporaryDirectory() as folder:
        np.savez_compressed(RECORDED, **results(mxnet, pixels()), **batches(mxnet, Path(folder)))
