"""MXNet's trainer. It can be constructed, and raises when it would train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from ..base import no_training
from .parameter import Parameter

__all__ = ["Trainer"]


class Trainer:
    """A trainer that does not train: it keeps its arguments, and every method that would train
    raises.

    Parameters
    ----------
    params : parameters, as a list or by name
    optimizer : name of an optimizer, or one
    optimizer_params : its arguments
    """

    def __init__(
        self,
        params: Any,
        optimizer: Any,
        optimizer_params: Mapping[str, Any] | None = None,
        kvstore: Any = "device",
        compression_params: Mapping[str, Any] | None = None,
        update_on_kvstore: bool | None = None,
    ) -> None:
        listed = list(params.values()) if hasattr(params, "values") else params
        if not isinstance(listed, (list, tuple)):
            raise ValueError(f"First argument must be a list or dict of Parameters, got {type(params)}.")
        for parameter in listed:
            if not isinstance(parameter, Parameter):
                raise ValueError(f"First argument must be a list or dict of Parameters, got list of {type(parameter)}.")
        self._params = list(listed)
        self._optimizer = optimizer
        self._optimizer_params = dict(optimizer_params or {})

    @property
    def optimizer(self) -> Any:
        """The optimizer it was given."""
        return self._optimizer

    @property
    def learning_rate(self) -> NoReturn:
        """Refused: nothing is trained."""
        raise no_training("Trainer.learning_rate")

    def set_learning_rate(self, lr: float) -> NoReturn:
        """Refused: nothing is trained."""
        raise no_training("Trainer.set_learning_rate")

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> NoReturn:
        """Refused: nothing is trained."""
        raise no_training("Trainer.step")

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> NoReturn:
        """Refused: nothing is trained."""
        raise no_training("Trainer.update")

    def allreduce_grads(self) -> NoReturn:
        """Refused: there are no gradients."""
        raise no_training("Trainer.allreduce_grads")

    def save_states(self, fname: str) -> NoReturn:
        """Refused: nothing is trained."""
        raise no_training("Trainer.save_states")

    def load_states(self, fname: str) -> NoReturn:
        """Refused: nothing is trained."""
        raise no_training("Trainer.load_states")
