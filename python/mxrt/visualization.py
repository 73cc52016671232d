"""Graphs as tables and drawings: ``mx.viz``."""

from __future__ import annotations

import json  # noqa: F401 (a name of MXNet's module)
import math
import re
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Mapping, Sequence
from typing import Any

from .base import MXNetNotImplementedError, MXNetRuntimeWarning, warn
from .symbol import Symbol

__all__ = ["Digraph", "plot_network", "print_summary"]

_Node = dict[str, Any]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def _shapes(symbol: Symbol, shape: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The shapes of all outputs inside a graph, without the first axis, by name."""
    internals = symbol.get_internals()
    _, found, _ = internals.infer_shape(**shape)
    if found is None:
        raise ValueError("Input shape is incomplete")
    return {name: tuple(one[1:]) for name, one in zip(internals.list_outputs(), found, strict=True)}


def _joined(numbers: Sequence[int]) -> str:
    return "x".join(str(number) for number in numbers)


# ---- tables --------------------------------------------------------------------------------------


class _Summary:
    """The rows of a table of layers."""

    def __init__(self, symbol: Symbol, shape: Mapping[str, tuple[int, ...]] | None) -> None:
        graph = symbol._as_data(remove_amp_cast=True)
        self.nodes: list[_Node] = graph["nodes"]
        self.shapes = None if shape is None else _shapes(symbol, shape)
        # As MXNet has it: node, output and version of the first result, all taken for numbers of
        # nodes.
        self.heads = set(graph["heads"][0])

    def _shape(self, place: int) -> tuple[int, ...]:
        node = self.nodes[place]
        name = node["name"] if node["op"] == "null" else f"{node['name']}_output"
        return (self.shapes or {}).get(name, ())

    def before(self, node: _Node) -> list[int]:
        """The nodes, other than parameters, that a node reads."""
        places = [place for place, *_ in node.get("inputs", [])] if node["op"] != "null" else []
        return [place for place in places if self.nodes[place]["op"] != "null" or place in self.heads]

    def parameters(self, place: int) -> int:
        """How many parameters the layer of a node has."""
        node = self.nodes[place]
        attrs = node.get("attrs", {})
        channels: int = sum(self._shape(one)[0] for one in self.before(node) if self._shape(one))
        if node["op"] == "Convolution":
            filters, groups = int(attrs["num_filter"]), int(attrs.get("num_group", "1"))
            count = channels * filters // groups * math.prod(_numbers(attrs["kernel"]))
            return count if attrs.get("no_bias") == "True" else count + filters
        if node["op"] == "FullyConnected":
            biases = 0 if attrs.get("no_bias") == "True" else 1
            return (channels + biases) * int(attrs["num_hidden"])
        if node["op"] == "BatchNorm":
            return int(self._shape(place)[0]) * 2 if self.shapes is not None else 0
        if node["op"] == "Embedding":
            return int(attrs["input_dim"]) * int(attrs["output_dim"])
        return 0

    def shown(self, place: int) -> str:
        """The output shape of a node, as the table has it."""
        return _joined(self._shape(place)) if self.nodes[place]["op"] != "null" or place in self.heads else ""


def print_summary(
    symbol: Symbol,
    shape: Mapping[str, tuple[int, ...]] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Prints a table of layers: type, output shape, number of parameters, and where their inputs
    come from.

    `shape` has the shapes of inputs by name; without it there are no shapes, and no numbers that
    depend on them. `positions` are where columns end, as parts of `line_length` or as numbers of
    characters.
    """
    if not isinstance(symbol, Symbol):
        raise TypeError("symbol must be Symbol")
    summary = _Summary(symbol, shape)
    ends = [int(line_length * part) if positions[-1] <= 1 else int(part) for part in positions]

    def row(*fields: Any) -> None:
        line = ""
        for field, end in zip(fields, ends, strict=True):
            line = (line + str(field))[:end].ljust(end)
        print(line)

    print("_" * line_length)
    row("Layer (type)", "Output Shape", "Param #", "Previous Layer")
    print("=" * line_length)
    total = 0
    for place, node in enumerate(summary.nodes):
        if node["op"] == "null" and place > 0:
            continue
        count = summary.parameters(place)
        total += count
        first, *others = [summary.nodes[one]["name"] for one in summary.before(node)] or [""]
        row(f"{node['name']}({node['op']})", summary.shown(place), count, first)
        for name in others:
            row("", "", "", name)
        print(("=" if place == len(summary.nodes) - 1 else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


# ---- drawings ------------------------------------------------------------------------------------

_COLOURS = {
    **dict.fromkeys(("Convolution", "FullyConnected"), "#fb8072"),
    **dict.fromkeys(("Activation", "LeakyReLU"), "#ffffb3"),
    **dict.fromkeys(("Concat", "Flatten", "Reshape"), "#fdb462"),
    "null": "#8dd3c7",
    "BatchNorm": "#bebada",
    "Pooling": "#80b1d3",
    "Softmax": "#b3de69",
}
_OTHER = "#fccde5"
_WEIGHTS = ("_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean")


def _quoted(text: str) -> str:
    """A name or value as the language of graphviz has it."""
    plain = re.fullmatch(r"[a-zA-Z_]\w*|-?(\.\d+|\d+(\.\d*)?)", text, re.ASCII)
    if plain and text.lower() not in ("node", "edge", "graph", "digraph", "subgraph", "strict"):
        return text
    return '"' + text.replace('"', '\\"') + '"'


class Digraph:
    """A drawing in the language of graphviz, where the package ``graphviz`` is not installed.

    ``source`` is the text, ``save`` writes it to a file; ``dot -Tpdf FILE`` draws it.
    """

    def __init__(self, name: str, format: str = "pdf") -> None:
        self.name = name
        self.format = format
        self.body: list[str] = []

    @property
    def source(self) -> str:
        """The whole text."""
        return "\n".join([f"digraph {_quoted(self.name)} {{", *self.body, "}"])

    def __str__(self) -> str:
        return self.source

    @staticmethod
    def _attrs(label: str | None, attrs: Mapping[str, str]) -> str:
        parts = [] if label is None else [f"label={_quoted(label)}"]
        parts += [f"{_quoted(key)}={_quoted(attrs[key])}" for key in sorted(attrs)]
        return f" [{' '.join(parts)}]" if parts else ""

    def node(self, name: str, label: str | None = None, **attrs: str) -> None:
        """Adds a node."""
        self.body.append(f"\t{_quoted(name)}{self._attrs(label, attrs)}")

    def edge(self, tail_name: str, head_name: str, label: str | None = None, **attrs: str) -> None:
        """Adds an edge."""
        self.body.append(f"\t{_quoted(tail_name)} -> {_quoted(head_name)}{self._attrs(label, attrs)}")

    def save(self, filename: str | None = None) -> str:
        """Writes the text to a file, ``NAME.gv`` by default, and returns its name."""
        path = filename or f"{self.name}.gv"
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.source + "\n")
        return path

    def render(self, *args: Any, **kwargs: Any) -> str:
        """Refused: drawing needs the package ``graphviz``."""
        raise MXNetNotImplementedError(
            "drawing needs graphviz: pip install 'mxrt[viz]', and its programs from the system; or save() the text "
            "and draw that elsewhere"
        )

    view = render


def _label(node: _Node) -> str:
    """The text in the box of a node."""
    op, attrs = node["op"], node.get("attrs", {})
    if op == "Convolution":
        stride = _joined(_numbers(attrs["stride"])) if "stride" in attrs else "1"
        return f"Convolution\n{_joined(_numbers(attrs['kernel']))}/{stride}, {attrs['num_filter']}"
    if op == "FullyConnected":
        return f"FullyConnected\n{attrs['num_hidden']}"
    if op in ("Activation", "LeakyReLU"):
        return f"{op}\n{attrs.get('act_type', 'Leaky')}"
    if op == "Pooling":
        kernel = _joined(_numbers(attrs["kernel"])) if "kernel" in attrs else "[]"
        stride = _joined(_numbers(attrs["stride"])) if "stride" in attrs else "1"
        return f"Pooling\n{attrs.get('pool_type', 'max')}, {kernel}/{stride}"
    return str(attrs["op_type"] if op == "Custom" else node["name"])


def plot_network(
    symbol: Symbol,
    title: str = "plot",
    save_format: str = "pdf",
    shape: Mapping[str, tuple[int, ...]] | None = None,
    dtype: Mapping[str, Any] | None = None,
    node_attrs: Mapping[str, str] | None = None,
    hide_weights: bool = True,
) -> Any:
    """A drawing of a graph: a ``graphviz.Digraph`` if that package is installed, else a
    :class:`Digraph` of our own.

    `shape` and `dtype` of inputs, by name, put shapes and types on the edges; `node_attrs` are
    attributes of graphviz for nodes. With `hide_weights` parameters are left out.
    """
    if not isinstance(symbol, Symbol):
        raise TypeError("symbol must be a Symbol")
    shapes = None if shape is None else _shapes(symbol, shape)
    types = None if dtype is None else _types(symbol, dtype)
    nodes: list[_Node] = symbol._as_data(remove_amp_cast=True)["nodes"]
    names = [node["name"] for node in nodes]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        warn(
            "There are multiple variables with the same name in your graph, this may result in cyclic graph. Repeated "
            "names: " + ",".join(repeated),
            MXNetRuntimeWarning,
        )
    common = {"shape": "box", "fixedsize": "true", "width": "1.3", "height": "0.8034", "style": "filled"}
    common.update(node_attrs or {})
    drawing = _drawing(title, save_format)
    hidden = set()
    for node in nodes:
        if node["op"] == "null" and node["name"].endswith(_WEIGHTS):
            if hide_weights:
                hidden.add(node["name"])
            continue
        own = {"fillcolor": _COLOURS.get(node["op"], _OTHER), **({"shape": "oval"} if node["op"] == "null" else {})}
        drawing.node(name=node["name"], label=_label(node), **{**common, **own})
    for node in nodes:
        inputs = node.get("inputs", [])
        for place, *_ in inputs[:1] if node["op"] == "_contrib_BilinearResize2D" else inputs:
            source = nodes[place]
            if source["name"] not in hidden:
                name = _output(source)
                text = "" if shapes is None else _joined(shapes[name])
                text += "" if types is None else f"({types[name]})"
                drawing.edge(tail_name=node["name"], head_name=source["name"], label=text, dir="back", arrowtail="open")
    return drawing


def _drawing(title: str, save_format: str) -> Any:
    try:
        import graphviz  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return Digraph(title, save_format)
    return graphviz.Digraph(name=title, format=save_format)


def _output(node: _Node) -> str:
    """The name of a node's output, the last one of several."""
    if node["op"] == "null":
        return str(node["name"])
    count = node.get("attrs", {}).get("num_outputs")
    return f"{node['name']}_output" + ("" if count is None else str(int(count) - 1))


def _types(symbol: Symbol, dtype: Mapping[str, Any]) -> dict[str, str]:
    """The element types of all outputs inside a graph, by name."""
    internals = symbol.get_internals()
    _, found, _ = internals.infer_type(**dtype)
    if found is None:
        raise ValueError("Input type is incomplete")
    return {name: one.__name__ for name, one in zip(internals.list_outputs(), found, strict=True)}
