"""Processes that make batches of a data set."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pickle
import random
import signal
import socket
import traceback
import weakref
from _thread import get_native_id
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from time import monotonic
from typing import Any, NoReturn

import numpy as np

from ... import random as mx_random
from ..._system.locks import fork_safe_lock
from ..._system.native import SimpleQueue, socketpair, start_thread
from ..._system.threads import timed_out
from ...base import MXNetDataError
from . import _messages

__all__ = ["ProcessWorkers"]

# Seconds after which a worker looks whether its parent is there still, and the parent whether its
# workers are.
_LOOK = 1.0


class RemoteTraceback(Exception):
    """The traceback of a failure in a worker: the cause of the exception that the loader raises."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


@dataclass
class _Worker:
    process: Any
    connection: socket.socket
    pending: list[int] = field(default_factory=list)


class _Crew:
    """The processes of one object, which another thread may end."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.workers: list[_Worker] = []
        self.ended = False
        self.lock = fork_safe_lock()

    def end(self) -> None:
        """Ends the processes, unless this is a forked child, which they do not belong to."""
        self.ended = True
        # A process that is being started is in the list when the lock is free.
        with self.lock:
            workers, self.workers = self.workers, []
        if os.getpid() == self.owner:
            for worker in workers:
                worker.process.terminate()
            for worker in workers:
                worker.process.join(5)
                if worker.process.is_alive():
                    worker.process.kill()
                    worker.process.join()
        for worker in workers:
            worker.connection.close()


class ProcessWorkers:
    """Forked processes, each with a copy of the data set as it was when they were started.

    Batches are handed out with a number, to the process that has the fewest, and are received in
    any order. All work of this side is done inside the calls; there are no helper threads.
    """

    def __init__(self, count: int, make: Callable[[list[Any]], Any]) -> None:
        self.owner = os.getpid()
        self._make = make
        self.seed = 0
        self._context = multiprocessing.get_context("fork")
        self._crew = _Crew()
        self._requests: dict[int, tuple[int, list[Any]]] = {}
        self._results: dict[int, tuple[bool, Any]] = {}
        weakref.finalize(self, self._crew.end).atexit = False
        _crews.add(self._crew)
        for _ in range(count):
            self._join(None)

    def close(self) -> None:
        """Ends the processes."""
        self._crew.end()

    def submit(self, number: int, positions: list[Any]) -> None:
        """Has a batch made of the samples at these positions."""
        self._requests[number] = (self.seed, positions)
        self._assign(number)

    def result(self, number: int, timeout: float) -> tuple[bool, Any]:
        """Whether the batch was made, and it, or the exception that its making raised.

        MXNetTimeoutError if neither is there after `timeout` seconds. The exception is an
        MXNetDataError if the process that made it died. Another one takes its place.
        """
        deadline = monotonic() + timeout
        while number not in self._results:
            left = deadline - monotonic()
            if left <= 0:
                raise timed_out(number, timeout)
            self._receive(min(left, _LOOK))
        return self._results.pop(number)

    def _assign(self, number: int) -> None:
        workers = list(self._crew.workers)
        if not workers:
            _without_workers()
        worker = min(workers, key=lambda worker: len(worker.pending))
        worker.pending.append(number)
        try:
            _messages.send(worker.connection, _messages.pack((number, self._requests[number])))
        except OSError:
            pass  # It is dead; the next look at it says so.

    def _receive(self, seconds: float) -> None:
        """Waits for a result of any worker, or for the end of one."""
        workers = list(self._crew.workers)
        if not workers:
            _without_workers()
        by_source: dict[Any, _Worker] = {worker.connection: worker for worker in workers}
        try:
            ready = wait(list(by_source), seconds)
        except (OSError, ValueError):
            # The connections were closed meanwhile.
            if self._crew.ended:
                _without_workers()
            raise
        for source in ready:
            worker = by_source[source]
            try:
                number, ok, content = _messages.receive(worker.connection)
            except (EOFError, OSError):
                worker.process.join(_LOOK)
                self._replace(worker)
                continue
            worker.pending.remove(number)
            del self._requests[number]
            self._results[number] = (True, content) if ok else (False, _revived(*content))
        for worker in list(self._crew.workers):
            # The connection of one that died ends; unless another program has inherited it.
            if not worker.process.is_alive() and not wait([worker.connection], 0):
                self._replace(worker)

    def _replace(self, dead: _Worker) -> None:
        """The batch that a dead worker was making failed; another worker makes its others."""
        if dead not in self._crew.workers:
            return
        self._join(dead)
        dead.connection.close()
        for lost in dead.pending[:1]:
            del self._requests[lost]
            self._results[lost] = False, MXNetDataError(_obituary(dead.process, lost))
        for number in dead.pending[1:]:
            self._assign(number)

    def _join(self, dead: _Worker | None) -> None:
        """Starts a process, in the place of one that has died."""
        crew = self._crew
        with crew.lock:
            if not crew.ended and not _waits_for_exit():
                workers = crew.workers
                if dead is None:
                    workers.append(self._start(workers))
                else:
                    workers[workers.index(dead)] = self._start(workers)
                return
        _without_workers()

    def _start(self, workers: list[_Worker]) -> _Worker:
        ours, theirs = socketpair()
        others = [worker.connection for worker in workers if worker.connection.fileno() >= 0]
        arguments = (theirs, [ours, *others], self._make)
        process = self._context.Process(target=_work, args=arguments, name="mxrt-data", daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)


# ---- exit ----------------------------------------------------------------------------------------

_crews: weakref.WeakSet[_Crew] = weakref.WeakSet()
_exits = False


@atexit.register
def _at_exit() -> None:
    """Ends the workers before multiprocessing does: daemon threads would call that an accident."""
    global _exits
    _exits = True
    for crew in list(_crews):
        crew.end()


def _waits_for_exit() -> bool:
    """Whether the process ends without waiting for this thread, which is not its first one."""
    return _exits and get_native_id() != os.getpid()


def _without_workers() -> NoReturn:
    """Holds a thread that the end of the process stops; in another one it is an error."""
    while _waits_for_exit():
        SimpleQueue[None]().get()
    raise MXNetDataError("DataLoader: the process is ending, and its workers have ended; make another iterator")


def _obituary(process: Any, number: int) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "unknown"
        end = f"was killed by signal {-code} ({name})"
        advice = "The system does this where memory is short: use fewer workers or smaller batches"
        if -code in (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS, signal.SIGILL):
            advice = "A library that the data set calls crashed: try num_workers=0 to see where"
    else:
        end, advice = f"ended with status {code}", "Something that the data set calls ended the process"
    return f"DataLoader: worker process {process.pid} {end} while it made batch {number}. {advice}"


def _revived(error: Exception | None, message: str, trace: str) -> Exception:
    """A worker's exception, with its traceback as the cause."""
    revived = MXNetDataError(message) if error is None else error
    revived.__cause__ = RemoteTraceback(trace)
    return revived


# ---- in the worker -------------------------------------------------------------------------------


def _work(connection: socket.socket, others: list[socket.socket], make: Callable[[list[Any]], Any]) -> None:
    # Ctrl-C goes to all processes of a terminal: the parent ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:
        other.close()
    requests: SimpleQueue[Any] = SimpleQueue()
    # Requests are read while a batch is made or sent, so that neither side waits for the other.
    start_thread(_listen, connection, requests, os.getppid(), name="mxrt-data-requests")
    while (request := requests.get()) is not None:
        number, (seed, positions) = request
        _reseed(seed, number)
        message = _outcome(make, number, positions)
        try:
            _messages.send(connection, message)
        except OSError as error:
            # There is no memory to share; or the parent is gone.
            try:
                _messages.send(connection, _failure(number, error))
            except OSError:
                return


def _outcome(make: Callable[[list[Any]], Any], number: int, positions: list[Any]) -> _messages.Packed:
    try:
        return _messages.pack((number, True, make(positions)))
    except Exception as error:
        return _failure(number, error)


def _failure(number: int, error: Exception) -> _messages.Packed:
    text = f"DataLoader: batch {number}: {type(error).__name__}: {error}"
    return _messages.pack((number, False, (error if _travels(error) else None, text, traceback.format_exc())))


def _travels(error: Exception) -> bool:
    """Whether an exception can be pickled and comes back as what it was."""
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False


def _listen(connection: socket.socket, requests: SimpleQueue[Any], parent: int) -> None:
    """Passes requests on until the parent is gone."""
    try:
        while True:
            while not wait([connection], _LOOK):
                # The connection stays open where another program has inherited the parent's side.
                if os.getppid() != parent:
                    return
            requests.put(_messages.receive(connection))
    except (EOFError, OSError):
        pass
    finally:
        requests.put(None)


def _reseed(seed: int, number: int) -> None:
    """Random numbers depend on the batch, not on which of the processes makes it."""
    words = np.random.SeedSequence([seed, number]).generate_state(3)
    random.seed(int(words[0]))
    np.random.seed(int(words[1]))
    mx_random.seed(int(words[2]) & 0x7FFFFFFF)
