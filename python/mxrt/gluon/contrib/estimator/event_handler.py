"""Handlers that an estimator calls while it evaluates. Handlers that train can be made, and do
nothing.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ....metric import CompositeEvalMetric, EvalMetric
from ....metric import Loss as LossMetric

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "CheckpointHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
]


class EventHandler:
    """Something that an estimator calls. Handlers with a lower ``priority`` are called first."""


class TrainBegin(EventHandler):
    """Is called before training."""

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Training begins."""


class TrainEnd(EventHandler):
    """Is called after training."""

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Training ended."""


class EpochBegin(EventHandler):
    """Is called before a pass over the data."""

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """A pass begins."""


class EpochEnd(EventHandler):
    """Is called after a pass over the data."""

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """A pass ended; True ends training."""
        return False


class BatchBegin(EventHandler):
    """Is called before a batch."""

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """A batch begins; ``batch`` is among the keywords."""


class BatchEnd(EventHandler):
    """Is called after a batch."""

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """A batch ended; ``batch``, ``pred``, ``label`` and ``loss`` are among the keywords."""
        return False


def checked_handlers(handlers: Any) -> list[EventHandler]:
    """A handler or several as a list; ValueError for anything else."""
    found = [handlers] if isinstance(handlers, EventHandler) else list(handlers or [])
    if not all(isinstance(handler, EventHandler) for handler in found):
        raise ValueError(f"handlers must be an EventHandler or a list of EventHandler, got: {handlers}")
    return found


def checked_metrics(metrics: Any) -> list[EvalMetric]:
    """A metric, several, or a composite one as a list; ValueError for anything else."""
    if isinstance(metrics, CompositeEvalMetric):
        return [one for part in metrics.metrics for one in checked_metrics(part)]
    found = [metrics] if isinstance(metrics, EvalMetric) else list(metrics or [])
    if not all(isinstance(metric, EvalMetric) for metric in found):
        raise ValueError(f"metrics must be a Metric or a list of Metric, refer to mxnet.metric.EvalMetric: {metrics}")
    return found


class MetricHandler(EpochBegin, BatchEnd):
    """Resets metrics before a pass, and updates them after every batch."""

    def __init__(self, metrics: Any, priority: float = -1000) -> None:
        self.metrics: list[EvalMetric] = checked_metrics(metrics)
        self.priority = priority

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Resets the metrics."""
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Updates the metrics: those of losses with the losses, others with the predictions."""
        for metric in self.metrics:
            if isinstance(metric, LossMetric):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Writes metrics to the estimator's logger: after a pass, or every `log_interval` batches."""

    def __init__(self, log_interval: Any = "epoch", metrics: Any = None, priority: float = np.inf) -> None:
        if not isinstance(log_interval, int) and log_interval != "epoch":
            raise ValueError("log_interval must be either an integer or string 'epoch'")
        self.metrics = checked_metrics(metrics)
        self.priority = priority
        self.log_interval = log_interval
        self.batch_index: int = 0
        self.current_epoch: int = 0
        self.processed_samples: int = 0
        self.log_interval_time: float = 0.0
        self._epoch_start = self._batch_start = 0.0

    def _shown(self) -> str:
        return ", ".join("{}: {:.4f}".format(*metric.get()) for metric in self.metrics)

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Says that validation begins."""
        self._epoch_start = time.perf_counter()
        estimator.logger.info("Validation Begin")

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Notes the time."""
        self._batch_start = time.perf_counter()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Writes the metrics if it is time."""
        if isinstance(self.log_interval, int):
            self.processed_samples += kwargs["batch"][0].shape[0]
            self.log_interval_time += time.perf_counter() - self._batch_start
            if self.batch_index % self.log_interval == 0:
                where = f"[Epoch {self.current_epoch}][Batch {self.batch_index}][Samples {self.processed_samples}]"
                estimator.logger.info(f"{where} time/interval: {self.log_interval_time:.3f}s {self._shown()}")
                self.log_interval_time = 0.0
        self.batch_index += 1

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Writes the metrics."""
        seconds = time.perf_counter() - self._epoch_start
        estimator.logger.info(f"[Epoch {self.current_epoch}] Finished in {seconds:.3f}s, {self._shown()}")
        self.current_epoch += 1
        self.batch_index = 0


# ---- what belongs to training --------------------------------------------------------------------


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Ends training after a number of batches or epochs."""

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None) -> None:
        self.max_epoch = max_epoch
        self.max_batch = max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Evaluates between epochs or batches of training."""

    def __init__(
        self,
        val_data: Any,
        eval_fn: Any,
        epoch_period: int = 1,
        batch_period: int | None = None,
        priority: float = -1000,
        event_handlers: Any = None,
    ) -> None:
        self.val_data = val_data
        self.eval_fn = eval_fn
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.priority = priority
        self.event_handlers = event_handlers


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Saves the network between epochs or batches of training."""

    def __init__(
        self,
        model_dir: str,
        model_prefix: str = "model",
        monitor: Any = None,
        verbose: int = 0,
        save_best: bool = False,
        mode: str = "auto",
        epoch_period: int = 1,
        batch_period: int | None = None,
        max_checkpoints: int = 5,
        resume_from_checkpoint: bool = False,
    ) -> None:
        if save_best and not isinstance(monitor, EvalMetric):
            raise ValueError(
                "To save best model only, please provide one of the metric objects from estimator.train_metrics and "
                "estimator.val_metrics as monitor."
            )
        self.model_dir = model_dir
        self.model_prefix = model_prefix
        self.monitor = monitor
        self.verbose = verbose
        self.save_best = save_best
        self.mode = mode
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.max_checkpoints = max_checkpoints
        self.resume_from_checkpoint = resume_from_checkpoint


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Ends training where a metric gets no better."""

    def __init__(
        self,
        monitor: Any,
        min_delta: float = 0,
        patience: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
    ) -> None:
        if not isinstance(monitor, EvalMetric) or isinstance(monitor, CompositeEvalMetric):
            raise ValueError(
                "Please provide one of the metric objects from estimator.train_metrics and estimator.val_metrics, "
                "which is not a CompositeEvalMetric, as monitor."
            )
        self.monitor = monitor
        self.min_delta = min_delta
        self.patience = patience
        self.mode = mode
        self.baseline = baseline


class GradientUpdateHandler(BatchEnd):
    """Updates parameters after every batch of training."""

    def __init__(self, priority: float = -2000) -> None:
        self.priority = priority
