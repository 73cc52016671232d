"""Element types: their names, and values that another type changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import warn

__all__ = ["as_float32", "dtype_class", "dtype_name", "operator_dtype", "warn_of_changed"]

_BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
_DTYPES: dict[str, Any] = {}
_NAMES: dict[Any, str] = {None: "float32"}


def dtype_name(dtype: Any) -> str:
    """The name of an element type, however it is given; TypeError when there is no such type."""
    try:
        return _NAMES[dtype]
    except (KeyError, TypeError):
        pass
    name = "bfloat16" if isinstance(dtype, str) and dtype == "bfloat16" else _numpy_name(dtype)
    # Numbers of several types are equal: each would be a key of the others.
    if isinstance(dtype, (str, type, np.dtype)):
        _NAMES[dtype] = name
    return name


def operator_dtype(dtype: Any) -> str:
    """The name of an element type that is passed to an operator's function. None is float64 there,
    as in NumPy; functions that make arrays take it for float32.
    """
    return "float64" if dtype is None else dtype_name(dtype)


def _numpy_name(dtype: Any) -> str:
    found = np.dtype(dtype)
    return "bfloat16" if found == _BFLOAT16 else found.name


def dtype_class(name: str) -> Any:
    """The value of ``.dtype``: numpy's scalar class (a structured dtype for bfloat16)."""
    found = _DTYPES.get(name)
    if found is None:
        found = _DTYPES[name] = _BFLOAT16 if name == "bfloat16" else np.dtype(name).type
    return found


def as_float32(values: Any, what: str) -> np.ndarray[Any, Any]:
    """Numbers as float32; UserWarning where that changes whole numbers."""
    given = np.asarray(values)
    made = given.astype(np.float32, copy=False)
    warn_of_changed(given, made, what)
    return made


def warn_of_changed(given: np.ndarray[Any, Any], made: np.ndarray[Any, Any], what: str) -> None:
    """UserWarning where integers, or labels that are written as floats, are others as float32."""
    if given.dtype.kind not in "iuf" or given.itemsize < 4 or given.dtype == np.float32 or not given.size:
        return
    changed = made.astype(np.float64) != given
    if given.dtype.kind == "f":  # a fraction is rounded by intention
        changed &= (np.trunc(given) == given) & (np.abs(given) < 1 << 53)
    places = np.flatnonzero(changed)
    if places.size:
        was, now = given.ravel()[places[0]], made.ravel()[places[0]]
        warn(
            f"{what}: float32 has not all whole numbers over 2**24: {was:.0f} becomes {now:.0f}. "
            "An mx.nd.array of dtype='int32' or 'float64' keeps them"
        )
