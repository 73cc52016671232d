"""`mxrt convert`: a copy of a model in another form, with how far its answers are from those of the
model.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _mxrt
from .. import symbol as symbols
from .._system.whole import whole_model
from ..gluon import SymbolBlock
from ..ndarray import NDArray, array, save
from . import _onnx, _safetensors
from ._arrays import arrays_of_npz, has_label, write_npz
from ._errors import BAD, GOOD, ModelError, UsageError
from ._inputs import Array, random_arrays, shapes_in
from ._model import Loaded, add_model_arguments, open_model
from ._out import megabytes, note, print_json, shape_text
from ._rewrite import Rewritten, rewritten
from ._shapes import check_prefix
from .check import worst_error
from .run import called

__all__ = ["add_arguments", "main", "targets_of"]

FORMATS = ("params", "npz", "safetensors", "onnx")
# Errors of a copy of the same precision are those of other kernels.
_ATOL, _RTOL = 1e-4, 1e-3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser)
    parser.add_argument(
        "out", metavar="OUT", help="prefix of the copy: OUT-symbol.json and its parameters, or OUT.onnx"
    )
    parser.add_argument("--float16", action="store_true", help="parameters in half the bytes; those of BatchNorm stay")
    parser.add_argument(
        "--strip-heads",
        action="store_true",
        help="losses, which only training needs, become what they answer: SoftmaxOutput becomes softmax, without label",
    )
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="another name for a layer, an input or a parameter; OLD* for all that begin so (repeatable)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="file of the parameters: params, as MXNet's (default), or npz of numpy or safetensors for other programs; "
        "or onnx, the model in one file, in float32 and for inputs of the shapes that it has now (otherwise OUT says "
        "it by its ending, such as .onnx)",
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="an .npz with inputs to compare the copy with the model; with label, its accuracy",
    )
    parser.add_argument("--force", action="store_true", help="overwrite files")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 where the copy does not answer as the model."""
    if args.data is not None and not Path(args.data).is_file():
        raise UsageError(f"there is no file '{args.data}' (--data)")
    args.out, args.format = _named(args.out, args.format)
    if args.float16 and args.format == "onnx":
        raise UsageError("--float16 and --format onnx: an ONNX file is written in float32; leave one of them out")
    symbol, params = targets_of(args.out, args.force, args.format)
    model = open_model(args, shapes_in([args.data] if args.data else []))
    if model.assumed:
        note("convert", model.assumed)
    made = rewritten(model, strip_heads=args.strip_heads, renames=args.rename)
    values = {made.names.get(name, name): value for name, value in _values(model).items()}
    values = {name: value for name, value in values.items() if name in made.inputs}
    if args.float16:
        values = _halved(made, values)
    shapes = {made.names.get(name, name): shape for name, shape in model.shapes.items()}
    shapes = {name: shape for name, shape in shapes.items() if name in made.inputs}
    samples = _samples(model, args.data)
    if args.format == "onnx":
        _onnx.write(params, made.graph, values, shapes, {made.names.get(n, n): t for n, t in model.dtypes.items()})
        of_data = {made.names.get(name, name) for name in model.data}
        listed = ", ".join(f"{name} {shape_text(shape)}" for name, shape in shapes.items() if name in of_data)
        made.changes.append(f"its inputs have these shapes and no others: {listed}")
    else:
        _write(symbol, params, made, values, args.format)
    report = {
        "symbol": None if args.format == "onnx" else str(symbol),
        "parameters": str(params),
        "bytes_before": model.files.params.stat().st_size if model.files.params else 0,
        "bytes": params.stat().st_size,
        "changes": made.changes
        + (
            [f"{sum(one._dtype_name == 'float16' for one in values.values())} parameters are float16"]
            if args.float16
            else []
        ),
        **_compared(model, made, values, args, shapes, params, samples),
    }
    if args.json:
        print_json(report)
    else:
        print(_as_text(report))
    return BAD if report["good"] is False else GOOD


def _named(out: str, form: str | None) -> tuple[str, str]:
    """The prefix and the format that OUT and --format say. OUT may be the name of a file of the
    copy: its ending is that of a format.
    """
    for known in FORMATS:
        for ending in (f".{known}",) if known != "params" else ("-symbol.json", "-0000.params"):
            if out.endswith(ending) and Path(out).name != ending and form in (None, known):
                return out.removesuffix(ending), known
    return out, form or "params"


def targets_of(prefix: str, force: bool, form: str = "params") -> tuple[Path, Path]:
    """The files of a copy, which can be written and are there only if they may be overwritten."""
    check_prefix(prefix, "OUT")
    out = Path(prefix)
    folder = out.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"OUT '{out}': there is no folder '{out.parent}'")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"OUT '{out}': the folder '{out.parent}' cannot be written: permission denied")
    # An ONNX file has the graph in it.
    ending = {"params": "-0000.params"}.get(form, f".{form}")
    targets = out.with_name(f"{out.name}-symbol.json"), out.with_name(f"{out.name}{ending}")
    there = [str(path) for path in (targets[1:] if form == "onnx" else targets) if path.exists()]
    if there and not force:
        raise UsageError(f"'{there[0]}' exists; name another OUT, or overwrite it by --force")
    return targets


def _values(model: Loaded) -> dict[str, NDArray]:
    return {name: one.data() for name, one in model.net.collect_params().items()}


def _halved(made: Rewritten, values: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Parameters as float16, where the graph allows it: those of BatchNorm stay float32. ModelError
    for a model on integers.
    """
    if integers := [name for name, value in values.items() if value._dtype_name in ("int8", "uint8")]:
        raise ModelError(
            f"--float16: parameter '{integers[0]}' is {values[integers[0]]._dtype_name}; a model on 8-bit integers "
            "stays unchanged. Give the float32 model that it was made of"
        )
    block = SymbolBlock(made.graph, [symbols.var(name) for name in made.inputs if name not in values])
    for name, parameter in block.collect_params().items():
        parameter.shape = values[name].shape
        parameter.initialize()
        parameter.set_data(values[name].astype("float32"))
    block.cast("float16")
    return {name: one.data() for name, one in block.collect_params().items()}


def _write(symbol: Path, params: Path, made: Rewritten, values: Mapping[str, NDArray], form: str) -> None:
    """Writes both files, or neither: older ones of these names stay where one cannot be written."""
    with whole_model(symbol, params) as (graph, numbers):
        _write_numbers(numbers, set(made.graph.list_auxiliary_states()), values, form)
        made.graph.save(str(graph), remove_amp_cast=False)


def _write_numbers(file: Path, auxiliary: set[str], values: Mapping[str, NDArray], form: str) -> None:
    if form == "params":
        save(str(file), {f"{'aux' if name in auxiliary else 'arg'}:{name}": one for name, one in values.items()})
    elif form == "npz":
        write_npz(file, {name: _numbers(name, one) for name, one in values.items()})
    else:
        _mxrt.write_file(file, _safetensors.content(values))


@dataclass(frozen=True)
class _Samples:
    """Inputs that the copy is compared with, the model's answers, and the class of each row where
    it is known.
    """

    feeds: Mapping[str, Array]
    answers: Mapping[str, Array]
    label: Array | None


def _samples(model: Loaded, file: str | None) -> _Samples:
    """The samples of --data, or random ones. ModelError where they do not fit the model."""
    if file is None:
        feeds = random_arrays(model.data, model.dtypes)
        return _Samples(feeds, called(model, feeds, "random numbers"), None)
    names = list(model.data)
    with open(file, "rb") as data:
        feeds = arrays_of_npz(data, file, names)
        label = arrays_of_npz(data, file, ["label"])["label"] if has_label(file) else None
    answers = called(model, feeds, file)
    if label is not None and label.shape != (_rows(feeds),):
        raise ModelError(
            f"'{file}' has a label of shape {label.shape}; expected ({_rows(feeds)},), a class number for each row of "
            f"'{names[0]}'"
        )
    return _Samples(feeds, answers, label)


def _numbers(name: str, value: NDArray) -> Array:
    if value._dtype_name == "bfloat16":
        raise ModelError(f"parameter '{name}' is bfloat16, which numpy lacks; --format safetensors has it")
    found: Array = value.asnumpy()
    return found


def _compared(
    model: Loaded,
    made: Rewritten,
    values: Mapping[str, NDArray],
    args: argparse.Namespace,
    shapes: Mapping[str, tuple[int, ...]],
    file: Path,
    samples: _Samples,
) -> dict[str, Any]:
    """How far the answers of the copy are from those of the model."""
    before, label = samples.answers, samples.label
    given = {made.names.get(name, name): value for name, value in samples.feeds.items()}
    if args.format == "onnx":
        found = _onnx.answers(file, given)
        if found is None:
            note(
                "convert",
                "the answers of the copy were not compared, for onnxruntime is not installed for this Python: "
                "pip install onnxruntime (or 'mxrt[onnx]')",
            )
            return {"outputs": [], "good": None}
        after = found[1]
    else:
        after = _answers(model, made, values, args, shapes, given)
    outputs = []
    for (name, one), two in zip(before.items(), after, strict=False):
        largest = float(np.abs(one[np.isfinite(one)]).max()) if np.isfinite(one).any() else 0.0
        # Half precision has 11 bits; errors of layers add up.
        atol, rtol = (0.02 * max(largest, 1.0), 0.02) if args.float16 else (_ATOL * max(largest, 1.0), _RTOL)
        worst, good, _ = worst_error(two.astype(one.dtype), one, atol, rtol)
        outputs.append({"output": name, "largest_error": worst, "largest_value": largest, "good": good})
    result: dict[str, Any] = {"outputs": outputs, "good": all(one["good"] for one in outputs)}
    if label is not None:
        first = next(iter(before.values()))
        result["accuracy_before"] = float((first.argmax(-1) == label).mean())
        result["accuracy"] = float((after[0].argmax(-1) == label).mean())
    return result


def _rows(arrays: Mapping[str, Array]) -> int:
    return int(next(iter(arrays.values())).shape[0])


def _answers(
    model: Loaded,
    made: Rewritten,
    values: Mapping[str, NDArray],
    args: argparse.Namespace,
    shapes: Mapping[str, tuple[int, ...]],
    given: Mapping[str, Array],
) -> list[Array]:
    """The answers of the copy."""
    block = SymbolBlock(made.graph, [symbols.var(name) for name in shapes])
    for name, parameter in block.collect_params().items():
        parameter.shape, parameter.dtype = values[name].shape, values[name].dtype
        parameter.initialize("zeros")  # random numbers have no integer types
        parameter.set_data(values[name])
    inputs = []
    kind = "float16" if args.float16 else None
    for name, shape in shapes.items():
        value = given.get(name)
        value = np.zeros((_rows(given), *shape[1:]), "float32") if value is None else value
        dtype = kind or next((d for n, d in model.dtypes.items() if made.names.get(n, n) == name), "float32")
        inputs.append(array(value, dtype=dtype))
    found = block(*inputs)
    return [one.astype("float32").asnumpy() for one in (found if isinstance(found, list) else [found])]


def _as_text(report: Mapping[str, Any]) -> str:
    before, now = report["bytes_before"], report["bytes"]
    lines = [
        *([report["symbol"]] if report["symbol"] else []),
        f"{report['parameters']}  {megabytes(now)} ({now / before:.2f} x the {megabytes(before)} of the model)"
        if before
        else f"{report['parameters']}  {megabytes(now)}",
        *(f"  {change}" for change in report["changes"]),
    ]
    for one in report["outputs"]:
        words = "as the model" if one["good"] else "NOT as the model"
        lines.append(
            f"{one['output']}: {words}: largest error {one['largest_error']:.3g}, largest value "
            f"{one['largest_value']:.3g}"
        )
    if "accuracy" in report:
        lines.append(f"accuracy {report['accuracy']:.4f}, that of the model {report['accuracy_before']:.4f}")
    return "\n".join(lines)
