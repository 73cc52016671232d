"""Simulated devices on demand: failures, streams of another library, work that waits. For tests.

None of this exists for real devices. ``MXRT_SIM_MODE=scheduled`` gives simulated devices no
threads: their work is done by the thread that waits for a result, in an order that
``MXRT_SIM_SEED`` decides. Nothing happens before a thread waits.
"""

from __future__ import annotations

from . import _mxrt
from ._mxrt import SimStream
from .base import MXNetValueError
from .context import Context

__all__ = ["SimStream", "check", "fail", "new_stream", "pending", "reseed"]

_CALLS = ("launch", "copy", "record", "wait", "query", "host_wait", "alloc", "execute")


def fail(ctx: Context, call: str, after: int = 0, code: int = 1) -> None:
    """Makes one call of a simulated device fail, after so many that succeed.

    `call` is one of ``launch``, ``copy``, ``record``, ``wait``, ``query``, ``host_wait``,
    ``alloc``, ``execute``; the last one fails while a kernel runs, which the next call reports.
    `code` is a number of CUDA: 1 is an error of this call alone, 2 says that there is no memory,
    700 and others that everything on the device is lost.
    """
    if call not in _CALLS:
        raise MXNetValueError(f"testing.fail: unknown call {call!r}; known: {', '.join(_CALLS)}")
    _mxrt.sim_fail(ctx._device, _CALLS.index(call), after, code)


def reseed(ctx: Context, seed: int) -> None:
    """Another seed for the simulated devices: with ``MXRT_SIM_MODE=pumped`` or ``scheduled`` it
    decides the order of their work from now on.
    """
    _mxrt.sim_reseed(ctx._device, seed)


def check(ctx: Context) -> tuple[list[str], int]:
    """Missing orderings so far, in words; and the number of checked pairs of uses of one thing.

    Needs ``MXRT_SIM_CHECK=1``, which records every call.

    It follows from the calls alone (the order on a stream, events, what the host waited for), not
    from what happened to be done first.
    """
    return _mxrt.sim_check(ctx._device)


def pending(ctx: Context) -> int:
    """Pieces of work that the simulated devices have not done yet."""
    return _mxrt.sim_pending(ctx._device)


def new_stream(ctx: Context) -> SimStream:
    """A stream of a simulated device as another library would have it, to be given to
    ``__dlpack__(stream=...)``.
    """
    return _mxrt.sim_stream(ctx._device)
