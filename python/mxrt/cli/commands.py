"""The table of commands. Imports nothing of mxrt, so that `mxrt --help` needs no numpy."""

from __future__ import annotations

import argparse
from typing import NamedTuple

__all__ = ["COMMANDS", "Command", "parser_of"]


class Command(NamedTuple):
    """A command: its row is all that names it."""

    name: str
    help: str
    # with `add_arguments(parser)` and `main(arguments)`, which returns the exit status; imported
    # when it is needed
    module: str
    # what follows the name in an example; digits_cnn is a model, digit.png an image
    example: str
    # whether Ctrl-C ends it at once; a server ends its requests first
    ends_at_once: bool = True


COMMANDS = (
    Command(
        "inspect",
        "what is in a model: files, inputs, outputs, operators, cost of its layers, and whether it runs",
        "mxrt.cli.inspect",
        "digits_cnn --shape 1,1,8,8",
    ),
    Command(
        "run",
        "answers of a model for images, arrays, tables or records; classes with their labels",
        "mxrt.cli.run",
        "digits_cnn digit.png --size 8,8 --grey --scale 0.00392157 --mean 0 --std 1",
    ),
    Command(
        "check",
        "whether a model loads and answers, against recorded outputs or another engine, layer by layer",
        "mxrt.cli.check",
        "digits_cnn --shape 1,1,8,8",
    ),
    Command("profile", "time of each layer of a model, and a trace", "mxrt.cli.profile", "digits_cnn --shape 1,1,8,8"),
    Command(
        "plan",
        "the compiled form of a model: text, or one page of HTML",
        "mxrt.cli.plan",
        "digits_cnn --shape 1,1,8,8 --html plan.html",
    ),
    Command(
        "convert",
        "a copy of a model: today's files, float16, no training heads, other names, other formats, ONNX "
        "(8-bit integers: mxrt quantize)",
        "mxrt.cli.convert",
        "digits_cnn small --float16",
    ),
    Command(
        "quantize",
        "a copy of a model on 8-bit integers, within a budget of accuracy, and what each layer costs",
        "mxrt.cli.quantize",
        "digits_cnn --data images --size 8,8 --grey --scale 0.00392157 --mean 0 --std 1 --out int8 --html report.html",
    ),
    Command("explain", "the page of an error", "mxrt.cli.explain", "MXNetShapeError"),
    Command("demo", "trained and full-size models, many callers, caught failures (a minute)", "mxrt.demo", "--quick"),
    Command(
        "bench",
        "a model of yours: images per second, latency, memory, a table of its layers",
        "mxrt.bench",
        "digits_cnn --shape 1,1,8,8 --callers 1 --seconds 0.2",
    ),
    Command(
        "tune",
        "a model of yours: measure how to compute its convolutions and save it in a table",
        "mxrt.tune",
        "digits_cnn --shape 1,1,8,8 --seconds 0.01",
    ),
    Command(
        "serve",
        "models over HTTP and gRPC, by the Open Inference Protocol, or as a container of SageMaker",
        "mxrt.serve._command",
        "digits=digits_cnn --shape 1,1,8,8 --check",
        ends_at_once=False,
    ),
    Command(
        "im2rec",
        "lists of images, and files of records made of them, as MXNet's tool",
        "mxrt.im2rec",
        "--list pictures images",
    ),
    Command(
        "doctor",
        "the machine: what was found, what is missing or slow, and its remedy",
        "mxrt.cli.doctor",
        "--no-test",
    ),
    Command("info", "versions, processor, engine and settings, for a report", "mxrt.cli.info", "--settings"),
    Command("completion", "completion of commands and options for a shell", "mxrt.cli.completion", "bash"),
)


def parser_of(only: str | None = None) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser of the command line, and those of the commands, by name, without their arguments;
    `only` that of one command, which takes less time.
    """
    parser = argparse.ArgumentParser(
        prog="mxrt",
        description="MXNet model runtime: runs Apache MXNet models from any number of threads.",
        epilog="exit status: 0 good; 1 the model or the data are wrong; 2 the command line is; 130 interrupted",
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    return parser, {
        row.name: commands.add_parser(
            row.name, help=row.help, description=row.help, epilog=f"example: mxrt {row.name} {row.example}".rstrip()
        )
        for row in COMMANDS
        if only in (None, row.name)
    }
