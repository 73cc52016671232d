"""`mxrt quantize`: a copy of a model on 8-bit integers, within a budget of accuracy."""

from __future__ import annotations

import argparse
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _mxrt
from .._output.progress import Progress
from .._quantize.budget import Model, Quantized, budget_of, quantize_model
from .._quantize.page import percent
from ..base import MXNetError
from ..ndarray import array
from ._arrays import array_of_npy, arrays_of_npz, as_type, has_label, is_npz
from ._errors import GOOD, ModelError, UsageError
from ._images import add_preprocess_arguments, input_of_image, preprocess_of
from ._inputs import is_random, items_of, places_of, shapes_in, text_of
from ._model import Loaded, add_model_arguments, open_model
from ._out import counted, megabytes, note, print_json, style, table
from ._shapes import folder_of
from .convert import targets_of
from .run import called

__all__ = ["add_arguments", "main"]

# So many images are answered together.
_BATCH = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser)
    parser.add_argument(
        "--data",
        required=True,
        metavar="FOLDER",
        help="samples such as the model gets: a folder of images, an image, .npy, .npz (arrays by the names of "
        "inputs), .csv, .rec, - for the standard input, or random for a trial",
    )
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="a .npy or a text with the class number of each sample, in the order of names (otherwise the array label "
        "of an .npz)",
    )
    parser.add_argument(
        "--budget",
        default="0.5%",
        metavar="SHARE",
        help="largest loss of accuracy: 0.5%% (the default), 0.005, or none to quantize every layer",
    )
    parser.add_argument("--calib-mode", choices=("naive", "entropy"), default="naive", help="where ranges come from")
    parser.add_argument("--samples", type=int, metavar="N", help="use the first N samples alone")
    parser.add_argument(
        "-o",
        "--out",
        metavar="OUT",
        help="prefix of the new files (default: the name of MODEL with -int8, in the current folder)",
    )
    parser.add_argument("--html", metavar="FILE", help="write the report as one page that needs no other file")
    parser.add_argument("--force", action="store_true", help="overwrite files")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_preprocess_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Runs the command."""
    budget = _budget(args.budget)
    if args.samples is not None and args.samples < 1:
        raise UsageError(f"--samples is {args.samples}; expected a positive number")
    page = folder_of(args.html, "--html") if args.html is not None else None
    model = open_model(args, shapes_in([args.data]))
    symbol, _ = targets_of(f"{model.files.name}-int8" if args.out is None else args.out, args.force)
    prefix = str(symbol).removesuffix("-symbol.json")
    parameters = f"{prefix}-0000.params"
    data = [path for _, paths in places_of([args.data]) for path in paths]
    model.files.check_apart(page, "--html", [symbol, parameters, args.labels, *data])
    arrays = _samples(args, model)
    file = args.data if args.labels is None and has_label(args.data) else args.labels
    labels = None if file is None else _labels(file, args.samples)
    # Samples that do not fit end here, with the name of their file.
    called(model, {name: value[:1] for name, value in arrays[0].items()}, args.data)
    with Progress("layers", None, shown=not args.json) as progress:
        made = _quantized(model, arrays, labels, budget, args.calib_mode, progress)
    made.save(prefix)
    if is_random(args.data):
        note("quantize", "random numbers do not have the ranges of samples: the new files are for a trial alone")
    made.report["model"] = model.files.name
    made.report["symbol"], made.report["parameters"] = str(symbol), parameters
    if page is not None:
        _mxrt.write_file(page, made.page().encode("utf-8"))
        note("quantize", f"the report is in '{page}'; open it in a browser")
    if args.json:
        print_json(made.report)
    else:
        print(_as_text(made.report))
    return GOOD


def _budget(text: str) -> float | None:
    try:
        return None if text == "none" else budget_of(text)
    except MXNetError as error:
        raise UsageError(f"--{error}; none quantizes every layer") from None


def _samples(args: argparse.Namespace, model: Loaded) -> list[dict[str, np.ndarray[Any, Any]]]:
    """Samples in batches, by names of inputs."""
    preprocess, remark = preprocess_of(args, model.files.folder, next(iter(model.shapes.values())))
    remarks = [remark] if remark else []

    def image(content: bytes, name: str) -> np.ndarray[Any, Any]:
        made = input_of_image(content, name, preprocess, args.max_pixels)
        while remarks:
            note("quantize", remarks.pop())
        return made

    batches: list[dict[str, np.ndarray[Any, Any]]] = []
    waiting: list[Mapping[str, np.ndarray[Any, Any]]] = []
    left = args.samples if args.samples is not None else -1

    def flush() -> None:
        if waiting:
            batches.append({name: np.concatenate([one[name] for one in waiting]) for name in waiting[0]})
            waiting.clear()

    for item in items_of([args.data], model, image):
        arrays = {name: value for name, value in item.arrays().items() if name in model.data}
        try:
            arrays = {name: as_type(value, model.dtypes[name], f"the input '{name}'") for name, value in arrays.items()}
        except ModelError as error:
            raise ModelError(f"'{item.name}': {error}") from None
        if left >= 0:
            arrays = {name: value[:left] for name, value in arrays.items()}
            left -= _rows(arrays)
        if waiting and any(waiting[0][name].shape[1:] != value.shape[1:] for name, value in arrays.items()):
            flush()
        waiting.append(arrays)
        if sum(map(_rows, waiting)) >= _BATCH:
            flush()
        if left == 0:
            break
    flush()
    if not batches:
        raise ModelError(f"--data '{args.data}' holds no sample; expected images, .npy, .npz, .csv or .rec")
    return batches


def _rows(arrays: Mapping[str, np.ndarray[Any, Any]]) -> int:
    return int(next(iter(arrays.values())).shape[0])


def _labels(file: str, samples: int | None) -> np.ndarray[Any, Any]:
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file '{file}' (--labels)")
    try:
        content = path.read_bytes()
        if is_npz(content):
            labels = arrays_of_npz(io.BytesIO(content), file, ["label"])["label"].reshape(-1)
        elif path.suffix == ".npy" or content.startswith(b"\x93NUMPY"):
            labels = array_of_npy(content, file).reshape(-1)
        else:
            labels = np.array([_class_number(word) for word in text_of(content).split()])
    except (ValueError, OverflowError, OSError) as error:
        raise ModelError(f"--labels '{file}': {error}; expected one class number for each sample") from None
    return labels if samples is None else labels[:samples]


def _class_number(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"{word[:40]!r} is no whole number") from None


def _quantized(
    model: Loaded,
    batches: Sequence[Mapping[str, np.ndarray[Any, Any]]],
    labels: np.ndarray[Any, Any] | None,
    budget: float | None,
    calib_mode: str,
    progress: Progress,
) -> Quantized:
    values = {name: one.data() for name, one in model.net.collect_params().items()}
    states = set(model.graph.list_auxiliary_states())
    args = {name: one for name, one in values.items() if name not in states}
    whole = Model(model.graph, args, {name: one for name, one in values.items() if name in states})
    given = [{name: array(one, dtype=model.dtypes[name]) for name, one in batch.items()} for batch in batches]
    try:
        return quantize_model(whole, given, labels, budget, calib_mode, step=progress.step)
    except (MXNetError, ValueError) as error:
        raise ModelError(str(error)) from None


def _layer(layer: Mapping[str, Any]) -> str:
    """The name of a layer, and how many others are computed with it."""
    first, *joined = layer["layers"]
    return f"{first} +{len(joined)}" if joined else str(first)


def _as_text(report: Mapping[str, Any]) -> str:
    layers = report["layers"]
    kept = sum(one["float32"] for one in layers)
    budget = "every layer" if report["budget"] is None else f"budget {percent(report['budget'])}"
    lines = [
        style(report["model"], "bold") + f"  {counted(report['samples'], 'sample')}, {budget}",
        f"  {report['measure']} {percent(report['before'])} in float32, {percent(report['after'])} quantized",
        f"  {len(layers) - kept} of {len(layers)} layers on integers, parameters "
        f"{megabytes(report['bytes_before'])} before and {megabytes(report['bytes_after'])} after",
        "",
        table(
            ("layer", "runs in", "range", "clipped", "dB", "error alone"),
            [
                (
                    _layer(one),
                    "float32" if one["float32"] else "int8",
                    f"{one['range'][0]:.4g} to {one['range'][1]:.4g}",
                    percent(one["clipped"]),
                    f"{one['snr_db']:.1f}" if math.isfinite(one["snr_db"]) else "exact",
                    percent(one["output_error"]),
                )
                for one in layers
            ],
        ),
        "  (layer +N: N more layers of the model are computed in the same step)",
        "",
        f"written to '{report['symbol']}' and '{report['parameters']}'",
    ]
    return "\n".join(lines)
