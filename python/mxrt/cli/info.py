"""`mxrt info`: what a report of a defect should say."""

from __future__ import annotations

import argparse
import os
import platform

import numpy

from .. import __version__, _mxrt
from ..base import MXNetError
from . import _variables
from ._errors import BAD, GOOD
from ._gpus import gpu_rows, library_rows
from ._out import note, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    parser.add_argument("--settings", action="store_true", help="list all environment variables that mxrt reads")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def processor() -> str:
    """Name of the processor, as far as the system reports it."""
    try:
        with open("/proc/cpuinfo") as f:
            names = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 where the environment says something that is refused."""
    if args.settings and args.json:
        keys = ("name", "expects", "default", "help")
        print_json({"settings": [dict(zip(keys, row, strict=False)) for row in _variables.rows()]})
        return GOOD
    if args.settings:
        for name, expects, default, doc, _ in _variables.rows():
            print(f"{name}\n    {doc}\n    {expects}; default: {default}")
        return GOOD
    rows = [
        ("mxrt", __version__),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("numpy", numpy.__version__),
        ("system", platform.platform()),
        ("processor", processor()),
    ]
    refused: MXNetError | None = None
    try:
        facts = _mxrt.info()
    except MXNetError as error:
        refused = error
    else:
        rows += [
            ("instructions", " ".join(facts["cpu_features"])),
            ("cores", f"{facts['cores']} used, {os.cpu_count()} in the machine"),
            ("engine", facts["engine"]),
            ("operators", str(facts["operators"])),
            *gpu_rows(),
            *(library_rows() if _mxrt.device_count("gpu") > 0 else []),
        ]
    rows += _set_variables()
    if args.json:
        print_json({key.strip(): value for key, value in rows})
    else:
        for key, value in rows:
            print(f"{key:14s}{value}")
    if refused is not None:
        note("info", str(refused))
    return GOOD if refused is None else BAD


def _set_variables() -> list[tuple[str, str]]:
    """The variables of mxrt and MXNet that are set; those that nothing here reads are marked."""
    known = _variables.known()
    names = [name for name in sorted(os.environ) if name in known or name.startswith(("MXNET_", "MXRT_"))]
    return [
        (name + " ", os.environ[name] + ("" if name in known else "  (mxrt reads no such variable)")) for name in names
    ]
