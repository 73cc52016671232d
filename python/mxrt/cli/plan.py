"""`mxrt plan`: the compiled form of a model, as text or as a page."""

from __future__ import annotations

import argparse
from typing import Any

from .. import _mxrt
from ..ndarray import array
from ._errors import GOOD
from ._fused import add_layers
from ._inputs import random_arrays
from ._model import add_model_arguments, open_model
from ._out import megabytes, note, print_json, shape_text, style, table
from ._page import page
from ._shapes import folder_of

__all__ = ["add_arguments", "main"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser)
    parser.add_argument("--html", metavar="FILE", help="write one page that needs no other file, for a browser")
    parser.add_argument("--no-measure", action="store_true", help="run nothing: times are estimates")
    parser.add_argument(
        "--precision", choices=("default", "exact", "bf16", "w8"), default="default", help="as in hybridize"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command."""
    target = folder_of(args.html, "--html") if args.html is not None else None
    model = open_model(args)
    model.files.check_apart(target, "--html")
    if model.assumed:
        note("plan", model.assumed)
    model.net.hybridize(precision=args.precision)
    feeds = random_arrays(model.shapes, model.dtypes)
    arrays = [array(value, dtype=model.dtypes[name]) for name, value in feeds.items()]
    report: dict[str, Any] = model.net.plan_report(*arrays, measure=not args.no_measure)
    report["model"] = model.files.name
    report["precision"] = args.precision
    report["inputs"] = {name: list(shape) for name, shape in model.shapes.items()}
    add_layers(model.graph, report)
    if target is not None:
        _mxrt.write_file(target, page(report).encode("utf-8"))
        note("plan", f"written to '{target}'; open it in a browser")
    if args.json:
        print_json({key: value for key, value in report.items() if key != "text"})
    elif target is None:
        print(_as_text(report))
    return GOOD


def _as_text(report: dict[str, Any]) -> str:
    measured = report["measured_us"] is not None
    key = "measured_us" if measured else "estimated_us"
    total = sum(one[key] for one in report["steps"])
    inputs = ", ".join(f"{name} {shape_text(shape)}" for name, shape in report["inputs"].items())
    rows = [
        (
            one["step"],
            one["node"],
            one["operator"] + (f" +{len(one['covers'])}" if one["covers"] else ""),
            one["output"],
            one["kernel"],
            f"{one[key]:.1f}",
            f"{100 * one[key] / total:.1f}" if total else "-",
        )
        for one in report["steps"]
    ]
    lines = [
        style(report["model"], "bold") + f"  {inputs}",
        f"  {len(rows)} steps, {total / 1e3:.3f} ms {'measured' if measured else 'estimated for one core'}; a call "
        f"works on {megabytes(report['arena_bytes'])}, packed weights {megabytes(report['packed_bytes'])}",
    ]
    if (parts := report["parts"]) is not None:
        lines.append(
            f"  {parts['rows']} rows are computed in parts of {parts['rows_of_a_part']}; the steps are of one part"
        )
    lines += [f"  {text}" for text in report["notes"]]
    lines += ["", table(("step", "layer", "operator", "output", "kernel", "us", "%"), rows)]
    lines.append("  (operator +N: N more layers of the model are computed in the same step; --html shows which)")
    return "\n".join(lines)
