"""Numbers that MXNet's C interface has for element types, storage types and ``grad_req``."""

from __future__ import annotations

from builtins import slice as py_slice
from typing import Any

import numpy as np

from .._values.dtypes import dtype_class

__all__ = [
    "_DTYPE_MX_TO_NP",
    "_DTYPE_NP_TO_MX",
    "_GRAD_REQ_MAP",
    "_STORAGE_TYPE_CSR",
    "_STORAGE_TYPE_DEFAULT",
    "_STORAGE_TYPE_ID_TO_STR",
    "_STORAGE_TYPE_ROW_SPARSE",
    "_STORAGE_TYPE_STR_TO_ID",
    "_STORAGE_TYPE_UNDEFINED",
    "py_slice",
]

_DTYPE_MX_TO_NP: dict[int, Any] = {
    -1: None,
    0: np.float32,
    1: np.float64,
    2: np.float16,
    3: np.uint8,
    4: np.int32,
    5: np.int8,
    6: np.int64,
    7: np.bool_,
    12: dtype_class("bfloat16"),
}
_DTYPE_NP_TO_MX = {kind: number for number, kind in _DTYPE_MX_TO_NP.items()}

_STORAGE_TYPE_UNDEFINED, _STORAGE_TYPE_DEFAULT, _STORAGE_TYPE_ROW_SPARSE, _STORAGE_TYPE_CSR = range(-1, 3)
_STORAGE_TYPE_ID_TO_STR = dict(enumerate(("undefined", "default", "row_sparse", "csr"), start=-1))
_STORAGE_TYPE_STR_TO_ID = {name: number for number, name in _STORAGE_TYPE_ID_TO_STR.items()}

_GRAD_REQ_MAP = {"null": 0, "write": 1, "add": 3}
