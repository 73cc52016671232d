"""Gradients do not exist here; the scopes that programs put around inference do."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NoReturn

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


class _Inference:
    """A scope without effect: everything runs in inference mode anyway."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def is_recording() -> bool:
    """Always False."""
    return False


def is_training() -> bool:
    """Always False."""
    return False


def set_recording(is_recording: bool) -> bool:
    """Accepts only False."""
    if is_recording:
        raise no_training("autograd.set_recording(True)")
    return False


def set_training(train_mode: bool) -> bool:
    """Accepts only False."""
    if train_mode:
        raise no_training("autograd.set_training(True)")
    return False


def pause(train_mode: bool = False) -> _Inference:
    """A scope without recording, as it always is."""
    if train_mode:
        raise no_training("autograd.pause(train_mode=True)")
    return _Inference()


def predict_mode() -> _Inference:
    """A scope in inference mode, as it always is."""
    return _Inference()


def record(train_mode: bool = True) -> NoReturn:
    """Refused: recording is for training."""
    raise no_training("autograd.record")


def train_mode() -> NoReturn:
    """Refused: there is no training mode."""
    raise no_training("autograd.train_mode")


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
