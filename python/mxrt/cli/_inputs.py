"""The INPUTs of `mxrt run` and `mxrt check`: files, folders, patterns, the standard input, random
numbers.
"""

from __future__ import annotations

import codecs
import glob
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _mxrt
from .._system import temporary
from ..base import MXNetError
from ._arrays import Archive, array_of_npy, arrays_of_npz, is_npz, shape_of_npy
from ._errors import ModelError, UsageError
from ._images import is_image, no_image, other_image
from ._model import Loaded

__all__ = [
    "MOST_ROWS",
    "Item",
    "calls_of",
    "count_of",
    "is_random",
    "items_of",
    "places_of",
    "random_arrays",
    "shapes_in",
    "text_of",
]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

_IMAGES = (".jpg", ".jpeg", ".png")
_EXPECTED = "a JPEG, PNG, .npy, .npz, .csv or .rec file"
MOST_ROWS = 64
"""Rows of a table or of records that are answered together."""
_MAGIC_NPY = b"\x93NUMPY"
_MAGIC_RECORDS = (0xCED7230A).to_bytes(4, "little")
# Spreadsheets and shells begin text with one.
_MARKS_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKS = (codecs.BOM_UTF8, *_MARKS_UTF16)
_STANDARD_INPUT = "the standard input"
# Of a line that ends with a comma: programs write rows of numbers so, and a number may be missing.
_OPEN_ENDED = " before an empty cell at its end"


@dataclass(frozen=True)
class Item:
    """One call: its name for people, and a function that makes the arrays of the inputs."""

    name: str
    arrays: Callable[[], Mapping[str, Array]]


def items_of(words: Sequence[str], model: Loaded, image: Callable[[bytes, str], Array]) -> Iterator[Item]:
    """The calls that the INPUTs of a command line ask for. `image` makes an input of a file.

    UsageError, before any call, where an INPUT is not there; a file that cannot be used becomes a
    call that says so, and the others are answered.
    """
    return calls_of(places_of(words), model, image)


def places_of(words: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """The files of each INPUT; none for the standard input and random numbers. UsageError where one
    is not there.
    """
    return [(word, [] if word == "-" or is_random(word) else _files_of(word)) for word in words]


def count_of(places: Sequence[tuple[str, Sequence[Path]]]) -> int | None:
    """The number of calls, where the names of files say it: each image is one; None otherwise."""
    paths = [path for _, paths in places for path in paths]
    if all(paths for _, paths in places) and all(path.suffix.lower() in _IMAGES for path in paths):
        return len(paths)
    return None


def is_random(word: str) -> bool:
    """Whether an INPUT means random numbers, and no file of that name."""
    return word == "random" and not Path(word).exists()


def calls_of(
    places: Sequence[tuple[str, Sequence[Path]]], model: Loaded, image: Callable[[bytes, str], Array]
) -> Iterator[Item]:
    """The calls for the INPUTs that :func:`places_of` found."""
    shapes = dict(model.data)
    if model.assumed:  # files say it
        shapes = {name: (-1,) * len(shape) for name, shape in shapes.items()}
    for word, paths in places:
        if word == "-":
            yield from _or_why_not(_STANDARD_INPUT, _of_standard_input(shapes, model.dtypes, image))
        elif not paths:
            yield Item("random", lambda: random_arrays(model.data, model.dtypes))
        for path in paths:
            yield from _or_why_not(str(path), _of_file(path, shapes, model.dtypes, image))


def _or_why_not(name: str, calls: Iterator[Item]) -> Iterator[Item]:
    """The calls of a file; where it ends in an error, the last one raises it."""
    try:
        yield from calls
    except (ModelError, MXNetError, OSError) as error:
        found = error

        def fail() -> Mapping[str, Array]:
            raise found

        yield Item(name, fail)


def _of_standard_input(
    shapes: Mapping[str, Shape], dtypes: Mapping[str, str], image: Callable[[bytes, str], Array]
) -> Iterator[Item]:
    try:
        content = sys.stdin.buffer.read()
    except OSError as error:
        raise ModelError(f"{_STANDARD_INPUT} cannot be read: {error.strerror}; expected {_EXPECTED}") from None
    if not content:
        raise ModelError(f"{_STANDARD_INPUT} is empty; expected {_EXPECTED}: redirect one into the command")
    yield from _of_content(_STANDARD_INPUT, lambda: content, content, shapes, dtypes, image)


def _of_file(
    path: Path, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], image: Callable[[bytes, str], Array]
) -> Iterator[Item]:
    with path.open("rb") as file:
        head = file.read(64)
    yield from _of_content(str(path), path.read_bytes, head, shapes, dtypes, image)


def shapes_in(words: Sequence[str]) -> dict[str, Shape]:
    """Shapes of the arrays of .npy and .npz files, for models that do not say those of their
    inputs. A lone array is that of the only input, under the name "".
    """
    found: dict[str, Shape] = {}
    for word in words:
        path = Path(word)
        if not path.is_file():
            continue
        with path.open("rb") as file:
            head = file.read(6)
            file.seek(0)
            try:
                if head == _MAGIC_NPY:
                    found.setdefault("", shape_of_npy(file, word))
                elif is_npz(head):
                    archive = Archive(file, word)
                    for key in archive.names[:1000]:
                        name = key[key.rindex("in.") + 3 :] if "in." in key else key
                        found.setdefault(name, archive.shape(key))
            except ModelError:
                continue  # reading the values says what is wrong
    return {name: shape for name, shape in found.items() if shape and min(shape) > 0}


def random_arrays(shapes: Mapping[str, Shape], dtypes: Mapping[str, str]) -> dict[str, Array]:
    """Normally distributed numbers, the same ones every time; whole numbers from 0 to 1."""
    rng = np.random.RandomState(0)
    found: dict[str, Array] = {}
    for name, shape in shapes.items():
        kind = "float32" if dtypes[name] == "bfloat16" else dtypes[name]
        whole = np.dtype(kind).kind in "iub"
        found[name] = rng.randint(0, 2, shape).astype(kind) if whole else rng.standard_normal(shape).astype(kind)
    return found


def _files_of(word: str) -> list[Path]:
    path = Path(word)
    if not word:
        raise UsageError("an INPUT is empty; expected the name of a file, - for the standard input, or random")
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.suffix.lower() in _IMAGES and one.is_file())
        if not found:
            raise UsageError(f"the folder '{word}' has no images; expected files that end in {', '.join(_IMAGES)}")
        return found
    if path.is_file():
        if not os.access(path, os.R_OK):
            raise UsageError(f"'{word}' cannot be read: permission denied")
        return [path]
    if any(sign in word for sign in "*?["):
        matches = [Path(one) for one in sorted(glob.glob(word, recursive=True)) if Path(one).is_file()]
        if matches:
            return matches
        raise UsageError(f"no file matches '{word}'")
    raise UsageError(
        f"there is no file '{word}'; INPUT is an image, a folder of images, a pattern, an .npy, .npz, .csv or .rec, "
        "- for the standard input, or random"
    )


def _of_content(
    name: str,
    read: Callable[[], bytes],
    head: bytes,
    shapes: Mapping[str, Shape],
    dtypes: Mapping[str, str],
    image: Callable[[bytes, str], Array],
) -> Iterator[Item]:
    """The calls for one file, whose kind follows from its first bytes."""

    def rows_of_table() -> Iterator[Item]:
        only = _single(name, "one table", shapes)
        return _rows_of(name, {only: _table(read(), name, shapes, dtypes[only])}, shapes)

    if is_image(head):
        only = _single(name, "one image", shapes)
        yield Item(name, lambda: {only: image(read(), name)})
    elif head.startswith(_MAGIC_NPY):
        yield from _rows_of(name, {_single(name, "one array", shapes): array_of_npy(read(), name)}, shapes)
    elif is_npz(head):
        yield from _rows_of(name, arrays_of_npz(io.BytesIO(read()), name, list(shapes)), shapes)
    elif head.startswith(_MAGIC_RECORDS):
        yield from _of_records(name, read, _single(name, "images", shapes), image)
    elif not head:
        raise ModelError(f"'{name}' is empty; expected {_EXPECTED}: copy or download it again")
    elif other_image(head) is not None:
        raise no_image(head, name)
    elif head.startswith(_MARKS) and _is_table(name, head):
        yield from rows_of_table()
    elif (advice := _mxrt.recognise(head)) is not None:
        raise ModelError(f"'{name}' is no input. {advice}")
    elif _is_table(name, head):
        yield from rows_of_table()
    elif name.lower().endswith(_IMAGES):
        raise no_image(head, name)
    else:
        raise ModelError(f"'{name}' is no input: it begins with {head[:8]!r}; expected {_EXPECTED}")


def _is_table(name: str, head: bytes) -> bool:
    """Whether a file has rows of numbers, by its name; the standard input, which is without one, by
    a line that begins with a number.
    """
    if name == _STANDARD_INPUT:
        return any(re.match(r"\s*[-+.]?\d", line) for line in text_of(head[: 1 << 20]).splitlines()[:3])
    return name.lower().endswith((".csv", ".txt"))


def _single(name: str, what: str, shapes: Mapping[str, Shape]) -> str:
    """The only input, for a file that has values of one."""
    if len(shapes) != 1:
        raise UsageError(
            f"'{name}' has {what}, and the model has the inputs {', '.join(shapes)}: give an .npz with an array of "
            "each name"
        )
    return next(iter(shapes))


def _table(content: bytes, name: str, shapes: Mapping[str, Shape], dtype: str) -> Array:
    """The rows of a file of numbers with commas, as elements of this type or wider ones; a first
    line of titles, without a number, is left out.
    """
    only = next(iter(shapes))
    known = min(shapes[only]) >= 0
    columns = int(np.prod(shapes[only][1:], dtype="int64")) if known else -1
    reason = f"as the input '{only}' has the shape {shapes[only]}"
    rows: list[list[int | float]] = []
    titles = ""
    number_of, bounds = _parser(dtype)
    for number, line in enumerate(text_of(content).splitlines(), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        open_ended = len(cells) > 1 and not cells[-1]
        if open_ended:
            cells.pop()
        try:
            row = [number_of(cell) for cell in cells if cell]
        except ValueError:
            words = [cell for cell in cells if cell and not _is_number(cell, number_of)]
            if number == 1 and len(words) == sum(map(bool, cells)):
                titles = f"; line 1, {line[:60]!r}, is taken for titles"
                continue
            beside = "; titles are a first line without numbers" if number == 1 else ""
            raise ModelError(
                f"'{name}', line {number}: cell {cells.index(words[0]) + 1} is {words[0][:40]!r}; expected numbers "
                f"with commas{beside}"
            ) from None
        if "" in cells:
            raise ModelError(f"'{name}', line {number}: cell {cells.index('') + 1} is empty; expected a number in each")
        outside = next(
            (cell for cell, one in zip(cells, row, strict=True) if bounds and not _is_within(one, bounds)), None
        )
        if bounds and outside is not None:
            raise ModelError(
                f"'{name}', line {number} has {outside[:40]}, which {dtype} does not hold; expected whole numbers from "
                f"{bounds[0]} to {bounds[1]}"
            )
        if columns < 0:
            columns, reason = len(row), f"as line {number} has{_OPEN_ENDED if open_ended else ''}"
        if len(row) != columns:
            has = f"{len(row)} columns{_OPEN_ENDED if open_ended else ''}"
            raise ModelError(f"'{name}', line {number} has {has}; expected {columns}, {reason}")
        rows.append(row)
    if not rows:
        count = f"{columns} " if columns > 0 else ""
        raise ModelError(f"'{name}' has no rows{titles}; expected lines of {count}numbers with commas")
    if not known and len(shapes[only]) > 2:
        raise UsageError(
            f"'{name}' has rows of numbers for the input '{only}', whose shape is not known: --shape says it"
        )
    return np.array(rows, dtype if bounds else "float64").reshape(len(rows), *shapes[only][1:])


def _parser(dtype: str) -> tuple[Callable[[str], int | float], tuple[int, int] | None]:
    """A function that reads a cell, which raises ValueError, and the bounds of an integer type,
    whose numbers are read without rounding.
    """

    def number(cell: str) -> float:
        if "_" in cell:  # Python has them in its own numbers
            raise ValueError(cell)
        return float(cell)

    def whole(cell: str) -> int | float:
        if re.fullmatch(r"[-+]?[0-9]{1,30}", cell):
            return int(cell)
        return number(cell)

    if dtype == "bfloat16" or np.dtype(dtype).kind == "f":
        return number, None
    limits = np.iinfo("uint8" if dtype == "bool" else dtype)
    return whole, (int(limits.min), 1 if dtype == "bool" else int(limits.max))


def _is_number(cell: str, number_of: Callable[[str], int | float]) -> bool:
    try:
        number_of(cell)
    except ValueError:
        return False
    return True


def _is_within(number: int | float, bounds: tuple[int, int] | None) -> bool:
    """Whether a number is a whole one within bounds, where there are any."""
    return bounds is None or (bounds[0] <= number <= bounds[1] and number == int(number))


def text_of(content: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 where its byte order mark says so."""
    return content.decode("utf-16" if content.startswith(_MARKS_UTF16) else "utf-8-sig", "replace")


def _rows_of(name: str, arrays: Mapping[str, Array], shapes: Mapping[str, Shape]) -> Iterator[Item]:
    """Calls of some rows each. A single sample without a batch is one row."""
    shaped = {}
    for key, value in arrays.items():
        wanted = shapes[key]
        if value.ndim == len(wanted) - 1:
            value = value[None]
        fits = zip(value.shape[1:], wanted[1:], strict=False)
        if value.ndim != len(wanted) or not all(there == extent or extent < 0 for there, extent in fits):
            raise ModelError(
                f"'{name}' has an array of shape {arrays[key].shape} for the input '{key}'; expected (rows, "
                f"{', '.join('any' if extent < 0 else str(extent) for extent in wanted[1:])})"
            )
        shaped[key] = value
    counts = {value.shape[0] for value in shaped.values()}
    if len(counts) != 1:
        raise ModelError(
            f"'{name}' has arrays of {' and '.join(map(str, sorted(counts)))} rows; expected as many of each"
        )
    count = counts.pop()
    if count == 0:
        raise ModelError(f"'{name}' has no rows")
    for first in range(0, count, MOST_ROWS):
        last = min(first + MOST_ROWS, count)
        where = name if count <= MOST_ROWS else f"{name}[{first}:{last}]"
        part = {key: value[first:last] for key, value in shaped.items()}
        yield Item(where, lambda part=part: part)  # type: ignore[misc]


def _of_records(
    name: str, read: Callable[[], bytes], only: str, image: Callable[[bytes, str], Array]
) -> Iterator[Item]:
    if name != _STANDARD_INPUT:
        yield from _of_record_file(name, name, only, image)
        return
    with temporary.folder() as folder:
        path = folder / "records"
        try:
            path.write_bytes(read())
        except OSError as error:
            raise ModelError(
                f"records of {name} cannot be kept in '{folder.parent}': {error.strerror}; free some space there, "
                "or name another folder by TMPDIR"
            ) from None
        try:
            yield from _of_record_file(str(path), name, only, image)
        except MXNetError as error:
            raise ModelError(str(error).replace(str(path), name)) from None


def _of_record_file(path: str, name: str, only: str, image: Callable[[bytes, str], Array]) -> Iterator[Item]:
    from ..recordio import MXRecordIO, unpack

    records = MXRecordIO(path, "r")
    try:
        number = 0
        while (record := records.read()) is not None:
            where = f"{name}[{number}]"
            try:
                _, content = unpack(record)
            except (MXNetError, ValueError) as error:
                raise ModelError(f"'{where}' is no record of an image: {error}; write the file again") from None
            yield Item(where, lambda content=content, where=where: {only: image(bytes(content), where)})  # type: ignore[misc]
            number += 1
    finally:
        records.close()
