"""Threads and locks of the operating system, also where gevent or eventlet have put their own into
the place of Python's.

What waits for the engine blocks its thread. A greenlet that does so stops all others, and with them
the one that it waits for.
"""

from __future__ import annotations

import _imp
import _queue
import _socket
import _thread
import importlib.machinery
import threading
import weakref
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import socket

__all__ = ["RLock", "SimpleQueue", "allocate_lock", "get_ident", "local", "patched", "socketpair", "start_thread"]


def _own_copy() -> Any:
    """A module ``_thread`` that nobody else has seen."""
    spec = importlib.machinery.BuiltinImporter.find_spec("_thread")
    assert spec is not None
    module = _imp.create_builtin(spec)
    _imp.exec_builtin(module)
    return module


_own = _own_copy()
RLock: Callable[[], Any] = _own.RLock
allocate_lock: Callable[[], Any] = _own.allocate_lock
get_ident: Callable[[], int] = _own.get_ident
local: Callable[[], Any] = _own._local
SimpleQueue = _queue.SimpleQueue

#: Bytes that a thread must be able to allocate at its start: see the engine's ``process/start.rs``.
_NEEDED = 32 << 10
#: Seconds between two looks at a thread that has not answered.
_LOOK = 0.05


def socketpair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that wait in the system, and have the methods of Python's."""
    return cast("tuple[socket.socket, socket.socket]", _socket.socketpair())


def patched() -> bool:
    """Whether threads that programs start are greenlets."""
    return not isinstance(_thread.start_new_thread, BuiltinFunctionType)


def start_thread(target: Callable[..., object], *args: Any, name: str) -> None:
    """Runs a function in a thread that does not delay the end of the program.

    RuntimeError if the system has no more threads, MemoryError if it has no memory for one. glibc
    ends the process where a thread uses a library for the first time and finds no memory for the
    variables that it has there. So the thread asks for memory before it runs the function.
    """
    found, answered = [False], allocate_lock()
    answered.acquire()

    def run() -> None:
        try:
            bytearray(_NEEDED)
            found[0] = True
        except MemoryError:
            return
        finally:
            answered.release()
        target(*args)

    alive = weakref.ref(run)
    if patched():
        _own.start_new_thread(run, ())
    else:
        threading.Thread(target=run, name=name, daemon=True).start()
    del run
    # A thread that has no memory for a call of `run` drops it and does not answer.
    while not answered.acquire(True, _LOOK) and alive() is not None:
        pass
    if not found[0]:
        raise MemoryError(f"the system has no memory for the thread {name}")
