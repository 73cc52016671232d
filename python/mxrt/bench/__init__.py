"""`mxrt bench`: how fast a model answers, how evenly, and in how much memory, on this machine."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

from ..base import MXNetError
from . import model, show
from .measure import Task, measure
from .model import UsageError
from .peers import NAMES, PeerError, interpreters

__all__ = ["add_arguments", "main"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser)
    parser.add_argument(
        "--callers", default="1,8", metavar="N,N,...", help="numbers of threads that call (default 1,8)"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each number of callers (default 5)")
    parser.add_argument(
        "--peers",
        action="store_true",
        help=f"compare, interleaved, with the installed peers of: {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--peer-python",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="a peer that is installed for another interpreter (repeatable)",
    )
    parser.add_argument(
        "--precision",
        choices=("default", "exact", "bf16", "auto"),
        default="default",
        help="as in hybridize: exact uses no Winograd methods, bf16 rounds where that is faster, auto is bf16 on "
        "processors with tiles (AMX) and else default; the plan says which, and one caller is measured with the other",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw throughput and latency against callers (.png, .svg; needs matplotlib)"
    )


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that say which model is meant."""
    parser.add_argument(
        "model", metavar="MODEL", help="PREFIX or PREFIX-symbol.json, as export and save_checkpoint write"
    )
    parser.add_argument("--params", help="parameter file (otherwise the PREFIX-NNNN.params of the highest number)")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="[NAME=]N,C,H,W",
        help="shape of an input; the first extent is the batch (needed unless the symbol says it)",
    )


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    try:
        report = run(args)
        print(json.dumps(report, indent=2) if args.json else show.as_text(report))
        if args.plot:
            show.draw(report, args.plot)
            print(f"mxrt bench: drawn to {args.plot}", file=sys.stderr)
    except (UsageError, PeerError, OSError, MemoryError, MXNetError) as error:
        _note("")
        print(f"mxrt bench: {error}", file=sys.stderr)
        return 2
    return 0


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Everything that is measured, as plain data."""
    callers = _counts(args.callers)
    if not (math.isfinite(args.seconds) and args.seconds > 0):
        raise UsageError(f"--seconds is {args.seconds}; expected a positive number")
    if args.plot:
        show.check_picture(args.plot)
    peers = interpreters(args.peer_python) if args.peers or args.peer_python else {}
    symbol_file, params_file = model.find(args.model, args.params)
    graph = model.load(symbol_file)
    shapes = model.input_shapes(graph, params_file, args.shape)
    what = Task(symbol_file, params_file, graph, shapes, args.precision)
    report = measure(what, callers, args.seconds, peers, _note)
    _note("")
    return report


def _note(text: str) -> None:
    """Prints what is being measured, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text} ..." if text else "\r\x1b[K", end="", file=sys.stderr, flush=True)


def _counts(text: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise UsageError(f"--callers is '{text}'; expected positive whole numbers with commas, such as 1,8,64")
    return counts
