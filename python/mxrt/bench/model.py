"""The model of a command line, and the form of its inputs."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from .. import symbol as symbols
from ..gluon.parameter_dict import named_arrays, strip_kind
from ..symbol import Symbol

__all__ = ["UsageError", "find", "input_shapes"]

Shape = tuple[int, ...]


class UsageError(Exception):
    """The command line does not say what is needed."""


def find(model: str, params: str | None) -> tuple[Path, Path | None]:
    """Symbol file and parameter file of a model."""
    symbol = Path(model)
    if symbol.is_dir():
        raise UsageError(f"'{model}' is a folder; MODEL is PREFIX or PREFIX-symbol.json{_nearby(symbol)}")
    if symbol.suffix != ".json":
        symbol = symbol.with_name(symbol.name + "-symbol.json")
    if not symbol.is_file():
        raise UsageError(f"there is no file '{symbol}'; MODEL is PREFIX or PREFIX-symbol.json{_nearby(symbol.parent)}")
    if params is not None:
        if not Path(params).is_file():
            raise UsageError(f"there is no file '{params}' (--params)")
        return symbol, Path(params)
    stem = symbol.stem.removesuffix("-symbol")
    numbered = [p for p in symbol.parent.glob("*.params") if p.stem[:-4] == f"{stem}-" and p.stem[-4:].isdigit()]
    return symbol, max(numbered, default=None, key=lambda p: p.name)


def _nearby(folder: Path) -> str:
    if not folder.is_dir():
        return f", and there is no folder '{folder}'"
    found = sorted(p.name for p in folder.glob("*-symbol.json"))
    if not found:
        return f" (no *-symbol.json in '{folder}')"
    more = ", ..." if len(found) > 8 else ""
    return f" (in '{folder}' there are {', '.join(found[:8])}{more})"


def input_shapes(graph: Symbol, params_file: Path | None, given: Sequence[str]) -> dict[str, Shape]:
    """Shapes of what is no parameter, in the order of the symbol; those of labels follow from the
    others.
    """
    hints = graph._variable_attrs()
    labels = set(graph._labels())
    shaped = {text.rpartition("=")[0] for text in given}
    if params_file is not None:
        held = {strip_kind(name) for name in named_arrays(str(params_file))}
        names = [name for name in graph.list_inputs() if name not in held and name not in labels]
        lacking = [name for name in names if _looks_like_parameter(name) and name not in shaped]
        if lacking:
            raise UsageError(
                f"'{params_file}' lacks {len(lacking)} parameters of the symbol: {', '.join(lacking[:8])}"
                f"{', ...' if len(lacking) > 8 else ''}. Is it the file of another model? --params names the right "
                f"one; an input of that name needs --shape {lacking[0]}=..."
            )
    else:
        names = [n for n in graph.list_arguments() if n not in labels and not _looks_like_parameter(n)]
    named = {}
    for text in given:
        name, equals, shape = text.rpartition("=")
        if not equals and len(names) != 1:
            raise UsageError(f"the model has the inputs {', '.join(names)}: say --shape NAME=... for each")
        name = name if equals else names[0]
        if name in named:
            raise UsageError(f"--shape says the shape of '{name}' twice; once is enough")
        named[name] = _shape(shape)
    unknown = [name for name in named if name not in graph.list_inputs()]
    if unknown:
        raise UsageError(f"the model has no input '{unknown[0]}'; it has {', '.join(names)}")
    for name in names:
        said = _extents(hints.get(name, {}).get("__shape__", ""))
        if name not in named and said and min(said) > 0:  # 0 and -1 stand for any extent
            named[name] = said
    missing = [name for name in names if name not in named]
    if missing:
        raise UsageError(
            f"the shape of {', '.join(missing)} is not known; give it, batch first, such as "
            f"--shape {missing[0]}=1,3,224,224"
        )
    if open_labels := labels - named.keys():
        inferred = graph._shapes_with_labels(named)
        named |= {name: tuple(inferred[name]) for name in open_labels if inferred.get(name)}
    return {name: named[name] for name in graph.list_inputs() if name in named}


def load(file: Path) -> Symbol:
    """The graph of a symbol file."""
    return symbols.load(str(file))


def _looks_like_parameter(name: str) -> bool:
    endings = ("weight", "bias", "gamma", "beta", "mean", "var", "parameters", "alpha")
    return name.endswith(endings)


def _extents(text: str) -> Shape:
    """The whole numbers of a shape; none if it is something else."""
    try:
        return tuple(int(part) for part in text.strip("()[] ").replace("x", ",").split(",") if part.strip())
    except ValueError:
        return ()


def _shape(text: str) -> Shape:
    shape = _extents(text)
    if not shape or min(shape) < 1:
        raise UsageError(f"'{text}' is no shape; write positive whole numbers with commas, such as 1,3,224,224")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if 4 * math.prod(shape) > memory:  # as float32
        raise UsageError(
            f"--shape {text} is too large: such an input does not fit into the {memory / 1e9:.0f} GB of this machine"
        )
    return shape
