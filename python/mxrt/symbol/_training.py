"""Operators of a graph that compute something else while training, and graphs that compute it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..base import no_training

if TYPE_CHECKING:
    from .symbol import Symbol

__all__ = ["training_form"]

_NORMS = ("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU")


def _differs(op: str, attrs: dict[str, str]) -> bool:
    if op in _NORMS:
        return attrs.get("use_global_stats", "False") not in ("True", "1")
    if op == "Dropout":
        return float(attrs.get("p", "0.5")) > 0 and attrs.get("mode", "training") != "always"
    if op == "RNN":
        return float(attrs.get("p", "0")) > 0
    if op == "LeakyReLU":
        return attrs.get("act_type") == "rrelu"
    return op in ("IdentityAttachKLSparseReg", "Custom")


def _nodes(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for node in graph["nodes"]:
        yield node
        for inner in node.get("subgraphs", []):
            yield from _nodes(inner)


def training_form(symbol: Symbol) -> Symbol:
    """A graph that computes what `symbol` computes with ``is_train=True``: Dropout drops, and
    BatchNorm takes the statistics of the batch.

    Raises TrainingNotSupportedError for other operators that compute something else.
    """
    from .symbol import load_json

    graph = json.loads(symbol.tojson(remove_amp_cast=False))
    differing = [node for node in _nodes(graph) if _differs(node["op"], node.get("attrs", {}))]
    if not differing:
        return symbol
    inner = {id(node) for node in _nodes(graph)} - {id(node) for node in graph["nodes"]}
    others = [node for node in differing if id(node) in inner or node["op"] not in ("Dropout", *_NORMS)]
    if others:
        listed = ", ".join(f"{node['op']} '{node['name']}'" for node in others[:5])
        raise no_training(f"forward(is_train=True) with operators that differ in training ({listed})")
    return load_json(json.dumps(_rewritten(graph)))


def _rewritten(graph: dict[str, Any]) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    places: list[int] = []  # where each node has gone

    def add(op: str, name: str, inputs: list[list[int]], attrs: dict[str, str]) -> list[int]:
        nodes.append({"op": op, "name": name, "inputs": inputs, "attrs": attrs})
        return [len(nodes) - 1, 0, 0]

    for node in graph["nodes"]:
        inputs = [[places[of], output, 0] for of, output, *_ in node["inputs"]]
        made = {**node, "inputs": inputs}
        op, attrs = node["op"], node.get("attrs", {})
        if _differs(op, attrs) and op == "Dropout":
            made["attrs"] = {**attrs, "mode": "always"}
        elif _differs(op, attrs):
            over = {"axis": attrs.get("axis", "1"), "exclude": "True"}
            name = node["name"]
            mean = add("mean", f"{name}_batch_mean", [inputs[0]], over)
            kept = add("mean", f"{name}_batch_center", [inputs[0]], {**over, "keepdims": "True"})
            apart = add("broadcast_sub", f"{name}_batch_apart", [inputs[0], kept], {})
            square = add("square", f"{name}_batch_square", [apart], {})
            variance = add("mean", f"{name}_batch_var", [square], over)
            made["inputs"] = [*inputs[:3], mean, variance]
            made["attrs"] = {**attrs, "use_global_stats": "True"}
        nodes.append(made)
        places.append(len(nodes) - 1)
    heads = [[places[of], output, 0] for of, output, *_ in graph["heads"]]
    used = {of for node in nodes for of, *_ in node["inputs"]} | {of for of, *_ in heads}
    variables = [place for place, node in enumerate(nodes) if node["op"] == "null" and place in used]
    return {**{key: graph[key] for key in ("attrs",) if key in graph}, **_compact(nodes, heads, used, variables)}


def _compact(
    nodes: list[dict[str, Any]], heads: list[list[int]], used: set[int], variables: list[int]
) -> dict[str, Any]:
    """The graph without variables that nothing reads any more."""
    kept = [place for place, node in enumerate(nodes) if place in used or node["op"] != "null"]
    moved = {place: number for number, place in enumerate(kept)}
    listed = [
        {**nodes[place], "inputs": [[moved[of], *rest] for of, *rest in nodes[place]["inputs"]]} for place in kept
    ]
    return {
        "nodes": listed,
        "arg_nodes": [moved[place] for place in variables],
        "node_row_ptr": list(range(len(listed) + 1)),
        "heads": [[moved[of], *rest] for of, *rest in heads],
    }
