"""The processing of one batch by an estimator."""

from __future__ import annotations

from typing import Any, NoReturn

from ....base import no_training
from ....ndarray import NDArray
from ...utils import split_and_load

__all__ = ["BatchProcessor"]


class BatchProcessor:
    """Runs the network and the loss on a batch; programs derive from it to do that otherwise."""

    def _get_data_and_label(self, batch: Any, ctx: Any, batch_axis: int = 0) -> tuple[list[NDArray], list[NDArray]]:
        """Data and labels of a batch, split among contexts."""
        return (
            split_and_load(batch[0], ctx_list=ctx, batch_axis=batch_axis),
            split_and_load(batch[1], ctx_list=ctx, batch_axis=batch_axis),
        )

    def evaluate_batch(self, estimator: Any, val_batch: Any, batch_axis: int = 0) -> tuple[Any, Any, Any, Any]:
        """Data, labels, predictions and losses of a batch, each a list with a part for every
        context.
        """
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(part) for part in data]
        loss = [estimator.val_loss(one, want) for one, want in zip(pred, label, strict=True)]
        return data, label, pred, loss

    def fit_batch(self, estimator: Any, train_batch: Any, batch_axis: int = 0) -> NoReturn:
        """Refused: nothing is trained."""
        raise no_training("BatchProcessor.fit_batch")
