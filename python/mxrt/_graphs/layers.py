"""The layers of a graph: what each makes, how many parameters it has, how much it computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["Layer", "described_inputs", "extents_needed", "layers_of", "macs"]

Shape = tuple[int, ...]

# Layers whose inputs begin with data and weights.
_CONVOLUTIONS = ("Convolution", "_sg_mkldnn_conv", "_contrib_quantized_conv")
_DENSE = ("FullyConnected", "_sg_mkldnn_fully_connected", "_contrib_quantized_fully_connected")
# Operators whose result has the shape of what they read.
_SAME_SHAPE = (
    *("BatchNorm", "_copy", "identity", "Cast", "cast", "amp_cast", "Activation"),
    *("_contrib_quantize", "_contrib_quantize_v2"),
)


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
    """The layers in the order of the graph. What is computed of parameters alone is none: its
    parameters are those of the layers that read it.
    """
    internals = graph.get_internals()
    _, found, _ = internals.infer_shape_partial(**{**held, **shapes})
    outputs = dict(zip(internals.list_outputs(), found or (), strict=False))
    nodes = graph._as_data()["nodes"]
    made: list[Shape | None] = []
    # The parameters that each node is computed of; None where there is more.
    of: list[frozenset[str] | None] = []
    counted: set[str] = set()
    layers = []
    for node in nodes:
        name = node["name"]
        if node["op"] == "null":
            made.append(held.get(name) or shapes.get(name))
            of.append(frozenset([name]) if name in held else None)
            continue
        output = _known(outputs.get(f"{name}_output") or outputs.get(f"{name}_output0") or _first(outputs, name))
        inputs = [made[number] if output_of == 0 else None for number, output_of, *_ in node["inputs"]]
        read = [of[number] for number, *_ in node["inputs"]]
        parameters = frozenset[str]().union(*filter(None, read))
        made.append(output)
        if read and None not in read:
            of.append(parameters)
            continue
        of.append(None)
        own = parameters - counted
        counted |= own
        size = sum(math.prod(held[one]) for one in own)
        layers.append(Layer(name, node["op"], output, size, macs(node["op"], node.get("attrs") or {}, inputs, output)))
    return layers


def _first(outputs: Mapping[str, Any], name: str) -> Any:
    return next((shape for key, shape in outputs.items() if key.startswith(f"{name}_")), None)


def _known(shape: Any) -> Shape | None:
    return tuple(shape) if shape and min(shape) > 0 else None


def macs(operator: str, attrs: Mapping[str, str], inputs: list[Shape | None], output: Shape | None) -> int | None:
    """Multiplications with an addition of one call; 0 for operators that multiply no matrices."""
    if operator in (*_CONVOLUTIONS, *_DENSE, "Deconvolution"):
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
    nodes = graph._as_data()["nodes"]
    return [(name, said.get(name, {}).get("__shape__") or _needed(nodes, name, held)) for name in names]


def _needed(nodes: Sequence[Mapping[str, Any]], name: str, held: Mapping[str, Shape | None]) -> str:
    found = extents_needed(nodes, name, held)
    if found is None:
        return "of any shape"
    channels, image = found
    return f"(N, {channels}, H, W)" if image else f"(N, {channels})"


def extents_needed(
    nodes: Sequence[Mapping[str, Any]], name: str, held: Mapping[str, Shape | None]
) -> tuple[int, bool] | None:
    """The channels that the first layer of an input takes, and whether it takes images; None where
    its weights do not tell. `nodes` are those of a symbol file.
    """
    # What an input becomes without a change of its shape.
    same = {number for number, node in enumerate(nodes) if node["op"] == "null" and node["name"] == name}
    for number, node in enumerate(nodes):
        if node["op"] == "null" or not node["inputs"] or node["inputs"][0][0] not in same:
            continue
        if node["op"] in _SAME_SHAPE or node["op"].endswith("_scalar"):
            same.add(number)
            continue
        weight = _weight(nodes, node, held)
        if node["op"] in _CONVOLUTIONS and weight is not None and len(weight) == 4:
            return weight[1] * _groups(node), True
        if node["op"] in _DENSE and weight is not None and len(weight) > 1:
            return weight[1], False
    return None


def _weight(nodes: Sequence[Mapping[str, Any]], node: Mapping[str, Any], held: Mapping[str, Shape | None]) -> Any:
    """The shape of the weights of a layer, which may be stored as integers; None if not known."""
    if len(node["inputs"]) < 2:
        return None
    source = nodes[node["inputs"][1][0]]
    while source["op"] in ("broadcast_mul", "Cast", "amp_cast"):
        source = nodes[source["inputs"][0][0]]
    weight = held.get(source["name"])
    return None if weight is None or min(weight, default=0) < 1 else weight


def _groups(node: Mapping[str, Any]) -> int:
    """The groups of a convolution, or of the one in a fused layer."""
    inner = [one for graph in node.get("subgraphs", ()) for one in graph["nodes"] if one["op"] == "Convolution"]
    attrs = (inner[0] if inner else node).get("attrs") or {}
    return int(attrs.get("num_group", 1))
