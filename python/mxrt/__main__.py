"""The command line: `mxrt demo`, `mxrt info`, `mxrt --version`."""

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
    try:
        from . import demo

        return demo.main(quick=args.quick)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


# Instruction sets the kernels choose between at run time.
_CPU_FLAGS = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "amx_tile")


def cpu() -> tuple[str, list[str]]:
    """Name and instruction sets of the processor, as far as the system tells."""
    fields: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                name, _, value = line.partition(":")
                fields.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    present = set(fields.get("flags", fields.get("Features", "")).split())
    return fields.get("model name", platform.processor() or "unknown"), [f for f in _CPU_FLAGS if f in present]


def cores() -> int:
    """Processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _info(_: argparse.Namespace) -> int:
    import numpy

    name, flags = cpu()
    rows = [
        ("mxrt", version()),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("numpy", numpy.__version__),
        ("system", platform.platform()),
        ("processor", name),
        ("instructions", " ".join(flags) or "none of those asked for"),
        ("cores", f"{cores()} for this process, {os.cpu_count()} in the machine"),
        ("engine", os.environ.get("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice (default)")),
    ]
    settings = sorted(k for k in os.environ if k.startswith(("MXNET_", "MXRT_")))
    rows += [(key, os.environ[key]) for key in settings if key != "MXNET_ENGINE_TYPE"]
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
    info = commands.add_parser("info", help="version, processor, cores and settings, for a report")
    info.set_defaults(run=_info)
    args = parser.parse_args(argv)
    if not hasattr(args, "run"):
        parser.print_help()
        return 2
    return int(args.run(args))


if __name__ == "__main__":
    sys.exit(main())
