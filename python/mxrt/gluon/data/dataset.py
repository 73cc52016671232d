"""Data sets: what has a length and samples at positions."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ndarray import NDArray
from .sampler import FilterSampler, Sampler, SequentialSampler, numbered

if TYPE_CHECKING:
    from ...recordio import MXIndexedRecordIO

__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]


class Dataset:
    """Base class: subclasses define ``__getitem__`` and ``__len__``. Lists and arrays can be used
    as data sets directly.
    """

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def filter(self, fn: Callable[[Any], Any]) -> Dataset:
        """The samples for which `fn` is true; all are tested now."""
        return _SampledDataset(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Part `index` of `num_shards` equal parts; the first ones are larger by one sample where
        the length is no multiple.
        """
        if not 0 <= index < num_shards:
            raise AssertionError(f"Shard index of out bound: {index} out of {num_shards}")
        each, larger = divmod(len(self), num_shards)
        start = each * index + min(index, larger)
        return _SampledDataset(self, SequentialSampler(each + (index < larger), start))

    def take(self, count: int | None) -> Dataset:
        """The first `count` samples, or all if there are fewer or `count` is None."""
        length = len(self)
        return _SampledDataset(self, SequentialSampler(length if count is None else min(count, length)))

    def sample(self, sampler: Sampler) -> Dataset:
        """The samples at the positions of a sampler, which are drawn now."""
        if not isinstance(sampler, Sampler):
            raise TypeError(f"Invalid sampler type: {type(sampler)}. Expected gluon.data.Sampler instead.")
        return _SampledDataset(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """The samples with a function applied; samples that are tuples are passed as arguments.

        `lazy` applies it whenever a sample is read. Without it all samples are transformed now.
        """
        transformed = _LazyTransformDataset(self, fn)
        return transformed if lazy else SimpleDataset([sample for _, sample in numbered(transformed)])

    def transform_first(self, fn: Callable[[Any], Any], lazy: bool = True) -> Dataset:
        """The samples with a function applied to their first element, such as the image."""
        return self.transform(_TransformFirstClosure(fn), lazy)


class SimpleDataset(Dataset):
    """A list, array or anything else with a length and positions."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: Any) -> Any:
        return self._data[idx]


class _LazyTransformDataset(Dataset):
    def __init__(self, data: Any, fn: Callable[..., Any]) -> None:
        self._data = data
        self._fn = fn

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: Any) -> Any:
        item = self._data[idx]
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)


class _TransformFirstClosure:
    """An object rather than a nested function, so that it can be pickled."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn

    def __call__(self, x: Any, *args: Any) -> Any:
        return (self._fn(x), *args) if args else self._fn(x)


class _SampledDataset(Dataset):
    def __init__(self, dataset: Any, sampler: Sampler) -> None:
        self._dataset = dataset
        self._sampler = sampler
        # `list(sampler)` would ask for its length, which it may not have.
        self._indices = list(iter(sampler))

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: Any) -> Any:
        return self._dataset[self._indices[idx]]


class ArrayDataset(Dataset):
    """Several data sets, lists or arrays of the same length: sample i is the tuple of their i-th
    ones, or with one alone its i-th.
    """

    def __init__(self, *args: Any) -> None:
        if not args:
            raise AssertionError("Needs at least 1 arrays")
        self._length = len(args[0])
        self._data: list[Any] = []
        for i, data in enumerate(args):
            if len(data) != self._length:
                raise AssertionError(
                    "All arrays must have the same length; "
                    f"array[0] has length {self._length} while array[{i}] has {len(data)}."
                )
            # Single numbers of an array would be arrays of their own.
            one_number_each = isinstance(data, NDArray) and len(data.shape) == 1
            self._data.append(data.asnumpy() if one_number_each else data)

    def __getitem__(self, idx: Any) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def __len__(self) -> int:
        return self._length


class RecordFileDataset(Dataset):
    """The records of a ``.rec`` file as bytes; the ``.idx`` file of the same name has their
    positions.
    """

    def __init__(self, filename: str) -> None:
        from ...recordio import MXIndexedRecordIO

        self.idx_file: str = os.path.splitext(filename)[0] + ".idx"
        self.filename = filename
        self._record: MXIndexedRecordIO = MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __getitem__(self, idx: Any) -> Any:
        return self._record.read_idx(self._record.keys[idx])

    def __len__(self) -> int:
        return len(self._record.keys)


def _is_own(function: Callable[..., Any]) -> bool:
    return str(function.__module__).partition(".")[0] == __name__.partition(".")[0]


class _DownloadedDataset(Dataset):
    """A data set whose files are in the directory `root`; subclasses read them in ``_get_data``."""

    def __init__(self, root: str, transform: Callable[..., Any] | None) -> None:
        self._transform = transform
        self._data: Any = None
        self._label: Any = None
        self._root = os.path.expanduser(root)
        if not _is_own(type(self)._get_data):
            # Code of a program puts files there.
            os.makedirs(self._root, exist_ok=True)
        self._get_data()

    def __getitem__(self, idx: Any) -> Any:
        if self._transform is not None:
            return self._transform(self._data[idx], self._label[idx])
        return self._data[idx], self._label[idx]

    def __len__(self) -> int:
        return len(self._label)

    def _get_data(self) -> None:
        raise NotImplementedError
