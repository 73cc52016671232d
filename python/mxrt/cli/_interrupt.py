"""Ctrl-C ends a command at once, whatever its threads compute."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

from .._system import temporary
from ._errors import INTERRUPTED

__all__ = ["at_end", "at_once", "end_now"]

# What a process runs in whose other threads are gone: nothing is written into the folders while
# they are removed.
_END = f"""
import contextlib, os, shutil, sys
for path in sys.argv[1:]:
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(path)
os._exit({INTERRUPTED})
"""
_ends: list[Callable[[], object]] = []


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """Inside, SIGINT ends the process with status 130 while native code runs, too.

    The handler of Python runs between two instructions of the main thread; here a thread hears of
    the signal itself. A process that ignores SIGINT continues to ignore it.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    # Nothing happens in the main thread: two ends would be in each other's way.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    heard, told = os.pipe()
    os.set_blocking(told, False)
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)

    def listen() -> None:
        with open(heard, "rb", buffering=0) as signals:
            while number := signals.read(1):
                if number[0] == signal.SIGINT:
                    for end in _ends:
                        end()
                    end_now()

    threading.Thread(target=listen, daemon=True, name="mxrt-interrupt").start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(told)


def at_end(end: Callable[[], object]) -> None:
    """Has a function called when Ctrl-C ends the command: it ends what the command started."""
    _ends.append(end)


def end_now() -> NoReturn:
    """Ends the process, whatever its threads do, and removes its temporary folders and files."""
    # A second Ctrl-C waits until they are gone.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    shown = 2
    with contextlib.suppress(OSError):
        # The rest of what other threads are writing comes no more.
        shown = os.dup(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with contextlib.suppress(OSError):
        os.write(shown, b"\ninterrupted\n")
    made = temporary.made()
    if made and sys.executable:
        with contextlib.suppress(OSError):
            os.execv(sys.executable, [sys.executable, "-ISc", _END, *map(str, made)])
    temporary.remove_all()
    os._exit(INTERRUPTED)
