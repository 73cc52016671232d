"""Operators of a graph that compute something else while training, and graphs that compute it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .symbol import Symbol

__all__ = ["CUSTOM_TRAINS", "OPERATORS", "training_form"]

CUSTOM_TRAINS = "mxrt:is_train"
"""An attribute of Custom nodes in such a graph; no keyword of a program has this name."""

Node = dict[str, Any]
Input = list[int]  # a node, one of its outputs, a version that is always 0


class _Nodes(list[Node]):
    """The nodes of a graph that is being made."""

    def add(self, op: str, name: str, inputs: list[Input], **attrs: object) -> Input:
        """Appends a node; returns its first output."""
        self.append({"op": op, "name": name, "inputs": inputs, "attrs": {key: str(v) for key, v in attrs.items()}})
        return [len(self) - 1, 0, 0]


def _on(value: str | None) -> bool:
    return value in ("True", "true", "1")


# ---- what the operators compute -----------------------------------------------------------------
# Each function appends what computes a node, and returns the outputs; None stands for those of the
# last node that it appended.


def _drop(nodes: _Nodes, node: Node) -> None:
    nodes.append({**node, "attrs": {**node.get("attrs", {}), "mode": "always"}})


def _tell(nodes: _Nodes, node: Node) -> None:
    nodes.append({**node, "attrs": {**node["attrs"], CUSTOM_TRAINS: "True"}})


def _normalise(nodes: _Nodes, node: Node) -> None:
    """BatchNorm with the statistics of the batch."""
    name, attrs, inputs = node["name"], node.get("attrs", {}), node["inputs"]
    over = {"axis": attrs.get("axis", "1"), "exclude": True}
    # Statistics have the type of gamma: that of float16 is float32.
    wide = nodes.add("amp_multicast", f"{name}_batch_wide", inputs[:2], num_outputs=2)
    mean = nodes.add("mean", f"{name}_batch_mean", [wide], **over)
    kept = nodes.add("mean", f"{name}_batch_center", [wide], **over, keepdims=True)
    apart = nodes.add("broadcast_sub", f"{name}_batch_apart", [wide, kept])
    square = nodes.add("square", f"{name}_batch_square", [apart])
    variance = nodes.add("mean", f"{name}_batch_var", [square], **over)
    nodes.append({**node, "inputs": [*inputs[:3], mean, variance], "attrs": {**attrs, "use_global_stats": "True"}})


def _leak(nodes: _Nodes, node: Node) -> list[Input]:
    """LeakyReLU with a random slope for every negative element; the slopes are an output."""
    name, attrs, data = node["name"], node["attrs"], node["inputs"][0]
    bounds = {"low": attrs.get("lower_bound", "0.125"), "high": attrs.get("upper_bound", "0.334")}
    slopes = nodes.add("_random_uniform_like", f"{name}_slopes", [data], **bounds)
    above = nodes.add("_greater_scalar", f"{name}_above", [data], scalar=0)
    ones = nodes.add("ones_like", f"{name}_ones", [data])
    mask = nodes.add("where", f"{name}_mask", [above, ones, slopes])
    return [nodes.add("elemwise_mul", name, [data, mask]), mask]


def _recur(nodes: _Nodes, node: Node) -> list[Input]:
    """An RNN for each layer, with Dropout between them."""
    name, attrs = node["name"], node["attrs"]
    data, parameters, *others = node["inputs"]
    count = 2 if attrs["mode"] == "lstm" else 1
    states, lengths = others[:count], others[count:]
    layers, size = int(attrs["num_layers"]), int(attrs["state_size"])
    directions = 2 if _on(attrs.get("bidirectional")) else 1
    projection = attrs.get("projection_size", "None")
    hidden = size if projection == "None" else int(projection)
    gates = size * {"lstm": 4, "gru": 3}.get(attrs["mode"], 1)
    # The parameters are the weights of all layers, then all biases. How many weights the first
    # layer has depends on the data, so that all are counted from the end.
    biases = directions * 2 * gates
    weights = directions * (gates * (directions + 1) * hidden + (0 if projection == "None" else size * hidden))

    def part(of: Input, what: str, begin: int, end: int) -> Input:
        return nodes.add("slice_axis", f"{name}_{what}", [of], axis=0, begin=begin, end=end or None)

    last: list[list[Input]] = [[] for _ in states]
    for layer in range(layers):
        behind = layers - 1 - layer
        begin = 0 if layer == 0 else -layers * biases - (behind + 1) * weights
        own = part(parameters, f"weights{layer}", begin, -layers * biases - behind * weights)
        bias = part(parameters, f"biases{layer}", -(behind + 1) * biases, -behind * biases)
        packed = nodes.add("Concat", f"{name}_parameters{layer}", [own, bias], dim=0, num_args=2)
        first = layer * directions
        begins = [part(state, f"begin{layer}_{i}", first, first + directions) for i, state in enumerate(states)]
        if layer > 0:
            data = nodes.add("Dropout", f"{name}_dropout{layer}", [data], p=attrs["p"], mode="always")
        only = {**attrs, "num_layers": 1, "p": 0}
        data = nodes.add("RNN", f"{name}_layer{layer}", [data, packed, *begins, *lengths], **only)
        for place, ends in enumerate(last):
            ends.append([data[0], 1 + place, 0])
    if not _on(attrs.get("state_outputs")):
        return [data]
    joined = [nodes.add("Concat", f"{name}_ends{i}", ends, dim=0, num_args=layers) for i, ends in enumerate(last)]
    return [data, *joined]


def _normalise_inside(nodes: _Nodes, node: Node) -> None:
    """BatchNorm in a loop or branch. Moving averages stay inputs of the inner graph, whose inputs
    have fixed places.
    """
    _normalise(nodes, node)
    made, moving = nodes[-1], node["inputs"][3:5]
    nodes.pop()
    kept = [
        nodes.add("_identity_with_attr_like_rhs", f"{node['name']}_batch_kept{place}", [of_batch, of_model])
        for place, (of_batch, of_model) in enumerate(zip(made["inputs"][3:5], moving, strict=True))
    ]
    nodes.append({**made, "inputs": [*made["inputs"][:3], *kept]})


Rewrite = Callable[[_Nodes, Node], "list[Input] | None"]
OPERATORS: dict[str, tuple[Rewrite, Callable[[dict[str, str]], bool]]] = {
    **dict.fromkeys(
        ("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU"),
        (_normalise, lambda attrs: not _on(attrs.get("use_global_stats"))),
    ),
    "Custom": (_tell, lambda attrs: True),
    "Dropout": (_drop, lambda attrs: float(attrs.get("p", "0.5")) > 0 and attrs.get("mode") != "always"),
    "LeakyReLU": (_leak, lambda attrs: attrs.get("act_type") == "rrelu"),
    "RNN": (_recur, lambda attrs: float(attrs.get("p", "0")) > 0 and int(attrs["num_layers"]) > 1),
}
"""Operators that differ in training: how a node is rewritten, and whether attributes make it so."""


def _nodes_of(graph: dict[str, Any]) -> Iterator[Node]:
    for node in graph["nodes"]:
        yield node
        for inner in node.get("subgraphs", []):
            yield from _nodes_of(inner)


def _differs(node: Node) -> bool:
    found = OPERATORS.get(node["op"])
    return found is not None and found[1](node.get("attrs", {}))


def training_form(symbol: Symbol, outside: bool = True, inside: bool = True) -> Symbol:
    """A graph that computes what `symbol` computes while training; `symbol` itself where that is
    the same.

    `outside` and `inside` say what trains: the operators outside loops and branches, and those
    inside. For executors of MXNet `is_train` decides outside, and the mode of the thread inside.
    """
    from .symbol import load_json

    graph = json.loads(symbol.tojson(remove_amp_cast=False))
    nodes = list(graph["nodes"]) if outside else []
    if inside:
        own = {id(node) for node in graph["nodes"]}
        nodes += [node for node in _nodes_of(graph) if id(node) not in own]
    differing = [node for node in nodes if _differs(node)]
    if not differing:
        return symbol
    return load_json(json.dumps(_rewritten(graph, {id(node) for node in differing})))


def _rewritten(graph: dict[str, Any], differing: set[int], is_inner: bool = False) -> dict[str, Any]:
    """The graph with other nodes for those that differ, by their identity."""
    nodes = _Nodes()
    places: list[list[Input] | int] = []  # for each node its outputs, or the node that has the same

    def moved(one: Input) -> Input:
        place = places[one[0]]
        return [place, one[1], 0] if isinstance(place, int) else place[one[1]]

    for node in graph["nodes"]:
        made = {**node, "inputs": [moved(one) for one in node["inputs"]]}
        if "subgraphs" in node:
            made["subgraphs"] = [_rewritten(inner, differing, True) for inner in node["subgraphs"]]
        outputs = None
        if id(node) not in differing:
            nodes.append(made)
        else:
            rewrite = OPERATORS[node["op"]][0]
            outputs = (_normalise_inside if is_inner and rewrite is _normalise else rewrite)(nodes, made)
        places.append(outputs or len(nodes) - 1)
    heads = [moved(one) for one in graph["heads"]]
    extra = {key: graph[key] for key in ("attrs",) if key in graph}
    return {**extra, **_compact(nodes, heads)}


def _compact(nodes: list[Node], heads: list[Input]) -> dict[str, Any]:
    """The graph without variables that nothing reads any more."""
    used = {of for node in nodes for of, *_ in node["inputs"]} | {of for of, *_ in heads}
    kept = [place for place, node in enumerate(nodes) if place in used or node["op"] != "null"]
    number = {place: number for number, place in enumerate(kept)}
    listed = [
        {**nodes[place], "inputs": [[number[of], *rest] for of, *rest in nodes[place]["inputs"]]} for place in kept
    ]
    return {
        "nodes": listed,
        "arg_nodes": [place for place, node in enumerate(listed) if node["op"] == "null"],
        "node_row_ptr": list(range(len(listed) + 1)),
        "heads": [[number[of], *rest] for of, *rest in heads],
    }
