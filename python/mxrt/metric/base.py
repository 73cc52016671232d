"""The common part of all metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy

from .. import registry
from ..ndarray import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Array", "EvalMetric", "Plain", "alias", "check_label_shapes", "listed", "pairs", "parts", "register"]
__all__ += ["values"]

Array = numpy.ndarray[Any, Any]


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Labels and predictions, if they are equally many (with `shape`: of one shape); else
    ValueError.

    With `wrap` a single array becomes a list of one.
    """
    found = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if found[0] != found[1]:
        raise ValueError(f"Shape of labels {found[0]} does not match shape of predictions {found[1]}")
    if wrap:
        return listed(labels), listed(preds)
    return labels, preds


def listed(arrays: Any) -> Any:
    return [arrays] if isinstance(arrays, (NDArray, numpy.ndarray)) else arrays


def pairs(labels: Any, preds: Any) -> list[tuple[Array, Array]]:
    """Labels and predictions as pairs of numpy arrays."""
    labels, preds = check_label_shapes(labels, preds, True)
    return [(values(label), values(pred)) for label, pred in zip(labels, preds, strict=True)]


def values(array: Any) -> Array:
    found: Array = array.asnumpy() if isinstance(array, NDArray) else numpy.asarray(array)
    return found


def parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class EvalMetric:
    """A metric: ``update`` with the labels and predictions of each batch, then ``get``.

    Subclasses define ``update``, which adds to ``sum_metric`` and ``num_inst``; those that keep a
    second pair, ``global_sum_metric`` and ``global_num_inst``, which ``reset_local`` leaves alone,
    say ``has_global_stats=True``. `output_names` and `label_names` choose what ``update_dict``
    takes.
    """

    sum_metric: Any
    num_inst: Any
    global_sum_metric: Any
    global_num_inst: Any

    def __init__(
        self, name: str, output_names: list[str] | None = None, label_names: list[str] | None = None, **kwargs: Any
    ) -> None:
        self.name: str = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        plain = {
            name: value.item() if isinstance(value, numpy.generic) else value for name, value in self.get_name_value()
        }
        return f"EvalMetric: {plain}"

    def get_config(self) -> dict[str, Any]:
        """The arguments with which ``create`` makes the metric again."""
        names = {"name": self.name, "output_names": self.output_names, "label_names": self.label_names}
        return {**self._kwargs, "metric": type(self).__name__, **names}

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Adds a batch whose labels and predictions have names."""
        preds = list(pred.values()) if self.output_names is None else [pred[name] for name in self.output_names]
        labels = list(label.values()) if self.label_names is None else [label[name] for name in self.label_names]
        self.update(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: lists of arrays."""
        raise NotImplementedError

    def _add(self, value: Any, count: Any) -> None:
        """Adds to both sums, which keep the precision of Python's numbers: NumPy 2 would make them
        those of a float32.
        """
        if isinstance(value, numpy.floating):
            value = numpy.float64(value)
        self.sum_metric += value
        self.global_sum_metric += value
        self.num_inst += count
        self.global_num_inst += count

    def reset(self) -> None:
        """Begins again."""
        self.global_num_inst = 0
        self.global_sum_metric = 0.0
        self.num_inst = 0
        self.sum_metric = 0.0

    def reset_local(self) -> None:
        """Resets the metric, except for the totals that ``get_global`` returns."""
        self.num_inst = 0
        self.sum_metric = 0.0

    def get(self) -> tuple[Any, Any]:
        """Name and value since ``reset`` or ``reset_local``; NaN before the first update."""
        return self.name, self.sum_metric / self.num_inst if self.num_inst else math.nan

    def get_global(self) -> tuple[Any, Any]:
        """Name and value since ``reset``."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self.global_sum_metric / self.global_num_inst if self.global_num_inst else math.nan

    def get_name_value(self) -> list[tuple[str, Any]]:
        """``get`` as pairs of name and value."""
        name, value = self.get()
        return list(zip(parts(name), parts(value), strict=True))

    def get_global_name_value(self) -> list[tuple[str, Any]]:
        """``get_global`` as pairs of name and value."""
        if not self._has_global_stats:
            return self.get_name_value()
        name, value = self.get_global()
        return list(zip(parts(name), parts(value), strict=True))


register: Callable[..., Any] = registry.get_register_func(EvalMetric, "metric")
alias: Callable[..., Any] = registry.get_alias_func(EvalMetric, "metric")


class Plain(EvalMetric):
    """A metric that adds up something of each pair of label and prediction."""

    def __init__(
        self,
        name: str = "",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True, **kwargs)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: lists of arrays."""
        for label, pred in pairs(labels, preds):
            self._add(*self._of(label, pred))

    def _of(self, label: Array, pred: Array) -> tuple[float, int]:
        """The value to add, and its weight."""
        raise NotImplementedError
