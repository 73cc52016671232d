"""Files of arrays of ``mx.np``."""

from __future__ import annotations

from typing import Any

from .. import ndarray as nd
from .._scopes.np_mode import is_np_array, is_np_shape
from ..numpy.multiarray import ndarray

__all__ = ["load", "save"]


def save(file: Any, arr: Any) -> None:
    """Saves an array, a list of arrays, or a dictionary of arrays by name, with NumPy's shapes.

    Raises ValueError unless the numpy interface is on (``npx.set_np()``), and TypeError for what is
    no array of ``mx.np``.
    """
    _check_switch("save")
    arrays = [arr] if isinstance(arr, ndarray) else arr
    if not isinstance(arrays, (list, tuple, dict)):
        raise ValueError("data needs to either be a ndarray, dict of (str, ndarray) pairs or a list of ndarrays.")
    values = arrays.values() if isinstance(arrays, dict) else arrays
    if any(not isinstance(one, ndarray) for one in values):
        raise TypeError("Only accepts dict str->ndarray or list of ndarrays")
    nd.save(file, arrays)


def load(file: Any) -> Any:
    """Loads the arrays of a file: a dictionary if they have names, else a list.

    Raises ValueError unless the numpy interface is on (``npx.set_np()``).
    """
    _check_switch("load")
    found = nd.load(file)
    if isinstance(found, dict):
        return {name: ndarray(one) for name, one in found.items()}
    return [ndarray(one) for one in found]


def _check_switch(verb: str) -> None:
    if not (is_np_shape() and is_np_array()):
        raise ValueError(
            f"Cannot {verb} `mxnet.numpy.ndarray` in legacy mode. Please activate numpy semantics by calling "
            "`npx.set_np()` in the global scope before calling this function."
        )
