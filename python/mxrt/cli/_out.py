"""Results of commands: tables, numbers, JSON, colours."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .._system.whole import whole
from ._errors import ModelError

__all__ = ["counted", "megabytes", "note", "print_json", "saved_in", "shape_text", "style", "table", "visible"]

_STYLES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "dim": "2"}
_COLOURS = frozenset(f"\x1b[{code}m" for code in ("0", *_STYLES.values()))
_CONTROLS = re.compile(r"\x1b\[\d+m|[\x00-\x1f\x7f-\x9f]")


def style(text: str, name: str) -> str:
    """Text in a colour, where a terminal shows it and NO_COLOR is not set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()
    return text if plain else f"\x1b[{_STYLES[name]}m{text}\x1b[0m"


def note(command: str, text: str) -> None:
    """Says something next to the results."""
    print(f"mxrt {command}: {visible(text)}", file=sys.stderr)


@contextlib.contextmanager
def saved_in(target: str | Path) -> Iterator[Path]:
    """The path of a file to write, which takes the place of `target` at the end of the block.

    ModelError that names `target` where it cannot be written: an older file stays.
    """
    try:
        with whole(target) as unfinished:
            yield unfinished
    except OSError as error:
        raise ModelError(f"'{target}' cannot be written: {error.strerror}; nothing was saved") from None


def print_json(value: Any) -> None:
    """Prints a JSON value, a line for each list of plain values; numbers that it lacks are null."""
    print(_as_json(value, ""))


def _as_json(value: Any, indent: str) -> str:
    inner = f"{indent}  "
    if isinstance(value, dict) and value:
        rows = ",\n".join(f"{inner}{json.dumps(str(key))}: {_as_json(one, inner)}" for key, one in value.items())
        return f"{{\n{rows}\n{indent}}}"
    if isinstance(value, (list, tuple)) and any(isinstance(one, (dict, list, tuple)) for one in value):
        rows = ",\n".join(f"{inner}{_as_json(one, inner)}" for one in value)
        return f"[\n{rows}\n{indent}]"
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "  ") -> str:
    """Rows below titles. Columns of numbers are set to the right. On a terminal long words are cut
    to its width, in a file nothing is.
    """
    cells = [[visible(str(one)) for one in row] for row in rows]
    widths = [max(len(row[column]) for row in [list(titles), *cells]) for column in range(len(titles))]
    numeric = [
        bool(cells)
        and all(
            row[column].replace(".", "").replace(",", "").strip("%-+e").isdigit() or row[column] in ("", "-")
            for row in cells
        )
        for column in range(len(titles))
    ]
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns - len(indent) - 2 * (len(titles) - 1)
        while sum(widths) > room and max(widths) > 12:
            widths[widths.index(max(widths))] -= 1

    def line(row: Sequence[str]) -> str:
        words = []
        for text, width, right in zip(row, widths, numeric, strict=True):
            text = text if len(text) <= width else text[: width - 1] + "…"
            words.append(text.rjust(width) if right else text.ljust(width))
        return (indent + "  ".join(words)).rstrip()

    return "\n".join([style(line(list(titles)), "bold"), *(line(row) for row in cells)])


def visible(text: str, kept: str = "", colours: bool = False) -> str:
    """Text whose control characters, such as those of a name in a file, are written as escapes; all
    but those to be kept, and those of colours.
    """

    def escaped(match: re.Match[str]) -> str:
        found = match[0]
        return found if found in kept or (colours and found in _COLOURS) else found.encode("unicode_escape").decode()

    return _CONTROLS.sub(escaped, text)


def counted(number: int, name: str) -> str:
    """A number of things: 1 core, 2 cores."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def megabytes(count: float) -> str:
    """Bytes for people."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def shape_text(shape: Sequence[int]) -> str:
    """A shape as Python writes it."""
    return str(tuple(shape))
