"""Records MXNet 1.9.1's results for images: ``python record_images.py`` in its environment writes
images.npz again. The files of images in it stay; they were made with Pillow.
"""

from __future__ import annotations

import random
from pathlib import Path

import mxnet as mx
import numpy as np

PATH = Path(__file__).parent / "images.npz"


def recorded(files: dict[str, np.ndarray], noise: np.ndarray, smooth: np.ndarray) -> dict[str, np.ndarray]:
    out = {**files, "noise": noise, "smooth": smooth}
    for name, file in files.items():
        for flag in (0, 1):
            out[f"pixels_{name.removeprefix('file_')}_{flag}"] = mx.image.imdecode(file.tobytes(), flag=flag).asnumpy()
    for name, image in (("noise", noise), ("smooth", smooth)):
        for w, h in ((9, 7), (30, 21), (17, 6), (5, 26), (20, 20), (25, 20)):
            if name == "noise" or (w, h) in ((20, 20), (25, 20)):
                for interp in range(5):
                    made = mx.image.imresize(mx.nd.array(image, dtype="uint8"), w, h, interp)
                    out[f"resize_{name}_{w}_{h}_{interp}"] = made.asnumpy()
        for interp in (1, 2, 3, 4):
            made = mx.image.imresize(mx.nd.array(image.astype("float32")), 11, 9, interp)
            out[f"resizef_{name}_11_9_{interp}"] = made.asnumpy()
    smooth = smooth[:20, :24]
    for op, dtype in (*((o, "uint8") for o in ("brightness", "contrast", "saturation", "hue")), ("hue", "float32")):
        made = getattr(mx.nd.image, "random_" + op)(mx.nd.array(smooth, dtype=dtype), 1.25, 1.25)
        out[f"color_{op}_{dtype}"] = made.asnumpy()
    planes = mx.nd.array(np.ascontiguousarray(smooth[:12, :16].transpose(2, 0, 1)).astype("float32") / 255)
    for name, zoom in (("plain", {}), ("in", {"zoom_in": True}), ("out", {"zoom_out": True})):
        out["rotate_" + name] = mx.image.imrotate(planes, 33.0, **zoom).asnumpy()
    for kind in range(5):
        made = mx.image.copyMakeBorder(
            mx.nd.array(noise[:4, :5], dtype="uint8"), 2, 3, 1, 4, type=kind, values=(9, 8, 7)
        )
        out[f"border_{kind}"] = made.asnumpy()
    for seed, name, augmenter in (
        (3, "hue_aug", mx.image.HueJitterAug(0.5)),
        (5, "contrast_aug", mx.image.ContrastJitterAug(0.5)),
        (5, "saturation_aug", mx.image.SaturationJitterAug(0.5)),
    ):
        random.seed(seed)
        out[name] = augmenter(mx.nd.array(smooth.astype("float32"))).asnumpy()
    random.seed(7)
    image = mx.nd.array(smooth, dtype="uint8")
    for augmenter in mx.image.CreateAugmenter(
        (3, 16, 20), resize=24, rand_crop=True, rand_resize=True, rand_mirror=True, mean=True, std=True, inter_method=1
    ):
        image = augmenter(image)
    out["create_augmenter"] = image.asnumpy()
    return out


if __name__ == "__main__":
    old = np.load(PATH)
    np.savez_compressed(
        PATH, **recorded({k: old[k] for k in old if k.startswith("file_")}, old["noise"], old["smooth"])
    )
