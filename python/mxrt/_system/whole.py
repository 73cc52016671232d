"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..base import MXNetDataError
from . import temporary

__all__ = ["whole", "whole_model"]

# Characters of a name that the unfinished file has: names may be as long as the file system allows.
_NAME_CHARS = 40


@contextlib.contextmanager
def whole(target: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a file to write, which takes the place of `target` at the end of the block.

    If the block fails, an older file stays. Links are followed, and still are links afterwards.
    Devices and pipes are written directly.
    """
    target = Path(target)
    if target.exists() and not target.is_file():
        yield target
        return
    place = Path(os.path.realpath(target))
    unfinished = place.with_name(f".{place.name[:_NAME_CHARS]}.{os.getpid()}.part")
    with temporary.file(unfinished):
        yield unfinished
        if place.exists():
            shutil.copymode(place, unfinished)
        unfinished.replace(place)


@contextlib.contextmanager
def whole_model(symbol: str | os.PathLike[str], params: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """The paths of the two files of a model to write, as that of :func:`whole`.

    Both take their places, or neither. Errors have the names that the files will have.
    """
    with whole(params) as numbers, whole(symbol) as graph:
        try:
            yield graph, numbers
        except MXNetDataError as error:
            text = error.message.replace(str(numbers), str(params)).replace(str(graph), str(symbol))
            raise type(error)(f"{text}; nothing was saved") from None
        except OSError as error:
            raise MXNetDataError(f"'{params}' cannot be written: {error.strerror}; nothing was saved") from None
