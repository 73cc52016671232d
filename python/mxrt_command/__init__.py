"""The program `mxrt`: a package of its own, so that its help is there before mxrt and numpy are."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--help"], ["-h"]):
        parser, _ = _table().parser_of()
        try:
            sys.stdout.write(parser.format_help())
            sys.stdout.flush()
            return 0
        except (OSError, AttributeError):  # closed, full, or a reader that has enough
            pass
    with _ended_by_ctrl_c():
        from mxrt.cli._main import main as run

    return run(words)


@contextlib.contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Inside, SIGINT ends the process with status 130: no import is left half done."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, say
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, b"\ninterrupted\n")
    os._exit(130)


def _table() -> Any:
    """The table of commands, read without its package, which would import everything."""
    package = importlib.util.find_spec("mxrt")
    assert package is not None and package.submodule_search_locations is not None
    file = Path(package.submodule_search_locations[0]) / "cli" / "commands.py"
    spec = importlib.util.spec_from_file_location("mxrt_command._table", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
