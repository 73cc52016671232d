"""`mxrt check`: whether a model loads and answers, and whether its answers are right."""

from __future__ import annotations

import argparse
import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._system import temporary
from .._values.dtypes import dtype_name
from ..base import MXNetError
from ._arrays import Archive, arrays_of_npz
from ._errors import BAD, GOOD, CommandError, ModelError, UsageError
from ._inputs import Array, random_arrays, shapes_in
from ._model import Loaded, add_model_arguments, find, open_model
from ._out import note, print_json, shape_text, style
from ._written import written
from .run import called

__all__ = ["add_arguments", "main"]

ENGINES = ("mxnet", "onnxruntime")
# Kinds of elements that arrays of a golden file may have, as names of inputs.
_ANY = "biufcSUmMV"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser)
    parser.add_argument("--data", metavar="FILE", help="an .npz with inputs by name, besides random ones")
    parser.add_argument(
        "--golden",
        metavar="FILE",
        help="an .npz with inputs (in.NAME or NAME) and the outputs that they must give (out.NAME or NAME); without "
        "inputs, as mxrt run -o writes it, those of --data",
    )
    parser.add_argument("--atol", type=float, help="absolute error that is allowed (default 1e-4; float16: 0.01)")
    parser.add_argument("--rtol", type=float, help="relative error that is allowed (default 1e-3; float16: 0.01)")
    parser.add_argument(
        "--against",
        nargs=2,
        metavar=("ENGINE", "PYTHON"),
        help=f"compare each layer with another engine ({' or '.join(ENGINES)}) that is installed for the interpreter "
        "PYTHON, and name the first layer that differs",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 where a step fails."""
    if args.against and args.against[0] not in ENGINES:
        raise UsageError(f"--against {args.against[0]}: expected one of {', '.join(ENGINES)}, and an interpreter")
    if args.against and shutil.which(args.against[1]) is None:
        raise UsageError(
            f"--against {args.against[0]} '{args.against[1]}': there is no such program; expected an interpreter of "
            "Python"
        )
    for option in ("atol", "rtol"):
        if (allowed := getattr(args, option)) is not None and not 0 <= allowed < math.inf:
            raise UsageError(f"--{option} is {allowed:g}; expected a finite number that is not negative")
    for option in ("data", "golden"):
        if (file := getattr(args, option)) is not None and not Path(file).is_file():
            raise UsageError(f"there is no file '{file}' (--{option})")
    steps = _Steps(args.json)
    _run(args, steps)
    if args.json:
        print_json({"model": args.model, "good": not steps.failed, "steps": steps.rows})
    return BAD if steps.failed else GOOD


class _Steps:
    """The steps of a check with their outcomes, printed as they are known."""

    def __init__(self, silent: bool) -> None:
        self.rows: list[dict[str, Any]] = []
        self.failed = False
        self._silent = silent

    def add(self, what: str, good: bool, words: str, **facts: Any) -> None:
        """Adds one; `words` say what was seen, or what is wrong."""
        self.rows.append({"step": what, "good": good, "words": words, **facts})
        self.failed |= not good
        if not self._silent:
            print(f"{style('ok', 'green') if good else style('FAILED', 'red'):6s}  {what}: {words}", flush=True)

    @contextmanager
    def trying(self, what: str) -> Iterator[None]:
        """A block whose ModelError is a step that has failed."""
        try:
            yield
        except ModelError as error:
            self.add(what, False, str(error))


def _run(args: argparse.Namespace, steps: _Steps) -> None:
    model = _loaded(args, steps)
    if model is None:
        return
    if model.assumed:
        note("check", model.assumed)
    half = any(dtype_name(one.dtype) == "float16" for one in model.net.collect_params().values())
    args.atol = (1e-2 if half else 1e-4) if args.atol is None else args.atol
    args.rtol = (1e-2 if half else 1e-3) if args.rtol is None else args.rtol
    feeds = random_arrays(model.data, model.dtypes)
    given = None
    doubt = "; random numbers may be none that it is made for" + ("" if args.data else ": --data FILE gives others")
    answer = _answered("answers random numbers", model, feeds, steps, doubt, decisive=args.data is None)
    if args.data is not None:
        what = f"answers '{args.data}'"
        with steps.trying(what):
            given = _given(args.data, model)
        if given is not None and answer is not None:
            feeds = given
            answer = _answered(what, model, feeds, steps)
    if args.golden is not None and (given is not None or args.data is None):
        with steps.trying("golden"):
            _golden(args, model, given, steps)
    if args.against is not None and answer is not None:
        from ._against import compare_layers

        with steps.trying(f"layers as under {args.against[0]}"):
            compare_layers(model, feeds, args.against, args.atol, args.rtol, steps.add)


def _loaded(args: argparse.Namespace, steps: _Steps) -> Loaded | None:
    """The model, or None where it does not load."""
    files = find(args.model, args.params, args.epoch)
    begin = time.perf_counter()
    try:
        content = written(files.symbol)
        if content.unsupported:
            lacking = [node["name"] for node in content.nodes if node["op"] in content.unsupported]
            rest = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
            raise ModelError(
                f"operators that mxrt does not have: {', '.join(content.unsupported)}, in the nodes "
                f"{', '.join(lacking[:3])}{rest}; mxrt explain MX-NONE says what can be done"
            )
        model = open_model(args, shapes_in([file for file in (args.data, args.golden) if file]))
    except UsageError:
        raise
    except (CommandError, MXNetError, MemoryError) as error:
        steps.add("loads", False, temporary.shown(str(error)))
        return None
    shapes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in model.shapes.items())
    steps.add("loads", True, f"in {(time.perf_counter() - begin) * 1e3:.0f} ms, inputs {shapes}")
    return model


def _given(data: str, model: Loaded) -> dict[str, Array]:
    """The arrays of --data."""
    with open(data, "rb") as file:
        return arrays_of_npz(file, data, list(model.data))


def _answered(
    what: str, model: Loaded, feeds: Mapping[str, Array], steps: _Steps, doubt: str = "", decisive: bool = True
) -> dict[str, Array] | None:
    """The answer, or None where it fails or has NaN, of which `doubt` says more; where other inputs
    decide, NaN is no failure.
    """
    begin = time.perf_counter()
    try:
        answer = called(model, feeds, what)
    except ModelError as error:
        steps.add(what, False, str(error).removeprefix(f"'{what}': "))
        return None
    took = (time.perf_counter() - begin) * 1e3
    shapes = ", ".join(f"{name} {shape_text(value.shape)}" for name, value in answer.items())
    lost = {name: int(np.isnan(value).sum()) for name, value in answer.items() if value.dtype.kind == "f"}
    if any(lost.values()):
        words = ", ".join(f"{name} has {count} NaN" for name, count in lost.items() if count)
        steps.add(what, not decisive, words + doubt)
        return None if decisive else answer
    steps.add(what, True, f"in {took:.0f} ms, outputs {shapes}")
    return answer


def _golden(args: argparse.Namespace, model: Loaded, given: Mapping[str, Array] | None, steps: _Steps) -> None:
    """Compares with recorded outputs: for each the largest error. `given` are the arrays of
    --data.
    """
    for case, feeds, wanted in _cases(args.golden, model, given):
        what = f"golden{case and f' {case}'}"
        try:
            answer = called(model, feeds, what)
        except ModelError as error:
            steps.add(what, False, str(error))
            continue
        for name, value in wanted.items():
            found = answer[name]
            if found.shape != value.shape:
                steps.add(what, False, f"{name} has shape {found.shape}, recorded is {value.shape}")
                continue
            worst, good, where = worst_error(found, value, args.atol, args.rtol)
            words = f"{name}: largest error {worst:.3g}" + ("" if good else f" at {where}, more than is allowed")
            steps.add(what, good, words, output=name, largest_error=worst)


def _cases(
    golden: str, model: Loaded, given: Mapping[str, Array] | None
) -> list[tuple[str, Mapping[str, Array], dict[str, Array]]]:
    """The cases of a golden file: name, inputs, outputs. Names are NAME, in.NAME and out.NAME, for
    several cases with CASE. in front. Outputs alone belong to the arrays of --data, `given`.
    """
    outputs = model.graph.list_outputs()
    with open(golden, "rb") as file:
        saved = Archive(file, golden)
        names = saved.names
        inner = [name for one in model.data for name in names if name.endswith(f"in.{one}")]
        prefixes = sorted({name[: name.rindex("in.")] for name in inner})
        found = []
        for prefix in prefixes or [""]:
            held = {one: _of(saved, prefix, [f"in.{one}", one]) for one in model.data}
            feeds = {one: value for one, value in held.items() if value is not None}
            wanted = {}
            for number, one in enumerate(outputs):
                places = [f"out.{one}", f"out.{one.removesuffix('_output')}", f"out.{number}", one]
                if (value := _of(saved, prefix, places)) is not None:
                    wanted[one] = value
            if not wanted or (feeds and len(feeds) != len(model.data)):
                raise ModelError(
                    f"'{golden}' has {', '.join(names[:8])}; expected the inputs {', '.join(model.data)} and "
                    f"outputs of {', '.join(outputs)}, as NAME or in.NAME and out.NAME"
                )
            found.append((prefix.strip("."), feeds or _feeds_of_outputs(golden, saved, model, given), wanted))
        return found


def _feeds_of_outputs(
    golden: str, saved: Archive, model: Loaded, given: Mapping[str, Array] | None
) -> Mapping[str, Array]:
    """The inputs of a golden file without any: random numbers where mxrt run wrote that its outputs
    are of these, and otherwise the arrays of --data. UsageError where there are none.
    """
    if "inputs" in saved.names and set(saved.array("inputs", _ANY).ravel().tolist()) == {"random"}:
        return random_arrays(model.data, model.dtypes)
    if given is None:
        raise UsageError(
            f"'{golden}' has outputs and no inputs; give the inputs by --data, an .npz with an array for each of "
            f"{', '.join(model.data)}"
        )
    return given


def _of(saved: Archive, prefix: str, places: Sequence[str]) -> Array | None:
    """The first array of numbers of these names that there is, those with the prefix first."""
    for one in (*(prefix + place for place in places), *(places if prefix == "" else ())):
        if one in saved.names and (array := saved.array(one, _ANY)).dtype.kind in "biuf":
            return array
    return None


def worst_error(found: Array, wanted: Array, atol: float, rtol: float) -> tuple[float, bool, tuple[int, ...]]:
    """The largest absolute error, whether all errors are allowed, and where the worst of them is.

    A NaN agrees with a NaN, and an infinity with the same one.
    """
    if found.size == 0:
        return 0.0, True, ()
    left, right = found.astype("float64"), wanted.astype("float64")
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.abs(left - right))
    error = np.where(np.isnan(error), np.inf, error)
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing may be allowed
        excess = np.where(same, 0.0, error / (atol + rtol * np.where(np.isfinite(right), np.abs(right), 0.0)))
    place = np.unravel_index(int(np.argmax(excess)), excess.shape)
    return float(error.max()), bool((excess <= 1).all()), tuple(int(one) for one in place)
