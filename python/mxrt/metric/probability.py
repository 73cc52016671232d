"""Metrics of probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy

from .base import Array, EvalMetric, Plain, alias, pairs, register

__all__ = ["CrossEntropy", "NegativeLogLikelihood", "Perplexity"]


class _LogLikelihood(Plain):
    """Minus the logarithm of the probability of the label, for each row."""

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def _of(self, label: Array, pred: Array) -> tuple[float, int]:
        label = label.ravel()
        if label.shape[0] != pred.shape[0]:
            raise AssertionError(f"{label.shape[0]} labels, but predictions for {pred.shape[0]} rows")
        rows = numpy.arange(len(label))
        return float(-numpy.log(pred[rows, label.astype("int64")] + self.eps).sum()), len(label)


@register
@alias("ce")
class CrossEntropy(_LogLikelihood):
    """Cross entropy of probabilities of shape (n, classes) and labels of shape (n,)."""

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "cross-entropy",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        super().__init__(eps, name, output_names, label_names)


@register
@alias("nll_loss")
class NegativeLogLikelihood(_LogLikelihood):
    """Negative log likelihood of probabilities of shape (n, classes) and labels of shape (n,)."""

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "nll-loss",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        super().__init__(eps, name, output_names, label_names)


@register
class Perplexity(EvalMetric):
    """exp of the mean negative log likelihood; rows whose label is `ignore_label` do not count."""

    def __init__(
        self,
        ignore_label: int | None,
        axis: int = -1,
        name: str = "perplexity",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, ignore_label=ignore_label, axis=axis, has_global_stats=True)
        self.ignore_label = ignore_label
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels, and probabilities with the classes along ``axis``."""
        if isinstance(labels, list) and isinstance(preds, list) and len(labels) != len(preds):
            raise AssertionError(f"{len(labels)} arrays of labels and {len(preds)} of predictions")
        loss = 0.0
        count: float = 0
        for label, pred in pairs(labels, preds):
            if label.size != pred.size // pred.shape[-1]:
                raise AssertionError(f"shape mismatch: {label.shape} vs. {pred.shape}")
            wanted = label.reshape(numpy.delete(pred.shape, self.axis))
            places = wanted.astype("int32").clip(0, pred.shape[self.axis] - 1)
            found = numpy.take_along_axis(pred, numpy.expand_dims(places, self.axis), self.axis).squeeze(self.axis)
            if self.ignore_label is not None:
                found = found[wanted != self.ignore_label]
            loss -= float(numpy.log(numpy.maximum(1e-10, found)).sum())
            count += found.size if self.ignore_label is None else float(found.size)
        self._add(loss, count)

    def get(self) -> tuple[Any, Any]:
        """Name and value."""
        return self.name, math.exp(self.sum_metric / self.num_inst) if self.num_inst else math.nan

    def get_global(self) -> tuple[Any, Any]:
        """Name and value since ``reset``."""
        mean = self.global_sum_metric / self.global_num_inst if self.global_num_inst else math.nan
        return self.name, math.exp(mean)
