"""How far decoded pixels are from OpenCV's, over 200 files of different encoders.

python benches/image_pixels.py make FOLDER       with Pillow: writes the files
python benches/image_pixels.py theirs FOLDER     with MXNet and OpenCV: adds files, and all pixels
python benches/image_pixels.py compare FOLDER    with mxrt: prints a table
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np


def picture(seed: int) -> np.ndarray:
    """Shapes, gradients and noise, like a photograph in what they ask of a decoder."""
    random = np.random.default_rng(seed)
    height, width = (int(n) for n in random.integers(20, 260, 2))
    y, x = np.mgrid[:height, :width].astype(float)
    image = np.zeros((height, width, 3))
    for _ in range(6):
        fx, fy, phase = random.uniform(0, 0.2), random.uniform(0, 0.2), random.uniform(0, 6)
        image += (np.sin(fx * x + fy * y + phase)[..., None] + 1) * random.uniform(0, 45, 3)
    for _ in range(4):
        top, left = random.integers(0, height), random.integers(0, width)
        image[top : top + height // 4, left : left + width // 4] = random.uniform(0, 255, 3)
    return np.clip(image + random.normal(0, random.uniform(0, 12), image.shape), 0, 255).astype("uint8")


def make(folder: Path) -> None:
    """120 files of Pillow (libjpeg-turbo, libpng)."""
    from PIL import Image

    kinds = [
        ("jpeg_420", {"format": "JPEG", "subsampling": "4:2:0"}),
        ("jpeg_422", {"format": "JPEG", "subsampling": "4:2:2"}),
        ("jpeg_444", {"format": "JPEG", "subsampling": "4:4:4"}),
        ("jpeg_progressive", {"format": "JPEG", "progressive": True}),
        ("jpeg_optimized", {"format": "JPEG", "optimize": True}),
        ("jpeg_restart", {"format": "JPEG", "restart_marker_blocks": 3}),
        ("jpeg_grey", {"format": "JPEG"}),
        ("jpeg_cmyk", {"format": "JPEG"}),
        ("png_rgb", {"format": "PNG"}),
        ("png_palette", {"format": "PNG"}),
        ("png_grey", {"format": "PNG", "optimize": True}),
        ("png_alpha", {"format": "PNG"}),
    ]
    modes = {"jpeg_grey": "L", "jpeg_cmyk": "CMYK", "png_palette": "P", "png_grey": "L", "png_alpha": "RGBA"}
    for number, (name, options) in enumerate(kinds):
        for i in range(10):
            image = Image.fromarray(picture(number * 100 + i)).convert(modes.get(name, "RGB"))
            quality = {"quality": (30, 50, 75, 85, 90, 95, 98, 100, 60, 10)[i]} if name.startswith("jpeg") else {}
            image.save(folder / f"pillow_{name}_{i}", **options, **quality)


def theirs(folder: Path) -> None:
    """80 files of OpenCV, and its pixels of all files."""
    import cv2

    kinds = [
        ("jpeg", ".jpg", []),
        ("jpeg_progressive", ".jpg", [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]),
        ("jpeg_optimized", ".jpg", [cv2.IMWRITE_JPEG_OPTIMIZE, 1]),
        ("jpeg_restart", ".jpg", [cv2.IMWRITE_JPEG_RST_INTERVAL, 5]),
        ("png", ".png", []),
        ("png_16_bits", ".png", []),
        ("jpeg_luma", ".jpg", [cv2.IMWRITE_JPEG_LUMA_QUALITY, 40, cv2.IMWRITE_JPEG_CHROMA_QUALITY, 90]),
        ("jpeg_grey", ".jpg", []),
    ]
    for number, (name, ending, options) in enumerate(kinds):
        for i in range(10):
            image = picture(5000 + number * 100 + i)
            image = image[..., 0] if name == "jpeg_grey" else image.astype("uint16") * 256 if "16" in name else image
            quality = [cv2.IMWRITE_JPEG_QUALITY, 10 * i + 10] if ending == ".jpg" else []
            _, file = cv2.imencode(ending, image, quality + options)
            (folder / f"opencv_{name}_{i}").write_bytes(file.tobytes())
    pixels = {}
    for path in sorted(folder.iterdir()):
        file = np.frombuffer(path.read_bytes(), "uint8")
        pixels[f"{path.name}/1"] = cv2.imdecode(file, 1)[..., ::-1]
        pixels[f"{path.name}/0"] = cv2.imdecode(file, 0)[..., None]
    out = io.BytesIO()
    np.savez(out, **pixels)
    (folder / "pixels.npz").write_bytes(out.getvalue())


def compare(folder: Path) -> None:
    """Prints the largest and the mean difference for each kind of file."""
    import mxrt as mx

    found: dict[str, list[np.ndarray]] = {}
    for key, want in np.load(folder / "pixels.npz").items():
        name, flag = key.split("/")
        made = mx.image.imdecode((folder / name).read_bytes(), flag=int(flag)).asnumpy()
        kind = name.rpartition("_")[0] + (" as grey" if flag == "0" else "")
        found.setdefault(kind, []).append(np.abs(made.astype(int) - want).ravel())
    print("| files | largest difference | mean difference |\n| --- | --- | --- |")
    found["all"] = [part for parts in found.values() for part in parts]
    for kind, parts in found.items():
        joined = np.concatenate(parts)
        print(f"| {kind} | {joined.max()} | {joined.mean():.4f} |")


if __name__ == "__main__":
    where = Path(sys.argv[2])
    where.mkdir(parents=True, exist_ok=True)
    {"make": make, "theirs": theirs, "compare": compare}[sys.argv[1]](where)
