"""Looking at what is computed inside a graph: ``mx.monitor``."""

from __future__ import annotations

import logging  # noqa: F401 (a name of MXNet's module)
import math
import re
from collections.abc import Callable
from typing import Any

from . import ndarray as nd
from ._output.log import info
from .ndarray import NDArray

__all__ = ["Monitor"]


def _size(array: NDArray) -> NDArray:
    """The root of the mean square."""
    made: NDArray = nd.norm(array) / math.sqrt(array.size)
    return made


class Monitor:
    """Collects statistics of the arrays inside executors, every `interval` batches.

    Between ``tic`` and ``toc`` each result of an operator whose name matches `pattern`, a regular
    expression, goes through `stat_func`, which returns an array or a list of arrays: by default the
    root of its mean square. With `monitor_all` so do the inputs of operators. At ``toc`` so do all
    arguments and auxiliary states whose names match. `sort` orders the statistics by name.
    """

    def __init__(
        self,
        interval: int,
        stat_func: Callable[[NDArray], Any] | None = None,
        pattern: str = ".*",
        sort: bool = False,
        monitor_all: bool = False,
    ) -> None:
        self.interval = interval
        self.stat_func: Callable[[NDArray], Any] = stat_func or _size
        self.re_prog: re.Pattern[str] = re.compile(pattern)
        self.sort = sort
        self.monitor_all = monitor_all
        self.activated: bool = False
        self.step: int = 0
        self.queue: list[tuple[int, str, Any]] = []
        self.exes: list[Any] = []

    def stat_helper(self, name: str | bytes, array: NDArray) -> None:
        """The function that executors call with each result."""
        name = name.decode() if isinstance(name, bytes) else name
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def install(self, exe: Any) -> None:
        """Watches an executor; there may be several."""
        exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        self.exes.append(exe)

    def tic(self) -> None:
        """Begins to collect, if it is this batch's turn. Comes before ``forward``."""
        if self.step % self.interval == 0:
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """Number of the batch, name and statistic, as text, of what was collected since ``tic``."""
        if not self.activated:
            return []
        for exe in self.exes:
            for name, array in [*exe.arg_dict.items(), *exe.aux_dict.items()]:
                self.stat_helper(name, array)
        self.activated = False
        queue, self.queue = self.queue, []
        if self.sort:
            queue.sort(key=lambda row: row[1])
        return [(step, name, _text(found)) for step, name, found in queue]

    def toc_print(self) -> None:
        """Logs what was collected."""
        for step, name, text in self.toc():
            info("Batch: %7d %-30s %s", step, name, text)


def _text(statistic: Any) -> str:
    arrays = statistic if isinstance(statistic, list) else [statistic]
    for array in arrays:
        if not isinstance(array, NDArray):
            raise AssertionError(f"stat_func must return an NDArray or a list of them, got {type(array)}")
    # As numpy writes a number of the array's type: 0.631468, not 0.6314679980278015.
    return "".join(f"{array.asscalar() if array.shape == (1,) else array.asnumpy()!s}\t" for array in arrays)
