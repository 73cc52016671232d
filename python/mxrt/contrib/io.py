"""A data iterator over a gluon DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..io import DataDesc, DataIter
from ..ndarray import NDArray, concatenate

__all__ = ["DataLoaderIter"]


class DataLoaderIter(DataIter):
    """Hands out what a loader yields, pairs of data and label, as batches for a Module.

    A last batch that is smaller is filled up with copies of its first rows; ``getpad`` says how
    many.
    """

    def __init__(
        self, loader: Any, data_name: str = "data", label_name: str = "softmax_label", dtype: Any = "float32"
    ) -> None:
        data, label = next(iter(loader))
        super().__init__(data.shape[0])
        self._loader = loader
        self._iter: Iterator[Any] = iter(loader)
        self._current_batch: tuple[NDArray, NDArray] | None = None
        self._names = (data_name, label_name)
        self.dtype = dtype
        self.provide_data: list[DataDesc] = [DataDesc(data_name, data.shape, dtype)]
        self.provide_label: list[DataDesc] = [DataDesc(label_name, label.shape, dtype)]

    def reset(self) -> None:
        """Begins again."""
        self._iter = iter(self._loader)

    def iter_next(self) -> bool:
        """Goes to the next batch; whether there is one."""
        self._current_batch = next(self._iter, None)
        return self._current_batch is not None

    def _filled(self, place: int) -> list[NDArray]:
        assert self._current_batch is not None, "iter_next comes first"
        array = self._current_batch[place].astype(self.dtype, copy=False)
        parts, rows = [array], array.shape[0]
        while rows < self.batch_size:
            more = array[: min(array.shape[0], self.batch_size - rows)]
            parts.append(more)
            rows += more.shape[0]
        return [concatenate(parts) if len(parts) > 1 else array]

    def getdata(self) -> list[NDArray]:
        """Data of the current batch."""
        return self._filled(0)

    def getlabel(self) -> list[NDArray]:
        """Labels of the current batch."""
        return self._filled(1)

    def getpad(self) -> int:
        """How many samples of the current batch only fill it up."""
        assert self._current_batch is not None, "iter_next comes first"
        return self.batch_size - int(self._current_batch[0].shape[0])

    def getindex(self) -> None:
        """Numbers of the samples: not known."""
        return
