"""Graphs over several devices: cut where one device needs what another one computes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .context import Context
from .ndarray import CachedOp, NDArray
from .symbol.symbol import load_json

if TYPE_CHECKING:
    from ._mxrt import BoundOp
    from .symbol import Symbol

__all__ = ["Divided", "device_of"]

# A result: the number of its node and which of the node's outputs it is.
_Value = tuple[int, int]


def device_of(context: Context) -> Context:
    """The device of a context. All contexts of the CPU are one."""
    return Context("cpu", 0) if context._is_host() else context


class Divided:
    """A symbol of which groups of nodes are on different devices, compiled.

    The graph is divided into stages. A stage has the nodes of one device that come after equally
    many changes of the device. It is a separate graph, and reads copies of values on other devices.
    Calls return at once, as those of a :class:`CachedOp` do, and may come from any thread.

    Parameters
    ----------
    symbol : the whole graph
    ctx : where nodes run that belong to no group
    groups : contexts of the others, by their names
    """

    def __init__(self, symbol: Symbol, ctx: Context, groups: Mapping[str, Context]) -> None:
        self.sym = symbol
        text = json.loads(symbol.tojson(remove_amp_cast=False))
        self._nodes: list[dict[str, Any]] = text["nodes"]
        self.heads: list[_Value] = [(node, output) for node, output, *_ in text["heads"]]
        self.names = symbol.list_inputs()
        self.variables = {node["name"]: number for number, node in enumerate(self._nodes) if node["op"] == "null"}
        places = [device_of(groups.get(node["name"], ctx)) for node in self._nodes]
        self.stages = self._cut(places, text.get("attrs", {}))

    def _cut(self, places: Sequence[Context], attributes: dict[str, Any]) -> list[_Stage]:
        levels: list[int] = []
        members: dict[tuple[int, Context], list[int]] = {}
        for number, node in enumerate(self._nodes):
            before = [source for source, *_ in node["inputs"] if self._nodes[source]["op"] != "null"]
            crossed = [levels[source] + (places[source] != places[number]) for source in before]
            levels.append(max(crossed, default=0))
            if node["op"] != "null":
                members.setdefault((levels[number], places[number]), []).append(number)
        wanted = set(self.heads)
        for key, own in members.items():
            for number in own:
                sources = ((source, output) for source, output, *_ in self._nodes[number]["inputs"])
                wanted |= {value for value in sources if (levels[value[0]], places[value[0]]) != key}
        return [
            _Stage(key[1], self._nodes, own, wanted, attributes)
            for key, own in sorted(members.items(), key=lambda item: item[0][0])
        ]

    def bind(self, arrays: Sequence[NDArray | None]) -> BoundDivided:
        """The graph with some of its inputs; None stands for one that calls bring."""
        held = dict(zip((self.variables[name] for name in self.names), arrays, strict=True))
        return BoundDivided(self, held)


class BoundDivided:
    """A divided graph with some of its inputs."""

    def __init__(self, graph: Divided, held: Mapping[int, NDArray | None]) -> None:
        self._graph = graph
        self._held = {(number, 0): array for number, array in held.items() if array is not None}
        self._free = [(number, 0) for number, array in held.items() if array is None]
        self._stages = [(stage, stage.bind(self._held)) for stage in graph.stages]

    def __call__(self, *inputs: NDArray) -> list[NDArray]:
        """The results, each on the device that computed it."""
        known = self._held | dict(zip(self._free, inputs, strict=True))
        for stage, (operator, missing) in self._stages:
            # Calls with no array run on the context of the thread.
            with stage.context:
                found = operator(*[known[value].as_in_context(stage.context) for value in missing])
            known |= zip(stage.values, found if isinstance(found, list) else [found], strict=True)
        return [known[value] for value in self._graph.heads]


class _Stage:
    """Nodes of one device, as a graph over what is computed elsewhere."""

    def __init__(
        self,
        context: Context,
        nodes: Sequence[dict[str, Any]],
        own: Sequence[int],
        wanted: set[_Value],
        attributes: dict[str, Any],
    ) -> None:
        self.context = context
        made: list[dict[str, Any]] = []
        places: dict[_Value, list[int]] = {}
        inputs: dict[str, _Value] = {}
        for number in own:
            node, sources = nodes[number], []
            for source, output, *_ in node["inputs"]:
                value = (source, output)
                if value not in places:
                    before = nodes[source]
                    # No variable of the graph has this name: stages have no others.
                    name = before["name"] if before["op"] == "null" else f"{before['name']}:{source}:{output}"
                    inputs[name] = value
                    places[value] = [len(made), 0, 0]
                    made.append(before if before["op"] == "null" else {"op": "null", "name": name, "inputs": []})
                sources.append(places[value])
            outputs = _outputs(node, number, wanted, nodes)
            places |= {(number, output): [len(made), output, 0] for output in outputs}
            made.append({**node, "inputs": sources})
        self.values = sorted(value for value in wanted if value[0] in set(own))
        text = {
            "nodes": made,
            "arg_nodes": [place for place, node in enumerate(made) if node["op"] == "null"],
            "heads": [places[value] for value in self.values],
            "attrs": attributes,
        }
        symbol = load_json(json.dumps(text))
        self._operator = CachedOp(symbol)
        self._inputs = [inputs[name] for name in symbol.list_inputs()]

    def bind(self, held: Mapping[_Value, NDArray]) -> tuple[BoundOp, list[_Value]]:
        """The graph with those arrays that are on its device, and what else it takes."""
        arrays = [held.get(value) for value in self._inputs]
        here = [array if array is not None and device_of(array.context) == self.context else None for array in arrays]
        missing = [value for value, array in zip(self._inputs, here, strict=True) if array is None]
        return self._operator.bind(here), missing


def _outputs(node: dict[str, Any], number: int, wanted: set[_Value], nodes: Sequence[dict[str, Any]]) -> set[int]:
    """The outputs of a node that anything reads."""
    read = {output for other in nodes for source, output, *_ in other["inputs"] if source == number}
    return read | {output for source, output in wanted if source == number}
