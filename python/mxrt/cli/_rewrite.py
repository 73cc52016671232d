"""Changes of graphs: heads of training become what they answer, and nodes get other names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import symbol as symbols
from ._errors import ModelError, UsageError
from ._model import Loaded

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["Rewritten", "rewritten"]

# Heads that training needs, and the operators that answer the same; None: what they read.
_HEADS: dict[str, str | None] = {
    "SoftmaxOutput": "softmax",
    "Softmax": "softmax",
    "LinearRegressionOutput": None,
    "MAERegressionOutput": None,
    "LogisticRegressionOutput": "sigmoid",
    "SVMOutput": None,
}


@dataclass(frozen=True)
class Rewritten:
    """A changed graph: its inputs, parameters included; the new names of nodes by the old ones;
    what was changed, in words.
    """

    graph: Symbol
    inputs: list[str]
    names: Mapping[str, str]
    changes: list[str]


def rewritten(model: Loaded, strip_heads: bool, renames: Sequence[str]) -> Rewritten:
    """The graph of a model in today's form, with changes. UsageError for names that are not there
    or are taken.
    """
    content = model.graph._as_data()
    changes = [
        _strip(node, content["nodes"], model) for node in content["nodes"] if strip_heads and node["op"] in _HEADS
    ]
    if strip_heads and not changes:
        changes = ["there is no head of training"]
    content = _reachable(content)
    names = _renamed(content["nodes"], renames)
    for node in content["nodes"]:
        node["name"] = names.get(node["name"], node["name"])
    changes += [f"{old} is now {new}" for old, new in list(names.items())[:5]]
    if len(names) > 5:
        changes.append(f"and {len(names) - 5} more names")
    graph = symbols.load_json(json.dumps(content))
    return Rewritten(graph, graph.list_inputs(), names, changes)


def _strip(node: dict[str, Any], nodes: list[dict[str, Any]], model: Loaded) -> str:
    """Changes a head in place. Its name stays, so that the output keeps its own."""
    old, attrs = node["op"], node.get("attrs") or {}
    new = _HEADS[old]
    node["inputs"] = node["inputs"][:1]
    node["op"] = new or "_copy"
    kept = {key: value for key, value in attrs.items() if key.startswith("__")}
    if new == "softmax":
        flags = {key: attrs.get(key, "False").lower() in ("true", "1") for key in ("multi_output", "preserve_shape")}
        shape = _shape_of_input(node, nodes, model)
        if not any(flags.values()) and (shape is None or len(shape) != 2):
            raise ModelError(
                f"{old} '{node['name']}' flattens what it reads before its softmax, which no operator does alone; "
                "leave --strip-heads out"
            )
        kept["axis"] = "1" if flags["multi_output"] else "-1"
    if kept:
        node["attrs"] = kept
    else:
        node.pop("attrs", None)
    return f"{old} '{node['name']}' is now {new or 'a copy of its input'}"


def _shape_of_input(node: Mapping[str, Any], nodes: list[dict[str, Any]], model: Loaded) -> tuple[int, ...] | None:
    number, output, *_ = node["inputs"][0]
    inner = model.graph.get_internals()
    known = {name: one.shape for name, one in model.net.collect_params().items() if name in model.graph.list_inputs()}
    _, found, _ = inner.infer_shape_partial(**{**known, **model.shapes})
    shapes = dict(zip(inner.list_outputs(), found or (), strict=False))
    name = nodes[number]["name"]
    found_shape: tuple[int, ...] | None = (
        shapes.get(f"{name}_output") or shapes.get(f"{name}_output{output}") or shapes.get(name)
    )
    return found_shape


def _reachable(content: dict[str, Any]) -> dict[str, Any]:
    """The graph without the nodes that no output reads."""
    nodes = content["nodes"]
    wanted = [head[0] for head in content["heads"]]
    used: set[int] = set()
    while wanted:
        number = wanted.pop()
        if number not in used:
            used.add(number)
            wanted += [one[0] for one in nodes[number]["inputs"]]
            wanted += nodes[number].get("control_deps", [])
    places = {old: new for new, old in enumerate(sorted(used))}
    kept = [nodes[number] for number in sorted(used)]
    for node in kept:
        node["inputs"] = [[places[one[0]], *one[1:]] for one in node["inputs"]]
        if "control_deps" in node:
            node["control_deps"] = [places[one] for one in node["control_deps"]]
    return {
        **content,
        "nodes": kept,
        "arg_nodes": [number for number, node in enumerate(kept) if node["op"] == "null"],
        "node_row_ptr": list(range(len(kept) + 1)),
        "heads": [[places[one[0]], *one[1:]] for one in content["heads"]],
    }


def _renamed(nodes: Sequence[Mapping[str, Any]], renames: Sequence[str]) -> dict[str, str]:
    """New names by old ones."""
    known = [node["name"] for node in nodes]
    names: dict[str, str] = {}
    for text in renames:
        old, equals, new = text.partition("=")
        if not equals or not old or not new:
            raise UsageError(f"--rename '{text}': expected OLD=NEW, or OLD*=NEW* for all names that begin so")
        if old.endswith("*"):
            start = old[:-1]
            found = {name: new.removesuffix("*") + name[len(start) :] for name in known if name.startswith(start)}
        else:
            found = {old: new} if old in known else {}
        if not found:
            from ._main import close_to

            raise UsageError(f"--rename '{text}': no layer, input or parameter is called '{old}'{close_to(old, known)}")
        names |= found
    before, after = Counter(known), Counter(names.get(name, name) for name in known)
    twice = next((name for name, count in after.items() if count > max(before[name], 1)), None)
    if twice is not None:
        raise UsageError(f"--rename gives two nodes the name '{twice}'")
    return names
