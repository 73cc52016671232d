"""What all modules have in common."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from .. import ndarray as nd
from ..base import MXNetNotImplementedError, no_training
from ..io import DataBatch, DataIter
from ..ndarray import NDArray

__all__ = ["BaseModule"]


class BaseModule:
    """What all modules have in common."""

    def __init__(self, logger: Any = logging) -> None:
        self.logger = logger
        self.binded = False
        self.for_training = False
        self.inputs_need_grad = False
        self.params_initialized = False
        self.optimizer_initialized = False

    # ---- what a kind of module has to provide ------------------------------------------------------------------

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Runs the model on a batch; ``get_outputs`` gives the results."""
        raise NotImplementedError

    def get_outputs(self, merge_multi_context: bool = True) -> list[NDArray]:
        """The results of the last ``forward``: a list of arrays."""
        raise NotImplementedError

    # ---- what follows from it ----------------------------------------------------------------------------------

    def _batches(self, eval_data: DataIter, num_batch: int | None, reset: bool) -> Iterator[tuple[int, Any]]:
        if reset:
            eval_data.reset()
        for number, batch in enumerate(eval_data):
            if number == num_batch:
                return
            yield number, batch

    def iter_predict(
        self, eval_data: DataIter, num_batch: int | None = None, reset: bool = True, sparse_row_id_fn: Any = None
    ) -> Iterator[tuple[list[NDArray], int, Any]]:
        """Outputs, number and batch, for every batch; rows that only fill a batch up are left out."""
        for number, batch in self._batches(eval_data, num_batch, reset):
            self.forward(batch, is_train=False)
            yield self._without_pad(batch), number, batch

    def _without_pad(self, batch: Any) -> list[NDArray]:
        pad = getattr(batch, "pad", None) or 0
        return [out[: out.shape[0] - pad] if pad else out for out in self.get_outputs()]

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Any = None,
    ) -> Any:
        """The outputs for all batches, joined along the first axis; a single output as itself.

        An array instead of an iterator is taken as one batch, and gives its first output.
        """
        if isinstance(eval_data, (NDArray, np.ndarray)):
            array = eval_data if isinstance(eval_data, NDArray) else nd.array(eval_data)
            self.forward(DataBatch([array]), is_train=False)
            return self.get_outputs()[0]
        if not isinstance(eval_data, DataIter):
            raise ValueError("eval_data must be of type NDArray or DataIter")
        lists = []
        for _, batch in self._batches(eval_data, num_batch, reset):
            self.forward(batch, is_train=False)
            lists.append([out.copy() for out in self._without_pad(batch)])
        if not lists or not merge_batches:
            return lists
        if len({len(outputs) for outputs in lists}) != 1:
            raise AssertionError("Cannot merge batches, as num of outputs is not the same in mini-batches.")
        merged = [nd.concatenate([outputs[i] for outputs in lists]) for i in range(len(lists[0]))]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def score(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: it needs ``mx.metric``."""
        raise MXNetNotImplementedError(
            "Module.score needs mx.metric, which is not part of this build of mxrt; use predict and compute the score "
            "with numpy"
        )

    # ---- training ----------------------------------------------------------------------------------------------

    def fit(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.fit")

    def backward(self, out_grads: Any = None) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.backward")

    def forward_backward(self, data_batch: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.forward_backward")

    def update(self) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.update")

    def init_optimizer(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.init_optimizer")

    def get_input_grads(self, merge_multi_context: bool = True) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.get_input_grads")

    def update_metric(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: it needs ``mx.metric``."""
        raise MXNetNotImplementedError("update_metric needs mx.metric, which is not part of this build of mxrt")

    def install_monitor(self, mon: Any) -> NoReturn:
        """Refused: compiled plans have no results in between to be shown."""
        raise MXNetNotImplementedError("install_monitor is not part of this build of mxrt")

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Accepted: there is nothing to prepare."""
