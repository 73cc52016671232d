"""Losses, forward only: ``mx.gluon.loss``.

Every loss gives one number for each row of the batch, unless it says otherwise. `weight` is
multiplied to all of them; the argument ``sample_weight`` of a call, shape ``(n, 1)`` for one number
a row, to each.
"""

from __future__ import annotations

import math
from typing import Any

from .. import ndarray
from ..base import numeric_types
from .hybrid_block import HybridBlock

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]


def _apply_weighting(F: Any, loss: Any, weight: float | None = None, sample_weight: Any = None) -> Any:
    """A loss times the weights of the samples, which broadcast to it, times one weight."""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is None:
        return loss
    if not isinstance(weight, numeric_types):
        raise AssertionError("weight must be a number")
    return loss * weight


def _reshape_like(F: Any, x: Any, y: Any) -> Any:
    return x.reshape(y.shape) if F is ndarray else F.reshape_like(x, y)


def _softplus(F: Any, x: Any) -> Any:
    return F.Activation(x, act_type="softrelu")


class Loss(HybridBlock):
    """The common part of all losses.

    Parameters
    ----------
    weight : multiplied to the loss, or None
    batch_axis : axis of the rows
    """

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._weight = weight
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def _weighted(self, F: Any, loss: Any, sample_weight: Any, factor: float = 1) -> Any:
        if sample_weight is not None:
            loss = F.broadcast_mul(loss, sample_weight)
        if self._weight is not None:
            if not isinstance(self._weight, numeric_types):
                raise AssertionError("weight must be a number")
            factor *= self._weight
        return loss if self._weight is None and factor == 1.0 else loss * factor

    def _mean(self, F: Any, loss: Any, sample_weight: Any, factor: float = 1) -> Any:
        """The mean over all axes but that of the rows."""
        return F.mean(self._weighted(F, loss, sample_weight, factor), axis=self._batch_axis, exclude=True)


class L2Loss(Loss):
    """Half the squared difference."""

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Shape ``(n,)``."""
        return self._mean(F, F.square(_reshape_like(F, label, pred) - pred), sample_weight, 0.5)


class L1Loss(Loss):
    """The difference without its sign."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Shape ``(n,)``."""
        return self._mean(F, F.abs(_reshape_like(F, label, pred) - pred), sample_weight)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross entropy of probabilities of yes and no; `from_sigmoid`: these are given, not what
    sigmoid makes them of.
    """

    def __init__(
        self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        """Shape ``(n,)``. `pos_weight` is multiplied to what yes contributes."""
        label = _reshape_like(F, label, pred)
        if self._from_sigmoid:
            tiny = 1e-12
            yes = F.log(pred + tiny) * label
            if pos_weight is not None:
                yes = F.broadcast_mul(yes, pos_weight)
            loss = -(yes + F.log(1.0 - pred + tiny) * (1.0 - label))
        elif pos_weight is None:
            loss = F.relu(pred) - pred * label + _softplus(F, -F.abs(pred))
        else:
            yes = 1 + F.broadcast_mul(pos_weight - 1, label)
            loss = pred - pred * label + yes * (_softplus(F, -F.abs(pred)) + F.relu(-pred))
        return self._mean(F, loss, sample_weight)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """Cross entropy of classes.

    Parameters
    ----------
    axis : axis of the classes
    sparse_label : labels are numbers of classes; else probabilities, as many as there are classes
    from_logits : predictions are logarithms of probabilities already
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._axis = axis
        self._sparse_label = sparse_label
        self._from_logits = from_logits

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Shape ``(n,)``."""
        if not self._from_logits:
            pred = F.log_softmax(pred, self._axis)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            loss = -F.sum(pred * _reshape_like(F, label, pred), axis=self._axis, keepdims=True)
        return self._mean(F, loss, sample_weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence; `from_logits`: predictions are logarithms of probabilities
    already.
    """

    def __init__(
        self,
        from_logits: bool = True,
        axis: int = -1,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._axis = axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Shape ``(n,)``: the sum over the other axes."""
        if not self._from_logits:
            pred = F.log_softmax(pred, self._axis)
        loss = self._weighted(F, label * (F.log(label + 1e-12) - pred), sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


class CTCLoss(Loss):
    """Connectionist temporal classification; the last class is the blank.

    Parameters
    ----------
    layout : ``NTC`` or ``TNC``, of the predictions
    label_layout : ``NT`` or ``TN``, of the labels
    """

    def __init__(
        self, layout: str = "NTC", label_layout: str = "NT", weight: float | None = None, **kwargs: Any
    ) -> None:
        if layout not in ("NTC", "TNC"):
            raise AssertionError(f"Only 'NTC' and 'TNC' layouts for pred are supported. Got: {layout}")
        if label_layout not in ("NT", "TN"):
            raise AssertionError(f"Only 'NT' and 'TN' layouts for label are supported. Got: {label_layout}")
        self._layout = layout
        self._label_layout = label_layout
        super().__init__(weight, label_layout.find("N"), **kwargs)

    def hybrid_forward(
        self,
        F: Any,
        pred: Any,
        label: Any,
        pred_lengths: Any = None,
        label_lengths: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """Shape ``(n,)``."""
        if self._layout == "NTC":
            pred = F.swapaxes(pred, 0, 1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, 0, 1)
        loss = F.CTCLoss(
            pred,
            label,
            pred_lengths,
            label_lengths,
            use_data_lengths=pred_lengths is not None,
            use_label_lengths=label_lengths is not None,
            blank_label="last",
        )
        return self._weighted(F, loss, sample_weight)


class HuberLoss(Loss):
    """The squared difference where it is small, the difference without its sign from `rho` on."""

    def __init__(self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Shape ``(n,)``."""
        distance = F.abs(_reshape_like(F, label, pred) - pred)
        small = (0.5 / self._rho) * F.square(distance)
        return self._mean(F, F.where(distance > self._rho, distance - 0.5 * self._rho, small), sample_weight)


class HingeLoss(Loss):
    """The amount by which `margin` is missed; labels are -1 and 1."""

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Shape ``(n,)``."""
        return self._mean(F, F.relu(self._margin - pred * _reshape_like(F, label, pred)), sample_weight)


class SquaredHingeLoss(HingeLoss):
    """The square of by how much `margin` is missed; labels are -1 and 1."""

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Shape ``(n,)``."""
        return self._mean(F, F.square(F.relu(self._margin - pred * _reshape_like(F, label, pred))), sample_weight)


class LogisticLoss(Loss):
    """The logistic loss; labels are -1 and 1 with `label_format` ``signed``, 0 and 1 with
    ``binary``.
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed", **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._label_format = label_format
        if label_format not in ("signed", "binary"):
            raise ValueError(f"label_format can only be signed or binary, received {label_format}.")

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Shape ``(n,)``."""
        label = _reshape_like(F, label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        return self._mean(F, F.relu(pred) - pred * label + _softplus(F, -F.abs(pred)), sample_weight)


class TripletLoss(Loss):
    """The amount by which a positive example is not `margin` nearer than a negative one."""

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any) -> Any:
        """Shape ``(n,)``."""
        near = F.square(_reshape_like(F, positive, pred) - pred)
        far = F.square(_reshape_like(F, negative, pred) - pred)
        loss = F.sum(near - far, axis=self._batch_axis, exclude=True)
        return self._weighted(F, F.relu(loss + self._margin), None)


class PoissonNLLLoss(Loss):
    """The negative logarithm of a Poisson likelihood, as one number for the batch.

    Parameters
    ----------
    from_logits : predictions are logarithms of the rates
    compute_full : adds Stirling's approximation of what depends on the targets only
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._compute_full = compute_full

    def hybrid_forward(self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-08) -> Any:
        """Shape ``(1,)``."""
        target = _reshape_like(F, target, pred)
        loss = F.exp(pred) - target * pred if self._from_logits else pred - target * F.log(pred + epsilon)
        if self._compute_full:
            stirling = target * F.log(target) - target + 0.5 * F.log(2 * target * math.pi)
            loss = loss + stirling * (target > 1)
        return F.mean(self._weighted(F, loss, sample_weight))


class CosineEmbeddingLoss(Loss):
    """1 minus the cosine of two vectors where the label is 1; where it is -1, the cosine above
    `margin`.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        """Shape ``(n, 1)``."""
        input1 = _reshape_like(F, input1, input2)
        label = label.reshape((-1, 1))
        cosine = self._cosine_similarity(F, input1, input2)
        alike = (1 - cosine) * (label == 1)
        different = F.broadcast_maximum(F.zeros((1, 1)), (label == -1) * (cosine - self._margin))
        return self._weighted(F, alike + different, sample_weight)

    def _cosine_similarity(self, F: Any, x: Any, y: Any, axis: int = -1) -> Any:
        one, other = F.norm(x, axis=axis).reshape((-1, 1)), F.norm(y, axis=axis).reshape((-1, 1))
        product = F.sum(x * y, axis=axis).reshape((-1, 1))
        least = F.full((1, 1), 1e-12)
        return product / F.broadcast_maximum(one * other, least)


class SDMLLoss(Loss):
    """Smoothed deep metric learning: row i of one batch belongs to row i of the other, and to no
    other row.

    `smoothing_parameter` is the probability given to the other rows together. Not for symbols: the
    size of the batch must be known.
    """

    def __init__(
        self, smoothing_parameter: float = 0.3, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss: KLDivLoss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        """Shape ``(n,)``."""
        if x1.shape != x2.shape:
            raise AssertionError(f"both batches need the same shape, got {x1.shape} and {x2.shape}")
        rows, width = x1.shape
        one = x1.expand_dims(1).broadcast_to((rows, rows, width))
        other = x2.expand_dims(0).broadcast_to((rows, rows, width))
        distances = F.sum((one - other) ** 2, axis=2)
        gold = F.eye(rows, ctx=distances.context)
        labels = gold * (1 - self.smoothing_parameter) + (1 - gold) * self.smoothing_parameter / (rows - 1)
        return self.kl_loss(F.log_softmax(-distances, axis=1), labels)
