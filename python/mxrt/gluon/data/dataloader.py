"""Loaders: batches of the samples of a data set, made in the background."""

from __future__ import annotations

import os
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from ..._scopes.np_mode import ArrayScope, ShapeScope, is_np_array, is_np_shape
from ..._system.locks import fork_safe_lock
from ..._system.threads import ThreadWorkers
from ...base import MXNetDataError, MXNetError
from ...context import cpu_pinned
from .._numpy import as_made_here
from ._pools import ForkingPickler, PoolIterator
from ._processes import ProcessWorkers
from .batchify import as_in_context as _as_in_context
from .batchify import default_batchify_fn
from .sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "ForkingPickler", "default_batchify_fn", "default_mp_batchify_fn"]

# Arrays need no preparation to go from process to process.
default_mp_batchify_fn = default_batchify_fn
# Loaders of other packages derive from it.
_MultiWorkerIter = PoolIterator
# Held while workers or batches go from a loader to an iterator, or back.
_handing_over = fork_safe_lock()


class DataLoader:
    """Batches of the samples of a data set.

    A failure in a worker is raised by the ``next`` that would have returned that batch; the batches
    before it are delivered, and the ``next`` after it returns the following batch.

    Parameters
    ----------
    dataset : anything with a length and positions: a :class:`Dataset`, a list, an array
    batch_size, shuffle, sampler, last_batch : how positions are drawn and grouped; see
        :class:`BatchSampler`
    batch_sampler : instead of these, what yields lists of positions
    batchify_fn : makes a batch of a list of samples
    num_workers : how many workers make batches; 0 makes them in ``next``
    pin_memory, pin_device_id : arrays are brought to ``cpu_pinned``
    prefetch : how many batches are made ahead; by default 2 for each worker
    thread_pool : workers are threads. Otherwise they are forked processes, which keep the data set
        as it was at the first iteration and return arrays in shared memory. Random numbers there
        depend on numpy's generator at the start of the iteration and on the batch, not on the
        worker.
    timeout : seconds after which a batch that is not there raises MXNetTimeoutError
    auto_reload : the first batches of the next epoch are made before it begins
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Any = None,
        last_batch: str | None = None,
        batch_sampler: Any = None,
        batchify_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        auto_reload: bool = False,
    ) -> None:
        if timeout <= 0:
            raise AssertionError(f"timeout must be positive, given {timeout}")
        if batch_sampler is None:
            batch_sampler = _batches(dataset, batch_size, shuffle, sampler, last_batch)
        elif batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ValueError(
                "batch_size, shuffle, sampler and last_batch must not be specified if batch_sampler is specified."
            )
        self._dataset = dataset
        self._batch_sampler = batch_sampler
        self._batchify_fn = batchify_fn or default_batchify_fn
        self._num_workers = max(0, num_workers)
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._prefetch = max(0, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._thread_pool = thread_pool
        self._timeout = timeout
        # The numpy interface that workers use, as in MXNet; it belongs to a thread.
        self._modes = (is_np_shape(), is_np_array())
        self._epochs = 0
        # Workers that no iterator uses now; they are made at the first iteration.
        self._idle: ProcessWorkers | None = None
        self._ready: _Epoch | None = None
        self.auto_reload = auto_reload
        if auto_reload:
            self.refresh()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        with _handing_over:
            batches, self._ready = self._ready, None
        # In a forked child the workers belong to the parent.
        return batches if batches is not None and batches.owner == os.getpid() else self._begin()

    def refresh(self) -> None:
        """Begins to make the batches of the next epoch."""
        self._ready = self._begin()

    def clean(self) -> None:
        """Drops the batches that were made ahead for the next epoch."""
        self._ready = None

    def _begin(self) -> _Epoch:
        make = _Make(self._dataset, self._batchify_fn)
        if self._num_workers == 0:
            return _Epoch(self, _Inline(make), 0)
        make_there = _MakeInWorker(make, *self._modes)
        if self._thread_pool:
            return _Epoch(self, ThreadWorkers(self._num_workers, make_there), self._prefetch)
        with _handing_over:
            self._epochs += 1
            seed = self._seed()
            workers, self._idle = self._idle, None
        if workers is None or workers.owner != os.getpid():
            workers = ProcessWorkers(self._num_workers, make_there)
        workers.seed = seed
        return _Epoch(self, workers, self._prefetch)

    def _seed(self) -> int:
        """A number for the random numbers of workers: the same after the same ``np.random.seed``,
        another in each epoch. numpy's generator does not advance.
        """
        _, words, position, *_ = np.random.get_state(legacy=True)
        return zlib.crc32(np.asarray(words).tobytes(), int(position)) ^ self._epochs << 32

    def _finished(self, workers: Any) -> None:
        """An iterator at its end gives its workers back."""
        kept = False
        if isinstance(workers, ProcessWorkers):
            with _handing_over:
                kept = self._idle is None
                if kept:
                    self._idle = workers
        if not kept:
            workers.close()
        if self.auto_reload and self._ready is None:
            self.refresh()


def _batches(dataset: Any, batch_size: int | None, shuffle: bool, sampler: Any, last_batch: str | None) -> BatchSampler:
    if batch_size is None:
        raise ValueError("batch_size must be specified unless batch_sampler is specified")
    if sampler is None:
        sampler = RandomSampler(len(dataset)) if shuffle else SequentialSampler(len(dataset))
    elif shuffle:
        raise ValueError("shuffle must not be specified if sampler is specified")
    return BatchSampler(sampler, batch_size, last_batch or "keep")


class _Make:
    """Makes a batch: what workers get, rather than the loader, which would keep itself alive."""

    def __init__(self, dataset: Any, batchify_fn: Callable[[list[Any]], Any]) -> None:
        self._dataset = dataset
        self._batchify_fn = batchify_fn

    def __call__(self, positions: list[Any]) -> Any:
        return self._batchify_fn([self._dataset[position] for position in positions])


class _MakeInWorker:
    """Makes a batch in a worker, under the numpy interface that was on where its loader was
    made.
    """

    def __init__(self, make: _Make, np_shape: bool, np_array: bool) -> None:
        self._make = make
        self._np_shape = np_shape
        self._np_array = np_array

    def __call__(self, positions: list[Any]) -> Any:
        with ShapeScope(self._np_shape), ArrayScope(self._np_array):
            return self._make(positions)


class _Inline:
    """Makes a batch when it is asked for."""

    def __init__(self, make: _Make) -> None:
        self._make = make
        self._requests: dict[int, list[Any]] = {}

    def submit(self, number: int, positions: list[Any]) -> None:
        self._requests[number] = positions

    def result(self, number: int, timeout: float) -> tuple[bool, Any]:
        try:
            batch = self._make(self._requests[number])
        except Exception as error:
            return False, error
        finally:
            del self._requests[number]
        return True, batch

    def close(self) -> None:
        self._requests.clear()


class _Epoch(Iterator[Any]):
    """The batches of one epoch. Several threads may share it."""

    def __init__(self, loader: DataLoader, workers: Any, ahead: int) -> None:
        self.owner = os.getpid()
        self._loader = weakref.ref(loader)
        self._workers = workers
        self._timeout = loader._timeout
        self._pinned = cpu_pinned(loader._pin_device_id) if loader._pin_memory else None
        self._sampler = loader._batch_sampler
        self._batches: Iterator[list[Any]] | None = iter(self._sampler)
        self._pending: deque[int] = deque()
        self._count = 0
        self._sampler_error: Exception | None = None
        self._ahead = ahead
        self._lock = fork_safe_lock()
        self._fill(ahead)

    def __len__(self) -> int:
        return len(self._sampler)

    def __next__(self) -> Any:
        if self.owner != os.getpid():
            raise MXNetError(
                "DataLoader: this iterator belongs to the process that this one was forked from; make another one by "
                "iter(loader)"
            )
        with self._lock:
            self._fill(self._ahead + 1)
            if not self._pending:
                self._end()
            # Raises what happened to the waiting: the next call waits for this batch again.
            made, batch = self._workers.result(self._pending[0], self._timeout)
            self._pending.popleft()
        if not made:
            _raise(batch)
        return as_made_here(batch if self._pinned is None else _as_in_context(batch, self._pinned))

    next = __next__

    def __del__(self) -> None:
        workers = getattr(self, "_workers", None)
        if workers is not None:
            workers.close()

    def _fill(self, most: int) -> None:
        """Hands out batches until `most` are being made."""
        while len(self._pending) < most and self._batches is not None:
            try:
                positions = next(self._batches)
            except StopIteration:
                self._batches = None
            except Exception as error:
                # Raised after the batches before it.
                self._batches, self._sampler_error = None, error
            else:
                self._workers.submit(self._count, positions)
                self._pending.append(self._count)
                self._count += 1

    def _end(self) -> NoReturn:
        error, self._sampler_error = self._sampler_error, None
        if error is not None:
            _raise(error)
        loader, workers = self._loader(), self._workers
        self._workers = None
        if workers is not None:
            if loader is None:
                workers.close()
            else:
                loader._finished(workers)
        raise StopIteration


def _raise(error: BaseException) -> NoReturn:
    if isinstance(error, StopIteration):  # It would end the caller's loop.
        raise MXNetDataError("DataLoader: the data set raised StopIteration") from error
    raise error
