"""Arrays as MXNet pickles them: the bytes that they have in a parameter file."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from .. import _mxrt
from .._scopes.np_mode import is_np_shape
from .._system import temporary
from ..base import MXNetDataError

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = ["array_of", "record_of"]

# What is around the record in a file of one array without a name.
_BEFORE = struct.pack("<3Q", 0x112, 0, 1)
_AFTER = struct.pack("<Q", 0)
# How a scalar begins that was written outside of np shape semantics: version 2, dense, no axes.
# There an array that has no axes has no content either.
_SCALAR = struct.pack("<3I", 0xF993FAC9, 0, 0)


def record_of(array: NDArray) -> bytearray:
    """The bytes of an array, in np shape semantics if they are on or the array needs them. Waits
    for it.
    """
    array.wait_to_read()
    needed = is_np_shape() or array.shape == () or 0 in array.shape
    before = _mxrt.set_np_shape(int(needed and array.stype == "default"))
    try:
        with temporary.folder() as folder:
            path = folder / "array"
            _mxrt.save_arrays(path, None, [array])
            return bytearray(path.read_bytes()[len(_BEFORE) : -len(_AFTER)])
    finally:
        _mxrt.set_np_shape(int(before))


def array_of(record: str | bytes | bytearray) -> NDArray:
    """The array of a record; a string holds the bytes of a pickle of Python 2."""
    content = record.encode("latin1") if isinstance(record, str) else bytes(record)
    if content.startswith(_SCALAR) and len(content) > len(_SCALAR) and not is_np_shape():
        raise MXNetDataError(
            "The pickled array is a scalar of mx.np, which is read in np shape semantics: unpickle it within "
            "`with mx.util.np_shape(True):` or after `mx.npx.set_np()`"
        )
    made: NDArray = _mxrt.load_buffer(_BEFORE + content + _AFTER)[0]
    return made
