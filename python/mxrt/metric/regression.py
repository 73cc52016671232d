"""Metrics of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy

from .base import Array, EvalMetric, Plain, alias, check_label_shapes, pairs, register

__all__ = ["MAE", "MSE", "RMSE", "PearsonCorrelation"]


class _Distance(Plain):
    """How far predictions are from labels: the mean over each update."""

    def _of(self, label: Array, pred: Array) -> tuple[float, int]:
        # One axis is one column, so that labels of (n,) fit predictions of (n, 1).
        columns = [array.reshape(-1, 1) if array.ndim == 1 else array for array in (label, pred)]
        return float(self._mean(columns[0] - columns[1])), 1

    def _mean(self, difference: Array) -> float:
        raise NotImplementedError


@register
class MAE(_Distance):
    """Mean absolute error."""

    def __init__(
        self, name: str = "mae", output_names: list[str] | None = None, label_names: list[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names)

    def _mean(self, difference: Array) -> float:
        return float(numpy.abs(difference).mean())


@register
class MSE(_Distance):
    """Mean squared error."""

    def __init__(
        self, name: str = "mse", output_names: list[str] | None = None, label_names: list[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names)

    def _mean(self, difference: Array) -> float:
        return float((difference**2.0).mean())


@register
class RMSE(_Distance):
    """Root of the mean squared error."""

    def __init__(
        self, name: str = "rmse", output_names: list[str] | None = None, label_names: list[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names)

    def _mean(self, difference: Array) -> float:
        # In the precision of the arrays, as in MXNet.
        return float(numpy.sqrt((difference**2.0).mean()))


@register
@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation: the mean over updates (``macro``) or that of all together
    (``micro``).
    """

    def __init__(
        self,
        name: str = "pearsonr",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
        average: str = "macro",
    ) -> None:
        self.average = average
        self._count = 0
        self._mean: Array = numpy.zeros(2)
        self._products: Array = numpy.zeros((2, 2))
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels and predictions of one shape."""
        for label, pred in pairs(labels, preds):
            check_label_shapes(label, pred, shape=True)
            pair = numpy.stack([pred.ravel(), label.ravel()]).astype("float64")
            if self.average == "macro":
                self._add(float(numpy.corrcoef(pair)[0, 1]), 1)
            else:
                self._add(0.0, 1)
                self._join(pair)

    def _join(self, pair: Array) -> None:
        """Takes more values into means and sums of products of deviations, without keeping the
        values.
        """
        count = pair.shape[1]
        mean = pair.mean(axis=1)
        apart = mean - self._mean
        total = self._count + count
        inner = pair - mean[:, None]
        self._products += inner @ inner.T + numpy.outer(apart, apart) * (self._count * count / total)
        self._mean += apart * (count / total)
        self._count = total

    def reset(self) -> None:
        """Begins again."""
        super().reset()
        self._count = 0
        self._mean = numpy.zeros(2)
        self._products = numpy.zeros((2, 2))

    def get(self) -> tuple[Any, Any]:
        """Name and value."""
        if self.average == "macro" or not self.num_inst:
            return super().get()
        (spread, both), (_, other) = self._products
        return self.name, float(both / math.sqrt(spread * other))
