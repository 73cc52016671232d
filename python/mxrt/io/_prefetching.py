"""Batches made ahead: :class:`PrefetchingIter`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .._system.locks import fork_safe_lock
from .._system.threads import ThreadWorkers
from ..base import EntryMismatchError, MXNetError
from .io import DataBatch, DataDesc, DataIter, _BatchHolder

__all__ = ["PrefetchingIter"]


class PrefetchingIter(_BatchHolder):
    """Other iterators, whose next batches are made in threads while the program uses the current
    ones. Several are joined: a batch has the data and labels of all.

    A failure of an iterator is raised by the ``next`` that would have returned that batch. The one
    after it returns the following batch, and ``reset`` begins again.

    Parameters
    ----------
    iters : an iterator, or several
    rename_data, rename_label : for each iterator, a dictionary from old to new names
    """

    def __init__(
        self,
        iters: DataIter | Sequence[DataIter],
        rename_data: Sequence[dict[str, str]] | None = None,
        rename_label: Sequence[dict[str, str]] | None = None,
    ) -> None:
        self.iters: list[Any] = list(iters) if isinstance(iters, (list, tuple)) else [iters]
        if not self.iters:
            raise AssertionError("PrefetchingIter: there are no iterators")
        self.n_iter: int = len(self.iters)
        self.rename_data = rename_data
        self.rename_label = rename_label
        super().__init__(self.provide_data[0][1][0])
        self._lock = fork_safe_lock()
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._number = 0
        self._ended = False
        self._workers = [ThreadWorkers(1, _Next(one)) for one in self.iters]
        self._request()

    def _request(self) -> None:
        for worker in self._workers:
            worker.submit(self._number, [])

    def _results(self) -> list[tuple[bool, Any]]:
        """Waits for the batches that were asked for."""
        if self._owner != os.getpid():
            raise MXNetError(
                "PrefetchingIter: its threads belong to the process that this one was forked from; call reset()"
            )
        results = [worker.result(self._number, None) for worker in self._workers]
        self._number += 1
        return results

    def __del__(self) -> None:
        for worker in getattr(self, "_workers", ()):
            worker.close()

    def _described(self, kind: str, renames: Sequence[dict[str, str]] | None) -> list[Any]:
        described: list[Any] = []
        for i, one in enumerate(self.iters):
            given = getattr(one, kind)
            if renames is not None:
                descs = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in given]
                given = [DataDesc(renames[i].get(d.name, d.name), d.shape, d.dtype, d.layout) for d in descs]
            described += given
        return described

    @property
    def provide_data(self) -> list[Any]:
        """Descriptions of the data of all iterators."""
        return self._described("provide_data", self.rename_data)

    @property
    def provide_label(self) -> list[Any]:
        """Descriptions of the labels of all iterators."""
        return self._described("provide_label", self.rename_label)

    def reset(self) -> None:
        """Begins again, after the batches that are being made."""
        with self._lock:
            if self._owner == os.getpid() and not self._ended:
                self._results()
            for worker in self._workers:
                worker.close()
            self._workers = []
            self._ended = True
            for one in self.iters:
                one.reset()
            self._begin()

    def iter_next(self) -> bool:
        """Goes to the next batch; whether there is one."""
        with self._lock:
            if self._ended:
                return False
            results = self._results()
            ends = [not made and isinstance(batch, StopIteration) for made, batch in results]
            if all(ends):
                self._ended = True
                return False
            self._request()
        for made, batch in results:
            if not made and not isinstance(batch, StopIteration):
                raise batch
        if any(ends):
            raise EntryMismatchError("PrefetchingIter: Number of entry mismatches between iterators: one ended first")
        batches = [batch for _, batch in results]
        if len({batch.pad for batch in batches}) > 1:
            pads = ", ".join(str(batch.pad) for batch in batches)
            raise EntryMismatchError(f"PrefetchingIter: Different pad size in iterators: {pads}")
        self.current_batch = DataBatch(
            [array for batch in batches for array in batch.data],
            [array for batch in batches for array in batch.label or []],
            batches[0].pad,
            batches[0].index,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )
        return True

    def next(self) -> DataBatch:
        """The next batch; StopIteration at the end."""
        if self.iter_next():
            return self._current()
        raise StopIteration


class _Next:
    """Takes the next batch of an iterator: what a thread gets, not the object that owns it."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __call__(self, _: list[Any]) -> Any:
        return self._iterator.next()
