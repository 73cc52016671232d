"""Reading data: mxrt, MXNet 1.9.1, OpenCV, Pillow and torch, interleaved, each in its own process.

    python benches/data.py FOLDER --mxnet PYTHON --peers PYTHON [--rounds 5] [--only csv,imdecode]

FOLDER gets about 600 MB of files, made once. PYTHON is an interpreter that has MXNet 1.9.1, or
OpenCV, Pillow and torch; without it these columns stay empty. Cells are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

IMAGES = 600
BATCH, SIDE, QUEUE, WORKERS = 32, 224, 4, 2
CORES = 2


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
    if not (folder / "jpeg").exists():
        (folder / "jpeg").mkdir()
        reader = mx.recordio.MXRecordIO(str(folder / "images.rec"), "r")
        for i in range(IMAGES):
            content = mx.recordio.unpack(reader.read() or b"")[1]
            (folder / "jpeg" / f"{i:04}.jpg").write_bytes(content)
            if i == 0:
                (folder / "image.jpg").write_bytes(content)


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


def decoded(decode: Callable[[bytes], Any], folder: Path) -> float:
    """Images/s."""
    file = (folder / "image.jpg").read_bytes()
    decode(file)

    def run() -> float:
        for _ in range(200):
            decode(file)
        return 200

    return timed(run)


def imdecode(mx: Any, folder: Path) -> float:
    return decoded(lambda file: mx.image.imdecode(file).wait_to_read(), folder)


def imdecode_opencv(cv2: Any, folder: Path) -> float:
    """Decodes with the order of colours that a network gets."""
    return decoded(
        lambda file: cv2.cvtColor(cv2.imdecode(np.frombuffer(file, "uint8"), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB),
        folder,
    )


def imdecode_pillow(pillow: Any, folder: Path) -> float:
    import io

    from PIL import Image

    return decoded(lambda file: np.asarray(Image.open(io.BytesIO(file)).convert("RGB")), folder)


MEAN, DEVIATION = (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)


def image_iterator(mx: Any, folder: Path, threads: int = WORKERS, batch: int = BATCH) -> Any:
    return mx.io.ImageRecordIter(
        path_imgrec=str(folder / "images.rec"), data_shape=(3, SIDE, SIDE), batch_size=batch, resize=256,
        rand_crop=True, rand_mirror=True, mean_r=MEAN[0], mean_g=MEAN[1], mean_b=MEAN[2], std_r=DEVIATION[0],
        std_g=DEVIATION[1], std_b=DEVIATION[2], preprocess_threads=threads, prefetch_buffer=QUEUE,
    )  # fmt: skip


def batches(iterator: Any) -> float:
    """Reads to the end; how many images there were."""
    count = 0
    for batch in iterator:
        batch.data[0].wait_to_read()
        count += BATCH - batch.pad
    return count


def image_record_iter(mx: Any, folder: Path) -> float:
    """Images/s, two threads."""
    iterator = image_iterator(mx, folder)
    next(iterator)
    iterator.reset()
    return timed(lambda: batches(iterator))


class Photographs:
    """A data set for torch: the same images and changes, by Pillow."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted((folder / "jpeg").iterdir())

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, at: int) -> Any:
        import random

        import torch
        from PIL import Image

        image = Image.open(self.files[at]).convert("RGB")
        scale = 256 / min(image.size)
        image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BILINEAR)
        x, y = random.randint(0, image.width - SIDE), random.randint(0, image.height - SIDE)
        image = image.crop((x, y, x + SIDE, y + SIDE))
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        values = (np.asarray(image, "float32") - np.array(MEAN, "float32")) / np.array(DEVIATION, "float32")
        return torch.from_numpy(np.ascontiguousarray(values.transpose(2, 0, 1))), at % 10


def torch_loader(torch: Any, folder: Path) -> float:
    """Images/s, two processes."""
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        Photographs(folder), batch_size=BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True
    )
    next(iter(loader))
    return timed(lambda: sum(len(labels) for _, labels in loader))


def status(name: str) -> float:
    """MB from a row of this process's status."""
    rows = Path("/proc/self/status").read_text().splitlines()
    return float(next(row for row in rows if row.startswith(name)).split()[1]) / 1024


def image_memory(mx: Any, folder: Path) -> float:
    """MB that an iterator adds to the process at most, with the batch in the program's hands."""
    next(image_iterator(mx, folder, batch=1)).data[0].wait_to_read()  # loads the code
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the largest size so far starts anew
    iterator = image_iterator(mx, folder)
    for number, batch in enumerate(iterator):
        batch.data[0].wait_to_read()
        if number < 8:
            time.sleep(0.3)  # the queue fills
    iterator.reset()
    batches(iterator)
    return status("VmHWM") - before


def reading_and_computing(network: str, what: str) -> Callable[[Any, Path], float]:
    """Seconds for all images once: read, computed, or both."""

    def run(mx: Any, folder: Path) -> float:
        net = getattr(mx.gluon.model_zoo.vision, network)()
        net.initialize()
        net.hybridize()
        iterator = image_iterator(mx, folder, threads=int(os.environ["MXRT_CORES"]))
        first = next(iterator).data[0]
        net(first).wait_to_read()
        iterator.reset()
        begin = time.perf_counter()
        if what == "read":
            batches(iterator)
        elif what == "compute":
            for _ in range(-(-IMAGES // BATCH)):
                net(first).wait_to_read()
        else:
            for batch in iterator:
                net(batch.data[0]).wait_to_read()
        return time.perf_counter() - begin

    return run


@dataclass
class Work:
    """A row of the table: who does it, and what is asked of mxrt's median by the peer's."""

    label: str
    sides: dict[str, Callable[[Any, Path], float]]
    goals: dict[str, float] = field(default_factory=dict)


def both(label: str, work: Callable[[Any, Path], float], goal: float) -> Work:
    return Work(label, {"mxrt": work, "mxnet": work}, {"mxnet": goal})


WORK = {
    "csv": both("CSVIter, 200 MB, MB/s", csv, 2),
    "libsvm": both("LibSVMIter, 200 MB, MB/s", libsvm, 2),
    "records": both("RecordIO in order, MB/s", records, 1),
    "index": both("RecordIO by index, records/s", records_by_index, 1),
    "imdecode": Work(
        "`imdecode` of 500 x 375, one thread, images/s",
        {"mxrt": imdecode, "mxnet": imdecode, "opencv": imdecode_opencv, "pillow": imdecode_pillow},
        {"opencv": 0.7, "pillow": 0.9},
    ),
    "images": Work(
        "ImageRecordIter, 500 x 375 to 224 x 224, two cores, images/s",
        {"mxrt": image_record_iter, "mxnet": image_record_iter, "torch": torch_loader},
        {"mxnet": 0.8, "torch": 1},
    ),
}
"""Rates: the more the better."""

MODULES = {"mxrt": "mxrt", "mxnet": "mxnet", "opencv": "cv2", "pillow": "PIL", "torch": "torch"}
BOUND = {"decode-bound": "mobilenet0_25", "compute-bound": "resnet18_v1"}
EXTRA = {"memory": image_memory} | {
    f"{name}-{what}": reading_and_computing(network, what)
    for name, network in BOUND.items()
    for what in ("read", "compute", "together")
}


@dataclass
class Machines:
    """Interpreters of the peers, and a folder of files."""

    folder: Path
    mxnet: str | None
    peers: str | None
    rounds: int

    def python(self, side: str) -> str | None:
        return sys.executable if side == "mxrt" else self.mxnet if side == "mxnet" else self.peers

    def measure(self, name: str, side: str, cores: int = CORES) -> float:
        """One work in a process of its own."""
        command = [str(self.python(side)), __file__, str(self.folder), "--child", name, side]
        environment = os.environ | {"MXRT_CORES": str(cores), "OMP_NUM_THREADS": str(cores)}
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        if run.returncode:
            sys.exit(f"{name} of {side}: {run.stderr}")
        return float(json.loads(run.stdout.splitlines()[-1]))


def rate_row(machines: Machines, name: str) -> str:
    work = WORK[name]
    sides = [side for side in work.sides if machines.python(side)]
    found: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(machines.rounds):
        for side in sides[turn % len(sides) :] + sides[: turn % len(sides)]:
            found[side].append(machines.measure(name, side))
    medians = {side: statistics.median(values) for side, values in found.items()}
    ratios = {side: medians["mxrt"] / medians[side] for side in sides if side != "mxrt"}
    cells = [f"{medians[side]:.4g}" if side in medians else "" for side in MODULES]
    said = ", ".join(f"{ratio:.2f} x {side}" for side, ratio in ratios.items())
    goals = ", ".join(f"{goal:g} x {side}" for side, goal in work.goals.items())
    met = all(ratios[side] >= goal for side, goal in work.goals.items() if side in ratios)
    return f"| {work.label} | {' | '.join(cells)} | {said} | {goals} | {'yes' if met else 'no'} |"


def memory_row(machines: Machines) -> str:
    bound = BATCH * 3 * SIDE * SIDE * 4 * (QUEUE + WORKERS) * 1.5 / (1 << 20)
    sides = [side for side in ("mxrt", "mxnet") if machines.python(side)]
    found = {side: max(machines.measure("memory", side) for _ in range(machines.rounds)) for side in sides}
    cells = [f"{found[side]:.0f}" if side in found else "" for side in MODULES]
    label = f"memory of an ImageRecordIter: batches of {BATCH}, queue {QUEUE}, workers {WORKERS}, MB"
    met = "yes" if found["mxrt"] <= bound else "no"
    return f"| {label} | {' | '.join(cells)} |  | at most {bound:.0f} | {met} |"


def overlap_rows(machines: Machines) -> Iterator[str]:
    """Each side alone on one core, both on two; and that against one after the other on two."""
    for name in BOUND:
        found: dict[tuple[str, int], list[float]] = {}
        for _ in range(machines.rounds):
            for what in ("read", "compute", "together"):
                for cores in (CORES,) if what == "together" else (1, CORES):
                    found.setdefault((what, cores), []).append(machines.measure(f"{name}-{what}", "mxrt", cores))
        median = {key: statistics.median(values) for key, values in found.items()}
        total, (read, compute) = median["together", CORES], (median["read", 1], median["compute", 1])
        ratio, one_by_one = total / max(read, compute), total / (median["read", CORES] + median["compute", CORES])
        yield (
            f"| reading and computing, {name}, s | {read:.3g} and {compute:.3g} alone on one core each, "
            f"{total:.3g} together on two |  |  |  |  | {ratio:.2f} x the slower side; {one_by_one:.2f} x one "
            f"after the other on two cores | at most 1.15 x the slower side | {'yes' if ratio <= 1.15 else 'no'} |"
        )


def child(name: str, folder: Path, side: str) -> None:
    """Measures one work in this process."""
    import importlib

    work = WORK[name].sides[side] if name in WORK else EXTRA[name]
    print(json.dumps(work(importlib.import_module(MODULES[side]), folder)))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mxnet", help="an interpreter that has MXNet 1.9.1")
    parser.add_argument("--peers", help="an interpreter that has OpenCV, Pillow and torch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join([*WORK, "memory", "overlap"]))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child[0], args.folder, args.child[1])
        return
    prepare(args.folder)
    machines = Machines(args.folder, args.mxnet, args.peers, args.rounds)
    print("| work | mxrt | MXNet 1.9.1 | OpenCV | Pillow | torch | measured | goal | met |\n" + "| --- " * 9 + "|")
    for name in args.only.split(","):
        rows = overlap_rows(machines) if name == "overlap" else [memory_row(machines)] if name == "memory" else None
        for row in rows if rows is not None else [rate_row(machines, name)]:
            print(row, flush=True)


if __name__ == "__main__":
    main()
