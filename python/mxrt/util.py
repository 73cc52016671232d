"""Switches of MXNet 1.9 that programs ask for. The numpy interface is not part of this build."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from .base import NO_NUMPY, MXNetNotImplementedError, c_str, check_call, data_dir, py_str

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

_SHAPE = (
    "numpy shape semantics are not part of this build of mxrt. Leave the switch out: mx.nd.array and mx.nd.empty make "
    "arrays without elements, and a scalar is an array of shape (1,)"
)


def is_np_shape() -> bool:
    """Whether zero axes mean a scalar: never in this build."""
    return False


def is_np_array() -> bool:
    """Whether the numpy interface is switched on: never in this build."""
    return False


def set_np_shape(active: Any) -> bool:
    """Accepts only False."""
    if active:
        raise MXNetNotImplementedError(_SHAPE)
    return False


def set_np(shape: bool = True, array: bool = True, dtype: bool = False) -> None:
    """Accepts only False."""
    if shape or array:
        raise MXNetNotImplementedError(NO_NUMPY)


def reset_np() -> None:
    """Switches the numpy interface off, which it always is."""


class _Switch:
    """A ``with`` block that may switch something off, but not on."""

    def __init__(self, active: Any, refusal: str) -> None:
        self._refusal = refusal if active else None

    def __enter__(self) -> None:
        if self._refusal is not None:
            raise MXNetNotImplementedError(self._refusal)

    def __exit__(self, *exception: Any) -> None:
        return None


def np_shape(active: Any = True) -> _Switch:
    """A ``with`` block with numpy shape semantics on or off; entering one with them on is
    refused.
    """
    return _Switch(active, _SHAPE)


def np_array(active: Any = True) -> _Switch:
    """A ``with`` block with the numpy interface on or off; entering one with it on is refused."""
    return _Switch(active, NO_NUMPY)


# Names of these that MXNet's own programs use.
_NumpyShapeScope, _NumpyArrayScope = np_shape, np_array


def _refused(target: _Wrapped, refusal: str) -> _Wrapped:
    """A function that is refused when it is called, or a class whose instances cannot be made."""
    if isinstance(target, type):
        target.__init__ = _refused(target.__init__, refusal)  # type: ignore[misc]
        return target

    @functools.wraps(target)
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise MXNetNotImplementedError(f"{getattr(target, '__qualname__', target)}: {refusal}")

    return refuse  # type: ignore[return-value]  # takes the same arguments


def use_np_shape(func: _Wrapped) -> _Wrapped:
    """Marks a function or class that needs numpy shape semantics: it is refused when it is
    called.
    """
    return _refused(func, _SHAPE)


def use_np_array(func: _Wrapped) -> _Wrapped:
    """Marks a function or class that needs the numpy interface: it is refused when it is called."""
    return _refused(func, NO_NUMPY)


def use_np(func: _Wrapped) -> _Wrapped:
    """Marks a function or class that needs the numpy interface: it is refused when it is called."""
    return _refused(func, NO_NUMPY)


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
