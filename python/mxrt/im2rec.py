"""``mxrt im2rec``: lists of images, and files of records made of them, as MXNet's tool of this name
makes them.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from . import _mxrt
from ._output.progress import Progress
from ._system.whole import whole
from .base import MXNetDataError, MXNetError
from .cli._errors import BAD, GOOD, ModelError, UsageError
from .cli._out import note, print_json
from .cli._shapes import check_prefix, folder_of

__all__ = ["add_arguments", "main", "make_lists", "make_records"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.description = (
        "With --list: writes PREFIX.lst, the images below a folder with their labels. "
        "Without: makes PREFIX.rec and PREFIX.idx of the images of each list that begins with PREFIX."
    )
    parser.add_argument("prefix", help="how the names of lists and files of records begin")
    parser.add_argument("root", help="folder with images")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    lists = parser.add_argument_group("lists")
    lists.add_argument("--list", action="store_true", help="write lists instead of records")
    lists.add_argument(
        "--exts", nargs="+", default=[".jpeg", ".jpg", ".png"], metavar="EXT", help="how names of images end"
    )
    lists.add_argument("--chunks", type=int, default=1, help="number of lists to divide the images in")
    lists.add_argument("--train-ratio", type=float, default=1.0, help="share of images for PREFIX_train.lst")
    lists.add_argument("--test-ratio", type=float, default=0.0, help="share of images for PREFIX_test.lst")
    lists.add_argument("--recursive", action="store_true", help="walk through folders; each has a label of its own")
    lists.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="leave images in their order")
    records = parser.add_argument_group("records")
    records.add_argument("--pass-through", action="store_true", help="take files as they are")
    records.add_argument("--resize", type=int, default=0, help="make the shorter edge this long")
    records.add_argument("--center-crop", action="store_true", help="crop the square in the centre")
    records.add_argument("--quality", type=int, help="of JPEG, 1 to 100 (default 95); compression of PNG, 0 to 9")
    records.add_argument("--num-thread", type=int, default=1, help="threads that read and encode")
    records.add_argument("--color", type=int, default=1, choices=[0, 1], help="0 for grey, 1 for colours")
    records.add_argument("--encoding", default=".jpg", choices=[".jpg", ".png"], help="how images are stored")
    records.add_argument("--pack-label", action="store_true", help="store all labels of a list with several")


class _Image(NamedTuple):
    """A line of a list."""

    number: int
    path: str
    labels: list[float]


def _images(root: str, recursive: bool, endings: list[str], labels: dict[str, int]) -> Iterator[_Image]:
    """The images below a folder, in the order of their names; folders become labels."""

    def is_image(path: str) -> bool:
        return os.path.isfile(path) and os.path.splitext(path)[1].lower() in endings

    if not recursive:
        names = (name for name in sorted(os.listdir(root)) if is_image(os.path.join(root, name)))
        yield from (_Image(i, name, [0.0]) for i, name in enumerate(names))
        return
    number = 0
    for folder, folders, files in os.walk(root, followlinks=True):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            if is_image(path):
                label = labels.setdefault(folder, len(labels))
                yield _Image(number, os.path.relpath(path, root), [float(label)])
                number += 1


def _check_shares(args: argparse.Namespace) -> None:
    if args.chunks < 1:
        raise UsageError(f"--chunks is {args.chunks}; expected a positive number")
    for option in ("train_ratio", "test_ratio"):
        if not 0 <= getattr(args, option) <= 1:
            raise UsageError(f"--{option.replace('_', '-')} is {getattr(args, option):g}; expected a share from 0 to 1")
    # With all images for training, MXNet's tool looks at no other share.
    if args.train_ratio < 1 and args.train_ratio + args.test_ratio > 1 + 1e-9:
        shares = f"--train-ratio {args.train_ratio:g} and --test-ratio {args.test_ratio:g}"
        raise UsageError(f"{shares} are more than 1 together; expected shares of the images")


def make_lists(args: argparse.Namespace) -> tuple[dict[str, int], list[tuple[str, int]]]:
    """Writes lists of the images below a folder.

    Returns the labels of the folders, and the lists with the number of their images.
    """
    _check_shares(args)
    folder_of(f"{args.prefix}.lst", "PREFIX")
    folders: dict[str, int] = {}
    images = list(_images(args.root, args.recursive, args.exts, folders))
    if not images:
        raise UsageError(
            f"the folder '{args.root}' has no images; expected files that end in {', '.join(args.exts)}"
            + ("" if args.recursive else " (--recursive looks into its folders as well)")
        )
    if args.shuffle:
        # The order of MXNet's tool.
        random.Random(100).shuffle(images)
    size = (len(images) + args.chunks - 1) // args.chunks
    written: list[tuple[str, int]] = []

    def write(ending: str, part: list[_Image]) -> None:
        path = args.prefix + ending + ".lst"
        rows = ([str(image.number), *(f"{label:f}" for label in image.labels), image.path] for image in part)
        _mxrt.write_file(Path(path), "".join("\t".join(row) + "\n" for row in rows).encode())
        written.append((path, len(part)))

    for i in range(args.chunks):
        chunk = images[i * size : (i + 1) * size]
        name = f"_{i}" if args.chunks > 1 else ""
        train, test = int(size * args.train_ratio), int(size * args.test_ratio)
        if args.train_ratio == 1.0:
            write(name, chunk)
            continue
        if args.test_ratio:
            write(name + "_test", chunk[:test])
        if args.train_ratio + args.test_ratio < 1.0:
            write(name + "_val", chunk[test + train :])
        write(name + "_train", chunk[test : test + train])
    return {os.path.relpath(folder, args.root): label for folder, label in folders.items()}, written


def _read_list(path: str) -> Iterator[_Image | str]:
    """The images of a list; a text where a line is not one."""
    # Names of images may be in any encoding.
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            fields = [field.strip() for field in line.strip().split("\t")]
            try:
                first, *labels, name = fields
                image = _Image(int(first), name, [float(label) for label in labels])
            except ValueError:
                image = None
            if image is None or not image.labels:
                yield f"{path} line {number}: found {line.strip()!r}, expected a number, labels and a path, with tabs"
            else:
                yield image


def _record(args: argparse.Namespace, image: _Image) -> bytes:
    """The record of an image."""
    from . import recordio
    from .image import fixed_crop, imread, imresize

    path = os.path.join(args.root, image.path)
    several = args.pack_label and len(image.labels) > 1
    header = recordio.IRHeader(0, image.labels if several else image.labels[0], image.number, 0)
    if args.pass_through:
        return recordio.pack(header, Path(path).read_bytes())
    pixels = imread(path, args.color, to_rgb=False)
    height, width = pixels.shape[:2]
    if args.center_crop:
        edge = min(height, width)
        pixels = fixed_crop(pixels, (width - edge) // 2, (height - edge) // 2, edge, edge)
        height = width = edge
    if args.resize:
        shorter = min(height, width)
        pixels = imresize(pixels, width * args.resize // shorter, height * args.resize // shorter)
    return recordio.pack_img(header, pixels, 95 if args.quality is None else args.quality, args.encoding)


class _NoImageError(Exception):
    """None of the images of a list could be read."""


def make_records(args: argparse.Namespace, path: str) -> tuple[int, list[str]]:
    """Makes the file of records of one list, and its index, unless none of its images can be read.

    Returns the number of images, and what was wrong with those that were left out.
    """
    stem = os.path.splitext(path)[0]
    images = list(_read_list(path))
    left_out, count = [], 0

    def make(image: _Image | str) -> tuple[int, bytes] | str:
        if isinstance(image, str):
            return image
        try:
            return image.number, _record(args, image)
        except (MXNetError, OSError) as error:
            return f"{os.path.join(args.root, image.path)}: {error}"

    with (
        suppress(_NoImageError),
        _writer(stem) as writer,
        ThreadPoolExecutor(args.num_thread) as pool,
        Progress(os.path.basename(path), len(images)) as progress,
    ):
        waiting: deque[Future[Any]] = deque()
        ahead = iter(images)
        while True:
            # As many as the threads need: records are written in the order of the list.
            while len(waiting) < 2 * args.num_thread and (image := next(ahead, None)) is not None:
                waiting.append(pool.submit(make, image))
            if not waiting:
                break
            made = waiting.popleft().result()
            if isinstance(made, str):
                left_out.append(made)
                print(f"left out: {made}", file=sys.stderr)
            else:
                writer.write_idx(*made)
                count += 1
            progress.step()
        if left_out and not count:
            raise _NoImageError
    return count, left_out


@contextmanager
def _writer(stem: str) -> Iterator[Any]:
    """A file of records and its index, written whole or not at all: older ones stay where it fails.

    A failure is the first one: closing may fail, too.
    """
    from . import recordio

    try:
        with whole(f"{stem}.idx") as index, whole(f"{stem}.rec") as records:
            writer = recordio.MXIndexedRecordIO(str(index), str(records), "w")
            try:
                yield writer
                writer.close()
            except BaseException:
                with suppress(MXNetError, OSError):
                    writer.close()
                raise
    except MXNetError as error:
        text = str(error).replace(str(index), f"{stem}.idx").replace(str(records), f"{stem}.rec")
        raise ModelError(f"{text}; nothing was saved") from None
    except OSError as error:
        words = f"'{stem}.rec' and its index cannot be written: {error.strerror}; nothing was saved"
        raise ModelError(words) from None


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 if images were left out."""
    _check(args)
    args.prefix, args.root = os.path.abspath(args.prefix), os.path.abspath(args.root)
    return _write_lists(args) if args.list else _write_records(args)


def _check(args: argparse.Namespace) -> None:
    """UsageError for a folder of images that is not there, and for numbers out of range."""
    if not os.path.isdir(args.root):
        raise UsageError(f"'{args.root}' is no folder; name the one with the images")
    if args.resize < 0:
        raise UsageError(f"--resize is {args.resize}; expected a number of pixels, or 0 for none")
    if args.list:
        check_prefix(args.prefix.rstrip(os.sep), "PREFIX")
    if args.num_thread < 1:
        raise UsageError(f"--num-thread is {args.num_thread}; expected a positive number")
    least, most = (1, 100) if args.encoding == ".jpg" else (0, 9)
    if args.quality is not None and not least <= args.quality <= most:
        raise UsageError(f"--quality is {args.quality}; expected {least} to {most} for {args.encoding}")


def _write_lists(args: argparse.Namespace) -> int:
    """Makes the lists, and says which there are."""
    try:
        labels, lists_made = make_lists(args)
    except OSError as error:
        raise MXNetDataError(str(error)) from None
    if args.json:
        print_json({"labels": labels, "lists": [{"file": path, "images": count} for path, count in lists_made]})
        return GOOD
    for folder_name, label in labels.items():
        print(folder_name, label)
    for path, _ in lists_made:
        print(f"wrote {path}")
    return GOOD


def _write_records(args: argparse.Namespace) -> int:
    """Makes records of every list of the prefix, and says how many images are in them."""
    made = []
    for path in _lists(args.prefix):
        file = f"{os.path.splitext(path)[0]}.rec"
        folder_of(file, "PREFIX")
        try:
            count, left_out = make_records(args, path)
        except OSError as error:  # of the list
            raise MXNetDataError(f"'{error.filename}': {error.strerror}") from None
        made.append({"file": file, "images": count, "left_out": left_out})
        if left_out and not count:
            words = f"none of the images of '{path}' could be read from '{args.root}'; '{file}' was not written"
            note("im2rec", str(ModelError(words)))
        elif not args.json:
            print(f"wrote {file}: {count} images" + (f", {len(left_out)} left out" if left_out else ""))
    if args.json:
        print_json({"records": made})
    return BAD if any(one["left_out"] for one in made) else GOOD


def _lists(prefix: str) -> list[str]:
    """The lists whose names begin with a prefix. UsageError if there are none."""
    folder = prefix if os.path.isdir(prefix) else os.path.dirname(prefix)
    if not os.path.isdir(folder):
        raise UsageError(f"'{folder}' is no folder; expected that of the list")
    found = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".lst"))
    lists = [path for path in found if path.startswith(prefix)]
    if not lists:
        raise UsageError(f"there is no list whose name begins with '{prefix}'; write one with --list")
    return lists
