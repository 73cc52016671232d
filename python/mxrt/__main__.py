"""The command line: `mxrt COMMAND`, `mxrt --version`. A command is a module and a row of
`COMMANDS`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NamedTuple


def version() -> str:
    """The version of the installed package."""
    import mxrt

    return str(mxrt.__version__)


class Command(NamedTuple):
    """A command: its row is all that names it."""

    name: str
    help: str
    # with `add_arguments(parser)` and `main(arguments)`, which returns the exit status; imported
    # when it is needed
    module: str


COMMANDS = (
    Command("demo", "trained and full-size models, many callers, caught failures (a minute)", "mxrt.demo"),
    Command("bench", "a model of yours: images per second, latency, memory, a table of its layers", "mxrt.bench"),
    Command(
        "tune",
        "a model of yours: measure how to compute its convolutions and save it in a table",
        "mxrt.tune",
    ),
    Command("serve", "models over HTTP, by the Open Inference Protocol", "mxrt._serve_command"),
    Command("im2rec", "lists of images, and files of records made of them, as MXNet's tool", "mxrt.im2rec"),
    Command("doctor", "GPUs: what was found, and what is missing and why", "mxrt._doctor"),
    Command("info", "versions, processor, engine and settings, for a report", "mxrt._info"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `mxrt` command; returns the exit status."""
    from .base import MXNetError

    parser = argparse.ArgumentParser(
        prog="mxrt", description="MXNet model runtime: runs Apache MXNet models from any number of threads."
    )
    parser.add_argument("--version", action="version", version=f"mxrt {version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    words = list(sys.argv[1:] if argv is None else argv)
    for command in COMMANDS:
        subparser = commands.add_parser(command.name, help=command.help)
        if command.name in words:
            module = importlib.import_module(command.module)
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.main)
    args = parser.parse_args(words)
    if args.command is None:
        parser.print_help()
        return 2
    try:
        status = int(args.run(args))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # What reads has enough, as `head` has. Python would write the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except MXNetError as error:
        print(f"mxrt {args.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
