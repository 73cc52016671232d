"""Records the output of MXNet 1.9.1's tool: ``python record_im2rec.py im2rec.py`` in its
environment writes im2rec.npz again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

PATH = Path(__file__).parent / "im2rec.npz"


def images() -> None:
    random = np.random.RandomState(5)
    for i, name in enumerate(["a.png", "b.jpg", "cats/1.png", "cats/2.jpeg", "dogs/x/3.JPG", "dogs/4.png", "z.png"]):
        path = Path("images", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), cv2.resize(random.randint(0, 256, (4, 5, 3)).astype("uint8"), (20 + i, 30 - 2 * i)))
    Path("images", "no.txt").write_text("no image")


def tool(name: str, *options: str) -> None:
    subprocess.run([sys.executable, TOOL, "out/" + name, "images", *options], check=True)


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("out").mkdir()
        images()
        tool("plain", "--list", "--no-shuffle")
        tool("deep", "--list", "--recursive")
        tool("part", "--list", "--recursive", "--chunks", "2", "--train-ratio", "0.5", "--test-ratio", "0.25")
        Path("out/several.lst").write_text("7\t1\t2.5\ta.png\n9\t-1\t4\tcats/1.png\n")
        Path("out/small.lst").write_bytes(Path("out/deep.lst").read_bytes())
        tool("deep", "--pass-through")
        tool("several", "--pass-through", "--pack-label")
        tool("small", "--resize", "8", "--center-crop", "--encoding", ".png", "--quality", "3")
        Path("out/small.lst").unlink()
        found = {str(p): np.frombuffer(p.read_bytes(), "uint8") for p in Path().rglob("*") if p.is_file()}
    np.savez_compressed(PATH, **found)
