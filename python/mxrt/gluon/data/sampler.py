"""Samplers: the order in which a loader takes the samples of a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np

__all__ = ["BatchSampler", "FilterSampler", "IntervalSampler", "RandomSampler", "Sampler", "SequentialSampler"]


class Sampler:
    """Base class: subclasses define ``__iter__``, which yields positions, and ``__len__``."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


def numbered(dataset: Any) -> Iterator[tuple[int, Any]]:
    """Positions and samples in the order of iteration: up to the length, if there is one, or the
    first position that raises IndexError.
    """
    try:
        positions: Iterable[int] = range(len(dataset))
    except (TypeError, NotImplementedError):
        positions = count()
    return zip(positions, dataset, strict=False)


class SequentialSampler(Sampler):
    """The positions `start` to `start + length - 1`, in order."""

    def __init__(self, length: int, start: int = 0) -> None:
        self._length = length
        self._start = start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler):
    """The positions 0 to `length - 1`, shuffled by numpy's global generator in each epoch."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __iter__(self) -> Iterator[Any]:
        order = np.arange(self._length)
        np.random.shuffle(order)
        return iter(order)

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """Positions of the samples for which `fn` is true. All are tested when the sampler is made."""

    def __init__(self, fn: Callable[[Any], Any], dataset: Any) -> None:
        self._fn = fn
        self._dataset = dataset
        self._indices = [i for i, sample in numbered(dataset) if fn(sample)]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class IntervalSampler(Sampler):
    """Every `interval`-th position below `length`; with `rollover` then those from 1, from 2, ...,
    so that each position occurs once.

    ValueError if `interval` is larger than `length`.
    """

    def __init__(self, length: int, interval: int, rollover: bool = True) -> None:
        if not 1 <= interval <= length:
            raise ValueError(f"Interval {interval} must be between 1 and length {length}")
        self._length = length
        self._interval = interval
        self._rollover = rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length if self._rollover else -(-self._length // self._interval)


class BatchSampler(Sampler):
    """Lists of `batch_size` positions of another sampler.

    When the last one is short, ``keep`` returns it, ``discard`` leaves it out, and ``rollover``
    begins the next epoch with its positions.
    """

    def __init__(self, sampler: Any, batch_size: int, last_batch: str = "keep") -> None:
        self._sampler = sampler
        self._batch_size = batch_size
        self._last_batch = last_batch
        self._left_over: list[Any] = []

    def _handling(self) -> str:
        if self._last_batch not in ("keep", "discard", "rollover"):
            raise ValueError(f"last_batch must be one of 'keep', 'discard', or 'rollover', but got {self._last_batch}")
        return self._last_batch

    def __iter__(self) -> Iterator[list[Any]]:
        batch, self._left_over = self._left_over, []
        for position in self._sampler:
            batch.append(position)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if not batch:
            return
        handling = self._handling()
        if handling == "keep":
            yield batch
        elif handling == "rollover":
            self._left_over = batch

    def __len__(self) -> int:
        handling = self._handling()
        if handling == "keep":
            return (len(self._sampler) + self._batch_size - 1) // self._batch_size
        if handling == "discard":
            return len(self._sampler) // self._batch_size
        return (len(self._left_over) + len(self._sampler)) // self._batch_size
