"""Threads that make batches ahead."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from ..base import MXNetTimeoutError
from .native import patched, start_thread

__all__ = ["ThreadWorkers", "timed_out"]

_Make = Callable[[list[Any]], Any]
_Requests = queue.SimpleQueue[tuple[Future[Any], list[Any]] | None]


class ThreadWorkers:
    """Threads that make batches until they are closed. They do not delay the end of the program."""

    def __init__(self, count: int, make: _Make) -> None:
        self._requests: _Requests = queue.SimpleQueue()
        self._futures: dict[int, Future[Any]] = {}
        self._count = count
        try:
            for i in range(count):
                _start(self._requests, make, f"mxrt-data-{i}")
        except BaseException:
            self.close()
            raise

    def submit(self, number: int, positions: list[Any]) -> None:
        """Has a batch made of the samples at these positions."""
        future: Future[Any] = Future()
        self._futures[number] = future
        self._requests.put((future, positions))

    def result(self, number: int, timeout: float | None) -> tuple[bool, Any]:
        """Whether the batch was made, and it, or the exception that its making raised.

        MXNetTimeoutError if neither is there after `timeout` seconds.
        """
        future = self._futures[number]
        if not wait([future], timeout).done:
            assert timeout is not None
            raise timed_out(number, timeout)
        del self._futures[number]
        error = future.exception()
        return (True, future.result()) if error is None else (False, error)

    def close(self) -> None:
        """Ends the threads after the batches that they are making."""
        for future in list(self._futures.values()):
            future.cancel()
        self._futures.clear()
        for _ in range(self._count):
            self._requests.put(None)


def timed_out(number: int, timeout: float) -> MXNetTimeoutError:
    """The error for a batch that is not there in time."""
    return MXNetTimeoutError(
        f"DataLoader: batch {number} was not made within {timeout} seconds. Make the data set's transforms faster, or "
        "set a longer timeout"
    )


def _start(requests: _Requests, make: _Make, name: str) -> None:
    if patched():
        # A greenlet, for which there is the memory of its thread.
        threading.Thread(target=_work, args=(requests, make), name=name, daemon=True).start()
    else:
        start_thread(_work, requests, make, name=name)


def _work(requests: _Requests, make: _Make) -> None:
    while (request := requests.get()) is not None:
        future, positions = request
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(make(positions))
        except BaseException as error:
            future.set_exception(error)
        del request, future
