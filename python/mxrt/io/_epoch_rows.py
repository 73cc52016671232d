"""The order of rows in the epochs of ``NDArrayIter``, and the rows of each batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._values.dtypes import as_float32
from ..base import MXNetValueError
from ..ndarray import NDArray
from ._csr_rows import CsrRows
from ._named_arrays import _numbers, _picked, _whole

__all__ = ["EpochRows"]


class EpochRows:
    """Rows of arrays in the order of an epoch, which a cursor goes through."""

    batch_size: int
    cursor: int
    idx: np.ndarray[Any, Any]
    last_batch_handle: str
    num_data: int
    shuffle: bool
    _values: list[tuple[str, Any]]
    _labels: list[tuple[str, Any]]
    _axis: int
    _left_over: np.ndarray[Any, Any] | None
    _order: np.ndarray[Any, Any]

    def _start(self) -> None:
        if self.shuffle:
            np.random.shuffle(self.idx)
            self._order = self._order[self.idx]
            # As in MXNet, which makes arrays of the shuffled rows without their types.
            self._values, self._labels = _floats(self._values), _floats(self._labels)
        self.cursor = -self.batch_size

    def _ordered(self, arrays: list[tuple[str, Any]]) -> list[tuple[str, NDArray]]:
        if not self.shuffle:
            return [(name, _whole(values)) for name, values in arrays]
        return [(name, _picked(values, self._order, self._axis)) for name, values in arrays]

    def _in_first_order(self, given: Any) -> list[tuple[str, Any]]:
        arrays = _numbers(given)
        if self.shuffle:
            back = np.argsort(self._order)
            return [
                (name, values[back] if self._axis == 0 else values.take(back, self._axis)) for name, values in arrays
            ]
        return arrays

    def _rows(self) -> np.ndarray[Any, Any]:
        """The rows of the batch at the cursor, which programs may move."""
        if self.cursor <= -self.batch_size:
            raise MXNetValueError("NDArrayIter: there is no current batch; call next() first")
        if self.cursor >= self.num_data:
            raise AssertionError("DataIter needs reset.")
        order = self._order[: self.num_data]
        rows = order[max(self.cursor, 0) : self.cursor + self.batch_size]
        if self.cursor < 0 and self.last_batch_handle == "roll_over":
            if self._left_over is None:
                raise AssertionError("next epoch should have cached data")
            rows = np.concatenate([self._left_over, rows])
        missing = self.batch_size - len(rows)
        if missing > 0 and self.last_batch_handle == "pad":
            return np.concatenate([rows, np.resize(order, missing)])
        return rows

    def _arrays(self, arrays: list[tuple[str, np.ndarray[Any, Any]]]) -> list[NDArray]:
        rows = self._rows() if arrays or self.cursor >= self.num_data else np.arange(0)
        return [_picked(values, rows, self._axis) for _, values in arrays]


def _floats(arrays: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Named arrays as float32; csr matrices keep their type."""
    return [
        (name, values if isinstance(values, CsrRows) else as_float32(values, f"NDArrayIter: '{name}', shuffled"))
        for name, values in arrays
    ]
