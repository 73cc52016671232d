"""Metrics of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from .base import Array, EvalMetric, Plain, alias, check_label_shapes, pairs, register, values

__all__ = ["F1", "MCC", "PCC", "Accuracy", "TopKAccuracy"]


@register
@alias("acc")
class Accuracy(Plain):
    """The share of correct classes. A prediction whose shape differs from the label's has scores
    along `axis`.
    """

    def __init__(
        self,
        axis: int = 1,
        name: str = "accuracy",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def _of(self, label: Array, pred: Array) -> tuple[float, int]:
        if pred.shape != label.shape:
            pred = pred.argmax(axis=self.axis)
        label, pred = label.astype("int32").ravel(), pred.astype("int32").ravel()
        check_label_shapes(label, pred)
        return float((pred == label).sum()), len(pred)


@register
@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(Plain):
    """The share of labels that are among the `top_k` classes with the highest scores, in two
    dimensions at most.
    """

    def __init__(
        self,
        top_k: int = 1,
        name: str = "top_k_accuracy",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        if top_k <= 1:
            raise AssertionError("Please use Accuracy if top_k is no more than 1")
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k)
        self.top_k = top_k

    def _of(self, label: Array, pred: Array) -> tuple[float, int]:
        if pred.ndim > 2:
            raise AssertionError(f"Predictions should be no more than 2 dims, got {pred.ndim}")
        best = numpy.argpartition(pred.astype("float32"), -self.top_k)
        label = label.astype("int32").ravel()
        check_label_shapes(label, best)
        if best.ndim == 1:
            return float((best == label).sum()), len(best)
        return float((best[:, -self.top_k :] == label[:, None]).sum()), len(best)


class _Counts:
    """How often a binary decision was right and wrong: true and false positives, false and true
    negatives.
    """

    def __init__(self) -> None:
        self.cells = numpy.zeros(4, numpy.int64)

    def add(self, label: Array, pred: Array) -> None:
        """Counts labels against the classes with the higher scores; ValueError for more than two
        classes.
        """
        label = label.astype("int32").ravel()
        check_label_shapes(label, pred)
        if len(numpy.unique(label)) > 2:
            raise ValueError("F1 and MCC currently only support binary classification: labels have more than 2 values.")
        true, chosen = label == 1, pred.argmax(axis=1) == 1
        cells = [chosen & true, chosen & ~true, ~chosen & true, ~chosen & ~true]
        self.cells += [cell.sum() for cell in cells]

    @property
    def total(self) -> int:
        return int(self.cells.sum())

    @property
    def precision(self) -> float:
        right, wrong, _, _ = map(float, self.cells)
        return right / (right + wrong) if right + wrong else 0.0

    @property
    def recall(self) -> float:
        right, _, missed, _ = map(float, self.cells)
        return right / (right + missed) if right + missed else 0.0

    @property
    def f1(self) -> float:
        precision, recall = self.precision, self.recall
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    @property
    def matthews(self) -> float:
        right, wrong, missed, rejected = map(float, self.cells)
        sums = (right + wrong, right + missed, rejected + wrong, rejected + missed)
        return (right * rejected - wrong * missed) / math.sqrt(math.prod(n for n in sums if n))


class _Statistic:
    """A property of counts: since ``local_reset_stats``, or since ``reset_stats`` where its name
    begins with ``global_``.
    """

    def __init__(self, read: Callable[[_Counts], Any]) -> None:
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self._counts = "everything" if name.startswith("global_") else "recent"

    def __get__(self, instance: Any, owner: type) -> Any:
        return self._read(getattr(instance, self._counts))


class _BinaryClassificationMetrics:
    """Counts of binary decisions under MXNet's names, for programs that show precision and recall
    next to F1, or define metrics with them.
    """

    def __init__(self) -> None:
        self.reset_stats()

    def update_binary_stats(self, label: Any, pred: Any) -> None:
        """Counts labels of shape (n,) against scores of shape (n, 2)."""
        batch = _Counts()
        batch.add(values(label), values(pred))
        self.add(batch)

    def add(self, batch: _Counts) -> None:
        """Adds the counts of a batch."""
        self.recent.cells += batch.cells
        self.everything.cells += batch.cells

    def reset_stats(self) -> None:
        """Begins again."""
        self.recent, self.everything = _Counts(), _Counts()

    def local_reset_stats(self) -> None:
        """Begins again, except for what begins with ``global_``."""
        self.recent = _Counts()

    true_positives = _Statistic(lambda counts: int(counts.cells[0]))
    false_positives = _Statistic(lambda counts: int(counts.cells[1]))
    false_negatives = _Statistic(lambda counts: int(counts.cells[2]))
    true_negatives = _Statistic(lambda counts: int(counts.cells[3]))
    total_examples = _Statistic(lambda counts: counts.total)
    precision = _Statistic(lambda counts: counts.precision)
    recall = _Statistic(lambda counts: counts.recall)
    fscore = _Statistic(lambda counts: counts.f1)
    global_true_positives = _Statistic(lambda counts: int(counts.cells[0]))
    global_false_positives = _Statistic(lambda counts: int(counts.cells[1]))
    global_false_negatives = _Statistic(lambda counts: int(counts.cells[2]))
    global_true_negatives = _Statistic(lambda counts: int(counts.cells[3]))
    global_total_examples = _Statistic(lambda counts: counts.total)
    global_precision = _Statistic(lambda counts: counts.precision)
    global_recall = _Statistic(lambda counts: counts.recall)
    global_fscore = _Statistic(lambda counts: counts.f1)

    def matthewscc(self, use_global: bool = False) -> float:
        """Matthews' correlation."""
        return (self.everything if use_global else self.recent).matthews


class _Binary(EvalMetric):
    """A score of binary decisions: the mean over updates (``macro``) or that of all together
    (``micro``).
    """

    def __init__(self, name: str, output_names: list[str] | None, label_names: list[str] | None, average: str) -> None:
        self.average = average
        self._metrics = _BinaryClassificationMetrics()
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _score(self, counts: _Counts) -> float:
        raise NotImplementedError

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels of shape (n,), scores of shape (n, 2)."""
        batch = _Counts()
        for label, pred in pairs(labels, preds):
            batch.add(label, pred)
        if self.average == "macro":
            self._add(self._score(batch), 1)
            return
        counts = self._metrics
        counts.add(batch)
        self.num_inst, self.global_num_inst = counts.recent.total, counts.everything.total
        self.sum_metric = self._score(counts.recent) * self.num_inst
        self.global_sum_metric = self._score(counts.everything) * self.global_num_inst

    def reset(self) -> None:
        """Begins again."""
        super().reset()
        self._metrics.reset_stats()

    def reset_local(self) -> None:
        """Resets the metric, except for the totals that ``get_global`` returns."""
        super().reset_local()
        self._metrics.local_reset_stats()


@register
class F1(_Binary):
    """The F1 score, of two classes. With ``average="micro"``, `metrics` also has `precision`,
    `recall` and the counts that they are made of.
    """

    def __init__(
        self,
        name: str = "f1",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
        average: str = "macro",
    ) -> None:
        super().__init__(name, output_names, label_names, average)
        self.metrics = self._metrics

    def _score(self, counts: _Counts) -> float:
        return counts.f1


@register
class MCC(_Binary):
    """Matthews' correlation, of two classes."""

    def __init__(
        self,
        name: str = "mcc",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
        average: str = "macro",
    ) -> None:
        super().__init__(name, output_names, label_names, average)

    def _score(self, counts: _Counts) -> float:
        return counts.matthews

    def reset(self) -> None:
        """Begins again."""
        super().reset()
        self.num_inst = self.global_num_inst = 0.0

    def reset_local(self) -> None:
        """Resets the metric, except for the totals that ``get_global`` returns."""
        super().reset_local()
        self.num_inst = 0.0


@register
class PCC(EvalMetric):
    """Matthews' correlation of any number of classes."""

    def __init__(
        self,
        name: str = "pcc",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
        has_global_stats: bool = True,
    ) -> None:
        self.k = 2
        self.lcm: Array = numpy.zeros((2, 2))
        self.gcm: Array = numpy.zeros((2, 2))
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels of shape (n,), and classes of shape (n,) or scores of shape (n,
        classes).
        """
        for label, pred in pairs(labels, preds):
            chosen = pred.argmax(axis=1) if pred.shape != label.shape else pred
            rows, columns = chosen.astype("int32").ravel(), label.astype("int32").ravel()
            # What has no counterpart does not count, as in MXNet.
            rows, columns = rows[: len(columns)], columns[: len(rows)]
            more = max(int(rows.max()), int(columns.max())) + 1 - self.k
            if more > 0:
                self.k += more
                self.lcm, self.gcm = (numpy.pad(m, ((0, more), (0, more))) for m in (self.lcm, self.gcm))
            for matrix in (self.lcm, self.gcm):
                numpy.add.at(matrix, (rows, columns), 1)
        self.num_inst += 1
        self.global_num_inst += 1

    @property
    def sum_metric(self) -> float:
        """The correlation, times the number of updates."""
        return _correlation(self.lcm) * float(self.num_inst)

    @property
    def global_sum_metric(self) -> float:
        """The correlation since ``reset``, times the number of updates."""
        return _correlation(self.gcm) * float(self.global_num_inst)

    def reset(self) -> None:
        """Begins again."""
        self.global_num_inst = 0.0
        self.gcm = numpy.zeros((self.k, self.k))
        self.reset_local()

    def reset_local(self) -> None:
        """Resets the metric, except for the totals that ``get_global`` returns."""
        self.num_inst = 0.0
        self.lcm = numpy.zeros((self.k, self.k))


def _correlation(matrix: Array) -> float:
    """The correlation of a confusion matrix; NaN if all are of one class."""
    n, rows, columns = matrix.sum(), matrix.sum(axis=1), matrix.sum(axis=0)
    spread = numpy.sum(rows * (n - rows)) * numpy.sum(columns * (n - columns))
    if spread == 0:
        return math.nan
    return float(numpy.sum(matrix.diagonal() * n - rows * columns) / math.sqrt(spread))
