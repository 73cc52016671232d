"""Switches of MXNet 1.9 that programs ask for, and small helpers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ._scopes.np_mode import (
    ArrayScope,
    ShapeScope,
    is_np_array,
    is_np_shape,
    reset_np,
    set_np,
    set_np_shape,
    use_np,
    use_np_array,
    use_np_shape,
)
from .base import MXNetNotImplementedError, c_str, check_call, data_dir, py_str

__all__ = [
    "c_str",
    "check_call",
    "data_dir",
    "get_cuda_compute_capability",
    "get_gpu_count",
    "get_gpu_memory",
    "getenv",
    "is_np_array",
    "is_np_shape",
    "makedirs",
    "np_array",
    "np_shape",
    "py_str",
    "reset_np",
    "set_module",
    "set_np",
    "set_np_shape",
    "setenv",
    "use_np",
    "use_np_array",
    "use_np_shape",
]

_Wrapped = TypeVar("_Wrapped", bound=Callable[..., Any])


def np_shape(active: Any = True) -> ShapeScope:
    """A ``with`` block with NumPy's shapes on or off in this thread: ``()`` is that of a scalar,
    and 0 an empty axis.
    """
    return ShapeScope(active)


def np_array(active: Any = True) -> ArrayScope:
    """A ``with`` block with the numpy interface on or off in this thread: gluon makes arrays of
    ``mx.np``.
    """
    return ArrayScope(active)


# Names of these that MXNet's own programs use.
_NumpyShapeScope, _NumpyArrayScope = ShapeScope, ArrayScope


def set_module(module: str | None) -> Callable[[_Wrapped], _Wrapped]:
    """A decorator that sets ``__module__``."""

    def decorate(func: _Wrapped) -> _Wrapped:
        if module is not None:
            func.__module__ = module
        return func

    return decorate


def makedirs(d: str) -> None:
    """Makes a folder and those above it, unless it exists."""
    os.makedirs(os.path.expanduser(d), exist_ok=True)


def get_gpu_count() -> int:
    """How many GPUs there are."""
    from .context import num_gpus

    return num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Free and total memory of a GPU, in bytes."""
    from .context import gpu_memory_info

    return gpu_memory_info(gpu_dev_id)


def get_cuda_compute_capability(ctx: Any) -> NoReturn:
    """Refused: mxrt does not report it. ValueError for a context that is no GPU."""
    if ctx.device_type != "gpu":
        raise ValueError(f"Expecting a gpu context to get cuda compute capability, while received ctx {ctx}")
    raise MXNetNotImplementedError(
        "get_cuda_compute_capability: mxrt does not report it; nvidia-smi --query-gpu=compute_cap --format=csv does"
    )


def getenv(name: str) -> str | None:
    """An environment variable."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Sets an environment variable, or removes it with None. mxrt reads its own once, when it is
    first used.
    """
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
