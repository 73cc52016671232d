"""The engine: ``mx.engine``."""

from __future__ import annotations

import operator
from types import TracebackType

from . import _mxrt
from ._values.extents import LARGEST
from .base import MXNetValueError

__all__ = ["bulk", "dump", "set_bulk_size", "set_flush_denormals", "set_type"]


class _Bulk:
    def __init__(self, size: int) -> None:
        self._size = size
        self._old = 0

    def __enter__(self) -> None:
        self._old = set_bulk_size(self._size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        set_bulk_size(self._old)


def set_bulk_size(size: int) -> int:
    """Sets how many small operators of this thread go to the engine as one job; returns the number
    before.

    0, the default, joins none: a small operator whose inputs are ready runs at once in the calling
    thread. Joined operators start when there are enough of them, or when a thread waits for a
    result. Each keeps its own failures. The number belongs to the thread;
    ``MXNET_EXEC_BULK_EXEC_INFERENCE=1`` and ``MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN`` set it for all
    threads. A compiled graph is one operator in any case.
    """
    if not hasattr(size, "__index__") or not 0 <= operator.index(size) <= LARGEST:
        raise MXNetValueError(f"set_bulk_size: expected a whole number from 0 to 2**63 - 1, not {size!r}")
    return _mxrt.set_bulk_size(operator.index(size))


def set_flush_denormals(flush: bool) -> bool:
    """Takes denormal numbers (below 1.2e-38 in float32) for zeros, as inputs and as results of
    operators on the CPU, or computes with them again; returns what was set before.

    Processors compute with denormal numbers up to 100 times slower. The setting is that of the
    process, and ``MXRT_FLUSH_DENORMALS=1`` sets it from the start. Threads of the program compute
    as before outside of operators.

    Raises
    ------
    MXNetNotImplementedError : the processor is neither x86-64 nor AArch64
    """
    return _mxrt.set_flush_denormals(flush)


def bulk(size: int) -> _Bulk:
    """A scope with another bulk size; see :func:`set_bulk_size`.

    >>> with mx.engine.bulk(10):
    ...     for _ in range(100):
    ...         x = x + 1
    """
    return _Bulk(size)


def set_type(name: str) -> None:
    """Chooses the kind of engine before anything uses it: ``NaiveEngine``, ``ThreadedEngine`` or
    ``ThreadedEnginePerDevice``. It goes before the environment variable ``MXNET_ENGINE_TYPE``.

    With ``Async`` after the last two, an operator on a device counts as done when it has been
    enqueued on the device, and its dependants wait on the device. Without it, the device has
    finished each operator before the next one starts.
    """
    _mxrt.set_engine_type(name)


def dump() -> str:
    """Describes what the engine is doing: which operators run, which are queued, which threads wait
    for what, and since when. It works while everything hangs. With ``MXRT_DEBUG=1`` the signal
    ``SIGUSR1`` prints it.
    """
    return _mxrt.dump_engine()
