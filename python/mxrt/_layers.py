"""The layers of a graph: what each makes, how many parameters it has, how much it computes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .symbol import Symbol

__all__ = ["Layer", "described_inputs", "layers_of", "macs"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """An operator of a graph, for inputs of certain shapes.

    `macs` counts multiplications with an addition; None where shapes are not known.
    """

    name: str
    operator: str
    output: Shape | None
    parameters: int
    macs: int | None


def layers_of(graph: Symbol, shapes: Mapping[str, Shape], held: Mapping[str, Shape]) -> list[Layer]:
    """The layers in the order of the graph."""
    internals = graph.get_internals()
    _, found, _ = internals.infer_shape_partial(**{**held, **shapes})
    outputs = dict(zip(internals.list_outputs(), found or (), strict=False))
    nodes = json.loads(graph.tojson(remove_amp_cast=False))["nodes"]
    made: list[Shape | None] = []
    counted: set[str] = set()
    layers = []
    for node in nodes:
        name = node["name"]
        if node["op"] == "null":
            made.append(held.get(name) or shapes.get(name))
            continue
        output = _known(outputs.get(f"{name}_output") or outputs.get(f"{name}_output0") or _first(outputs, name))
        inputs = [made[number] if output_of == 0 else None for number, output_of, *_ in node["inputs"]]
        own = {nodes[number]["name"] for number, *_ in node["inputs"]} & held.keys() - counted
        counted |= own
        size = sum(math.prod(held[one]) for one in own)
        made.append(output)
        layers.append(Layer(name, node["op"], output, size, macs(node["op"], node.get("attrs") or {}, inputs, output)))
    return layers


def _first(outputs: Mapping[str, Any], name: str) -> Any:
    return next((shape for key, shape in outputs.items() if key.startswith(f"{name}_")), None)


def _known(shape: Any) -> Shape | None:
    return tuple(shape) if shape and min(shape) > 0 else None


def macs(operator: str, attrs: Mapping[str, str], inputs: list[Shape | None], output: Shape | None) -> int | None:
    """Multiplications with an addition of one call; 0 for operators that multiply no matrices."""
    if operator in ("Convolution", "FullyConnected", "Deconvolution"):
        weight = inputs[1] if len(inputs) > 1 else None
        data = inputs[0] if inputs else None
        if weight is None or output is None or data is None:
            return None
        if operator == "Deconvolution":
            return math.prod(data) * math.prod(weight[1:])
        return math.prod(output) * math.prod(weight[1:])
    if operator in ("dot", "batch_dot", "linalg_gemm2", "_linalg_gemm2"):
        data = inputs[0] if inputs else None
        if data is None or output is None or not data:
            return None
        turned = attrs.get("transpose_a", "False") in ("True", "1", "true")
        return math.prod(output) * data[-2 if turned and len(data) > 1 else -1]
    if operator == "RNN":
        weight = inputs[1] if len(inputs) > 1 else None
        data = inputs[0] if inputs else None
        return None if weight is None or data is None else math.prod(weight) * math.prod(data[:2])
    return 0


def described_inputs(graph: Symbol, names: Sequence[str], held: Mapping[str, Shape | None]) -> list[tuple[str, str]]:
    """Names of inputs with what is known of their shapes: what the symbol says, or what the first
    layer needs; `held` are the shapes of parameters.
    """
    said = graph._variable_attrs()
    nodes = json.loads(graph.tojson(remove_amp_cast=False))["nodes"]
    return [(name, said.get(name, {}).get("__shape__") or _needed(nodes, name, held)) for name in names]


def _needed(nodes: Sequence[Mapping[str, Any]], name: str, held: Mapping[str, Shape | None]) -> str:
    places = [number for number, node in enumerate(nodes) if node["op"] == "null" and node["name"] == name]
    for node in nodes:
        if len(node["inputs"]) < 2 or node["inputs"][0][0] not in places:
            continue
        weight = held.get(nodes[node["inputs"][1][0]]["name"])
        if weight is None or min(weight, default=0) < 1:
            continue
        if node["op"] == "Convolution" and len(weight) == 4:
            return f"(N, {weight[1] * int((node.get('attrs') or {}).get('num_group', 1))}, H, W)"
        if node["op"] == "FullyConnected":
            return f"(N, {weight[1]})"
    return "of any shape"
