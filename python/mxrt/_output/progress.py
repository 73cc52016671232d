"""A bar on a terminal that shows how far a long run is."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import IO

# Seconds between two drawings.
_PAUSE = 0.1


class Progress:
    """Draws a bar on the standard error output while it is entered; nothing where that is no
    terminal.

    Parameters
    ----------
    label : what is counted
    total : how many there will be, or None: the count and the rate alone are shown
    """

    def __init__(self, label: str, total: int | None = None, shown: bool = True, out: IO[str] | None = None) -> None:
        self.label, self.total, self.count = label, total, 0
        self._out = out or sys.stderr
        self._shown = shown and self._out.isatty()
        self._start = self._drawn = time.monotonic()
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and self._width:
            self._draw(time.monotonic())
            print(file=self._out, flush=True)

    def step(self, count: int = 1) -> None:
        """Counts on."""
        self.count += count
        now = time.monotonic()
        if self._shown and now - self._drawn >= _PAUSE:
            self._draw(now)

    def above(self, words: str) -> None:
        """Prints words on lines of their own; what is drawn of the bar is wiped."""
        if self._shown and self._width:
            print("\r" + " " * self._width, end="\r", file=self._out)
        print(words, file=self._out, flush=True)

    def _draw(self, now: float) -> None:
        self._drawn = now
        rate = self.count / max(now - self._start, 1e-9)
        line = f"{self.label} {self.count}" + (f"/{self.total}" if self.total else "") + f" {rate:.1f}/s"
        if self.total:
            full = round(min(self.count / self.total, 1.0) * 40)
            line += f" [{'#' * full}{'.' * (40 - full)}]"
        print("\r" + line.ljust(self._width), end="", file=self._out, flush=True)
        self._width = len(line)
