"""The first form of autograd, which programs import still; gradients are refused."""

from __future__ import annotations

from typing import Any, NoReturn

from .. import autograd as _autograd
from .._scopes.mode import ModeScope
from ..base import no_training

__all__ = [
    "TrainingStateScope",
    "backward",
    "compute_gradient",
    "grad",
    "grad_and_loss",
    "mark_variables",
    "set_is_training",
]
__all__ += ["test_section", "train_section"]


def set_is_training(is_train: bool) -> bool:
    """Turns the computation of training on or off in this thread; returns the previous state."""
    before = _autograd.set_training(is_train)
    _autograd.set_recording(is_train)
    return before


class TrainingStateScope(ModeScope):
    """A ``with`` block that computes as in training, or as in inference."""

    def __init__(self, enter_state: bool) -> None:
        super().__init__(enter_state, enter_state)


def train_section() -> TrainingStateScope:
    """Makes a block that computes as in training; see :func:`mxrt.autograd.train_mode`."""
    return TrainingStateScope(True)


def test_section() -> TrainingStateScope:
    """Makes a block that computes as in inference."""
    return TrainingStateScope(False)


def mark_variables(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: gradients are for training."""
    raise no_training("contrib.autograd.mark_variables")


def backward(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: gradients are for training."""
    raise no_training("contrib.autograd.backward")


def compute_gradient(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: gradients are for training."""
    raise no_training("contrib.autograd.compute_gradient")


def grad(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: gradients are for training."""
    raise no_training("contrib.autograd.grad")


def grad_and_loss(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: gradients are for training."""
    raise no_training("contrib.autograd.grad_and_loss")
