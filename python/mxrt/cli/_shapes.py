"""Shapes and types of the inputs of a model: said, written in its files, or following from its
parameters.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._graphs.layers import extents_needed
from .._values.dtypes import dtype_name
from ..base import MXNetError
from ..gluon.parameter_dict import named_arrays, strip_kind
from ._errors import ModelError, UsageError
from ._model import Files, note
from ._out import counted

if TYPE_CHECKING:
    from ..gluon import SymbolBlock
    from ..symbol import Symbol

__all__ = [
    "check_prefix",
    "data_inputs",
    "folder_of",
    "input_shapes",
    "input_types",
    "needs_parameters",
    "shapes_of_files",
]

Shape = tuple[int, ...]

_PARAMETER_ENDINGS = ("weight", "bias", "gamma", "beta", "mean", "var", "parameters", "alpha")
# Sizes of images that are tried where a network says none: ImageNet's, digits', small pictures'.
_SIZES = (224, 28, 32, 299, 300, 512)


def data_inputs(graph: Symbol, held: Mapping[str, object] | None) -> list[str]:
    """Names of what a model is given, labels left out; `held` are its parameters, if there are
    any.
    """
    labels = graph._labels()
    if held is None:
        return [n for n in graph.list_arguments() if n not in labels and not n.endswith(_PARAMETER_ENDINGS)]
    return [name for name in graph.list_inputs() if name not in held and name not in labels]


def needs_parameters(graph: Symbol, given: Sequence[str]) -> bool:
    """Whether a graph has inputs that `--shape` does not name, and more than one."""
    names = data_inputs(graph, {})
    return len(names) > 1 and not {text.rpartition("=")[0] for text in given}.issuperset(names)


def input_shapes(
    files: Files,
    graph: Symbol,
    given: Sequence[str],
    data: Mapping[str, Shape] | None = None,
    held: Mapping[str, Shape] | None = None,
) -> tuple[dict[str, Shape], str | None]:
    """Shapes of what is no parameter, in the order of the symbol, and a sentence about those that
    nobody said. Shapes of labels follow from the others. `data` has shapes of arrays that are at
    hand, by the names of inputs, or "" for the only one; `held` has those of the parameters, which
    are read if they are not given.

    UsageError for a `--shape` that is none, and where one is needed; ModelError for parameters that
    are not in the file.
    """
    if held is None and files.params is not None:
        held = {strip_kind(name): array.shape for name, array in named_arrays(str(files.params)).items()}
    if held is None and not needs_parameters(graph, given):
        held = {}
    names = data_inputs(graph, held)
    lack = "" if held is not None else "; no parameter file was found, and --params names one"
    # First, so that parameters of another model are not taken for inputs whose shapes are unnamed.
    _check_held(files, held, names, {text.rpartition("=")[0] for text in given})
    named = _given(given, names, graph, lack)
    at_hand = {name or names[0]: shape for name, shape in (data or {}).items() if name or len(names) == 1}
    for name, shape in {**shapes_of_files(files), **_hints(graph), **at_hand}.items():
        if name in names:
            named.setdefault(name, shape)
    assumed = None
    missing = [name for name in names if name not in named]
    if missing and held is not None:
        found = _following(graph, held, named, missing)
        if found:
            named |= found
            listed = ", ".join(f"{name} {shape}" for name, shape in found.items())
            assumed = f"nobody says the shape of {listed}: it is assumed; --shape says another"
            missing = []
    if missing:
        raise UsageError(
            f"the shape of {', '.join(missing)} is not known; give it, batch first, such as "
            f"--shape {missing[0]}=1,3,224,224"
        )
    if open_labels := set(graph._labels()) - named.keys():
        inferred = graph._shapes_with_labels(named)
        named |= {name: tuple(inferred[name]) for name in open_labels if inferred.get(name)}
    return {name: named[name] for name in graph.list_inputs() if name in named}, assumed


def _given(given: Sequence[str], names: Sequence[str], graph: Symbol, lack: str) -> dict[str, Shape]:
    """Reads the shapes of `--shape`."""
    named: dict[str, Shape] = {}
    for text in given:
        name, equals, shape = text.rpartition("=")
        if not equals and len(names) != 1:
            raise UsageError(f"the model has the inputs {', '.join(names)}: say --shape NAME=... for each{lack}")
        name = name if equals else names[0]
        if name in named:
            raise UsageError(f"--shape says the shape of '{name}' twice; once is enough")
        named[name] = _shape(shape)
    unknown = [name for name in named if name not in graph.list_inputs()]
    if unknown:
        raise UsageError(f"the model has no input '{unknown[0]}'; it has {', '.join(names)}")
    return named


def _check_held(files: Files, held: Mapping[str, object] | None, names: Sequence[str], named: Collection[str]) -> None:
    if held is None:
        return
    lacking = [name for name in names if name.endswith(_PARAMETER_ENDINGS) and name not in named]
    if lacking:
        more = ", ..." if len(lacking) > 8 else ""
        raise ModelError(
            f"'{files.params}' lacks {counted(len(lacking), 'parameter')} of the symbol: {', '.join(lacking[:8])}"
            f"{more}. Is it the file of another model? --params names the right one; an input of that name needs "
            f"--shape {lacking[0]}=..."
        )


def _hints(graph: Symbol) -> dict[str, Shape]:
    """Shapes that the symbol file itself says."""
    hints = {name: _extents(attrs.get("__shape__", "")) for name, attrs in graph._variable_attrs().items()}
    return {name: shape for name, shape in hints.items() if shape and min(shape) > 0}


def shapes_of_files(files: Files) -> dict[str, Shape]:
    """Shapes in the notes of SageMaker and of the multi-model server, of one row.

    An extent of 0 or -1 stands for any; that of the batch becomes 1, another is not known.
    """
    rows: list[tuple[Any, Any]] = []
    shapes = note(files.folder, "model-shapes.json")
    if isinstance(shapes, list):
        rows += [(row.get("name"), row.get("shape")) for row in shapes if isinstance(row, dict)]
    signature = note(files.folder, "signature.json")
    inputs = signature.get("inputs") if isinstance(signature, dict) else None
    if isinstance(inputs, list):
        rows += [(row.get("data_name"), row.get("data_shape")) for row in inputs if isinstance(row, dict)]
    found: dict[str, Shape] = {}
    for name, shape in rows:
        if not (isinstance(name, str) and isinstance(shape, list) and all(type(one) is int for one in shape) and shape):
            raise ModelError(
                f"the notes next to '{files.symbol.name}' (model-shapes.json, signature.json) give an input without a "
                "name or a shape of whole numbers; correct or remove them"
            )
        first, *rest = shape
        if all(extent > 0 for extent in rest):
            found[name] = (max(first, 1), *rest)
    return found


def _following(
    graph: Symbol, held: Mapping[str, Shape], named: Mapping[str, Shape], missing: Sequence[str]
) -> dict[str, Shape] | None:
    """Shapes of one row that fit to the parameters, where the first layer of an input tells."""
    if len(missing) != 1:
        return None
    name = missing[0]
    for shape in _candidates(graph, held, name):
        try:
            _, outputs, _ = graph.infer_shape(**{**held, **named, name: shape})
        except MXNetError:
            continue
        if outputs and all(outputs):
            return {name: shape}
    return None


def _candidates(graph: Symbol, held: Mapping[str, Shape], name: str) -> list[Shape]:
    nodes = graph._as_data()["nodes"]
    needed = extents_needed(nodes, name, held)
    if needed is None:
        return []
    channels, image = needed
    return [(1, channels, size, size) for size in _SIZES] if image else [(1, channels)]


def input_types(graph: Symbol, net: SymbolBlock, shapes: Mapping[str, Shape]) -> dict[str, str]:
    """The element type of each input: what the parameters ask for, or else float32."""
    known = {name: one.dtype for name, one in net.collect_params().items() if name in graph.list_arguments()}
    try:
        found, _, _ = graph.infer_type_partial(**known)
    except MXNetError:  # what the graph contradicts, a call says
        found = None
    types = dict(zip(graph.list_arguments(), found or (), strict=False))
    return {name: dtype_name(types[name]) if types.get(name) is not None else "float32" for name in shapes}


def _extents(text: str) -> Shape:
    """The whole numbers of a shape; none if it is something else. It may end with a comma."""
    try:
        return tuple(int(part) for part in text.strip("()[] ").replace("x", ",").removesuffix(",").split(","))
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


def folder_of(path: str | Path, option: str) -> Path:
    """A path of a file to be written, whose folder is there and can be written."""
    target = Path(path)
    folder = target.absolute().parent
    if not str(path):
        raise UsageError(f"{option} is empty; expected the name of a file")
    if not folder.is_dir():
        raise UsageError(f"{option} '{target}': there is no folder '{target.parent}'")
    if target.is_dir() or str(path).endswith(os.sep):
        raise UsageError(f"{option} '{path}' is a folder; expected the name of a file")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise UsageError(f"{option} '{target}' cannot be written: permission denied; name another place")
    return target


def check_prefix(prefix: str, name: str) -> None:
    """UsageError for a prefix of files that names a folder alone, or nothing."""
    if prefix.endswith(os.sep) or Path(prefix).name in ("", ".."):
        example = Path(prefix) / "copy"
        raise UsageError(f"{name} '{prefix}' is no prefix of the names of files; expected one such as '{example}'")
