"""Modules written in Python, to be put between others: no symbol, no parameters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ..ndarray import NDArray
from .base_module import BaseModule

__all__ = ["PythonLossModule", "PythonModule"]


class PythonModule(BaseModule):
    """A module without parameters; subclasses define ``forward``, ``get_outputs`` and
    ``_compute_output_shapes``.

    Parameters
    ----------
    data_names, label_names, output_names : names of the inputs, the labels (None without any) and
        the results
    logger : what warnings go to: ``logging``, or a logger
    """

    def __init__(
        self,
        data_names: Sequence[str],
        label_names: Sequence[str] | None,
        output_names: Sequence[str],
        logger: Any = logging,
    ) -> None:
        super().__init__(logger)
        self._data_names = list(data_names)
        self._label_names = None if label_names is None else list(label_names)
        self._output_names = list(output_names)
        self._data_shapes: Any = None
        self._label_shapes: Any = None
        self._output_shapes: Any = None

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs."""
        return self._data_names

    @property
    def output_names(self) -> list[str]:
        """Names of the results."""
        return self._output_names

    @property
    def data_shapes(self) -> Any:
        """Descriptions of the inputs."""
        return self._data_shapes

    @property
    def label_shapes(self) -> Any:
        """Descriptions of the labels; None when there are none."""
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        """Name and shape of every result."""
        return self._output_shapes

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """The parameters: there are none."""
        return {}, {}

    def init_params(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do: there are no parameters."""
        self.params_initialized = True

    def set_params(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do: there are no parameters."""
        self.params_initialized: bool = True

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds results and labels to a metric, if the module was bound with labels.

        Parameters
        ----------
        eval_metric : the metric
        labels : the labels, a list of arrays
        pre_sliced : True, lists of parts for each context, is a RuntimeError
        """
        if self._label_shapes is None:
            return
        if pre_sliced:
            raise RuntimeError("PythonModule does not support presliced labels")
        eval_metric.update(labels, self.get_outputs())

    def _bind(
        self, data_shapes: Any, label_shapes: Any, for_training: bool, force_rebind: bool, shared_module: Any
    ) -> None:
        for names, shapes in ((self._data_names, data_shapes), (self._label_names, label_shapes)):
            if shapes is not None and [one[0] for one in shapes] != names:
                raise AssertionError(f"PythonModule.bind: names {[one[0] for one in shapes]}, expected {names}")
        self._data_shapes, self._label_shapes = data_shapes, label_shapes
        self._output_shapes = self._compute_output_shapes()

    def _compute_output_shapes(self) -> Any:
        """Name and shape of every result, from ``_data_shapes``; subclasses define it."""
        raise NotImplementedError


class PythonLossModule(PythonModule):
    """A loss at the end of a row of modules: at inference it hands on what it gets.

    Parameters
    ----------
    name : name of the loss; its result is called ``<name>_output``
    data_names, label_names : the name of the input and that of the label; AssertionError for more
    logger : what warnings go to: ``logging``, or a logger
    grad_func : accepted; there are no gradients
    """

    def __init__(
        self,
        name: str = "pyloss",
        data_names: Sequence[str] = ("data",),
        label_names: Sequence[str] = ("softmax_label",),
        logger: Any = logging,
        grad_func: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(data_names, label_names, [f"{name}_output"], logger)
        if len(data_names) != 1 or len(label_names) != 1:
            raise AssertionError("PythonLossModule has one input and one label")
        self._name = name
        self._grad_func = grad_func
        # Names of MXNet that programs read.
        self._scores: NDArray | None = None
        self._labels: Any = None
        self._scores_grad: NDArray | None = None

    def _compute_output_shapes(self) -> Any:
        return [(self._output_names[0], self._data_shapes[0][1])]

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Takes the batch's data, and its label if it is bound for training."""
        self._scores = data_batch.data[0]
        if (self.for_training if is_train is None else is_train) and data_batch.label:
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[NDArray]:
        """The data of the last ``forward``."""
        return [] if self._scores is None else [self._scores]
