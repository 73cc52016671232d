"""Arrays and batches through the pools of ``multiprocessing``, for loaders of other packages.

Importing this registers :class:`NDArray` with ``multiprocessing``: its queues, pipes and pools pass
the elements of arrays in shared memory.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from multiprocessing import context, reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from ...context import cpu_pinned
from ...ndarray import NDArray, from_numpy
from ._messages import read_shared, shared_file
from .batchify import as_in_context

__all__ = ["ForkingPickler", "PoolIterator"]


def _rebuild(file: Any, shape: tuple[int, ...], dtype: Any) -> NDArray:
    descriptor = file.detach()
    try:
        memory = read_shared(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
    return from_numpy(np.frombuffer(memory, dtype=dtype, count=int(np.prod(shape, dtype=np.int64))).reshape(shape))


def _reduce(array: NDArray) -> Any:
    values = np.ascontiguousarray(array.asnumpy())
    if values.size == 0 or context.get_spawning_popen() is not None:
        return from_numpy, (values, False)
    file = shared_file([values.data.cast("B")])
    try:
        return _rebuild, (reduction.DupFd(file), array.shape, values.dtype)
    finally:
        os.close(file)


ForkingPickler.register(NDArray, _reduce)


class PoolIterator(Iterator[Any]):
    """The batches of one epoch, made by ``apply_async`` of a pool: MXNet's ``_MultiWorkerIter``,
    which other packages derive from.
    """

    def __init__(
        self,
        worker_pool: Any,
        batchify_fn: Any,
        batch_sampler: Any,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        worker_fn: Any = None,
        prefetch: int = 0,
        dataset: Any = None,
        data_loader: Any = None,
        timeout: float = 120,
    ) -> None:
        if worker_fn is None:
            raise TypeError("worker_fn is missing: the function that the pool applies to positions and batchify_fn")
        self._worker_pool = worker_pool
        self._batchify_fn = batchify_fn
        self._batch_sampler = batch_sampler
        self._data_buffer: dict[int, Any] = {}
        self._rcvd_idx = 0
        self._sent_idx = 0
        self._iter = iter(batch_sampler)
        self._worker_fn = worker_fn
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._dataset = dataset
        self._data_loader = data_loader
        self._timeout = timeout
        for _ in range(prefetch):
            self._push_next()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def _push_next(self) -> None:
        """Has the next batch made."""
        positions = next(self._iter, None)
        if positions is None:
            return
        arguments = (positions, self._batchify_fn, self._dataset)
        self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(self._worker_fn, arguments)
        self._sent_idx += 1

    def __next__(self) -> Any:
        self._push_next()
        if self._rcvd_idx == self._sent_idx:
            raise StopIteration
        result = self._data_buffer.pop(self._rcvd_idx)
        self._rcvd_idx += 1
        batch = result.get(self._timeout)
        if self._dataset is None:
            batch = pickle.loads(batch)
        return as_in_context(batch, cpu_pinned(self._pin_device_id)) if self._pin_memory else batch

    next = __next__
