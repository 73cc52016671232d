"""The layers of a model under another engine, compared one by one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import symbol as symbols
from .._system import temporary
from ..base import MXNetError
from ..bench import to_onnx
from ..bench.peer import engines
from ..bench.peers import PeerError, Process
from ..gluon import SymbolBlock
from ..ndarray import array
from ._errors import ModelError, UsageError
from ._model import Loaded

__all__ = ["compare_layers"]

Array = np.ndarray[Any, Any]
Report = Callable[..., None]


def compare_layers(
    model: Loaded, feeds: Mapping[str, Array], against: Sequence[str], atol: float, rtol: float, report: Report
) -> None:
    """Runs a graph that gives the output of every layer here and in another engine, and reports the
    first layer that differs, or that none does. Layers that depend on random numbers are left out.

    ModelError where the other engine cannot run the model; UsageError where it is not there.
    """
    engine, said = against
    python = shutil.which(said) or said
    layers, graph = _every_layer(model)
    feeds = {name: feeds.get(name, np.zeros(shape, "float32")) for name, shape in model.shapes.items()}
    with temporary.folder() as folder:
        files = _Files(folder, model, graph)
        net = SymbolBlock.imports(str(files.symbol), list(feeds), files.params)
        own = _answers(net, feeds)
        version, other = _other(files, feeds, engine, python)
        if len(own) != len(other):
            raise ModelError(f"{engine} gives {len(other)} outputs, mxrt {len(own)}: the layers cannot be compared")
        wrong = {
            number: words
            for number, pair in enumerate(zip(own, other, strict=True))
            if (words := _difference(*pair, engine, atol, rtol))
        }
        random = _random(own, _answers(net, feeds)) if wrong else []
    for number in random:
        wrong.pop(number, None)
    compared = len(layers) - len(random)
    what = f"layers as under {engine} {version}"
    left_out = ""
    if random:
        name, operator = layers[random[0]]
        left_out = f"; {len(random)} depend on random numbers, first {operator} '{name}', and are not compared"
    if not wrong:
        report(what, True, f"all {compared} agree{left_out}", engine=engine, layers=compared)
        return
    first, words = next(iter(wrong.items()))
    name, operator = layers[first]
    rest = f"; of {compared} layers {len(wrong)} differ" if len(wrong) > 1 else ""
    words = f"the first that differs is {operator} '{name}': {words}{rest}{left_out}"
    report(what, False, words, engine=engine, layer=name)


def _difference(found: Array, wanted: Array, engine: str, atol: float, rtol: float) -> str | None:
    """Says how the output of a layer differs from that of another engine; None where it agrees."""
    from .check import worst_error

    if found.size != wanted.size:
        return f"its shape is {found.shape}, under {engine} {wanted.shape}"
    wanted = wanted.reshape(found.shape)
    finite = np.abs(wanted[np.isfinite(wanted)])
    largest = float(finite.max()) if finite.size else 0.0
    worst, good, where = worst_error(found, wanted, atol * max(1.0, largest), rtol)
    return None if good else f"by {worst:.3g} at {where}, where the largest value is {largest:.3g}"


def _random(first: Sequence[Array], second: Sequence[Array]) -> list[int]:
    """Numbers of the layers whose outputs are different in two calls with the same inputs."""
    pairs = enumerate(zip(first, second, strict=True))
    return [number for number, (one, other) in pairs if one.tobytes() != other.tobytes()]


def _remedy(engine: str, python: str, error: str) -> str:
    """The command that installs an engine, where it is not installed, as the end of a sentence."""
    if not any(f"No module named '{one}'" in error for one in (engine, "numpy")):
        return ""
    old = " 'numpy<1.24'" if engine == "mxnet" else ""
    return f"; '{python}' gets it by: {python} -m pip install {engine}{old}"


def _every_layer(model: Loaded) -> tuple[list[tuple[str, str]], Any]:
    """Names and operators of the layers, and a graph with their first outputs."""
    nodes = model.graph._as_data()
    numbers = [number for number, node in enumerate(nodes["nodes"]) if node["op"] != "null"]
    nodes["heads"] = [[number, 0, 0] for number in numbers]
    layers = [(nodes["nodes"][number]["name"], nodes["nodes"][number]["op"]) for number in numbers]
    return layers, symbols.load_json(json.dumps(nodes))


class _Files:
    """Files of the graph with all layers, for both engines."""

    def __init__(self, folder: Path, model: Loaded, graph: Any) -> None:
        self.folder, self.graph, self.shapes = folder, graph, model.shapes
        self.symbol = folder / "layers-symbol.json"
        graph.save(str(self.symbol), remove_amp_cast=False)
        self.params = str(model.files.params)
        self.values = {name: one.data() for name, one in model.net.collect_params().items()}


def _answers(net: SymbolBlock, feeds: Mapping[str, Array]) -> list[Array]:
    answer = net(*(array(value, dtype=value.dtype) for value in feeds.values()))
    return [one.asnumpy() for one in (answer if isinstance(answer, list) else [answer])]


def _other(files: _Files, feeds: Mapping[str, Array], engine: str, python: str) -> tuple[str, list[Array]]:
    """The version of the other engine and its answers."""
    onnx = None
    if engine == "onnxruntime":
        onnx = str(files.folder / "layers.onnx")
        try:
            values = {name: value.asnumpy() for name, value in files.values.items()}
            to_onnx.export(files.graph, values, {name: value.shape for name, value in feeds.items()}, Path(onnx))
        except (to_onnx.Untranslatable, MXNetError) as error:
            raise ModelError(
                f"onnxruntime needs the model as ONNX, which cannot be written: {error}; --against mxnet needs no ONNX"
            ) from None
    given = files.folder / "inputs.npz"
    np.savez(given, *feeds.values())
    answers = files.folder / "outputs.npz"
    content = engines.Model(symbol=str(files.symbol), params=files.params, onnx=onnx, inputs=list(feeds))
    try:
        with Process(engine, python) as process:
            version = process.ask("load", model=content, setting={})["version"]
            process.ask("inputs", arrays=str(given))
            process.ask("outputs", file=str(answers))
    except PeerError as error:
        raise UsageError(f"--against {engine}: {error}{_remedy(engine, python, str(error))}") from None
    with np.load(answers) as saved:
        return version, [saved[f"arr_{number}"] for number in range(len(saved.files))]
