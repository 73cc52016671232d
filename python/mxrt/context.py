"""Where arrays live and operators run."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "gpu_memory_info", "num_gpus"]


class Context:
    """A device: ``Context('cpu', 0)``. As a ``with`` block it is where new arrays of this thread are made.

    All ``cpu(i)`` share one memory and one pool of threads.
    """

    devtype2str: ClassVar[dict[int, str]] = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    devstr2type: ClassVar[dict[str, int]] = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5}

    __slots__ = ("_device",)
    _device: tuple[str, int]

    def __init__(self, device_type: str | Context, device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            self._device = device_type._device
        else:
            if device_type not in self.devstr2type:
                raise KeyError(device_type)
            self._device = (device_type, int(device_id))

    @property
    def device_type(self) -> str:
        """Kind of device: ``cpu``, ``gpu``, ``cpu_pinned`` or ``cpu_shared``."""
        return self._device[0]

    @property
    def device_typeid(self) -> int:
        """MXNet's number of the kind of device."""
        return self.devstr2type[self._device[0]]

    @property
    def device_id(self) -> int:
        """Number of the device among those of its kind."""
        return self._device[1]

    def __hash__(self) -> int:
        return hash(self._device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and self._device == other._device

    def __repr__(self) -> str:
        return f"{self._device[0]}({self._device[1]})"

    def __enter__(self) -> Context:
        _scope.stack.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _scope.stack.pop()

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, self._device

    def empty_cache(self) -> None:
        """Accepted for compatibility: memory is given back to the system when it is not needed."""

    @staticmethod
    def default_ctx() -> Context:
        """The context of this thread."""
        return current_context()


class _Scope(threading.local):
    def __init__(self) -> None:
        self.stack = [Context("cpu", 0)]


_scope = _Scope()


def current_context() -> Context:
    """Where this thread makes arrays: ``cpu(0)`` outside of any ``with`` block."""
    return _scope.stack[-1]


def cpu(device_id: int = 0) -> Context:
    """A CPU context. The number makes no difference to where the work is done."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Page-locked host memory; here the same as ``cpu``."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """A GPU context. It can be named, but this build of mxrt makes no arrays there."""
    return Context("gpu", device_id)


def num_gpus() -> int:
    """How many GPUs this build of mxrt can use: none."""
    return 0


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Free and total memory of a GPU."""
    from .base import MXNetDeviceError

    raise MXNetDeviceError(f"gpu({device_id}) is not available: this build of mxrt computes on the CPU only")
