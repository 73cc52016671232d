"""Messages between processes: arrays are stored in memory that both share, the rest is pickled.

A message is one pickle and at most one file without a name, which holds the elements of all its
arrays. The file goes through the socket as a descriptor. So nothing is left behind when a process
dies, whatever it was doing.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ndarray import NDArray, from_numpy, sparse

__all__ = ["Packed", "pack", "read_shared", "receive", "send", "shared_file"]

# Length of the pickle, then of the shared memory.
_HEAD = struct.Struct("<QQ")
# Elements begin at multiples of this, as arrays that kernels read at full speed do.
_ALIGNMENT = 64


@dataclass
class Packed:
    """A message that is ready to be sent."""

    content: bytes
    buffers: list[pickle.PickleBuffer]


def pack(message: Any) -> Packed:
    """Prepares a message. Arrays are waited for, so a failed one raises here, as does what cannot
    be pickled.
    """
    buffers: list[pickle.PickleBuffer] = []
    text = io.BytesIO()
    _Pickler(text, protocol=5, buffer_callback=buffers.append).dump(message)
    return Packed(text.getvalue(), buffers)


def send(to: socket.socket, message: Packed) -> None:
    """Sends a message. OSError if the other side is gone or there is no memory to share."""
    if not message.buffers:
        to.sendall(_HEAD.pack(len(message.content), 0) + message.content)
        return
    raws = [buffer.raw() for buffer in message.buffers]
    # A table of their lengths comes first.
    table = struct.pack(f"<{len(raws) + 1}Q", len(raws), *(raw.nbytes for raw in raws))
    file = shared_file([memoryview(table), *raws])
    try:
        socket.send_fds(to, [_HEAD.pack(len(message.content), os.fstat(file).st_size)], [file])
    finally:
        os.close(file)
    to.sendall(message.content)


def receive(source: socket.socket) -> Any:
    """The next message. EOFError if the other side is gone."""
    head, files, _, _ = socket.recv_fds(source, _HEAD.size, 1)
    try:
        if not head:
            raise EOFError("the connection is closed")
        length, size = _HEAD.unpack(head + _exactly(source, _HEAD.size - len(head)))
        content = _exactly(source, length)
        if not size:
            return pickle.loads(content)
        memory = read_shared(files[0], size)
    finally:
        for file in files:
            os.close(file)
    return pickle.loads(content, buffers=_parts(memory))


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, NDArray) and value.stype != "default":
            names = ("data", "indices", "indptr") if value.stype == "csr" else ("data", "indices")
            parts = tuple(np.ascontiguousarray(getattr(value, name).asnumpy()) for name in names)
            return _stored, (value.stype, parts, value.shape)
        if isinstance(value, NDArray):
            return _array, (np.ascontiguousarray(value.asnumpy()),)
        return NotImplemented


def _array(values: np.ndarray[Any, Any]) -> NDArray:
    return from_numpy(values)


def _stored(stype: str, parts: tuple[np.ndarray[Any, Any], ...], shape: tuple[int, ...]) -> NDArray:
    make = sparse.csr_matrix if stype == "csr" else sparse.row_sparse_array
    array: NDArray = make(parts, shape=shape, dtype=parts[0].dtype)
    return array


def read_shared(file: int, size: int) -> memoryview:
    """The first bytes of a shared file. They are copied: a mapping would need a descriptor for as
    long as its arrays live.
    """
    content = np.empty(size, dtype=np.uint8).data
    at = 0
    while at < size:
        count = os.preadv(file, [content[at:]], at)
        if not count:
            raise EOFError("shared memory is shorter than its arrays")
        at += count
    return content


def shared_file(parts: Sequence[memoryview]) -> int:
    """A nameless file in memory with some bytes after one another. The caller closes it."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("mxrt-batch")
    else:
        with tempfile.TemporaryFile() as unnamed:
            file = os.dup(unnamed.fileno())
    try:
        offset = 0
        for part in parts:
            offset = _write(file, part, offset)
        os.ftruncate(file, offset)
    except BaseException:
        os.close(file)
        raise
    return file


def _write(file: int, data: memoryview, offset: int) -> int:
    """Writes at an offset, and returns the next aligned one. Writing rather than mapping reports a
    lack of memory as an error.
    """
    end = offset + data.nbytes
    while offset < end:
        offset += os.pwrite(file, data[data.nbytes - (end - offset) :], offset)
    return -(-end // _ALIGNMENT) * _ALIGNMENT


def _parts(memory: memoryview) -> list[memoryview]:
    (count,) = struct.unpack_from("<Q", memory)
    sizes = struct.unpack_from(f"<{count}Q", memory, 8)
    offset = -(-8 * (count + 1) // _ALIGNMENT) * _ALIGNMENT
    parts = []
    for size in sizes:
        parts.append(memory[offset : offset + size])
        offset += -(-size // _ALIGNMENT) * _ALIGNMENT
    return parts


def _exactly(source: socket.socket, length: int) -> bytes:
    content = bytearray(length)
    view = memoryview(content)
    while view:
        count = source.recv_into(view)
        if not count:
            raise EOFError("the connection is closed")
        view = view[count:]
    return bytes(content)
