"""Batches of an iterator, the next of which may be read while the current one is computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..base import MXNetValueError

__all__ = ["ReadingAhead", "checked_pad"]


def checked_pad(batch: Any) -> int:
    """How many rows only fill a batch up; MXNetValueError if these are all."""
    pad = int(getattr(batch, "pad", None) or 0)
    rows = batch.data[0].shape[0] if getattr(batch, "data", None) else None
    if rows is not None and not 0 <= pad < rows:
        raise MXNetValueError(
            f"the iterator says pad={pad} for a batch of {rows} rows, so that there would be no result. pad is the "
            "number of rows at the end that only fill a batch up: 0 for a full one"
        )
    return pad


class ReadingAhead:
    """The batches of an iterator, in order.

    ``read_ahead`` asks the iterator for the next batch already. What that raises is raised when the
    batch is asked for. It does nothing for the first batches, nor where an iterator hands out the
    same arrays again, whose values a later batch overwrites.
    """

    def __init__(self, source: Iterable[Any]) -> None:
        self._source = iter(source)
        self._last: Any = None
        # Whether each batch has arrays of its own: known once two have been read.
        self._apart: bool | None = None
        # A batch that was read ahead, or what reading it raised.
        self._ahead: tuple[Any, Exception | None] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._ahead is None:
            batch = next(self._source)
            self._compare(batch)
            return batch
        (batch, error), self._ahead = self._ahead, None
        if error is not None:
            raise error
        return batch

    def _compare(self, batch: Any) -> None:
        if self._apart is None:
            if self._last is not None:
                self._apart = self._last is not batch and not _arrays(self._last) & _arrays(batch)
            self._last = batch if self._apart is None and _arrays(batch) else None

    def read_ahead(self) -> None:
        """Reads the next batch if that changes nothing for the current one."""
        if self._apart and self._ahead is None:
            try:
                self._ahead = (next(self._source), None)
            except Exception as error:  # StopIteration, too
                self._ahead = (None, error)


def _arrays(batch: Any) -> set[int]:
    """The identities of a batch's arrays; none for what is not a batch."""
    data, label = getattr(batch, "data", None), getattr(batch, "label", None)
    return {id(array) for part in (data, label) if isinstance(part, (list, tuple)) for array in part}
