"""Sparse arrays for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

DENSE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, -4, 0]], "float32")


def parts(array: Any) -> list[Any]:
    """Storage type and stored parts of a sparse array, or the values of a dense one."""
    if array.stype == "default":
        return ["default", array.asnumpy().tolist()]
    pointers = [array.indptr.asnumpy().tolist()] if array.stype == "csr" else []
    return [array.stype, array.data.asnumpy().tolist(), array.indices.asnumpy().tolist(), *pointers]


def stored(mx: Any, values: Any, stype: str) -> Any:
    """An array of these values with a storage type."""
    array = mx.nd.array(values)
    return array if stype == "default" else array.tostype(stype)
