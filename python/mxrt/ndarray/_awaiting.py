"""Arrays as futures: callbacks, ``await``, cancelling.

Threads of the engine never run Python code. They leave a number when an array is ready, and one
thread, started at the first use, calls what belongs to the number. It is a daemon: what has not
been called when the interpreter ends is not called.

Where gevent or eventlet replace threads, callbacks run in a greenlet of the thread that asked for
them: locks and events of these libraries belong to one thread.
"""

from __future__ import annotations

import _thread
import collections
import itertools
import os
import sys
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from .. import _mxrt
from .._system.locks import fork_safe_lock
from .._system.native import local, patched, start_thread

__all__ = ["Awaitable"]


_Callback = Callable[[Any], object]


#: Seconds until what found no memory is tried again.
_PAUSE = 0.01


def _call(callback: _Callback, array: Any) -> None:
    try:
        callback(array)
    except SystemExit:
        pass  # As in any thread that is not the main one.
    except BaseException:
        try:
            sys.excepthook(*sys.exc_info())
        except BaseException:
            pass  # A hook that raises ends no other callback.


def _call_of_mxrt(callback: _Callback, array: Any) -> None:
    callback(array)


class _Relay:
    """Calls callbacks in a greenlet of one thread. Only `hand` is called by another thread.

    The greenlet looks for them by sleeping, which every library that replaces threads replaces as
    well, and ends when no callback is due, since a greenlet that waits keeps its loop alive.
    """

    SHORTEST, LONGEST = 0.0002, 0.005

    def __init__(self) -> None:
        self._process = os.getpid()
        self._ready: collections.deque[tuple[_Callback, Any]] = collections.deque()
        self._due = 0

    def expect(self) -> None:
        """Counts a callback that will be handed over."""
        self._due += 1
        if self._due == 1:
            _thread.start_new_thread(self._run, ())

    def hand(self, callback: _Callback, array: Any) -> None:
        """Hands over a callback whose array is ready."""
        self._ready.append((callback, array))

    def _run(self) -> None:
        pause = self.SHORTEST
        # No array becomes ready in a forked child, which has a copy of this greenlet.
        while self._due and self._process == os.getpid():
            if self._ready:
                _call(*self._ready.popleft())
                self._due -= 1
                pause = self.SHORTEST
            else:
                time.sleep(pause)
                pause = min(2 * pause, self.LONGEST)


class _Notifier:
    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[Callable[[_Callback, Any], None], _Callback, Any]] = {}
        self._started = False
        # Numbers of arrays that are ready, the next one last.
        self._due: list[int] = []
        self._of_thread = local()

    def add(self, array: Any, callback: _Callback) -> None:
        """Has a function called in the thread of this object, whose locks are the system's. One
        that raises MemoryError is called again, for who waits for it would wait forever.
        """
        self._add(array, callback, _call_of_mxrt)

    def add_of_user(self, array: Any, callback: _Callback) -> None:
        """Has a function called where its locks and events work."""
        if not patched():
            return self._add(array, callback, _call)
        relay: _Relay | None = getattr(self._of_thread, "relay", None)
        if relay is None:
            relay = self._of_thread.relay = _Relay()
        self._add(array, callback, relay.hand)
        return relay.expect()

    def _add(self, array: Any, callback: _Callback, call: Callable[[_Callback, Any], None]) -> None:
        with self._lock:
            number = next(self._numbers)
            if not self._started:
                # Raises when the system has no more threads: the next call tries again.
                start_thread(self._run, name="mxrt-notifier")
                self._started = True
            self._waiting[number] = (call, callback, array)
        try:
            _mxrt.notify_when_ready(array, number)
        except BaseException:
            self._waiting.pop(number, None)
            raise

    def _run(self) -> None:
        while True:
            try:
                self._serve()
            except MemoryError:
                # Without this thread every callback and coroutine would wait forever.
                try:
                    time.sleep(_PAUSE)
                except MemoryError:
                    pass

    def _serve(self) -> None:
        while True:
            if not self._due:
                self._due = _mxrt.next_notices()
                self._due.reverse()
            self._tell(self._due[-1])
            self._due.pop()

    def _tell(self, number: int) -> None:
        # A function of its own: this thread waits between notices, and its locals would keep array
        # and callback of the last one.
        entry = self._waiting.get(number)
        if entry is not None:
            call, callback, array = entry
            call(callback, array)
            self._waiting.pop(number, None)


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
        short. Where gevent or eventlet replace threads, it is called in a greenlet of the thread
        that called this method. Reading the array there does not wait, and raises if the array
        failed. An exception it raises is printed.
        """
        if not callable(fn):
            raise TypeError(f"add_done_callback: expected a function of the array, not {type(fn).__name__}")
        _notifier.add_of_user(self, fn)

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

            _notifier.add(self, arrived)
            try:
                yield from future.__await__()
            except asyncio.CancelledError:
                self.cancel()
                raise
        self.wait_to_read()  # type: ignore[attr-defined]
        return self
