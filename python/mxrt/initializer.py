"""First values of parameters: ``mx.init``. Models are loaded; these are for tests and experiments."""

from __future__ import annotations

import json
from typing import Any

from . import _mxrt
from .base import MXNetNotImplementedError
from .ndarray import NDArray

__all__ = ["Constant", "Initializer", "Normal", "One", "Uniform", "Zero", "create"]

# Parameters that have the same first value whatever the initializer is.
_FIXED = {
    "bias": 0.0,
    "gamma": 1.0,
    "beta": 0.0,
    "running_mean": 0.0,
    "running_var": 1.0,
    "moving_mean": 0.0,
    "moving_var": 1.0,
    "moving_avg": 0.0,
    "min": 0.0,
    "max": 0.0,
}


class Initializer:
    """Fills arrays by the name of their parameter."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def dumps(self) -> str:
        """Name and arguments as JSON, as symbol files hold them."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, desc: str, arr: NDArray) -> None:
        for ending, value in _FIXED.items():
            if desc.endswith(ending):
                arr[:] = value
                return
        self._init_weight(desc, arr)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _init_weight")


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = self.value


class Zero(Constant):
    """Zeros."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self._kwargs = {}


class One(Constant):
    """Ones."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self._kwargs = {}


class Uniform(Initializer):
    """Evenly distributed within ``[-scale, scale]``."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _mxrt.invoke("_random_uniform", (), {"low": -self.scale, "high": self.scale, "shape": arr.shape}, arr)


class Normal(Initializer):
    """Normally distributed with deviation `sigma`."""

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _mxrt.invoke("_random_normal", (), {"loc": 0, "scale": self.sigma, "shape": arr.shape}, arr)


_BY_NAME: dict[str, type[Initializer]] = {
    "zeros": Zero,
    "zero": Zero,
    "ones": One,
    "one": One,
    "uniform": Uniform,
    "normal": Normal,
    "constant": Constant,
}


def create(init: Any) -> Any:
    """An initializer, given as itself, by name, or as ``dumps`` wrote it."""
    if not isinstance(init, str):
        return init
    name, kwargs = (json.loads(init)) if init.startswith("[") else (init, {})
    found = _BY_NAME.get(name.lower())
    if found is None:
        raise MXNetNotImplementedError(
            f"the initializer '{name}' is not part of this build of mxrt; known: {', '.join(sorted(_BY_NAME))}"
        )
    return found(**kwargs)
