"""Awaits and callbacks while other calls go wrong."""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref

import pytest

from support import run_python


def called_back(mx) -> bool:
    """Whether a callback of a new array is called."""
    done = threading.Event()
    (mx.nd.ones(3) + 1).add_done_callback(lambda array: done.set())
    return done.wait(60)


def awaited(mx) -> float:
    async def one() -> float:
        x = mx.nd.ones((300, 300))
        for _ in range(10):
            x = mx.nd.dot(x, x) * (1 / 300)
        return float((await x).asnumpy()[0, 0])

    return asyncio.run(asyncio.wait_for(one(), 60))


def test_arrays_and_callbacks_are_freed_when_they_were_called(mx) -> None:
    """The thread that calls them keeps none while it waits for the next."""

    class Closure:
        pass

    def called() -> list[threading.Event]:
        closure, x = Closure(), mx.nd.ones(3) + 1
        x.add_done_callback(lambda array, kept=closure: None)
        gone = [threading.Event(), threading.Event()]
        for event, kept in zip(gone, (closure, x), strict=True):
            weakref.finalize(kept, event.set)
        return gone

    for _ in range(3):
        assert [event.wait(60) for event in called()] == [True, True]


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_a_callback_and_a_hook_that_raise_end_no_other_await(mx, monkeypatch, error: type[BaseException]) -> None:
    heard: list[type[BaseException]] = []

    def hook(kind, value, trace) -> None:
        heard.append(kind)
        raise error("the hook is broken too")

    def callback(array) -> None:
        raise error("the callback is broken")

    monkeypatch.setattr(sys, "excepthook", hook)
    for _ in range(3):
        mx.nd.ones(3).add_done_callback(callback)
        assert called_back(mx)
    assert round(awaited(mx), 3) == 1
    assert heard == ([] if error is SystemExit else [error] * 3)


REFUSED = """
import asyncio, threading
import mxrt as mx

start = threading.Thread.start

def refused(thread):
    if thread.name == "mxrt-notifier":
        raise RuntimeError("can't start new thread")
    start(thread)

async def one():
    x = mx.nd.ones((300, 300))
    for _ in range(30):
        x = mx.nd.dot(x, x) * (1 / 300)
    return round(float((await x).asnumpy()[0, 0]), 3)

threading.Thread.start = refused
for _ in range(2):
    try:
        mx.nd.ones(3).add_done_callback(print)
    except RuntimeError as error:
        print(error)
threading.Thread.start = start
done = threading.Event()
(mx.nd.ones(3) + 1).add_done_callback(lambda array: done.set())
print(done.wait(60), asyncio.run(asyncio.wait_for(one(), 60)))
"""


def test_a_notifier_that_could_not_start_is_started_by_the_next_await() -> None:
    result = run_python(REFUSED)
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["can't start new thread"] * 2 + ["True 1.0"]


def test_a_loop_that_awaits_what_is_ready_leaves_time_for_other_tasks(mx) -> None:
    ready = mx.nd.ones(3)
    ready.wait_to_read()

    async def main() -> int:
        ticks = awaits = 0

        async def ticker() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(ticker())
        while ticks < 20:
            await ready
            awaits += 1
            assert awaits < 20_000, "other tasks never run"
        task.cancel()
        return awaits

    assert asyncio.run(main()) >= 20
