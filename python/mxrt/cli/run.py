"""`mxrt run`: the answers of a model."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _mxrt
from .._output.progress import Progress
from ..base import MXNetError
from ..ndarray import from_numpy
from ._arrays import as_type, write_npz
from ._errors import BAD, GOOD, CommandError, ModelError, UsageError
from ._images import add_preprocess_arguments, input_of_image, preprocess_of
from ._inputs import MOST_ROWS, Item, calls_of, count_of, places_of, shapes_in, text_of
from ._model import Loaded, add_model_arguments, open_model
from ._out import counted, note, print_json, saved_in
from ._shapes import folder_of

__all__ = ["add_arguments", "main"]

Array = np.ndarray[Any, Any]

_LABELS = ("labels.txt", "synset.txt", "classes.txt")
_LARGEST_LABELS = 64 << 20
# An output with more elements than this is described, not printed.
_SHOWN = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser)
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="+",
        help="an image (JPEG, PNG), a folder of images, a pattern, .npy, .npz (arrays by the names of inputs), .csv, "
        ".rec, - for the standard input, or random",
    )
    add_preprocess_arguments(parser)
    parser.add_argument(
        "--labels", metavar="FILE", help=f"names of classes, one a line (otherwise {', '.join(_LABELS)})"
    )
    parser.add_argument("--top", type=int, default=5, metavar="K", help="classes of each image (default 5)")
    parser.add_argument("-o", "--output", metavar="FILE", help="save all outputs, by name, in an .npz")
    parser.add_argument("--threads", type=int, metavar="N", help="concurrent calls (default: the cores)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 where one of the inputs gave no answer."""
    if args.top < 1:
        raise UsageError(f"--top is {args.top}; expected a positive number")
    if args.threads is not None and not 1 <= args.threads <= 4096:
        raise UsageError(f"--threads is {args.threads}; expected a number from 1 to 4096")
    target = folder_of(args.output, "--output") if args.output is not None else None
    model = open_model(args, shapes_in(args.inputs))
    if model.assumed and "random" in args.inputs:
        note("run", model.assumed)
    show = _Shower(model, args)
    failed = 0
    kept = _Kept()
    reports: list[dict[str, Any]] = []
    places = places_of(args.inputs)
    model.files.check_apart(target, "--output", [args.labels, *(path for _, paths in places for path in paths)])
    # Answers on a terminal say themselves how far the command is.
    shown = target is not None or args.json or not sys.stdout.isatty()
    with Progress("inputs", count_of(places), shown) as progress:
        for item, rows, answer in _answers(model, args, calls_of(places, model, show.image)):
            progress.step()
            if isinstance(answer, CommandError):
                failed += 1
                progress.above(f"mxrt run: {answer}")
                reports.append({"input": item.name, "error": str(answer)})
                continue
            if target:
                kept.add(item.name, rows, answer)
            if args.json:
                reports.append(show.as_data(item.name, answer))
            elif not target:
                print(show.as_text(item.name, answer), flush=True)
    if args.json:
        print_json({"model": str(model.files.symbol), "results": reports})
    if target and kept.parts:
        with saved_in(target) as unfinished:
            write_npz(unfinished, {"inputs": np.array(kept.names)} | kept.joined())
        saved = counted(len(kept.names), "row")
        note("run", f"saved {saved} of {', '.join(kept.parts)} in '{target}'")
    return BAD if failed else GOOD


def _answers(
    model: Loaded, args: argparse.Namespace, items: Iterator[Item]
) -> Iterator[tuple[Item, int, Mapping[str, Array] | CommandError]]:
    """The calls with their rows and answers, in order; some are computed ahead, by threads."""
    threads = args.threads or int(_mxrt.info()["cores"])
    waiting: deque[tuple[Item, Future[Any]]] = deque()

    def call(item: Item) -> tuple[int, Mapping[str, Array] | CommandError]:
        try:
            arrays = item.arrays()
            answer = called(model, arrays, item.name)
            return next(iter(arrays.values())).shape[0], answer
        except CommandError as error:
            return 0, error
        except MXNetError as error:  # of a file, which it names
            return 0, ModelError(str(error))
        except (OSError, MemoryError) as error:
            return 0, ModelError(f"'{item.name}': {error}")

    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            waiting.append((item, pool.submit(call, item)))
            while len(waiting) >= 4 * threads:
                first, done = waiting.popleft()
                yield first, *done.result()
        while waiting:
            first, done = waiting.popleft()
            yield first, *done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def called(model: Loaded, arrays: Mapping[str, Array], name: str) -> dict[str, Array]:
    """The outputs of a model by name. ModelError, with the name of the input, where it fails."""
    values = []
    for key, given in _with_labels(model, arrays, name).items():
        try:
            values.append(as_type(given, model.dtypes[key], f"the input '{key}'"))
        except ModelError as error:
            raise ModelError(f"'{name}': {error}") from None
    try:
        found = model.net(*map(from_numpy, values))
        outputs = found if isinstance(found, list) else [found]
        return {key: one.asnumpy() for key, one in zip(model.graph.list_outputs(), outputs, strict=True)}
    except MXNetError as error:
        raise ModelError(f"'{name}': {error}") from None


def _with_labels(model: Loaded, arrays: Mapping[str, Array], name: str) -> dict[str, Array]:
    """The arrays of all inputs in their order. Labels, which nothing reads, are zeros."""
    data = model.data
    for key in data:
        if key not in arrays:
            raise ModelError(f"'{name}' has no array for the input '{key}'; expected one for each of {', '.join(data)}")
        if arrays[key].ndim == 0:
            raise ModelError(
                f"'{name}' has an array without axes for the input '{key}'; expected (rows, "
                f"{', '.join(map(str, data[key][1:]))})"
            )
        if arrays[key].shape[0] == 0:
            raise ModelError(f"'{name}' has no rows")
    rows = next(iter(arrays.values())).shape[0]
    return {
        key: arrays[key] if key in arrays else np.zeros((rows, *shape[1:]), "float32")
        for key, shape in model.shapes.items()
    }


class _Kept:
    """Answers that are to be saved: the outputs of each call, and the name of the input of each
    row.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parts: dict[str, list[tuple[int, Array]]] = {}

    def add(self, name: str, rows: int, answer: Mapping[str, Array]) -> None:
        """Keeps the answer of a call with its number of rows."""
        self.names += [name] * rows
        for key, value in answer.items():
            self.parts.setdefault(key, []).append((rows, value))

    def joined(self) -> dict[str, Array]:
        """The outputs with the rows of all calls. ModelError where there are several, for an output
        without rows.
        """
        return {key: self._joined(key, parts) for key, parts in self.parts.items()}

    def _joined(self, key: str, parts: Sequence[tuple[int, Array]]) -> Array:
        if len(parts) == 1:
            return parts[0][1]
        for rows, value in parts:
            if value.shape[:1] != (rows,):
                raise ModelError(
                    f"the output '{key}' has the shape {value.shape} for {rows} rows of inputs: no rows of its own, so "
                    f"that {len(parts)} calls cannot be saved in one array; give one file of at most {MOST_ROWS} rows"
                )
        if len({value.shape[1:] for _, value in parts}) > 1:
            raise ModelError(
                f"the output '{key}' has different shapes for different inputs, so that they cannot be saved in one "
                "array; save them by one command for each input"
            )
        return np.concatenate([value for _, value in parts])


# ---- what is shown -------------------------------------------------------------------------------


@dataclass
class _Labels:
    """Names of classes, and the file that says them."""

    file: Path
    names: list[str]


class _Shower:
    """Makes inputs of images, and text or data of answers."""

    def __init__(self, model: Loaded, args: argparse.Namespace) -> None:
        self._top = args.top
        self._most_pixels = args.max_pixels
        self._labels = _labels(args.labels, model.files.folder)
        only = next(iter(model.shapes.values()))
        self._preprocess, self._remark = preprocess_of(args, model.files.folder, only)
        self._fits = len(only) == 4

    def image(self, content: bytes, name: str) -> Array:
        """The input that an image becomes."""
        made = input_of_image(content, name, self._preprocess, self._most_pixels)
        if self._remark:  # an image that is none needs no preprocessing
            remark, self._remark = self._remark, None
            note("run", remark)
        return made

    def as_data(self, name: str, answer: Mapping[str, Array]) -> dict[str, Any]:
        """An answer as plain data."""
        outputs = {}
        for key, value in answer.items():
            one: dict[str, Any] = {"shape": list(value.shape)}
            if _is_scores(value):
                one["top"] = [self._best(row) for row in value]
            if value.size <= 1000:
                one["values"] = value.tolist()
            outputs[key] = one
        return {"input": name, "outputs": outputs}

    def as_text(self, name: str, answer: Mapping[str, Array]) -> str:
        """An answer for people."""
        lines = []
        for key, value in answer.items():
            if _is_scores(value):
                for number, row in enumerate(value):
                    where = name if len(value) == 1 else f"{name}[{number}]"
                    rows = [(f"{100 * one['probability']:.2f}%", one["label"]) for one in self._best(row)]
                    lines += [where, *(f"  {share:>8}  {label}" for share, label in rows)]
            elif value.size <= _SHOWN:
                lines.append(f"{name}  {key} {np.array2string(value, separator=', ').replace(chr(10), '')}")
            else:
                numbers = value.astype("float64")
                lines.append(
                    f"{name}  {key} {value.shape} {value.dtype}: min {numbers.min():.5g}, max {numbers.max():.5g}, "
                    f"mean {numbers.mean():.5g} (-o FILE.npz saves it)"
                )
        return "\n".join(lines)

    def _best(self, row: Array) -> list[dict[str, Any]]:
        """The most probable classes of a row of scores."""
        scores = row.astype("float64")
        if scores.min() < 0 or abs(scores.sum() - 1) > 1e-2:
            scores = np.exp(scores - scores.max())
            scores /= scores.sum()
        order = np.argsort(-scores, kind="stable")[: self._top]
        return [
            {"class": int(k), "label": self._label(int(k), row.size), "probability": float(scores[k])} for k in order
        ]

    def _label(self, number: int, classes: int) -> str:
        labels = self._labels
        if labels is None:
            return f"class {number}"
        if len(labels.names) != classes:
            raise ModelError(
                f"'{labels.file}' has {counted(len(labels.names), 'label')}, and the model {classes} classes; expected "
                "one a line for each class (--labels names another file)"
            )
        return labels.names[number]


def _is_scores(value: Array) -> bool:
    return value.ndim == 2 and value.shape[1] > 1 and value.dtype.kind == "f" and bool(np.isfinite(value).all())


def _labels(said: str | None, folder: Path) -> _Labels | None:
    places = [folder / name for name in _LABELS] if said is None else [Path(said)]
    for path in places:
        if path.is_file():
            if path.stat().st_size > _LARGEST_LABELS:
                raise ModelError(f"'{path}' has more than {_LARGEST_LABELS} bytes; expected a label a line")
            return _Labels(path, text_of(path.read_bytes()).splitlines())
    if said is not None:
        raise UsageError(f"there is no file '{said}' (--labels)")
    return None
