"""Estimators evaluate a block on a data set."""

from __future__ import annotations

import copy
import logging
import sys
import warnings  # noqa: F401 (a name of MXNet's module)
from typing import Any, NoReturn

from ....base import no_training, warn
from ....context import Context, current_context
from ....metric import Accuracy, EvalMetric
from ....metric import Loss as LossMetric
from ...data import DataLoader
from ...loss import Loss, SoftmaxCrossEntropyLoss
from ...trainer import Trainer
from .batch_processor import BatchProcessor
from .event_handler import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    EventHandler,
    LoggingHandler,
    MetricHandler,
    checked_handlers,
    checked_metrics,
)

__all__ = ["Estimator"]


class Estimator:
    """A network, its loss and metrics; ``evaluate`` runs it over a data set, ``fit`` is refused.

    Parameters
    ----------
    net : the network; without parameters it is initialised
    loss : a :class:`mxrt.gluon.loss.Loss`
    train_metrics, val_metrics : metrics; without any the accuracy for a cross entropy of classes,
        and the loss. Those of validation are copies of those of training.
    initializer : for a network without parameters
    trainer : a :class:`mxrt.gluon.Trainer`, which is not used
    context : context or contexts, among which each batch is split
    val_net, val_loss : what is evaluated, if that is not `net` and `loss`
    batch_processor : an object with ``fit_batch`` and ``evaluate_batch``
    """

    def __init__(
        self,
        net: Any,
        loss: Any,
        train_metrics: Any = None,
        val_metrics: Any = None,
        initializer: Any = None,
        trainer: Any = None,
        context: Any = None,
        val_net: Any = None,
        val_loss: Any = None,
        batch_processor: Any = None,
    ) -> None:
        self.net = net
        self.loss: Loss = _checked_loss(loss)
        self.train_metrics: list[EvalMetric] = checked_metrics(train_metrics) or self._default_metrics()
        for metric in self.train_metrics:
            metric.name = f"training {metric.name}"
        self.val_metrics: list[EvalMetric] = checked_metrics(val_metrics) or [
            copy.deepcopy(metric) for metric in self.train_metrics
        ]
        for metric in self.val_metrics:
            plain = metric.name.removeprefix("training ")
            metric.name = f"validation {plain}"
        self.val_loss: Loss = self.loss if val_loss is None else _checked_loss(val_loss)
        self.val_net: Any = net if val_net is None else val_net
        self.logger: logging.Logger = logging.Logger(name="Estimator", level=logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.context: list[Context] = _checked_contexts(context)
        self._initialize(initializer)
        if trainer is not None and not isinstance(trainer, Trainer):
            raise ValueError(f"Trainer must be a Gluon Trainer instance, refer to gluon.Trainer:{trainer}")
        self.trainer = trainer
        self.batch_processor: Any = _checked_processor(batch_processor)

    def _default_metrics(self) -> list[EvalMetric]:
        found: list[EvalMetric] = [Accuracy()] if isinstance(self.loss, SoftmaxCrossEntropyLoss) else []
        return [*found, LossMetric(self.loss.name.rstrip("1234567890"))]

    def _initialize(self, initializer: Any) -> None:
        """Gives the network first values, if some parameter has none."""
        parameters = self.net.collect_params().values()
        if any(parameter._data is None and parameter._deferred is None for parameter in parameters):
            self.net.initialize(init=initializer, ctx=self.context)
        elif initializer:
            warn(
                "Network already fully initialized, skipping initialization. You don't need to pass initializer if "
                "you already initialized your net. You can use net.initialize(init=your_initializer, "
                "force_reinit=True) to force re-initialize."
            )

    def evaluate(self, val_data: Any, batch_axis: int = 0, event_handlers: Any = None) -> None:
        """Runs the network over a data loader; ``val_metrics`` have the results.

        A :class:`MetricHandler` and a :class:`LoggingHandler` are added to `event_handlers` where
        there are none. ValueError if `val_data` is no :class:`mxrt.gluon.data.DataLoader`.
        """
        if not isinstance(val_data, DataLoader):
            raise ValueError(
                "Estimator only support input as Gluon DataLoader. Alternatively, you can transform your DataIter or "
                "any NDArray into Gluon DataLoader. Refer to gluon.data.DataLoader"
            )
        for metric in self.val_metrics:
            metric.reset()
        handlers = self._handlers(event_handlers)
        for handler in handlers:
            if isinstance(handler, EpochBegin):
                handler.epoch_begin(self)
        for batch in val_data:
            for handler in handlers:
                if isinstance(handler, BatchBegin):
                    handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            for handler in handlers:
                if isinstance(handler, BatchEnd):
                    handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss)
        for handler in handlers:
            if isinstance(handler, EpochEnd):
                handler.epoch_end(self)

    def _handlers(self, given: Any) -> list[EventHandler]:
        """The handlers given and those that are missing, in the order of their priorities."""
        handlers = checked_handlers(given)
        known = {id(metric) for metric in self.val_metrics}
        for handler in handlers:
            for metric in getattr(handler, "metrics", None) or []:
                if id(metric) not in known:
                    raise ValueError(
                        f"Event handler {type(handler).__name__} refers to a metric instance {metric} outside of the "
                        "known training and validation metrics. Please use the metrics from estimator.train_metrics "
                        "and estimator.val_metrics instead."
                    )
        for kind in (MetricHandler, LoggingHandler):
            if not any(isinstance(handler, kind) for handler in handlers):
                handlers.append(kind(metrics=self.val_metrics))
        return sorted(handlers, key=lambda handler: getattr(handler, "priority", 0))

    def fit(
        self,
        train_data: Any,
        val_data: Any = None,
        epochs: int | None = None,
        event_handlers: Any = None,
        batches: int | None = None,
        batch_axis: int = 0,
    ) -> NoReturn:
        """Refused: nothing is trained."""
        raise no_training("Estimator.fit")


def _checked_loss(loss: Any) -> Loss:
    if not isinstance(loss, Loss):
        raise ValueError(f"loss must be a Loss, refer to gluon.loss.Loss:{loss}")
    return loss


def _checked_contexts(context: Any) -> list[Context]:
    found = [context] if isinstance(context, Context) else list(context or [current_context()])
    if not all(isinstance(one, Context) for one in found):
        raise ValueError(
            "context must be a Context or a list of Context, for example mx.cpu() or [mx.gpu(0), mx.gpu(1)], refer to "
            f"mxnet.Context:{context}"
        )
    return found


def _checked_processor(processor: Any) -> Any:
    if processor is None:
        return BatchProcessor()
    if not all(callable(getattr(processor, name, None)) for name in ("fit_batch", "evaluate_batch")):
        raise ValueError("Customized Batch Processor must contain fit_batch() and evaluate_batch() methods")
    return processor
