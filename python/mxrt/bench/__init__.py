"""`mxrt bench`: how fast a model answers, how evenly, and in how much memory, on this machine."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..cli._errors import CommandError, UsageError
from ..cli._images import add_preprocess_arguments
from ..cli._model import add_model_arguments, find, load
from ..cli._out import note
from ..cli._shapes import folder_of, input_shapes
from . import saved, show
from .images import Images
from .measure import Task, conditions, measure
from .peer.load import TooFewThreads
from .peers import NAMES, interpreters

__all__ = ["add_arguments", "main"]

_MOST_CALLERS = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser)
    parser.add_argument(
        "inputs",
        metavar="IMAGE",
        nargs="*",
        help="images (JPEG, PNG), folders of them or patterns: each call reads and decodes the next one, as mxrt run "
        "does (otherwise all calls get the same random numbers)",
    )
    add_preprocess_arguments(parser)
    parser.add_argument(
        "--callers", default="1,8", metavar="N,N,...", help="numbers of threads that call (default 1,8)"
    )
    parser.add_argument(
        "--seconds",
        "--duration",
        type=float,
        default=5.0,
        help="time for each number of callers (default 5)",
    )
    parser.add_argument(
        "--rate",
        type=float,
        metavar="R",
        help="requests that arrive in a second, at random times, whether or not earlier ones are answered; --callers "
        "are then those that serve them",
    )
    parser.add_argument(
        "--top", type=int, default=10, metavar="K", help="the K slowest layers with their shares (default 10)"
    )
    parser.add_argument("--save", metavar="FILE", help="save the measurement for a later --compare")
    parser.add_argument(
        "--compare",
        metavar="FILE",
        help="how many times as fast as a saved measurement of the same model, inputs and settings, with an interval",
    )
    parser.add_argument(
        "--peers",
        action="store_true",
        help=f"compare, interleaved, with the installed peers of: {', '.join(NAMES)}; OpenVINO in float32 and, where "
        "it chooses another precision by itself, as installed",
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
        choices=("default", "exact", "bf16", "w8", "auto"),
        default="default",
        help="as in hybridize: exact uses no Winograd methods, bf16 rounds where that is faster, w8 stores "
        "weights of dense and recurrent layers in a byte each, auto is bf16 on processors with tiles (AMX) and "
        "else default; the plan says which, and one caller is measured with the other",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw throughput and latency against callers (.png, .svg; needs matplotlib)"
    )


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    before = saved.load(args.compare) if args.compare is not None else None
    target = folder_of(args.save, "--save") if args.save is not None else None
    try:
        report = run(args, before)
    finally:
        _progress("")
    if before is not None:
        report["compared"] = saved.compare(before, report)
    print(json.dumps(report, indent=2) if args.json else show.as_text(report, args.top))
    if target is not None:
        saved.save(report, target)
        note("bench", f"saved in '{target}'")
    if args.plot is not None:
        show.draw(report, args.plot)
        note("bench", f"drawn to '{args.plot}'")
    return 0


def run(args: argparse.Namespace, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Everything that is measured, as plain data; `before` is to be compared with it."""
    callers = _counts(args.callers)
    if not (math.isfinite(args.seconds) and args.seconds > 0):
        raise UsageError(f"--seconds is {args.seconds}; expected a positive number")
    if args.rate is not None and not (math.isfinite(args.rate) and 0 < args.rate <= 1e6):
        raise UsageError(f"--rate is {args.rate:g}; expected a number over 0, at most 1000000")
    if args.rate is not None and (args.peers or args.peer_python):
        raise UsageError("--rate measures mxrt alone; leave --peers and --peer-python out")
    if args.inputs and (args.peers or args.peer_python):
        raise UsageError("images are decoded by mxrt, not by peers; leave --peers and --peer-python out, or the images")
    if args.top < 1:
        raise UsageError(f"--top is {args.top}; expected a positive number")
    if args.plot is not None:
        show.check_picture(args.plot)
    peers = interpreters(args.peer_python) if args.peers or args.peer_python else {}
    files = find(args.model, args.params, args.epoch)
    for option, target, others in (("--save", args.save, [args.plot]), ("--plot", args.plot, [args.save])):
        files.check_apart(None if target is None else Path(target), option, [*others, *args.inputs])
    graph = load(files)
    shapes, assumed = input_shapes(files, graph, args.shape)
    if assumed:
        note("bench", assumed)
    images = Images(args, files, graph, shapes) if args.inputs else None
    what = Task(files.symbol, files.params, graph, shapes, args.precision, images)
    if before is not None:
        for words in saved.check(args.compare, before, conditions(what, args.rate), callers):
            note("bench", words)
    try:
        return measure(what, callers, args.seconds, peers, _progress, args.rate)
    except TooFewThreads as error:
        raise CommandError(str(error)) from None


def _progress(text: str) -> None:
    """Prints what is being measured, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text} ..." if text else "\r\x1b[K", end="", file=sys.stderr, flush=True)


def _counts(text: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1 or max(counts) > _MOST_CALLERS:
        raise UsageError(
            f"--callers is '{text}'; expected whole numbers from 1 to {_MOST_CALLERS} with commas, such as 1,8,64"
        )
    return counts
