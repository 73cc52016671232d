"""Blocks that compute as in training or as in inference; gradients do not exist here."""

from __future__ import annotations

from typing import Any, NoReturn

from ._scopes.mode import ModeScope, mode
from .base import no_training

__all__ = [
    "Function",
    "backward",
    "get_symbol",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
    "train_mode",
]


def is_recording() -> bool:
    """Whether the thread is in a block of :func:`record`. Nothing is recorded there."""
    return mode.recording


def is_training() -> bool:
    """Whether the thread computes as in training."""
    return mode.training


def set_recording(is_recording: bool) -> bool:
    """Sets what :func:`is_recording` says, and returns what it said before."""
    before, mode.recording = mode.recording, bool(is_recording)
    return before


def set_training(train_mode: bool) -> bool:
    """Turns the computation of training on or off in this thread; returns the previous state."""
    before, mode.training = mode.training, bool(train_mode)
    return before


def record(train_mode: bool = True) -> ModeScope:
    """Makes a block that computes as in training, or else as in inference.

    Nothing is recorded: :func:`backward` and :func:`grad` raise TrainingNotSupportedError.
    """
    return ModeScope(True, train_mode)


def pause(train_mode: bool = False) -> ModeScope:
    """Makes a block in a block of :func:`record` that does not record."""
    return ModeScope(False, train_mode)


def train_mode() -> ModeScope:
    """Makes a block that computes as in training.

    Dropout drops elements, between the layers of RNN too. BatchNorm takes the statistics of the
    batch and leaves its moving averages unchanged, as MXNet does until ``backward``. A ``Custom``
    operator gets ``is_train=True``. So it is in loops and branches, too.
    """
    return ModeScope(None, True)


def predict_mode() -> ModeScope:
    """Makes a block that computes as in inference."""
    return ModeScope(None, False)


def backward(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: gradients are for training."""
    raise no_training("autograd.backward")


def grad(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: gradients are for training."""
    raise no_training("autograd.grad")


def mark_variables(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: gradients are for training."""
    raise no_training("autograd.mark_variables")


def get_symbol(x: Any) -> NoReturn:
    """Refused: recording is for training, so there is no record of how an array was computed."""
    raise no_training("autograd.get_symbol")


class Function:
    """A function with a gradient of its own: subclasses define ``forward`` and ``backward``.

    Calling an instance runs ``forward``; ``backward`` is never called.
    """

    def __init__(self) -> None:
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *args: Any) -> None:
        """Puts arrays into ``saved_tensors``."""
        self.saved_tensors = args

    def __call__(self, *inputs: Any) -> Any:
        return self.forward(*inputs)

    def forward(self, *inputs: Any) -> Any:
        """Computes the outputs; subclasses define it."""
        raise NotImplementedError

    def backward(self, *output_grads: Any) -> Any:
        """Would compute gradients; subclasses define it."""
        raise NotImplementedError
