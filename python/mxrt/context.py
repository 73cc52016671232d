"""Contexts: the devices that hold arrays and run operators."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, ClassVar

from . import _mxrt
from ._output.html import Figures
from ._scopes.scope import Scope, deprecated
from .base import MXNetTypeError, MXNetValueError

_MOST_BYTES = 2**64 - 1

__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "gpu_memory_info", "num_gpus", "sim"]


class _ContextType(type):
    """Gives ``Context`` the property ``default_ctx``."""

    default_ctx: Any = deprecated(
        lambda: Context._default_ctx, "Context.default_ctx", "Use current_context() or a with block."
    )


def _number_of_device(number: Any) -> int:
    found = int(number)
    if abs(found) >= 2**31:
        raise MXNetValueError(f"Context: there is no device_id {number}: it has 32 bits")
    return found


class Context(metaclass=_ContextType):
    """A device: ``Context('cpu', 0)``. As a ``with`` block it is where new arrays of this thread
    are made.

    All ``cpu(i)`` share one memory and one pool of threads. Arrays on a device are stored in its
    memory; an operator runs on the device of its inputs.
    """

    devstr2type: ClassVar[dict[str, int]] = {"cpu": 1, "cpu_pinned": 3, "cpu_shared": 5, **dict(_mxrt.device_kinds())}
    devtype2str: ClassVar[dict[int, str]] = {number: name for name, number in devstr2type.items()}

    _device: tuple[str, int]
    _default_ctx: ClassVar[Scope]

    def __init__(self, device_type: str | Context, device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            self._device = device_type._device
        else:
            if device_type not in self.devstr2type:
                from .base import MXNetKeyError

                known = ", ".join(self.devstr2type)
                raise MXNetKeyError(f"Context: there is no kind of device {device_type!r}; known: {known}")
            self._device = (device_type, _number_of_device(device_id))

    @property
    def device_type(self) -> str:
        """Kind of device: ``cpu``, ``cpu_pinned``, ``cpu_shared``, ``gpu`` or ``sim``."""
        return self._device[0]

    @property
    def device_typeid(self) -> int:
        """MXNet's number of the kind of device."""
        return self.devstr2type[self._device[0]]

    @device_typeid.setter
    def device_typeid(self, number: int) -> None:
        self._device = (self.devtype2str[number], self._device[1])

    @property
    def device_id(self) -> int:
        """Number of the device among those of its kind."""
        return self._device[1]

    @device_id.setter
    def device_id(self, number: int) -> None:
        self._device = (self._device[0], _number_of_device(number))

    @property
    def default_ctx(self) -> Any:
        """The current context, also as ``Context.default_ctx``. Deprecated: use
        ``current_context``.
        """
        return _ContextType.default_ctx.fget(Context)

    @default_ctx.setter
    def default_ctx(self, context: Context) -> None:
        _ContextType.default_ctx.fset(Context, context)

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

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores a context that MXNet pickled."""
        self._device = (self.devtype2str[state["device_typeid"]], state["device_id"])

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, self._device

    def _is_host(self) -> bool:
        return self._device[0].startswith("cpu")

    def empty_cache(self) -> None:
        """Gives memory that no array uses back to the device. The host does that by itself."""
        if not self._is_host():
            _mxrt.trim_device(self._device)

    def memory_info(self) -> dict[str, Any]:
        """Memory of the device in bytes: ``total``, ``free`` for arrays, ``in_use`` by them,
        ``cached`` for the next ones, the ``peak`` of what was in use, and the ``limit`` if there
        is one. ``total`` and ``free`` of the host are None.
        """
        if self._is_host():
            found = _mxrt.info()
            names = ("in_use", "cached", "peak", "limit")
            return Figures({"total": None, "free": None, **{name: found[f"memory_{name}"] for name in names}})
        return Figures(_mxrt.device_stats(self._device))

    def set_memory_limit(self, limit: int | None) -> None:
        """Bounds the memory of arrays on the device, in bytes; None: its size is the bound.

        The operator that would need more fails with ``mx.base.MXNetMemoryError``; others continue.
        """
        limit = checked_limit(limit, "set_memory_limit: limit", "bytes")
        if self._is_host():
            _mxrt.set_memory_limit(limit)
        else:
            _mxrt.set_device_limit(self._device, limit)


def checked_limit(limit: Any, argument: str, unit: str) -> int | None:
    """A number of such units, or None; the errors name the argument."""
    from .base import MXNetTypeError, MXNetValueError

    wrong = f"{argument}={limit!r} ({type(limit).__name__}): expected a whole number of {unit} from 0 to "
    wrong += f"{_MOST_BYTES}, or None for no bound"
    if limit is None:
        return None
    if isinstance(limit, bool) or not hasattr(limit, "__index__"):
        raise MXNetTypeError(wrong)
    number = operator.index(limit)
    if not 0 <= number <= _MOST_BYTES:
        raise MXNetValueError(wrong)
    return number


_scope = Scope(lambda: Context("cpu", 0))
Context._default_ctx = _scope


def checked_context(value: Any, argument: str = "ctx") -> Context:
    """The context itself; MXNetTypeError (a TypeError) for anything else."""
    if isinstance(value, Context):
        return value
    known = isinstance(value, str) and value in Context.devstr2type
    instead = f"mx.{value}()" if known else "a context such as mx.cpu() or mx.gpu(0)"
    raise MXNetTypeError(f"{argument}: expected a Context, got {value!r}: pass {instead}")


def contexts_of(ctx: Any, argument: str = "ctx") -> list[Context]:
    """A list of contexts, given as one, as several, or as None for the current one."""
    if ctx is None:
        return [current_context()]
    several = ctx if isinstance(ctx, Iterable) and not isinstance(ctx, str) else [ctx]
    return [checked_context(one, argument) for one in several]


def current_context() -> Context:
    """The context in which this thread makes arrays: ``cpu(0)`` outside of any ``with`` block."""
    found: Context = _scope.stack[-1]
    return found


def cpu(device_id: int = 0) -> Context:
    """A CPU context. The number makes no difference to where the work is done."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Page-locked host memory; here the same as ``cpu``."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """A GPU context. An operator without a kernel for GPUs raises
    ``mx.base.MXNetNotImplementedError``, unless ``hybridize(fallback=True)`` runs it on the CPU.

    ``MXRT_SIM_GPUS=2`` simulates two GPUs, which run all operators on the CPU. Without a GPU the
    first array raises ``mx.base.MXNetDeviceError``, which says why; so does ``mxrt doctor``.
    """
    return Context("gpu", device_id)


def sim(device_id: int = 0) -> Context:
    """A simulated device: it computes on the CPU what the CPU would, but in its own memory, later,
    and in any order that the dependencies allow. For testing programs that are meant for GPUs.

    There are two; ``MXRT_SIM_DEVICES`` changes that.
    """
    return Context("sim", device_id)


def num_gpus() -> int:
    """How many GPUs there are; 0 without a driver. Opens the CUDA driver, but uses no GPU.
    ``MXRT_SIM_GPUS`` simulates some.

    A process may fork after this, but its children cannot use GPUs then.
    """
    return _mxrt.device_count("gpu")


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Free and total memory of a GPU, in bytes. Free is what arrays can still have: memory that
    neither they nor other processes use, within the limit.
    """
    found = gpu(device_id).memory_info()
    return found["free"], found["total"]
