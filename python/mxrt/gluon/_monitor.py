"""Shows what the operators of a graph make, one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from .. import _mxrt
from .._mode import mode
from ..ndarray import NDArray
from ..symbol import Group
from ._compiled import CompiledGraph, finish_deferred
from .parameter import DeferredInitializationError

__all__ = ["call_and_show"]


def call_and_show(graph: CompiledGraph, args: Sequence[NDArray], callback: Callable[..., Any], inputs_too: bool) -> Any:
    """Runs a graph with every operator's outputs as results, calls back with each, and returns
    those of the graph.
    """
    if mode.training:
        graph = graph.in_training()
    try:
        held = graph.every_input(args)
    except DeferredInitializationError:
        finish_deferred(graph.whole, graph.params, dict(zip(graph.input_names, args, strict=True)))
        held = graph.every_input(args)
    internals = graph.symbol.get_internals()
    document = json.loads(graph.symbol.tojson(remove_amp_cast=False))
    nodes, names = document["nodes"], internals.list_outputs()
    owners = [part.name for part in internals]
    starts = _starts([node["name"] for node in nodes], [node["op"] == "null" for node in nodes], owners)
    given = dict(zip(graph.order, held, strict=True))
    # Results are computed in one call. Variables are known already.
    computed = [i for i, node in enumerate(nodes) if node["op"] != "null"]
    places = [place for i in computed for place in range(starts[i], starts[i + 1])]
    if not places:
        return graph.call(args)
    shown = Group([internals[place] for place in places])
    results = _mxrt.CachedOp(shown, {})(*[given[name] for name in shown.list_inputs()])
    values: dict[int, Any] = dict(zip(places, [results] if isinstance(results, NDArray) else results, strict=True))
    for i, node in enumerate(nodes):
        if node["op"] == "null":
            values[starts[i]] = given[node["name"]]
    for i in computed:
        node = nodes[i]
        operator = node["op"].encode()
        if inputs_too:
            for name, (source, output, *_) in zip(_input_names(node), node["inputs"], strict=False):
                callback(f"{node['name']}_{name}".encode(), operator, values[starts[source] + output])
        for place in range(starts[i], starts[i + 1]):
            callback(names[place].encode(), operator, values[place])
    heads = [values[starts[source] + output] for source, output, *_ in document["heads"]]
    return heads[0] if len(heads) == 1 else heads


def _starts(nodes: list[str], single: list[bool], owners: list[str | None]) -> list[int]:
    """The position of each node's first output in the list of all outputs, and finally the length
    of the list.
    """
    found, place = [], 0
    for i, name in enumerate(nodes):
        found.append(place)
        place += 1
        rest = nodes[i + 1 : i + 2]
        while not single[i] and place < len(owners) and owners[place] == name and [name] != rest:
            place += 1
    return [*found, place]


def _input_names(node: dict[str, Any]) -> list[str]:
    """MXNet's names for the inputs of an operator: the inputs' own names if there are several."""
    operator = _mxrt.get_operator(node["op"])
    names = list(operator.inputs) if operator is not None else []
    if node["op"] == "Pooling" or len(names) > 1:
        return names
    return [f"input{i}" for i in range(len(node["inputs"]))]
