"""The layers of a model that each step of its plan computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["add_layers"]


def add_layers(graph: Symbol, report: dict[str, Any]) -> None:
    """Adds to the report of a plan the number of `layers`, and to each step those that it `covers`
    besides its own.
    """
    nodes = graph._as_data()["nodes"]
    report["layers"] = sum(node["op"] != "null" for node in nodes)
    for step, layers in zip(report["steps"], _covered(nodes, report["steps"]), strict=True):
        step["covers"] = layers


def _covered(nodes: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]]) -> list[list[dict[str, str]]]:
    """Lists for each step the layers besides its own that have no step: those that follow it up to
    the next step, joined into it, folded into its weights, or left out as they change nothing.
    """
    places = {one["node"]: number for number, one in enumerate(steps)}
    found: list[list[dict[str, str]]] = [[] for _ in steps]
    # The step that makes each node's value; none for variables and what comes before all steps.
    makers: list[int | None] = []
    pending: list[int] = []
    for number, node in enumerate(nodes):
        if node["op"] == "null":
            makers.append(None)
            continue
        own = places.get(node["name"])
        if own is None:
            before = [maker for one in node["inputs"] if (maker := makers[one[0]]) is not None]
            own = max(before, default=None)
            if own is not None:
                found[own].append({"operator": node["op"], "node": node["name"]})
            else:
                pending.append(number)
        makers.append(own)
    _add_leading(nodes, pending, makers, found)
    return found


def _add_leading(
    nodes: Sequence[Mapping[str, Any]],
    pending: Sequence[int],
    makers: list[int | None],
    found: list[list[dict[str, str]]],
) -> None:
    """Layers before the first step belong to the step that reads them."""
    for number in reversed(pending):
        readers = [
            maker
            for later, node in enumerate(nodes)
            if any(one[0] == number for one in node["inputs"]) and (maker := makers[later]) is not None
        ]
        if readers:
            makers[number] = min(readers)
            found[min(readers)].insert(0, {"operator": nodes[number]["op"], "node": nodes[number]["name"]})
