"""`mxrt tune`: measures the convolutions of a model on this machine and saves which method was
fastest.

Without such a table mxrt chooses by the shapes and the processor alone, so that a model gives the
same bits on every run and every machine of a kind. With it (MXRT_TUNED=FILE) it gives the same bits
wherever the same file is used.
"""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from . import _mxrt
from ._output.progress import Progress
from .base import MXNetError
from .cli._errors import UsageError
from .cli._model import add_model_arguments, find, load
from .cli._out import counted, note, print_json
from .cli._shapes import folder_of, input_shapes
from .gluon import SymbolBlock
from .ndarray import array, waitall

__all__ = ["Choice", "add_arguments", "main", "tune"]


@dataclass(frozen=True)
class Choice:
    """A convolution, and the method that was fastest."""

    convolution: str
    rule: str | None
    method: str
    kernel: str
    ns: int
    rule_ns: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser)
    parser.add_argument(
        "--table",
        default="mxrt-tuned.txt",
        metavar="FILE",
        help="where to save what was measured; what a file of that name holds is kept (default mxrt-tuned.txt)",
    )
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each convolution (default 0.3)")
    parser.add_argument("--precision", choices=("default", "bf16", "w8"), default="default", help="as in hybridize")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    run(args)
    return 0


def run(args: argparse.Namespace) -> None:
    """Measures, saves, and says what is different from what would be chosen without the table."""
    if not (math.isfinite(args.seconds) and args.seconds > 0):
        raise UsageError(f"--seconds is {args.seconds}; expected a positive number")
    table = folder_of(args.table, "--table")
    if table.exists() and not table.is_file():
        raise UsageError(f"--table '{table}' is a device or a pipe; expected the name of a file")
    held = read(table)
    files = find(args.model, args.params, args.epoch)
    shapes, assumed = input_shapes(files, load(files), args.shape)
    if assumed:
        note("tune", assumed)
    net = SymbolBlock.imports(str(files.symbol), list(shapes), str(files.params) if files.params else None)
    if files.params is None:
        net.initialize()
    net.hybridize(precision=args.precision)
    feeds = [array(np.zeros(shape, "float32")) for shape in shapes.values()]
    net(*feeds)  # wrong shapes end here, and parameters whose shapes were not known get theirs
    waitall()
    found = net.convolutions(*feeds)
    choices: list[Choice] = []
    if not found:
        report(args, table, choices, "the model has no convolution that there is a choice for: nothing to measure")
        return
    count = counted(len(found), "convolution")
    note("tune", f"{count}, {args.seconds:g} s each, on one core; leave the machine alone meanwhile")
    with Progress("convolutions", len(found)) as progress:
        for name in found:
            if (choice := measure(name, args.seconds)) is not None:
                choices.append(choice)
            progress.step()
    write(table, tune(held, choices))
    report(args, table, choices, as_text(choices))
    if os.environ.get("MXRT_TUNED"):
        note("tune", "MXRT_TUNED is set: programs that run already keep the table they read at their start")
    note("tune", f"saved in {table}; to use it, start programs with MXRT_TUNED={table.absolute()}")


def report(args: argparse.Namespace, table: Path, choices: list[Choice], text: str) -> None:
    """Prints what was found, as text or as data."""
    if args.json:
        print_json({"table": str(table.absolute()), "choices": [asdict(one) for one in choices]})
    else:
        print(text)


def measure(convolution: str, seconds: float) -> Choice | None:
    """The fastest method of one convolution; None where there is nothing that could be measured."""
    rule, measured = _mxrt.measure_convolution(convolution, seconds)
    if not measured:
        return None
    method, kernel, ns = measured[0]
    rule_ns = next((time for name, _, time in measured if name == rule), ns)
    return Choice(convolution, rule, method, kernel, ns, rule_ns)


def tune(text: str, choices: list[Choice]) -> str:
    """The text of a table with these choices added."""
    return _mxrt.tuned_table(text, [(one.convolution, one.method, one.ns) for one in choices])


def read(table: Path) -> str:
    """The text of the table; empty when there is none yet. A damaged table is an error, and is not
    overwritten.
    """
    if not table.exists():
        return ""
    try:
        text = table.read_text()
        _mxrt.tuned_table(text, [])
    except (UnicodeDecodeError, MXNetError) as error:
        raise UsageError(
            f"--table '{table}' is no table of measured convolutions: {error}; name another file or remove it"
        ) from None
    return text


def write(table: Path, text: str) -> None:
    """Writes the table, or nothing."""
    _mxrt.write_file(table, text.encode())


def as_text(choices: list[Choice]) -> str:
    """The differences from the choice without the table, and their gains."""
    changed = [one for one in choices if one.method != one.rule]
    rules, best = (sum(one.rule_ns for one in choices), sum(one.ns for one in choices))
    lines = [
        f"{one.convolution}: {one.method} {one.ns / 1e3:.0f} us in place of {one.rule} {one.rule_ns / 1e3:.0f} us"
        for one in changed
    ]
    lines.append(f"{len(changed)} of {len(choices)} differ from the choice without a table")
    lines.append(f"all of them once: {best / 1e6:.2f} ms with the table, {rules / 1e6:.2f} ms without")
    return "\n".join(lines)
