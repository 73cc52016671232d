"""Results in between: running every operator of a graph for its own sake, and telling them to a
callback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from . import _mxrt
from .ndarray import CachedOp, NDArray
from .symbol import Group, Symbol

__all__ = ["Watch", "input_names", "show_operators"]

# Operators of one input that MXNet calls data. Others have no name for theirs there.
_NAMED = frozenset(
    (
        "Dropout GridGenerator L2Normalization LRN MakeLoss Pad Pooling Pooling_v1 SliceChannel SwapAxis "
        "_contrib_MultiBoxPrior _contrib_index_array _contrib_quadratic _histogram _image_normalize "
        "_image_to_tensor _ravel_multi_index _split_v2 _unravel_index all_finite col2im depth_to_space diag "
        "im2col log_softmax moments repeat reverse softmax space_to_depth squeeze tile"
    ).split()
)


def input_names(operator: str, count: int) -> list[str]:
    """The names that MXNet's monitors use for the inputs of an operator."""
    known = _mxrt.get_operator(operator)
    if known is None or known.variadic is not None:
        start = "array_" if operator.startswith("multi_") else "arg"
        return [f"{start}{place}" for place in range(count)]
    names = list(known.inputs)
    if names == ["data"] and operator not in _NAMED:
        return ["input0"]
    return names[:count]


class Watch:
    """Tells a callback the results of all operators of a graph, in order; with `monitor_all` their
    inputs too.

    Compiled graphs have no results in between, so a watched graph is computed once more, operator
    by operator.
    """

    def __init__(self, symbol: Symbol, callback: Callable[[str, NDArray], Any], monitor_all: bool) -> None:
        self._callback = callback
        self._all = monitor_all
        self._nodes: list[dict[str, Any]] = json.loads(symbol.tojson(remove_amp_cast=False))["nodes"]
        internals = symbol.get_internals()
        inputs = set(internals.list_inputs())
        places = {name: place for place, name in enumerate(internals.list_outputs()) if name not in inputs}
        self._names = list(places)
        everything = Group([internals[place] for place in places.values()])
        self._inputs = everything.list_inputs()
        self._op = CachedOp(everything)

    def run(self, arrays: Mapping[str, NDArray]) -> None:
        """Computes everything for the arrays of the variables, and calls the callback with name and
        array.
        """
        made = self._op(*[arrays[name] for name in self._inputs])
        found = dict(zip(self._names, made if isinstance(made, list) else [made], strict=True))
        for node in self._nodes:
            if node["op"] == "null":
                continue
            if self._all:
                self._tell_inputs(node, {**arrays, **found})
            for name in self._outputs(node):
                if name in found:
                    self._callback(name, found[name])

    def _outputs(self, node: dict[str, Any]) -> list[str]:
        """The names of a node's outputs."""
        prefix = f"{node['name']}_"
        own = [f"{prefix}output"]
        others = [
            name for name in self._names if name.startswith(f"{prefix}output") and name[len(prefix) + 6 :].isdigit()
        ]
        return own if own[0] in self._names else others

    def _tell_inputs(self, node: dict[str, Any], known: Mapping[str, NDArray]) -> None:
        names = input_names(node["op"], len(node["inputs"]))
        for place, (source, index, *_) in enumerate(node["inputs"]):
            before = self._nodes[source]
            if before["op"] == "null":
                array = known[before["name"]]
                self._callback(before["name"], array)
            else:
                array = known[self._outputs(before)[index]]
            self._callback(f"{node['name']}_{names[place]}", array)


def show_operators(
    symbol: Symbol, given: Mapping[str, NDArray], callback: Callable[..., Any], inputs_too: bool
) -> list[NDArray]:
    """Runs a graph with every operator's outputs as results, calls back with name, operator and
    array of each, and returns those of the graph: none for a graph without operators.
    """
    internals = symbol.get_internals()
    document = json.loads(symbol.tojson(remove_amp_cast=False))
    nodes, names = document["nodes"], internals.list_outputs()
    owners = [part.name for part in internals]
    starts = _starts([node["name"] for node in nodes], [node["op"] == "null" for node in nodes], owners)
    # Results are computed in one call. Variables are known already.
    computed = [i for i, node in enumerate(nodes) if node["op"] != "null"]
    places = [place for i in computed for place in range(starts[i], starts[i + 1])]
    if not places:
        return []
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
            for name, (source, output, *_) in zip(_hook_names(node), node["inputs"], strict=False):
                callback(f"{node['name']}_{name}".encode(), operator, values[starts[source] + output])
        for place in range(starts[i], starts[i + 1]):
            callback(names[place].encode(), operator, values[place])
    return [values[starts[source] + output] for source, output, *_ in document["heads"]]


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


def _hook_names(node: dict[str, Any]) -> list[str]:
    """The names that MXNet's hooks use for the inputs of an operator: their own if there are
    several.
    """
    operator = _mxrt.get_operator(node["op"])
    names = list(operator.inputs) if operator is not None else []
    if node["op"] == "Pooling" or len(names) > 1:
        return names
    return [f"input{i}" for i in range(len(node["inputs"]))]
