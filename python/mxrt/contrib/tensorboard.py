"""Metrics for TensorBoard, by the package ``mxboard`` if it is installed."""

from __future__ import annotations

from typing import Any

__all__ = ["LogMetricsCallback"]


class LogMetricsCallback:
    """A callback that writes the metric to a folder of events. ImportError without ``mxboard``."""

    def __init__(self, logging_dir: str, prefix: str | None = None) -> None:
        import importlib

        self.prefix = prefix
        self.step: int = 0
        self.summary_writer: Any = importlib.import_module("mxboard").SummaryWriter(logging_dir)

    def __call__(self, param: Any) -> None:
        self.step += 1
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            full = name if self.prefix is None else f"{self.prefix}-{name}"
            self.summary_writer.add_scalar(full, value, global_step=self.step)
