"""How the batches of a Module are divided among its contexts, and the results put together."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ndarray as nd
from ..base import MXNetValueError
from ..context import Context
from ..io import DataDesc
from ..ndarray import NDArray
from ..symbol import Symbol

__all__ = ["batch_axes", "merge", "part_of", "pieces"]


def pieces(rows: int, work_loads: Sequence[float]) -> list[slice]:
    """The rows of a batch that each context takes, as MXNet divides them by work load.

    Raises MXNetValueError where a context would get none.
    """
    total = sum(work_loads)
    counts = [round(load * rows / total) for load in work_loads]
    counts[-1] += max(rows - sum(counts), 0)
    found: list[slice] = []
    end = 0
    for count in counts:
        begin, end = end, min(end + count, rows)
        if begin >= end:
            raise MXNetValueError(
                f"Too many slices. Some splits are empty: a batch of {rows} is divided among {len(work_loads)} contexts"
            )
        found.append(slice(begin, end))
    return found


def part_of(array: NDArray, axis: int, rows: slice, context: Context) -> NDArray:
    """The rows of an array along the axis that counts samples, on a context; all of it where
    `axis` is negative.
    """
    if axis == 0:
        array = array[rows]
    elif axis > 0:
        array = nd.slice_axis(array, axis=axis, begin=rows.start, end=rows.stop)
    return array.as_in_context(context)


def merge(parts: Sequence[NDArray], axis: int) -> NDArray:
    """The results of all contexts as one array on the first; those of the first where `axis` is
    negative.
    """
    if len(parts) == 1 or axis < 0:
        return parts[0]
    return nd.concatenate([part.as_in_context(parts[0].context) for part in parts], axis=axis)


def batch_axes(symbol: Symbol) -> list[int]:
    """The axis that counts samples for every output, by its attribute ``__layout__``: 0 without
    one, -1 if it has no N.
    """
    return [DataDesc.get_batch_axis(symbol[name].attr("__layout__")) for name in symbol.list_outputs()]
