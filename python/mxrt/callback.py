"""Callbacks: functions that are called with ``epoch``, ``nbatch`` and ``eval_metric`` after every
batch or epoch.
"""

from __future__ import annotations

import logging  # noqa: F401 (a name of MXNet's module)
import math
import time
from collections.abc import Callable
from typing import Any

from ._output.log import info
from .model import save_checkpoint

__all__ = [
    "LogValidationMetricsCallback",
    "ProgressBar",
    "Speedometer",
    "do_checkpoint",
    "log_train_metric",
    "module_checkpoint",
]


def module_checkpoint(
    mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False
) -> Callable[..., None]:
    """A callback that writes a module's checkpoint after every `period` epochs."""
    period = int(max(1, period))

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            mod.save_checkpoint(prefix, iter_no + 1, save_optimizer_states)

    return save


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """A callback that writes symbol and parameters after every `period` epochs."""
    period = int(max(1, period))

    def save(iter_no: int, sym: Any, arg: Any, aux: Any) -> None:
        if (iter_no + 1) % period == 0:
            save_checkpoint(prefix, iter_no + 1, sym, arg, aux)

    return save


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[Any], None]:
    """A callback that logs the metric after every `period` batches."""

    def log(param: Any) -> None:
        if param.nbatch % period or param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
        if auto_reset:
            param.eval_metric.reset_local()

    return log


class Speedometer:
    """A callback that logs samples per second, and the metric, after every `frequent` batches.

    With `auto_reset` the metric begins again after each line.
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        self.batch_size = batch_size
        self.frequent = frequent
        self.auto_reset = auto_reset
        self.last_count: int | Any = 0
        # When the batches that are being counted began; None before the first.
        self.tic: float | None = None
        self.init: bool = False

    def __call__(self, param: Any) -> None:
        count = param.nbatch
        if count < self.last_count:  # another epoch has begun
            self.tic = None
        self.last_count = count
        if self.tic is None:
            self.tic = time.time()
            self.init = True
        elif count % self.frequent == 0:
            passed = time.time() - self.tic
            self._log(param, count, self.frequent * self.batch_size / passed if passed else math.inf)
            self.tic = time.time()

    def _log(self, param: Any, count: int, speed: float) -> None:
        if param.eval_metric is None:
            info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
            return
        values = param.eval_metric.get_name_value()
        first = 0
        if self.auto_reset:
            param.eval_metric.reset_local()
            first = count - self.frequent
        text = "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(values)
        info(text, param.epoch, first, count, speed, *(part for pair in values for part in pair))


class ProgressBar:
    """A callback that logs which part of `total` batches is done, as a bar of `length`
    characters.
    """

    def __init__(self, total: int, length: int = 80) -> None:
        self.bar_len = length
        self.total = total

    def __call__(self, param: Any) -> None:
        done = param.nbatch / float(self.total)
        filled = round(self.bar_len * done)
        bar = "=" * filled + "-" * (self.bar_len - filled)
        info("[%s] %s%s\r", bar, math.ceil(100.0 * done), "%")


class LogValidationMetricsCallback:
    """A callback that logs the metric at the end of an epoch."""

    def __call__(self, param: Any) -> None:
        if param.eval_metric:
            for name, value in param.eval_metric.get_name_value():
                info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
