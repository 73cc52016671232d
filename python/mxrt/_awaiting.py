"""Arrays as futures: callbacks, ``await``, cancelling.

Threads of the engine never run Python code. They leave a number when an array is ready, and one
thread, started at the first use, calls what belongs to the number. It is a daemon: what has not
been called when the interpreter ends is not called.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from . import _mxrt
from ._locks import fork_safe_lock
from ._native import start_thread

__all__ = ["Awaitable"]


class _Notifier:
    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[Callable[[Any], object], Any]] = {}
        self._started = False

    def add(self, array: Any, callback: Callable[[Any], object]) -> None:
        with self._lock:
            number = next(self._numbers)
            if not self._started:
                # Raises when the system has no more threads: the next call tries again.
                start_thread(self._run, name="mxrt-notifier")
                self._started = True
            self._waiting[number] = (callback, array)
        _mxrt.notify_when_ready(array, number)

    def _run(self) -> None:
        while True:
            for number in _mxrt.next_notices():
                entry = self._waiting.pop(number, None)
                if entry is not None:
                    self._call(*entry)

    @staticmethod
    def _call(callback: Callable[[Any], object], array: Any) -> None:
        try:
            callback(array)
        except SystemExit:
            pass  # As in any thread that is not the main one.
        except BaseException:
            # A hook that raises ends no other callback.
            with contextlib.suppress(BaseException):
                sys.excepthook(*sys.exc_info())


# Awaits of arrays that were ready, and how many of them pass before one lets the event loop run
# other tasks.
_immediate = itertools.count(1)
_IMMEDIATE = 32

_notifier = _Notifier()


def _after_fork() -> None:
    global _notifier
    _notifier = _Notifier()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


_Array = TypeVar("_Array", bound="Awaitable")


class Awaitable:
    """The part of a future that an array has."""

    __slots__ = ()

    def is_ready(self) -> bool:
        """Whether the value is there, or the failure that took its place: then reading does not
        wait.
        """
        return _mxrt.is_ready(self)  # type: ignore[arg-type]

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """Calls ``fn(array)`` once, when everything that was pushed to write the array is complete
        or has failed.

        It is called in a thread of its own that serves all callbacks one after the other: keep it
        short. Reading the array there does not wait, and raises if the array failed. An exception
        it raises is printed.
        """
        if not callable(fn):
            raise TypeError(f"add_done_callback: expected a function of the array, not {type(fn).__name__}")
        _notifier.add(self, fn)

    def cancel(self) -> None:
        """Gives up what was pushed to write the array and has not started.

        Reading the array raises an error of kind ``cancelled`` then. An operator that computes
        something else as well still runs, and an operator that runs already finishes.
        """
        _mxrt.cancel(self)  # type: ignore[arg-type]

    def __await__(self: _Array) -> Generator[Any, None, _Array]:
        """Waits in a coroutine, without a thread; returns the array, or raises what reading it
        would raise.

        Cancelling the coroutine cancels the array.
        """
        if self.is_ready():
            if next(_immediate) % _IMMEDIATE == 0:
                yield  # A loop that awaits what is ready leaves other tasks no time otherwise.
        else:
            import asyncio

            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise RuntimeError(
                    "awaiting an array needs a running loop of asyncio. Under trio or another library call "
                    "array.wait_to_read() in a thread, such as by trio.to_thread.run_sync(array.wait_to_read)"
                ) from None
            future: asyncio.Future[None] = loop.create_future()

            def arrived(_: Any) -> None:
                try:
                    loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(None))
                except RuntimeError:
                    pass  # The loop was closed meanwhile: no coroutine awaits any more.

            self.add_done_callback(arrived)
            try:
                yield from future.__await__()
            except asyncio.CancelledError:
                self.cancel()
                raise
        self.wait_to_read()  # type: ignore[attr-defined]
        return self
