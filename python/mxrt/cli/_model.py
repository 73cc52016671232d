"""The files of a MODEL of the command line: a prefix, a symbol file, a folder or an archive."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _mxrt
from ._errors import ModelError, UsageError

if TYPE_CHECKING:
    from ..gluon import SymbolBlock
    from ..symbol import Symbol

__all__ = ["Files", "Loaded", "add_model_arguments", "find", "load", "open_model"]

Shape = tuple[int, ...]

MODEL = "PREFIX, PREFIX-NNNN, a -symbol.json, a folder, or a .zip, .mar or .tar.gz with a model"
# A file of numbered parameters.
_NUMBERED = re.compile(r"(.+)-(\d{4,})(?:\.params)?")
# Folders are looked into so deep, and so many of their entries.
_DEPTH, _MOST_ENTRIES = 3, 20_000
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


def find(model: str, params: str | None = None, epoch: int | None = None) -> Files:
    """The files of a MODEL. UsageError if there are none, or several; ModelError for a damaged
    archive.
    """
    path = Path(model)
    if params is not None and not Path(params).is_file():
        raise UsageError(f"there is no file '{params}' (--params)")
    if path.is_dir():
        found = _in_folder(path, model, epoch)
    elif path.is_file():
        found = _of_file(path, model, epoch)
    else:
        found = _of_prefix(path, model, epoch)
    if params is not None:
        return Files(found.said, found.symbol, Path(params), found.folder)
    return found


def _of_file(path: Path, said: str, epoch: int | None) -> Files:
    if not os.access(path, os.R_OK):
        raise UsageError(f"'{path}' cannot be read: permission denied; expected {MODEL}")
    if path.suffix == ".json":
        return _with_params(said, path, epoch)
    from ._archive import is_archive, unpack  # here, as most models are no archives: 4 ms

    if is_archive(path):
        return _in_folder(unpack(path), said, epoch)
    if path.suffix == ".params" or path.name == "params":
        numbered = _NUMBERED.fullmatch(path.stem)
        stem = numbered[1] if numbered else path.stem
        for symbol in (path.with_name(f"{stem}-symbol.json"), path.with_name("symbol.json")):
            if symbol.is_file():
                return Files(said, symbol, path, path.parent)
        raise UsageError(
            f"'{path}' holds parameters, and there is no '{stem}-symbol.json' next to it; a model is both files, as "
            "net.export() of Gluon and save_checkpoint write them"
        )
    if path.suffix == ".onnx":
        raise ModelError(
            f"'{path}' is a model of ONNX, which mxrt does not read: convert it with MXNet's "
            "mxnet.contrib.onnx.import_model, and save it with mxnet.model.save_checkpoint"
        )
    with path.open("rb") as file:
        advice = _mxrt.recognise(file.read(512))
    raise ModelError(f"'{path}' is no model: expected {MODEL}" + (f". {advice}" if advice else ""))


def _of_prefix(path: Path, said: str, epoch: int | None) -> Files:
    symbol = path.with_name(path.name + "-symbol.json")
    if path.name and symbol.is_file():
        return _with_params(said, symbol, epoch)
    numbered = _NUMBERED.fullmatch(path.name)
    if numbered:
        symbol_of = path.with_name(f"{numbered[1]}-symbol.json")
        if symbol_of.is_file():
            return _with_params(said, symbol_of, int(numbered[2]) if epoch is None else epoch)
    missing = path if path.suffix == ".json" else symbol
    raise UsageError(f"there is no file '{missing}'; MODEL is {MODEL}{_nearby(path.parent)}")


def _nearby(folder: Path) -> str:
    if not folder.is_dir():
        return f", and there is no folder '{folder}'"
    found = sorted(p.name for p in folder.glob("*-symbol.json"))
    if not found:
        return f" (no *-symbol.json in '{folder}')"
    more = ", ..." if len(found) > 8 else ""
    return f" (in '{folder}' there are {', '.join(found[:8])}{more})"


def _in_folder(folder: Path, said: str, epoch: int | None, nested: bool = False) -> Files:
    """The only model in a folder, or in the folders in it."""
    files = _files_in(folder)
    symbols = [path for path in files if path.name == "symbol.json" or path.name.endswith("-symbol.json")]
    if len(symbols) == 1:
        return _with_params(said, symbols[0], epoch)
    if len(symbols) > 1:
        names = ", ".join(str(path.relative_to(folder)) for path in symbols[:8])
        more = ", ..." if len(symbols) > 8 else ""
        todo = "name" if Path(said).is_dir() else "unpack it, and name"
        raise UsageError(f"'{said}' holds {len(symbols)} models ({names}{more}); {todo} the symbol file of one of them")
    from ._archive import is_zip, unpack

    # What SageMaker's linear learner and factorization machines write is an archive in an archive.
    inner = [path for path in files if is_zip(path)]
    if len(inner) == 1 and not nested:
        return _in_folder(unpack(inner[0]), said, epoch, nested=True)
    raise UsageError(f"'{said}' holds no model: {_lacking(files)}")


def _lacking(files: list[Path]) -> str:
    networks = [path.name for path in files if path.name.endswith("-network.json")]
    if networks:
        return (
            f"'{networks[0]}' is a predictor of GluonTS whose network is Python code. Serialise it by "
            "predictor.as_symbol_block_predictor(batch), which writes a -symbol.json"
        )
    params = [path.name for path in files if path.suffix == ".params"]
    if params:
        return (
            f"'{params[0]}' are parameters alone, as save_parameters writes them; expected a -symbol.json as well, "
            "which net.export() writes"
        )
    others = ", ".join(path.name for path in files[:5]) or "nothing"
    return f"expected a file *-symbol.json, found {others}{', ...' if len(files) > 5 else ''}"


def _files_in(folder: Path) -> list[Path]:
    """The files of a folder, those nearest to its top: links to folders are not followed."""
    level, seen = [folder], 0
    for _ in range(_DEPTH):
        files: list[Path] = []
        below: list[Path] = []
        for one in level:
            try:
                entries = sorted(os.scandir(one), key=lambda entry: entry.name)
            except OSError as error:
                raise UsageError(f"the folder '{one}' cannot be read: {error.strerror}") from None
            seen += len(entries)
            if seen > _MOST_ENTRIES:
                raise UsageError(f"'{folder}' has more than {_MOST_ENTRIES} entries; name the symbol file of a model")
            files += [Path(entry.path) for entry in entries if entry.is_file()]
            below += [
                Path(entry.path)
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith((".", "__MACOSX"))
            ]
        if any(path.name.endswith(("-symbol.json", "-network.json", ".params")) for path in files) or any(
            path.name == "symbol.json" for path in files
        ):
            return files
        if not below:
            return files
        level = below
        kept = files or []
    return kept


def _with_params(said: str, symbol: Path, epoch: int | None) -> Files:
    """A symbol with its parameters: those of the epoch, or the highest number there is."""
    folder = symbol.parent
    stem = symbol.stem.removesuffix("-symbol")
    numbered = {
        int(match[2]): path
        for path in folder.glob("*.params")
        if (match := _NUMBERED.fullmatch(path.name)) and match[1] in (stem, stem.removesuffix("-quantized"))
    }
    if epoch is not None:
        if epoch not in numbered:
            there = ", ".join(str(number) for number in sorted(numbered)) or "none"
            raise UsageError(
                f"there is no file '{folder / f'{stem}-{epoch:04d}.params'}'; parameter files of '{stem}' have the "
                f"numbers {there}"
            )
        return Files(said, symbol, numbered[epoch], folder)
    if numbered:
        return Files(said, symbol, numbered[max(numbered)], folder)
    for name in (f"{stem}.params", "params"):
        if (folder / name).is_file():
            return Files(said, symbol, folder / name, folder)
    others = sorted(folder.glob("*.params"))
    alone = len(list(folder.glob("*symbol.json"))) == 1 and len(others) == 1
    return Files(said, symbol, others[0] if alone else None, folder)


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

    @property
    def data(self) -> dict[str, Shape]:
        """Shapes of the inputs, labels left out, which only training reads."""
        labels = self.graph._labels()
        names = [name for name in self.shapes if name not in labels] or list(self.shapes)
        return {name: self.shapes[name] for name in names}


def load(files: Files) -> Symbol:
    """The graph of a model."""
    from .. import symbol as symbols

    return symbols.load(str(files.symbol))


def open_model(
    args: argparse.Namespace, data: Mapping[str, Shape] | None = None, needs_parameters: bool = True
) -> Loaded:
    """The model that the arguments of a command name, with the shapes of its inputs; `data` has
    shapes of arrays at hand, by their names.
    """
    from ..gluon import SymbolBlock
    from ._shapes import input_shapes, input_types

    files = find(args.model, args.params, args.epoch)
    graph = load(files)
    if files.params is None and needs_parameters:
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
