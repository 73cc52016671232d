"""The format safetensors: a length, a JSON header with a place for each array, the bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ._errors import ModelError

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = ["content"]

_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}


def content(arrays: Mapping[str, NDArray]) -> bytes:
    """The bytes of a file with these arrays."""
    header: dict[str, object] = {"__metadata__": {"format": "mxrt"}}
    pieces = []
    end = 0
    for name, one in arrays.items():
        if name in header:
            raise ModelError(f"parameter '{name}' has a name that safetensors keeps for itself; --rename gives another")
        if one._dtype_name not in _DTYPES:
            raise ModelError(
                f"parameter '{name}' is {one._dtype_name}, which safetensors lacks; --format params has it"
            )
        piece = np.ascontiguousarray(one.asnumpy()).tobytes()
        header[name] = {
            "dtype": _DTYPES[one._dtype_name],
            "shape": list(one.shape),
            "data_offsets": [end, end + len(piece)],
        }
        pieces.append(piece)
        end += len(piece)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *pieces])
