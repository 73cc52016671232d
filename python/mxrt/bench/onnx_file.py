"""ONNX files, written byte by byte: the few messages of the format that a network of one tensor
type needs.

The format is protobuf: a message is fields one after another, each a key (number and wire type) and
a value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._system.whole import whole

__all__ = ["model_pieces", "node", "tensor", "value", "write"]

# Numbers that ONNX gives to element types, by numpy's names.
ELEMENT_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "float16": 10, "float64": 11}
# The versions written: old enough for every peer still in use, new enough for all that is
# translated.
IR_VERSION, OPERATOR_SET = 8, 17


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1  # negative numbers take ten bytes
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def _attribute(name: str, content: Any) -> bytes:
    out = _bytes(1, name)
    if isinstance(content, float):
        return out + _varint(2 << 3 | 5) + struct.pack("<f", content) + _number(20, 1)
    if isinstance(content, int):
        return out + _number(3, content) + _number(20, 2)
    if isinstance(content, str):
        return out + _bytes(4, content) + _number(20, 3)
    return out + b"".join(_number(8, int(one)) for one in content) + _number(20, 7)


def node(op: str, inputs: Sequence[str], output: str, attributes: Mapping[str, Any]) -> bytes:
    """One operation; attributes are int, float, str or several int."""
    out = b"".join(_bytes(1, name) for name in inputs) + _bytes(2, output) + _bytes(3, output) + _bytes(4, op)
    return out + b"".join(_bytes(5, _attribute(name, content)) for name, content in attributes.items())


def tensor(name: str, array: np.ndarray[Any, Any]) -> bytes:
    """A constant."""
    out = b"".join(_number(1, extent) for extent in array.shape)
    out += _number(2, ELEMENT_TYPES[array.dtype.name]) + _bytes(8, name)
    return out + _bytes(9, np.ascontiguousarray(array).tobytes())


def value(name: str, shape: Sequence[int], dtype: str) -> bytes:
    """Name, shape and element type of an input or output of the network."""
    extents = b"".join(_bytes(1, _number(1, extent)) for extent in shape)
    kind = _number(1, ELEMENT_TYPES[dtype]) + _bytes(2, extents)
    return _bytes(1, name) + _bytes(2, _bytes(1, kind))


def model_pieces(
    name: str, nodes: Iterable[bytes], constants: Iterable[bytes], inputs: Iterable[bytes], outputs: Iterable[bytes]
) -> list[bytes]:
    """The whole file in pieces, so that the constants, which may be a gigabyte, are not copied
    together.
    """
    graph = [_bytes(1, one) for one in nodes]
    graph.append(_bytes(2, name))
    graph += [_bytes(5, one) for one in constants]
    graph += [_bytes(11, one) for one in inputs]
    graph += [_bytes(12, one) for one in outputs]
    head = _number(1, IR_VERSION) + _bytes(2, "mxrt") + _bytes(8, _bytes(1, "") + _number(2, OPERATOR_SET))
    return [head, _varint(7 << 3 | 2) + _varint(sum(map(len, graph))), *graph]


def write(path: Path, pieces: Iterable[bytes]) -> None:
    """Writes the file, or nothing: a file that is there is a whole one."""
    with whole(path) as unfinished, unfinished.open("wb") as file:
        file.writelines(pieces)
