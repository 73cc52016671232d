"""Sentences as batches."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..io import DataBatch, DataDesc, DataIter
from ..ndarray import NDArray, array

__all__ = ["BucketSentenceIter", "encode_sentences"]


def encode_sentences(
    sentences: Sequence[Sequence[str]],
    vocab: dict[str, int] | None = None,
    invalid_label: int = -1,
    invalid_key: str = "\n",
    start_label: int = 0,
    unknown_token: str | None = None,
) -> tuple[list[list[int]], dict[str, int]]:
    """Sentences as numbers of words, and the number of every word.

    Without `vocab` words are numbered from `start_label` on, leaving `invalid_label` out, which is
    the number of `invalid_key`. With it all words must have a number, or `unknown_token` takes the
    place of those that have none.
    """
    fresh = vocab is None
    numbers = {invalid_key: invalid_label} if vocab is None else vocab
    following = start_label

    def number(word: str) -> int:
        nonlocal following
        if word in numbers:
            return numbers[word]
        if not (fresh or unknown_token):
            raise AssertionError(f"Unknown token {word}")
        if following == invalid_label:
            following += 1
        key = unknown_token or word
        numbers[key] = following
        following += 1
        return numbers[key]

    return [[number(word) for word in sentence] for sentence in sentences], numbers


class BucketSentenceIter(DataIter):
    """Batches of sentences of about the same length, for language models: the label of a word is
    the next word.

    A sentence goes to the smallest bucket it fits in and is filled up with `invalid_label`;
    sentences longer than the largest bucket are left out. Without `buckets` every length of which
    there is a batch is one. Batches have the shape (batch size, length), or the other way round
    with ``layout='TN'``, and come in random order.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        batch_size: int,
        buckets: list[int] | None = None,
        invalid_label: int = -1,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
        layout: str = "NT",
    ) -> None:
        super().__init__(batch_size)
        self.major_axis: int = layout.find("N")
        if self.major_axis not in (0, 1):
            raise ValueError(f"Invalid layout {layout}: Must by NT (batch major) or TN (time major)")
        if not buckets:
            counts = np.bincount([len(sentence) for sentence in sentences])
            buckets = [length for length, count in enumerate(counts) if count >= batch_size]
        rows: dict[int, list[Any]] = {length: [] for length in sorted(buckets)}
        discarded = 0
        lengths = list(rows)
        for sentence in sentences:
            place = bisect.bisect_left(lengths, len(sentence))
            if place == len(lengths):
                discarded += 1
                continue
            row = np.full(lengths[place], invalid_label, dtype=dtype)
            row[: len(sentence)] = sentence
            rows[lengths[place]].append(row)
        print(f"WARNING: discarded {discarded} sentences longer than the largest bucket.")
        self.buckets: list[int] = [length for length, found in rows.items() if found]
        self.data: list[np.ndarray[Any, Any]] = [np.asarray(found, dtype=dtype) for found in rows.values() if found]
        self.data_name: str = data_name
        self.label_name: str = label_name
        self.dtype: str = dtype
        self.layout: str = layout
        self.invalid_label: int = invalid_label
        self.default_bucket_key: int = max(self.buckets)
        shape = (batch_size, self.default_bucket_key)
        self.provide_data: list[DataDesc] = [DataDesc(data_name, self._turned(shape), layout=layout)]
        self.provide_label: list[DataDesc] = [DataDesc(label_name, self._turned(shape), layout=layout)]
        self.idx: list[tuple[int, int]] = [
            (bucket, begin)
            for bucket, found in enumerate(self.data)
            for begin in range(0, len(found) - batch_size + 1, batch_size)
        ]
        self.reset()

    def _turned(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape if self.major_axis == 0 else shape[::-1]

    def reset(self) -> None:
        """Begins again, in another random order."""
        self.curr_idx: int = 0
        random.shuffle(self.idx)
        self.nddata: list[NDArray] = []
        self.ndlabel: list[NDArray] = []
        for rows in self.data:
            np.random.shuffle(rows)
            label = np.roll(rows, -1, axis=1)
            label[:, -1] = self.invalid_label
            self.nddata.append(array(rows, dtype=self.dtype))
            self.ndlabel.append(array(label, dtype=self.dtype))

    def next(self) -> DataBatch:
        """The next batch; StopIteration at the end."""
        if self.curr_idx == len(self.idx):
            raise StopIteration
        bucket, begin = self.idx[self.curr_idx]
        self.curr_idx += 1
        data, label = (kind[bucket][begin : begin + self.batch_size] for kind in (self.nddata, self.ndlabel))
        if self.major_axis == 1:
            data, label = data.T, label.T
        return DataBatch(
            [data],
            [label],
            pad=0,
            bucket_key=self.buckets[bucket],
            provide_data=[DataDesc(self.data_name, data.shape, layout=self.layout)],
            provide_label=[DataDesc(self.label_name, label.shape, layout=self.layout)],
        )
