"""The files of a MODEL of the command line: a prefix, a symbol file, a folder or an archive."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _mxrt
from .._system import temporary
from ..base import MXNetDataError, MXNetFileNotFoundError
from ._errors import ModelError, UsageError

if TYPE_CHECKING:
    from ..gluon import SymbolBlock
    from ..symbol import Symbol

__all__ = ["MOST_BYTES", "Files", "Loaded", "add_model_arguments", "find", "load", "open_model", "unpack"]

Shape = tuple[int, ...]

MODEL = "PREFIX, PREFIX-NNNN, a -symbol.json, a folder, or a .zip, .mar or .tar.gz with a model"
# An archive unpacks to at most this number of bytes.
MOST_BYTES = 4 << 30
_LARGEST_NOTE = 1 << 20


@dataclass(frozen=True)
class Files:
    """The files of a model.

    `said` is what the user wrote; `folder` is that of the model, with its labels and notes.
    """

    said: str
    symbol: Path
    params: Path | None
    folder: Path

    @property
    def name(self) -> str:
        """The name of the model: that of its symbol file without the ending."""
        return self.symbol.name.removesuffix(".json").removesuffix("-symbol")

    def shown(self, path: Path) -> str:
        """A path for messages: what is in an archive is named with it."""
        if str(path).startswith(self.said) or not Path(self.said).is_file() or path.samefile(self.said):
            return str(path)
        if path.parent == Path(self.said).parent:
            return str(path)
        return f"{self.said}:{path.name}"

    def check_apart(self, target: Path | None, option: str, others: Iterable[str | Path | None] = ()) -> None:
        """UsageError where the file to write is one of the model, or another one that the command
        reads or writes.
        """
        if target is None or (target.exists() and not target.is_file()):
            return
        for path, role in [
            *((path, "belongs to the model") for path in (self.said, self.symbol, self.params)),
            *((path, "is read or written by the same command") for path in others),
        ]:
            if path is not None and _is_same(Path(path), target):
                raise UsageError(f"{option} '{target}' {role}; name another file")


def add_model_arguments(parser: argparse.ArgumentParser, params: bool = True) -> None:
    """Declares the arguments that say which model is meant; `--params` where the command has none
    of its own.
    """
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("--epoch", type=int, metavar="N", help="number of the parameter file (otherwise the highest)")
    if params:
        parser.add_argument("--params", metavar="FILE", help="parameter file of another name")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="[NAME=]N,C,H,W",
        help="shape of an input; the first extent is the batch (needed where the model does not say it)",
    )


def _is_same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def find(model: str | os.PathLike[str], params: str | None = None, epoch: int | None = None) -> Files:
    """The files of a MODEL. An archive is unpacked into a temporary folder, which is removed when
    the command ends. UsageError if there are none, or several; ModelError for a damaged archive.
    """
    said = os.fspath(model)
    if epoch is not None and not 0 <= epoch < 1 << 64:
        raise UsageError(f"--epoch is {epoch}; expected the number of a parameter file, which is not negative")
    if params is not None and not Path(params).is_file():
        raise UsageError(f"there is no file '{params}' (--params)")

    def new_folder() -> Path:
        folder = temporary.new_name()
        temporary.unpacked(folder, Path(said))
        return folder

    with _as_of_commands():
        symbol, found = _mxrt.find_model(said, params, epoch, MOST_BYTES, new_folder)
    path = Path(os.fsdecode(symbol))
    return Files(said, path, None if found is None else Path(os.fsdecode(found)), path.parent)


def unpack(path: Path, most: int = MOST_BYTES) -> Path | None:
    """Unpacks an archive into a temporary folder, which is removed when the command ends. None if
    the path is no archive. ModelError if it is damaged, or has too much of anything.
    """
    folder = temporary.new_name()
    with _as_of_commands():
        is_archive = _mxrt.unpack_archive(path, most, folder)
    if not is_archive:
        temporary.remove(folder)
        return None
    temporary.unpacked(folder, path)
    return folder


@contextlib.contextmanager
def _as_of_commands() -> Iterator[None]:
    """Raises the errors of commands in place of those of the library."""
    try:
        yield
    except MXNetFileNotFoundError as error:
        raise UsageError(error.args[0]) from None
    except MXNetDataError as error:
        raise ModelError(error.args[0]) from None


@dataclass(frozen=True)
class Loaded:
    """A model that is ready to be called.

    `assumed` says which shapes are guesses that follow from the parameters.
    """

    files: Files
    graph: Symbol
    net: SymbolBlock
    shapes: Mapping[str, Shape]
    dtypes: Mapping[str, str]
    assumed: str | None

    @cached_property
    def data(self) -> dict[str, Shape]:
        """Shapes of the inputs, labels left out, which only training reads."""
        labels = self.graph._labels()
        names = [name for name in self.shapes if name not in labels] or list(self.shapes)
        return {name: self.shapes[name] for name in names}


def load(files: Files) -> Symbol:
    """The graph of a model."""
    from .. import symbol as symbols

    return symbols.load(str(files.symbol))


def open_model(args: argparse.Namespace, data: Mapping[str, Shape] | None = None) -> Loaded:
    """The model that the arguments of a command name, with the shapes of its inputs; `data` has
    shapes of arrays at hand, by their names.
    """
    from ..gluon import SymbolBlock
    from ._shapes import input_shapes, input_types, needs_parameters

    files = find(args.model, args.params, args.epoch)
    graph = load(files)
    if files.params is None and needs_parameters(graph, args.shape):
        raise UsageError(
            f"there is no file '{files.folder / f'{files.name}-0000.params'}' with the parameters of "
            f"'{files.symbol.name}'; --params names one that is elsewhere"
        )
    shapes, assumed = input_shapes(files, graph, args.shape, data)
    net = SymbolBlock.imports(str(files.symbol), list(shapes), str(files.params) if files.params else None)
    if files.params is None:
        net.initialize()
    return Loaded(files, graph, net, shapes, input_types(graph, net, shapes), assumed)


def note(folder: Path, name: str) -> Any:
    """The content of a small JSON file next to a model; None where there is none."""
    path = folder / name
    if not path.is_file():
        return None
    if path.stat().st_size > _LARGEST_NOTE:
        raise ModelError(f"'{path}' has more than {_LARGEST_NOTE} bytes; expected a short JSON file")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"'{path}' is no JSON: {error}") from None
