"""Iterators over batches of data."""

from __future__ import annotations

import warnings  # noqa: F401 (a name of MXNet's module)
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _mxrt
from .._output.log import info
from .._values.dtypes import dtype_class
from .._values.extents import LARGEST
from .._values.overrulable import overrulable
from ..base import MXNetValueError, warn
from ..ndarray import NDArray, array  # noqa: F401 (a name of MXNet's module)
from ._csr_rows import CsrRows
from ._epoch_rows import EpochRows
from ._named_arrays import (  # noqa: F401 (names of MXNet's module)
    _batch_axis,
    _getdata_by_idx,
    _has_instance,
    _init_data,
    _named,
    _resized,
)


def __getattr__(name: str) -> Any:
    # MXNet has the other iterators in this module too. Their own modules import this one.
    if name == "PrefetchingIter":
        from ._prefetching import PrefetchingIter

        return PrefetchingIter
    from . import _iterators

    if name in _iterators.__all__:
        return getattr(_iterators, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = ["DataBatch", "DataDesc", "DataIter", "MXDataIter", "NDArrayIter", "ResizeIter"]

_NameAndShape = namedtuple("_NameAndShape", ["name", "shape"])


class DataDesc(_NameAndShape):
    """Name, shape, dtype and layout of one input."""

    dtype: Any
    layout: str | None

    def __new__(cls, name: str, shape: Any, dtype: Any = np.float32, layout: str | None = "NCHW") -> DataDesc:
        made = super().__new__(cls, name, shape)
        made.dtype = dtype
        made.layout = layout
        return made

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """The axis that counts samples."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Any, types: Any) -> list[DataDesc]:
        """Descriptions of inputs given as pairs."""
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        by_name = dict(types)
        return [DataDesc(name, shape, by_name[name]) for name, shape in shapes]

    def __reduce__(self) -> tuple[Any, ...]:
        return DataDesc, (self.name, self.shape, self.dtype, self.layout)


class DataBatch:
    """One batch: lists of arrays for data and labels."""

    def __init__(
        self,
        data: Any,
        label: Any = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: Any = None,
        provide_label: Any = None,
    ) -> None:
        for what, value in (("Data", data), ("Label", label)):
            if value is not None and not isinstance(value, (list, tuple)):
                raise AssertionError(f"{what} must be list of NDArrays")
        self.data = data
        self.label = label
        self.pad = pad
        self.index = index
        self.bucket_key = bucket_key
        self.provide_data = provide_data
        self.provide_label = provide_label

    def __str__(self) -> str:
        shapes = [d.shape for d in self.data]
        labels = [d.shape for d in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {shapes} label shapes: {labels}"


class DataIter:
    """The common part of all data iterators."""

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[DataBatch]:
        return self

    def reset(self) -> None:
        """Begins again."""

    def next(self) -> DataBatch:
        """The next batch; StopIteration at the end."""
        if self.iter_next():
            return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())
        raise StopIteration

    def __next__(self) -> DataBatch:
        return self.next()

    # As in MXNet, a subclass defines what its batches have; the others are None.

    def iter_next(self) -> bool:
        """Goes to the next batch; whether there is one."""
        return False

    def getdata(self) -> Any:
        """Data of the current batch."""
        return None

    def getlabel(self) -> Any:
        """Labels of the current batch."""
        return None

    def getindex(self) -> Any:
        """Numbers of the samples of the current batch."""
        return None

    def getpad(self) -> int | None:
        """How many samples of the current batch only fill it up."""
        return None


class _BatchHolder(DataIter):
    """An iterator whose ``iter_next`` leaves whole batches in `current_batch`."""

    current_batch: DataBatch | None = None

    def _current(self) -> DataBatch:
        if self.current_batch is None:
            raise MXNetValueError("there is no current batch; call next() first")
        return self.current_batch

    def getdata(self) -> Any:
        """Data of the current batch."""
        return self._current().data

    def getlabel(self) -> Any:
        """Labels of the current batch."""
        return self._current().label

    def getindex(self) -> Any:
        """Numbers of the samples of the current batch; None where they are not known."""
        return self._current().index

    def getpad(self) -> int:
        """How many samples of the current batch only fill it up."""
        return self._current().pad or 0


class ResizeIter(_BatchHolder):
    """Another iterator, with a fixed number of batches per epoch."""

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
        super().__init__(data_iter.batch_size)
        self.data_iter = data_iter
        self.size = size
        self.reset_internal = reset_internal
        self.current_batch: DataBatch | None = None
        self.cur: int = 0
        self.provide_data: Any | None = getattr(data_iter, "provide_data", None)
        self.provide_label: Any | None = getattr(data_iter, "provide_label", None)
        # A `BucketingModule` asks for it.
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        """Begins again."""
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        """Goes to the next batch; whether there is one."""
        if self.cur == self.size:
            return False
        try:
            self.current_batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            self.current_batch = self.data_iter.next()
        self.cur += 1
        return True


class NDArrayIter(EpochRows, DataIter):
    """Batches of rows of arrays.

    The last batch, when it is short, is filled up from the beginning (``pad``), left out
    (``discard``), or its rows begin the next epoch (``roll_over``). This is what ``next`` does;
    after ``iter_next``, ``getdata`` and ``getlabel`` give the short batch unless it is filled up.
    The axis of samples is that of ``N`` in `layout`. With `shuffle`, dense arrays become float32.
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        layout: str = "NCHW",
    ) -> None:
        super().__init__(batch_size)
        if isinstance(batch_size, np.integer):
            self.batch_size = batch_size = int(batch_size)
        if not 1 <= batch_size <= LARGEST:
            raise MXNetValueError(f"NDArrayIter: batch_size must be a number from 1 to 2**63 - 1, not {batch_size}")
        self._values = _named(data, data_name)
        self._labels = _named(label, label_name)
        if not self._values:
            raise AssertionError("NDArrayIter: there is no data")
        if last_batch_handle != "discard" and any(isinstance(v, CsrRows) for _, v in [*self._values, *self._labels]):
            raise NotImplementedError("NDArrayIter takes csr matrices with last_batch_handle='discard' only")
        self.layout = layout
        self._axis = _batch_axis(layout, [*self._values, *self._labels])
        counts = {name: values.shape[self._axis] for name, values in [*self._values, *self._labels]}
        if len(set(counts.values())) != 1:
            shown = ", ".join(f"{name}: {count}" for name, count in counts.items())
            raise MXNetValueError(f"NDArrayIter: all arrays must have the same number of rows, got {shown}")
        self.num_data: int = counts[self._values[0][0]]
        #: What becomes of a short batch. As in MXNet, any other text leaves it out.
        self.last_batch_handle = last_batch_handle
        self.shuffle = shuffle
        self.idx: np.ndarray[Any, Any] = np.arange(self.num_data)
        # The rows in the order of this epoch: as in MXNet, each one shuffles the order of the last.
        self._order = self.idx.copy()
        # Rows of the short batch that `next` met at the end; those that the last epoch left.
        self._short: np.ndarray[Any, Any] | None = None
        self._left_over: np.ndarray[Any, Any] | None = None
        #: The first row of the current batch; ``-batch_size`` before the first one.
        self.cursor: int = -batch_size
        self._cache_data: Any = None
        self._cache_label: Any = None
        self.reset()

    def _descriptions(self, arrays: list[tuple[str, np.ndarray[Any, Any]]]) -> list[DataDesc]:
        return [
            DataDesc(name, _resized(values.shape, self._axis, self.batch_size), values.dtype.type, self.layout)
            for name, values in arrays
        ]

    # Names of MXNet that programs read.

    @property
    def data(self) -> list[tuple[str, NDArray]]:
        """Names and arrays of the data, in the order of this epoch."""
        return self._ordered(self._values)

    @data.setter
    def data(self, value: Any) -> None:
        self._values = self._in_first_order(value)

    @property
    def label(self) -> list[tuple[str, NDArray]]:
        """Names and arrays of the labels, in the order of this epoch."""
        return self._ordered(self._labels)

    @label.setter
    def label(self, value: Any) -> None:
        self._labels = self._in_first_order(value)

    @overrulable
    def data_list(self) -> list[NDArray]:
        """The arrays of data, and of labels."""
        return [values for _, values in [*self.data, *self.label]]

    @overrulable
    def num_source(self) -> int:
        """How many arrays there are."""
        return len(self._values) + len(self._labels)

    @overrulable
    def provide_data(self) -> list[DataDesc]:
        """Descriptions of the data."""
        return self._descriptions(self._values)

    @overrulable
    def provide_label(self) -> list[DataDesc]:
        """Descriptions of the labels."""
        return self._descriptions(self._labels)

    def hard_reset(self) -> None:
        """Begins again, and forgets rows that an epoch left over."""
        self._start()
        self._short = self._left_over = None

    def reset(self) -> None:
        """Begins again. With ``roll_over``, the rows of a short batch at the end come first, unless
        the end was not reached, or this is a second reset.
        """
        at_short = self.num_data - self.batch_size < self.cursor < self.num_data
        missing = self.num_data - self.cursor
        self._start()
        if self.last_batch_handle == "roll_over" and at_short:
            self._left_over, self._short = self._short, None
            self.cursor -= missing

    def iter_next(self) -> bool:
        """Goes to the next batch, which may be a short one; whether there is one."""
        self.cursor += self.batch_size
        return self.cursor < self.num_data

    def next(self) -> DataBatch:
        """The next whole batch; StopIteration at the end, also at a short batch."""
        if not self.iter_next():
            raise StopIteration
        data, label = self.getdata(), self.getlabel()
        if data[0].shape[self._axis] != self.batch_size:
            self._short = self._rows()
            raise StopIteration
        return DataBatch(data, label, self.getpad())

    def getdata(self) -> list[NDArray]:
        """Data of the current batch."""
        return self._arrays(self._values)

    def getlabel(self) -> list[NDArray]:
        """Labels of the current batch."""
        return self._arrays(self._labels)

    def getpad(self) -> int:
        """How many samples of the current batch only fill it up."""
        if self.last_batch_handle == "pad":
            return max(self.cursor + self.batch_size - self.num_data, 0)
        return max(-self.cursor, 0) if -self.batch_size < self.cursor and self.last_batch_handle == "roll_over" else 0


class MXDataIter(DataIter):
    """Batches that an iterator of the Rust side makes, read ahead in the background.

    Its subclasses, such as ``CSVIter``, are made of what the Rust side knows of their parameters.
    """

    # Whether labels are sparse, as those of LibSVMIter are that a file of their own has.
    _csr_labels = False
    #: What a program can do about labels that float32 has not.
    _advice_on_labels = "An NDArrayIter without shuffle, over an mx.nd.array of dtype='int32' or 'float64', keeps them"

    def __init__(self, name: str, parameters: dict[str, Any], data_name: str, label_name: str) -> None:
        self._told_inexact = False
        # What is called with the exception of each damaged sample that is left out.
        self._on_error: Any = None
        if callable(parameters.get("on_error")):
            self._on_error = parameters["on_error"]
            parameters = {**parameters, "on_error": "skip"}
        if any("://" in value for value in parameters.values() if isinstance(value, str)):
            from ._remote import LocalCopies

            # The copies go with the iterator.
            self._copies = LocalCopies()
            parameters = {
                key: self._copies.paths(value) if isinstance(value, str) else value for key, value in parameters.items()
            }
        self._reader = _mxrt.BatchReader(name, parameters)
        (data, data_dtype), (label, label_dtype) = self._reader.types
        super().__init__(data[0])
        self._descriptions = (
            DataDesc(data_name, tuple(data), dtype_class(data_dtype)),
            DataDesc(label_name, tuple(label), dtype_class(label_dtype)),
        )
        self._batch: tuple[NDArray, NDArray, int, Any] | None = None
        # Names of MXNet that programs read.
        self.first_batch: Any = None
        self._debug_skip_load = False
        self._debug_at_begin = True

    @overrulable
    def provide_data(self) -> list[DataDesc]:
        """Description of the data."""
        return [self._descriptions[0]]

    @overrulable
    def provide_label(self) -> list[DataDesc]:
        """Description of the labels."""
        return [self._descriptions[1]]

    def reset(self) -> None:
        """Begins again."""
        self._batch = None
        self._reader.reset()

    def iter_next(self) -> bool:
        """Goes to the next batch; whether there is one."""
        self._batch, skipped, inexact = self._reader.next()
        if inexact is not None and not self._told_inexact:
            self._told_inexact = True
            warn(
                f"{type(self).__name__}: a label is {inexact:.0f}. float32 has not all whole numbers over 2**24, so "
                f"that it may be another one in the file. {self._advice_on_labels}"
            )
        if self._on_error is not None:
            for error in skipped:
                self._on_error(error)
        return self._batch is not None

    @property
    def skipped(self) -> int:
        """Damaged samples that were left out so far, with ``on_error`` other than ``"raise"``."""
        return int(self._reader.skipped)

    def _current(self) -> tuple[NDArray, NDArray, int, Any]:
        if self._batch is None:
            raise MXNetValueError(f"{type(self).__name__}: there is no current batch; call next() first")
        return self._batch

    def getdata(self) -> NDArray:
        """Data of the current batch."""
        return self._current()[0]

    def getlabel(self) -> NDArray:
        """Labels of the current batch."""
        label = self._current()[1]
        return label.tostype("csr") if self._csr_labels else label

    def getpad(self) -> int:
        """How many samples of the current batch only fill it up."""
        return self._current()[2]

    def getindex(self) -> Any:
        """Numbers of the samples of the current batch, as a numpy array of uint64."""
        return self._current()[3]

    def debug_skip_load(self) -> None:
        """Makes ``next`` return the first batch over and over, without an end: for measuring what
        reading costs.
        """
        self._debug_skip_load = True
        info("Set debug_skip_load to be true, will simply return first batch")

    def next(self) -> DataBatch:
        """The next batch; StopIteration at the end."""
        if (self._debug_skip_load and self._batch is not None) or self.iter_next():
            return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())
        raise StopIteration
