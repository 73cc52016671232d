"""Functions that make a batch of a list of samples, for the `batchify_fn` of a loader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._scopes.np_mode import made_here
from ...context import Context
from ...ndarray import NDArray, array, concat, stack

__all__ = ["Append", "AsList", "Group", "Pad", "Stack"]


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """Arrays are stacked, tuples give a list with a batch for each element, and numbers become one
    array with numpy's type for them. Rows of csr matrices become one csr matrix.
    """
    if isinstance(data[0], NDArray):
        if all(isinstance(sample, NDArray) and sample.stype == "csr" for sample in data):
            rows: NDArray = concat(*data, dim=0)
            return made_here(rows)
        return made_here(stack(*data))
    if isinstance(data[0], tuple):
        return [default_batchify_fn(column) for column in zip(*data, strict=True)]
    values = np.asarray(data)
    return made_here(array(values, dtype=values.dtype))


def _numpy(sample: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    value = sample.asnumpy() if isinstance(sample, NDArray) else np.asarray(sample)
    if dtype is not None:
        return value.astype(dtype, copy=False)
    # Lists of Python's numbers have MXNet's default type, not numpy's.
    return value if isinstance(sample, (NDArray, np.ndarray, np.generic)) else value.astype(np.float32, copy=False)


class Stack:
    """Stacks samples of one shape along a new first axis.

    Parameters
    ----------
    dtype : element type of the batch; None takes that of the samples, float32 for lists of numbers
    """

    def __init__(self, dtype: Any = None, use_shared_mem: bool = False) -> None:
        self._dtype = dtype

    def __call__(self, data: Sequence[Any]) -> NDArray:
        if isinstance(data[0], NDArray) and self._dtype is None:
            joined: NDArray = stack(*data)
            return made_here(joined)
        values = np.stack([_numpy(sample, self._dtype) for sample in data])
        return made_here(array(values, dtype=values.dtype))


class Pad:
    """Stacks samples whose sizes differ: each is filled up with `val`, at the end of every axis, to
    the largest size.

    Parameters
    ----------
    val : what fills up
    dtype : element type of the batch; None takes that of the samples, float32 for lists of numbers
    round_to : sizes are rounded up to a multiple of this
    """

    def __init__(
        self, val: float = 0, dtype: Any = None, round_to: int | None = None, use_shared_mem: bool = False
    ) -> None:
        self._val = val
        self._dtype = dtype
        self._round_to = round_to

    def __call__(self, data: Sequence[Any]) -> NDArray:
        samples = [_numpy(sample, self._dtype) for sample in data]
        if len({sample.ndim for sample in samples}) > 1:
            raise ValueError(f"Pad: samples have different numbers of axes: {sorted({s.ndim for s in samples})}")
        shape = [max(sizes) for sizes in zip(*(sample.shape for sample in samples), strict=True)]
        if self._round_to is not None:
            shape = [-(-size // self._round_to) * self._round_to for size in shape]
        batch = np.full((len(samples), *shape), self._val, dtype=samples[0].dtype)
        for row, sample in zip(batch, samples, strict=True):
            row[tuple(slice(size) for size in sample.shape)] = sample
        return made_here(array(batch, dtype=batch.dtype))


class Append:
    """Makes an array of each sample, without joining them.

    Parameters
    ----------
    expand : gives each array a first axis of size 1
    batch_axis : where that axis is
    """

    def __init__(self, expand: bool = True, batch_axis: int = 0, use_shared_mem: bool = False) -> None:
        self._expand = expand
        self._batch_axis = batch_axis

    def __call__(self, data: Sequence[Any]) -> list[NDArray]:
        values = [_numpy(sample) for sample in data]
        if self._expand:
            values = [np.expand_dims(value, self._batch_axis) for value in values]
        return [made_here(array(value, dtype=value.dtype)) for value in values]


class Group:
    """Applies one function to each element of samples that are tuples."""

    def __init__(self, fn: Any, *args: Callable[..., Any]) -> None:
        self._functions = list(fn) if isinstance(fn, (list, tuple)) else [fn, *args]
        if isinstance(fn, (list, tuple)) and args:
            raise ValueError("Group: give either one list of functions or each function as an argument")

    def __call__(self, data: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        if len(data[0]) != len(self._functions):
            raise AssertionError(
                f"Group: samples have {len(data[0])} elements but there are {len(self._functions)} functions"
            )
        return tuple(fn([sample[i] for sample in data]) for i, fn in enumerate(self._functions))


class AsList:
    """Gives the samples as a list, unchanged."""

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        return list(data)


def as_in_context(data: Any, ctx: Context) -> Any:
    """A batch with its arrays in another context."""
    if isinstance(data, NDArray):
        return data.as_in_context(ctx)
    if isinstance(data, (list, tuple)):
        return [as_in_context(one, ctx) for one in data]
    return data
