"""Several metrics as one, metrics by functions, and ``create``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import registry
from .base import Array, EvalMetric, alias, check_label_shapes, listed, parts, register, values

__all__ = ["Caffe", "CompositeEvalMetric", "CustomMetric", "Loss", "Torch", "create", "np"]

_create = registry.get_create_func(EvalMetric, "metric")


def create(metric: Any, *args: Any, **kwargs: Any) -> Any:
    """A metric from a name, a function of label and prediction, or a list of these; a metric is
    returned unchanged.
    """
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    if isinstance(metric, list):
        composite = CompositeEvalMetric()
        for one in metric:
            composite.add(create(one, *args, **kwargs))
        return composite
    return _create(metric, *args, **kwargs)


@register
@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics as one: ``get`` gives lists of names and values."""

    metrics: list[Any]

    def __init__(
        self,
        metrics: list[Any] | None = None,
        name: str = "composite",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        self.metrics = []
        super().__init__(name, output_names, label_names, has_global_stats=True)
        self.metrics += [create(metric) for metric in metrics or []]

    def add(self, metric: Any) -> None:
        """Adds a metric, given as ``create`` takes it."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> Any:
        """One of the metrics; ValueError for a number that is too large."""
        if not -len(self.metrics) <= index < len(self.metrics):
            raise ValueError(f"Metric index {index} is out of range 0 and {len(self.metrics)}")
        return self.metrics[index]

    def update_dict(self, labels: Mapping[str, Any], preds: Mapping[str, Any]) -> None:
        """Adds a batch to every metric."""
        if self.label_names is not None:
            labels = {name: value for name, value in labels.items() if name in self.label_names}
        if self.output_names is not None:
            preds = {name: value for name, value in preds.items() if name in self.output_names}
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch to every metric."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        """Begins again."""
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        """Resets the metric, except for the totals that ``get_global`` returns."""
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> tuple[list[str], list[Any]]:
        """Names and values of all metrics."""
        return _joined([metric.get() for metric in self.metrics])

    def get_global(self) -> tuple[list[str], list[Any]]:
        """Names and values of all metrics since ``reset``."""
        return _joined([metric.get_global() for metric in self.metrics])

    def get_config(self) -> dict[str, Any]:
        """The arguments with which ``create`` makes the metric again."""
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


def _joined(results: list[tuple[Any, Any]]) -> tuple[list[str], list[Any]]:
    return (
        [name for names, _ in results for name in parts(names)],
        [value for _, values in results for value in parts(values)],
    )


@register
class Loss(EvalMetric):
    """The mean of what the model puts out, whatever the labels are."""

    def __init__(
        self, name: str = "loss", output_names: list[str] | None = None, label_names: list[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: a list of arrays, or one."""
        for pred in listed(preds):
            self._add(float(values(pred).sum()), pred.size)


@register
class Torch(Loss):
    """Another name of ``Loss``."""

    def __init__(
        self, name: str = "torch", output_names: list[str] | None = None, label_names: list[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names)


@register
class Caffe(Loss):
    """Another name of ``Loss``."""

    def __init__(
        self, name: str = "caffe", output_names: list[str] | None = None, label_names: list[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names)


@register
class CustomMetric(EvalMetric):
    """A metric by a function of label and prediction, numpy arrays, that returns a number, or a sum
    and its count.
    """

    def __init__(
        self,
        feval: Callable[[Array, Array], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        own = getattr(feval, "__name__", type(feval).__name__)
        shown = name or (f"custom({own})" if "<" in own else own)
        settings = {"feval": feval, "allow_extra_outputs": allow_extra_outputs}
        super().__init__(shown, output_names, label_names, has_global_stats=True, **settings)
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: lists of arrays."""
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            found = self._feval(values(label), values(pred))
            self._add(*(found if isinstance(found, tuple) else (found, 1)))

    def get_config(self) -> dict[str, Any]:
        """Refused: a function cannot be written down."""
        raise NotImplementedError("CustomMetric cannot be serialized")


def np(
    numpy_feval: Callable[[Array, Array], Any], name: str | None = None, allow_extra_outputs: bool = False
) -> CustomMetric:
    """A metric by a function of label and prediction, numpy arrays."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
