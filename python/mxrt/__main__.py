"""The command line: `mxrt demo`, `mxrt bench`, `mxrt tune`, `mxrt info`, `mxrt --version`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence


def version() -> str:
    """The version of the installed package."""
    import mxrt

    return str(mxrt.__version__)


def _demo(args: argparse.Namespace) -> int:
    from . import demo

    return demo.main(quick=args.quick)


def processor() -> str:
    """Name of the processor, as far as the system reports it."""
    try:
        with open("/proc/cpuinfo") as f:
            names = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _info(_: argparse.Namespace) -> int:
    import numpy

    from . import _mxrt

    facts = _mxrt.info()
    rows = [
        ("mxrt", version()),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("numpy", numpy.__version__),
        ("system", platform.platform()),
        ("processor", processor()),
        ("instructions", " ".join(facts["cpu_features"])),
        ("cores", f"{facts['cores']} used, {os.cpu_count()} in the machine"),
        ("engine", facts["engine"]),
        ("operators", facts["operators"]),
    ]
    rows += [(name, os.environ[name]) for name in sorted(os.environ) if name.startswith(("MXNET_", "MXRT_"))]
    for key, value in rows:
        print(f"{key:14s}{value}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `mxrt` command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="mxrt", description="MXNet model runtime: runs Apache MXNet models from any number of threads."
    )
    parser.add_argument("--version", action="version", version=f"mxrt {version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    demo = commands.add_parser("demo", help="trained and full-size models, many callers, caught failures (a minute)")
    demo.add_argument("--quick", action="store_true", help="a tenth of the callers and of the time")
    demo.set_defaults(run=_demo)
    from . import bench, tune

    measure = commands.add_parser(
        "bench", help="a model of yours: images per second, latency, memory, a table of its layers"
    )
    bench.add_arguments(measure)
    measure.set_defaults(run=bench.main)
    choose = commands.add_parser(
        "tune", help="a model of yours: measure how to compute its convolutions and save it in a table"
    )
    tune.add_arguments(choose)
    choose.set_defaults(run=tune.main)
    info = commands.add_parser("info", help="versions, processor, engine and settings, for a report")
    info.set_defaults(run=_info)
    args = parser.parse_args(argv)
    if not hasattr(args, "run"):
        parser.print_help()
        return 2
    try:
        return int(args.run(args))
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
