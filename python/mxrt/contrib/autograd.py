"""The first form of autograd, which programs import still: recording and gradients are refused."""

from __future__ import annotations

from typing import Any, NoReturn

from .. import autograd as _autograd
from ..base import no_training

__all__ = ["backward", "compute_gradient", "grad", "grad_and_loss", "mark_variables", "set_is_training"]
__all__ += ["test_section", "train_section"]


def set_is_training(is_train: bool) -> bool:
    """Accepts only False."""
    return _autograd.set_training(is_train)


def train_section() -> NoReturn:
    """Refused: recording is for training."""
    raise no_training("contrib.autograd.train_section")


def test_section() -> Any:
    """A scope without recording, as it always is."""
    return _autograd.pause()


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
