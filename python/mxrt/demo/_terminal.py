"""The output of the demo: headings, a progress bar and a table, on a terminal or into a file."""

from __future__ import annotations

import os
import sys
from typing import TextIO


class Terminal:
    """Writes to standard output, or another stream; draws a moving bar only on a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self.live: bool = self._out.isatty()
        self.colour: bool = self.live and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._line = 0

    def _style(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def heading(self, text: str) -> None:
        """A line that starts a part."""
        self.say("\n" + self._style(text, "1"))

    def say(self, text: str = "") -> None:
        """One line or more of plain text."""
        self.clear()
        print(text, file=self._out, flush=True)

    def verdict(self, good: bool, text: str) -> None:
        """A line that starts with `ok` or `FAIL`."""
        self.say(("  " + self._style("ok  ", "32") if good else "  " + self._style("FAIL", "31")) + f" {text}")

    def progress(self, label: str, part: float) -> None:
        """Redraws the bar; does nothing when the output is not a terminal."""
        if not self.live:
            return
        width = 40
        full = round(min(max(part, 0.0), 1.0) * width)
        line = f"  {label} [{'#' * full}{'.' * (width - full)}] {part:4.0%}"
        print("\r" + line.ljust(self._line), end="", file=self._out, flush=True)
        self._line = len(line)

    def clear(self) -> None:
        """Wipes the bar."""
        if self._line:
            print("\r" + " " * self._line + "\r", end="", file=self._out, flush=True)
            self._line = 0


def resident_megabytes() -> float | None:
    """Memory of this process that is in RAM; None where the system does not tell."""
    try:
        with open("/proc/self/statm") as f:
            pages = int(f.read().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
