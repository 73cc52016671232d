"""Speed of reading data, mxrt and MXNet 1.9.1 in turns: medians of processes of their own.

    python benches/data.py FOLDER --mxnet /path/to/python [--rounds 5] [--only csv,imdecode]

FOLDER gets about 600 MB of files, made once. Rows are rates; the last column is mxrt's by MXNet's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

IMAGES = 600


def timed(work: Callable[[], float]) -> float:
    """Units of work in a second."""
    begin = time.perf_counter()
    units = work()
    return units / (time.perf_counter() - begin)


def picture(seed: int) -> np.ndarray:
    """500 x 375 pixels that compress like a photograph."""
    random = np.random.RandomState(seed)
    y, x = np.mgrid[:375, :500].astype("float32")
    image = np.zeros((375, 500, 3), "float32")
    for _ in range(12):
        fx, fy, phase = random.uniform(-0.3, 0.3, 3)
        image += np.sin(fx * x + fy * y + 20 * phase)[..., None] * random.uniform(5, 25, 3).astype("float32")
    return np.clip(image + 128 + random.normal(0, 6, image.shape), 0, 255).astype("uint8")


def prepare(folder: Path) -> None:
    """Makes the files that are not there yet."""
    import mxrt as mx

    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.RandomState(1)
    if not (folder / "rows.csv").exists():
        rows = random.uniform(-1, 1, (4000, 100)).astype("float32")
        text = "".join(",".join(f"{v:.6g}" for v in row) + "\n" for row in rows)
        (folder / "rows.csv").write_text(text * (200_000_000 // len(text)))
        text = "".join(
            f"{i % 10} " + " ".join(f"{k}:{v:.6g}" for k, v in enumerate(row)) + "\n" for i, row in enumerate(rows)
        )
        (folder / "rows.svm").write_text(text * (200_000_000 // len(text)))
    if not (folder / "images.rec").exists():
        writer = mx.recordio.MXIndexedRecordIO(str(folder / "images.idx"), str(folder / "images.rec"), "w")
        for i in range(IMAGES):
            writer.write_idx(i, mx.recordio.pack_img(mx.recordio.IRHeader(0, i % 10, i, 0), picture(i % 40), 90))
        writer.close()
        (folder / "image.jpg").write_bytes(
            mx.recordio.unpack(mx.recordio.MXRecordIO(str(folder / "images.rec"), "r").read())[1]
        )


def rows(mx: Any, folder: Path, kind: str, arguments: dict[str, Any]) -> float:
    """MB/s of text."""
    path = next(value for value in arguments.values() if isinstance(value, str))

    def run() -> float:
        for batch in getattr(mx.io, kind)(batch_size=256, **arguments):
            batch.data[0].wait_to_read()
        return os.path.getsize(path) / 1e6

    return timed(run)


def csv(mx: Any, folder: Path) -> float:
    return rows(mx, folder, "CSVIter", {"data_csv": str(folder / "rows.csv"), "data_shape": (100,)})


def libsvm(mx: Any, folder: Path) -> float:
    return rows(mx, folder, "LibSVMIter", {"data_libsvm": str(folder / "rows.svm"), "data_shape": (100,)})


def records(mx: Any, folder: Path) -> float:
    """MB/s in order."""
    path = str(folder / "images.rec")

    def run() -> float:
        for _ in range(10):
            reader = mx.recordio.MXRecordIO(path, "r")
            while reader.read() is not None:
                pass
        return 10 * os.path.getsize(path) / 1e6

    return timed(run)


def records_by_index(mx: Any, folder: Path) -> float:
    """Records/s."""
    reader = mx.recordio.MXIndexedRecordIO(str(folder / "images.idx"), str(folder / "images.rec"), "r")
    keys = np.random.RandomState(3).randint(0, IMAGES, 10 * IMAGES).tolist()

    def run() -> float:
        for key in keys:
            reader.read_idx(key)
        return len(keys)

    return timed(run)


def imdecode(mx: Any, folder: Path) -> float:
    """Images/s, one thread."""
    file = (folder / "image.jpg").read_bytes()
    mx.image.imdecode(file).wait_to_read()

    def run() -> float:
        for _ in range(200):
            mx.image.imdecode(file).wait_to_read()
        return 200

    return timed(run)


def imdecode_pillow(_: Any, folder: Path) -> float:
    """Images/s."""
    import io

    from PIL import Image

    file = (folder / "image.jpg").read_bytes()

    def run() -> float:
        for _ in range(200):
            np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))
        return 200

    return timed(run)


def image_iterator(mx: Any, folder: Path, **more: Any) -> Any:
    return mx.io.ImageRecordIter(
        path_imgrec=str(folder / "images.rec"), data_shape=(3, 224, 224), batch_size=32, resize=256, rand_crop=True,
        rand_mirror=True, mean_r=123.7, mean_g=116.3, mean_b=103.5, std_r=58.4, std_g=57.1, std_b=57.4,
        preprocess_threads=2, **more
    )  # fmt: skip


def image_record_iter(mx: Any, folder: Path) -> float:
    """Images/s, two threads."""
    iterator = image_iterator(mx, folder)
    next(iterator)
    iterator.reset()

    def run() -> float:
        count = 0
        for batch in iterator:
            batch.data[0].wait_to_read()
            count += 32 - batch.pad
        return count

    return timed(run)


WORK: dict[str, tuple[str, Callable[[Any, Path], float], bool]] = {
    "csv": ("CSVIter, 200 MB, MB/s", csv, True),
    "libsvm": ("LibSVMIter, 200 MB, MB/s", libsvm, True),
    "records": ("RecordIO in order, MB/s", records, True),
    "index": ("RecordIO by index, records/s", records_by_index, True),
    "imdecode": ("imdecode of 500 x 375, images/s", imdecode, True),
    "pillow": ("the same with Pillow, images/s", imdecode_pillow, False),
    "images": ("ImageRecordIter 500 x 375 to 224 x 224, images/s", image_record_iter, True),
}


def child(name: str, folder: Path, package: str) -> None:
    """Measures one work in this process."""
    import importlib

    mx = importlib.import_module(package)
    print(json.dumps(WORK[name][1](mx, folder)))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mxnet", required=True, help="Python that has MXNet 1.9.1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(WORK))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child[0], args.folder, args.child[1])
        return
    prepare(args.folder)
    print("| work | mxrt | MXNet 1.9.1 | ratio |\n| --- | --- | --- | --- |")
    for name in args.only.split(","):
        label, _, both = WORK[name]
        sides = [("mxrt", sys.executable), *([("mxnet", args.mxnet)] if both else [])]
        found: dict[str, list[float]] = {side: [] for side, _ in sides}
        for _ in range(args.rounds):
            for side, python in sides:
                command = [python, __file__, str(args.folder), "--mxnet", "-", "--child", name, side]
                run = subprocess.run(command, capture_output=True, text=True, check=True)
                found[side].append(json.loads(run.stdout.splitlines()[-1]))
        ours, *theirs = (statistics.median(values) for values in found.values())
        other = f"{theirs[0]:.1f} | {ours / theirs[0]:.2f}" if theirs else "- | -"
        print(f"| {label} | {ours:.1f} | {other} |", flush=True)


if __name__ == "__main__":
    main()
