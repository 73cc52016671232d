"""Files of numpy, .npy and .npz, whose content is not trusted, and arrays as elements of a type."""

from __future__ import annotations

import contextlib
import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from .. import _mxrt
from ._errors import ModelError
from ._model import MOST_BYTES

__all__ = ["Archive", "array_of_npy", "arrays_of_npz", "as_type", "has_label", "is_npz", "shape_of_npy", "write_npz"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

_MAGIC_NPY = b"\x93NUMPY"
_MAGIC_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# What numpy, zipfile and the libraries that they call raise for damaged files.
_DAMAGED = (
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
# So much of the words of another library is shown.
_WORDS = 200


@contextlib.contextmanager
def _reading(name: str, kind: str, function: str) -> Iterator[None]:
    """A block in which every error of a damaged file becomes one that names the file."""
    try:
        yield
    except _DAMAGED as error:
        words = str(error) or type(error).__name__
        shown = words if len(words) <= _WORDS else f"{words[:_WORDS]}..."
        raise ModelError(f"'{name}' is a damaged {kind} file: {shown}; write it again by {function}") from None


def is_npz(head: bytes) -> bool:
    """Whether a file begins as an .npz does."""
    return head.startswith(_MAGIC_ZIP)


def _header(file: IO[bytes]) -> tuple[Shape, bool, np.dtype[Any]]:
    """Shape, whether the first index is the fastest, and element type that an .npy file says."""
    major, _ = np.lib.format.read_magic(file)
    if major not in (1, 2, 3):
        raise ValueError(f"its format has version {major}, expected 1 to 3")
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    try:
        shape, fortran, dtype = read(file)
    except MemoryError:  # of Python's parser
        raise ValueError("its head is too deep") from None
    if not all(type(extent) is int and extent >= 0 for extent in shape):
        raise ValueError(f"its shape is {shape}, expected whole numbers")
    return shape, fortran, dtype


def shape_of_npy(file: IO[bytes], name: str) -> Shape:
    """The shape that an .npy file says."""
    with _reading(name, ".npy", "numpy.save"):
        return _header(file)[0]


def array_of_npy(content: bytes, name: str, kinds: str = "biuf") -> Array:
    """The array of an .npy file with elements of these kinds. ModelError, with the name of the
    file, where there is none.
    """
    file = io.BytesIO(content)
    with _reading(name, ".npy", "numpy.save"):
        shape, fortran, dtype = _header(file)
    if dtype.kind not in kinds:
        raise ModelError(f"'{name}' holds an array of {dtype}; expected real numbers")
    # Before there is memory for what a damaged head says.
    needed, there = math.prod(shape) * dtype.itemsize, len(content) - file.tell()
    if needed > there:
        raise ModelError(
            f"'{name}' is a truncated .npy file: its array of shape {shape} and type {dtype} takes {needed} bytes, and "
            f"{there} are there; copy it again, or write it again by numpy.save"
        )
    with _reading(name, ".npy", "numpy.save"):
        values = np.frombuffer(content, dtype, math.prod(shape), file.tell()) if needed else np.zeros(0, dtype)
        return values.copy().reshape(shape, order="F" if fortran else "C")


class Archive:
    """An .npz file: arrays by name, which are read when they are asked for.

    ModelError, with the name of the file, where it is none, is damaged or too large.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._name = name
        with self._reading():
            file.seek(0)
            head = file.read(4)
        if not is_npz(head):
            advice = _mxrt.recognise(head + file.read(60))
            rest = f". {advice}" if advice else "; expected one that numpy.savez wrote"
            raise ModelError(f"'{name}' is no .npz file{rest}")
        with self._reading():
            self._archive = zipfile.ZipFile(file)
            entries = self._archive.infolist()
        if sum(entry.file_size for entry in entries) > MOST_BYTES:
            raise ModelError(f"'{name}' unpacks to more than {MOST_BYTES} bytes; expected arrays of one batch")
        self._entries: dict[str, zipfile.ZipInfo] = {}
        for entry in entries:
            array = entry.filename.removesuffix(".npy")
            if array in self._entries:
                raise ModelError(f"'{name}' has two arrays '{array}'; expected one, as numpy.savez writes")
            self._entries[array] = entry

    def _reading(self) -> contextlib.AbstractContextManager[None]:
        return _reading(self._name, ".npz", "numpy.savez")

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._entries)

    def array(self, name: str, kinds: str = "biuf") -> Array:
        """The array of a name, which is there, with elements of these kinds."""
        entry = self._entries[name]
        with self._reading(), self._archive.open(entry) as source:
            content = source.read(entry.file_size + 1)
        return array_of_npy(content, f"{self._name}:{entry.filename}", kinds)

    def shape(self, name: str) -> Shape:
        """The shape of the array of a name, which is there."""
        entry = self._entries[name]
        with self._reading(), self._archive.open(entry) as source:
            return shape_of_npy(source, f"{self._name}:{entry.filename}")


def arrays_of_npz(file: IO[bytes], name: str, wanted: Sequence[str]) -> dict[str, Array]:
    """The arrays of an .npz by the names of inputs (or `in.` and the name). ModelError where one
    lacks.
    """
    archive = Archive(file, name)
    held = archive.names
    found = {}
    for one in wanted:
        key = next((key for key in (one, f"in.{one}") if key in held), None)
        if key is None:
            there = ", ".join(sorted(held)[:8]) or "nothing"
            raise ModelError(f"'{name}' has no array '{one}'; it has {there}, expected {', '.join(wanted)}")
        found[one] = archive.array(key)
    return found


def has_label(name: str) -> bool:
    """Whether a file is an .npz with an array `label`: the class of each row. ModelError for a
    damaged .npz.
    """
    if not Path(name).is_file():
        return False
    with open(name, "rb") as file:
        return is_npz(file.read(4)) and "label" in Archive(file, name).names


def write_npz(file: Path, arrays: Mapping[str, Array]) -> None:
    """Writes arrays of any names; those of arguments of `numpy.savez` cannot be given to it."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, value, allow_pickle=False)


def as_type(value: Array, dtype: str, what: str) -> Array:
    """The array with elements of the type of an input, which `what` names, as contiguous memory.

    Floating-point numbers are rounded. ModelError where an element does not fit: integers keep
    their values, and finite numbers stay finite.
    """
    target = np.dtype("float32" if dtype == "bfloat16" else dtype)
    with np.errstate(all="ignore"):
        made = np.ascontiguousarray(value).astype(target, copy=False).reshape(value.shape)
        if value.dtype == target:
            return made
        if target.kind == "f":
            lost = np.isfinite(value) & ~np.isfinite(made)
            expected = f"numbers up to {float(np.finfo(target).max):.6g}"
        else:
            lost = (made.astype(value.dtype) != value) | ((made < 0) != (value < 0))
            bounds = (0, 1) if target.kind == "b" else (np.iinfo(target).min, np.iinfo(target).max)
            expected = f"whole numbers from {bounds[0]} to {bounds[1]}"
    if lost.any():
        place = tuple(int(one) for one in np.argwhere(lost)[0])
        raise ModelError(
            f"element {place} of {what} is {value[place]}, which {dtype} does not hold; expected {expected}"
        )
    return made
