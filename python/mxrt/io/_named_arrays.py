"""Arrays with names: the data and labels of ``NDArrayIter``, and how rows of them are picked."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._values.dtypes import as_float32
from ..base import MXNetValueError
from ..ndarray import NDArray, array
from ..ndarray._elements import is_sparse
from ._csr_rows import CsrRows


def _named(data: Any, default: str) -> list[tuple[str, Any]]:
    """Inputs as (name, numpy array or rows of a csr matrix), in the order of their names."""
    if data is None:
        return []
    if isinstance(data, (np.ndarray, NDArray)) or is_sparse(data):
        data = [data]
    if isinstance(data, (list, tuple)):
        data = {default: data[0]} if len(data) == 1 else {f"_{i}_{default}": one for i, one in enumerate(data)}
    if not isinstance(data, dict):
        raise TypeError("Input must be NDArray, numpy.ndarray, h5py.Dataset a list of them or dict with them as values")
    found: list[tuple[str, Any]] = []
    for name, value in sorted(data.items()):
        if is_sparse(value) or getattr(value, "stype", "default") == "csr":
            found.append((name, CsrRows(value)))
            continue
        if isinstance(value, NDArray):
            found.append((name, value.asnumpy()))
            continue
        try:
            found.append((name, as_float32(value, f"NDArrayIter: '{name}'")))
        except (TypeError, ValueError):
            raise TypeError(f"Invalid type '{type(value)}' for {name}, should be NDArray, numpy.ndarray") from None
    return found


def _init_data(data: Any, allow_empty: bool, default_name: str) -> list[tuple[str, NDArray]]:
    """Inputs as names and arrays, in the order of names; programs that define iterators call it."""
    if data is None and not allow_empty:
        raise AssertionError("there is no data")
    return [(name, _whole(values)) for name, values in _named(data, default_name)]


def _picked(values: Any, rows: np.ndarray[Any, Any], axis: int = 0) -> NDArray:
    """An array of some of the rows, or of what has these numbers along another axis."""
    picked = values[rows] if axis == 0 else np.take(values, rows, axis)
    return picked if isinstance(picked, NDArray) else array(picked, dtype=values.dtype)


def _whole(values: Any) -> NDArray:
    return _picked(values, np.arange(len(values))) if isinstance(values, CsrRows) else array(values, dtype=values.dtype)


def _numbers(data: Any) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Named arrays as names and arrays of numpy."""
    return _named(dict(data), "data") if data else []


def _has_instance(data: list[tuple[str, Any]], dtype: Any) -> bool:
    """Whether one of the named arrays is an instance of a class."""
    return any(isinstance(values, dtype) for _, values in data)


def _getdata_by_idx(data: list[tuple[str, NDArray]], idx: Any) -> list[tuple[str, NDArray]]:
    """The rows with these numbers, of each of the named arrays."""
    rows = [(name, CsrRows(v) if v.stype == "csr" else v.asnumpy()) for name, v in data]
    return [(name, _picked(values, np.atleast_1d(idx))) for name, values in rows]


def _batch_axis(layout: str, arrays: list[tuple[str, Any]]) -> int:
    """The axis of samples, that of ``N`` in a layout; ValueError if one of the arrays lacks it."""
    axis = layout.find("N")
    if axis < 0:
        raise MXNetValueError(f"NDArrayIter: layout is '{layout}'; expected a letter for each axis, and N for samples")
    for name, values in arrays:
        if axis >= (1 if isinstance(values, CsrRows) else values.ndim):
            raise MXNetValueError(
                f"NDArrayIter: layout '{layout}' has its samples on axis {axis}, which '{name}' of shape "
                f"{tuple(values.shape)} lacks; give another layout or array"
            )
    return axis


def _resized(shape: tuple[int, ...], axis: int, count: int) -> tuple[int, ...]:
    """A shape with another extent of one axis."""
    return (*shape[:axis], count, *shape[axis + 1 :])
