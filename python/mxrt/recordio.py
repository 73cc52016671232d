"""Files of records, such as packed images: ``mx.recordio``."""

from __future__ import annotations

import numbers
import os
import struct
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _mxrt
from ._imports import load
from ._system.locks import fork_safe_lock
from ._values.dtypes import as_float32
from .base import MXNetDataError, MXNetFileNotFoundError, MXNetKeyError, MXNetValueError

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]


class MXRecordIO:
    """Reads records in the order of a file, or writes them.

    Threads may share one object. A reader can be used in forked processes too, each of which then
    has a position of its own. It can be pickled.

    Parameters
    ----------
    uri : name of the file
    flag : ``"r"`` reads; ``"w"`` writes a new file
    """

    writable: bool

    def __init__(self, uri: Any, flag: str) -> None:
        self.uri: str = os.fspath(uri)
        self.flag = flag
        self.pid: int | None = None
        self.is_open: bool = False
        self._lock = fork_safe_lock()
        self._position = 0
        self._file: _mxrt.RecordFile | None = None
        self._writer: _mxrt.RecordWriter | None = None
        self.open()

    def open(self) -> None:
        """Opens the file. MXNetDataError if that is not possible."""
        if self.flag == "w":
            self._writer = _mxrt.RecordWriter(self.uri)
            self.writable = True
        elif self.flag == "r":
            self._file = _mxrt.RecordFile(self.uri)
            self.writable = False
        else:
            raise ValueError(f"Invalid flag {self.flag}; expected 'r' or 'w'")
        self._position = 0
        self.pid = os.getpid()
        self.is_open = True

    def close(self) -> None:
        """Closes the file. A writer raises here if what it wrote last could not be stored."""
        with self._lock:
            if not self.is_open:
                return
            self.is_open = False
            self.pid = None
            self._file = None
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()

    def __del__(self) -> None:
        if getattr(self, "is_open", False):
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.is_open and self.writable:
            raise MXNetValueError(f"'{self.uri}' is being written: close it before it is pickled")
        state = dict(self.__dict__)
        for name in ("_lock", "_file", "_writer"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=fork_safe_lock(), _file=None, _writer=None)
        if self.is_open:
            self.is_open = False
            self.open()

    def __enter__(self) -> MXRecordIO:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _reader(self) -> _mxrt.RecordFile:
        if self.flag != "r":
            raise AssertionError(f"'{self.uri}' is open for writing; it cannot be read")
        opened = self._file
        if opened is None:
            raise MXNetValueError(f"'{self.uri}' is closed")
        return opened

    def _open_writer(self) -> _mxrt.RecordWriter:
        if self.flag != "w":
            raise AssertionError(f"'{self.uri}' is open for reading; it cannot be written")
        opened = self._writer
        if opened is None:
            raise MXNetValueError(f"'{self.uri}' is closed")
        if self.pid != os.getpid():
            raise RuntimeError(f"'{self.uri}' is written by process {self.pid}, which this one was forked from")
        return opened

    def reset(self) -> None:
        """Goes to the first record; a writer empties the file."""
        with self._lock:
            self.close()
            self.open()

    def tell(self) -> int:
        """Position of the next record in the file, in bytes."""
        with self._lock:
            return self._open_writer().position if self.flag == "w" else self._position

    def write(self, buf: bytes) -> None:
        """Appends a record."""
        with self._lock:
            self._open_writer().write(buf)

    def read(self) -> bytes | None:
        """The next record; None at the end of the file.

        MXNetDataError, with the file and the position, if the file is damaged or truncated there.
        """
        with self._lock:
            found = self._reader().read(self._position)
            if found is None:
                return None
            record, self._position = found
            return record


class MXIndexedRecordIO(MXRecordIO):
    """Reads or writes records by key. A second file, the index, says where the records begin.

    Parameters
    ----------
    idx_path : name of the index
    uri : name of the file of records
    flag : ``"r"`` reads; ``"w"`` writes new files
    key_type : makes a key of its text

    Attributes
    ----------
    keys : the keys, in the order of the index
    idx : position of the record of each key
    """

    def __init__(self, idx_path: Any, uri: Any, flag: str, key_type: Callable[[Any], Any] = int) -> None:
        self.idx_path: str = os.fspath(idx_path)
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.key_type = key_type
        self.fidx: Any = None
        super().__init__(uri, flag)

    def open(self) -> None:
        """Opens both files. MXNetDataError if that is not possible or the index is damaged."""
        super().open()
        if self.flag == "w":
            self.idx, self.keys = {}, []
            # Not buffered: a forked process would write the buffer once more.
            self.fidx = open(self.idx_path, "wb", buffering=0)  # noqa: SIM115
        else:
            # Whole, as threads look for keys while another one calls reset().
            self.idx, self.keys = self._read_index()

    def _read_index(self) -> tuple[dict[Any, int], list[Any]]:
        idx: dict[Any, int] = {}
        keys: list[Any] = []
        try:
            text = _mxrt.read_file(self.idx_path).decode()
        except (MXNetDataError, UnicodeDecodeError) as error:
            kind = MXNetFileNotFoundError if isinstance(error, FileNotFoundError) else MXNetDataError
            raise kind(
                f"the index of '{self.uri}' cannot be read: {error}. It has a line, key and position, for each record"
            ) from error
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                key_text, position = line.strip().split("\t")
                key, place = self.key_type(key_text), int(position)
                if not 0 <= place < 1 << 64:
                    raise ValueError(position)
                idx[key] = place
            except ValueError:
                raise MXNetDataError(
                    f"{self.idx_path}, line {number}: found {line[:60]!r}, expected a key, a tab and a position"
                ) from None
            keys.append(key)
        return idx, keys

    def close(self) -> None:
        """Closes both files."""
        with self._lock:
            index, self.fidx = self.fidx, None
            if index is not None:
                index.close()
            super().close()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state["fidx"] = None
        return state

    def _start(self, idx: Any) -> int:
        try:
            return self.idx[idx]
        except KeyError:
            raise MXNetKeyError(f"'{self.idx_path}' has no record with the key {idx!r}") from None

    def seek(self, idx: Any) -> None:
        """Goes to the record of a key."""
        self._reader()
        self._position = self._start(idx)

    def read_idx(self, idx: Any) -> bytes | None:
        """The record of a key. Threads read at the same time; ``read`` continues after it."""
        found = self._reader().read(self._start(idx))
        if found is None:
            raise MXNetDataError(f"{self.idx_path}: the record with the key {idx!r} begins at the end of '{self.uri}'")
        record, self._position = found
        return record

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Appends a record with a key."""
        key = self.key_type(idx)
        with self._lock:
            position = self.tell()
            self.write(buf)
            self.fidx.write(f"{key}\t{position}\n".encode())
            self.idx[key] = position
            self.keys.append(key)


IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])  # type: ignore[name-match]
IRHeader.__doc__ = """What stands in front of an image in a record.

flag : number of labels, or 0 for one
label : one number, or a numpy array of them
id, id2 : number of the image, and its higher digits
"""

_IR_FORMAT = "<IfQQ"
_IR_SIZE = struct.calcsize(_IR_FORMAT)


def pack(header: Any, s: bytes) -> bytes:
    """A record of a header and the bytes of an image."""
    header = IRHeader(*header)
    if isinstance(header.label, numbers.Number):
        as_float32(header.label, "recordio.pack: the label")
        return struct.pack(_IR_FORMAT, *header._replace(flag=0)) + s
    labels = as_float32(header.label, "recordio.pack: the labels").astype("<f4", copy=False)
    return struct.pack(_IR_FORMAT, *header._replace(flag=labels.size, label=0)) + labels.tobytes() + s


def unpack(s: bytes) -> tuple[Any, bytes]:
    """The header and the bytes of the image in a record."""
    if len(s) < _IR_SIZE:
        raise MXNetDataError(f"a record of an image begins with a header of {_IR_SIZE} bytes; this one has {len(s)}")
    header = IRHeader(*struct.unpack_from(_IR_FORMAT, s))
    end = _IR_SIZE
    if header.flag > 0:
        end += 4 * header.flag
        if len(s) < end:
            labels = f"a record of an image with {header.flag} labels"
            raise MXNetDataError(f"{labels} has at least {end} bytes, not {len(s)}")
        header = header._replace(label=np.frombuffer(s, "<f4", header.flag, _IR_SIZE))
    return header, s[end:]


def pack_img(header: Any, img: Any, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """A record of a header and an image, encoded as JPEG or PNG.

    Parameters
    ----------
    img : array (height, width) or (height, width, channels), blue first as in OpenCV; numbers of
        other types than uint8 are rounded, and those out of range become 0 or 255
    quality : from 1 to 100 for ``.jpg``, the compression from 0 to 9 for ``.png``
    img_fmt : ``.jpg`` or ``.png``
    """
    load("mxrt.image")
    from .image._files import encode
    from .ndarray import NDArray

    values = img.asnumpy() if isinstance(img, NDArray) else np.asarray(img)
    if values.ndim == 3 and values.shape[2] == 3:
        values = np.ascontiguousarray(values[..., ::-1])
    return pack(header, encode(values, quality, img_fmt))


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[Any, np.ndarray[Any, Any]]:
    """The header and the image in a record: a numpy array of uint8, with blue first as in OpenCV.

    Parameters
    ----------
    s : the record
    iscolor : 1 for (height, width, 3), 0 for (height, width), -1 for what the image has
    """
    load("mxrt.image")
    from .image._files import decode_for_opencv

    header, content = unpack(s)
    return header, decode_for_opencv(content, iscolor)
