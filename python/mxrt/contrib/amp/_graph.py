"""The graph of mixed precision: casts between nodes of float32 and of float16."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ... import _mxrt
from ...base import MXNetError
from ...symbol import Symbol, load_json

__all__ = ["OperatorLists", "reduced"]

# The result of a node: number of the node, which of its results, and the version that MXNet writes.
Entry = tuple[int, int, int]


class OperatorLists:
    """Operators by the type of their inputs, and nodes that stay in float32."""

    def __init__(
        self,
        half: Iterable[str],
        single: Iterable[str],
        conditional: Iterable[tuple[str, str, list[str]]],
        widest: Iterable[str],
        excluded: Iterable[str],
    ) -> None:
        self.half, self.single, self.widest = set(half), set(single), set(widest)
        self.excluded = set(excluded)
        self._conditional = list(conditional)

    def single_by_attribute(self, node: Mapping[str, Any]) -> bool:
        """Whether an attribute of a node asks for float32."""
        attrs = node.get("attrs", {})
        return any(op == node["op"] and attrs.get(key) in values for op, key, values in self._conditional)


class _Types:
    """The types of a node's inputs and outputs, given that of the first input."""

    def __init__(self, of_inputs: list[str | None], of_outputs: list[str | None], states: set[int]) -> None:
        self.of_inputs = of_inputs
        self.of_outputs = of_outputs
        # Numbers of the inputs that are auxiliary states, which have no casts.
        self.states = states


def reduced(symbol: Symbol, lists: OperatorLists, data: Iterable[str], parameters: set[str], cast: bool) -> Symbol:
    """A graph that computes in float16 what the lists say, as MXNet makes it: with nodes `amp_cast`
    and `amp_multicast` between types. Results are float32.

    Parameters
    ----------
    data : names of inputs, which are float32
    parameters : names of inputs that get an attribute with their type
    cast : parameters that only float16 nodes read have that type, instead of a cast
    """
    names = list(data)
    unknown = [name for name in names if name not in symbol.list_inputs()]
    if unknown:
        raise MXNetError(f"convert_symbol: data_names has {unknown}, which are not among {symbol.list_inputs()}")
    made = _Rewriting(symbol._as_data(), lists, set(names), cast).run()
    types = _types_of_inputs(made, names)
    if cast:
        _types_from_casts(made, types)
    for node in made["nodes"]:
        if node["op"] == "null" and (
            node["name"] in parameters or (not parameters and "__dtype__" in node.get("attrs", {}))
        ):
            code = "2" if types.get(node["name"]) == "float16" else _code(types.get(node["name"]))
            node.setdefault("attrs", {})["__dtype__"] = code
    return load_json(json.dumps(made))


def _code(dtype: str | None) -> str:
    from ...ndarray._codes import _DTYPE_NP_TO_MX

    return "0" if dtype is None else str(_DTYPE_NP_TO_MX[np.dtype(dtype).type])


class _Rewriting:
    """The graph while casts are put into it."""

    def __init__(self, graph: dict[str, Any], lists: OperatorLists, data: set[str], cast: bool) -> None:
        self._graph, self._lists, self._data, self._cast = graph, lists, data, cast
        self._nodes: list[dict[str, Any]] = graph["nodes"]
        self._made: list[dict[str, Any]] = []
        # The new number of every old node.
        self._places: dict[int, int] = {}
        # New results by the old ones, as far as their type is known.
        self._single: dict[Entry, list[int]] = {}
        self._half: dict[Entry, list[int]] = {}
        self._infer = _Inference()

    def run(self) -> dict[str, Any]:
        """The new graph; its nodes are in the order in which they are reached from its results."""
        for number, node in enumerate(self._nodes):
            made = {**node, "attrs": dict(node.get("attrs", {}))}
            self._places[number] = len(self._made)
            self._made.append(made)
            made["inputs"] = self._inputs(number, node, [_entry(one) for one in node["inputs"]])
        heads = [self._cast_to(_entry(one), "float32") for one in self._graph["heads"]]
        return _in_order(self._made, heads, self._graph)

    def _inputs(self, number: int, node: Mapping[str, Any], entries: list[Entry]) -> list[list[int]]:
        """The inputs of a node, with the casts that it needs; notes the types of its results."""
        op, lists = node["op"], self._lists
        if node["name"] in lists.excluded or (op != "null" and op in lists.single):
            self._know(number, ["float32"] * self._outputs(node))
            return [self._read(e) if self._is_variable(e) else self._cast_to(e, "float32") for e in entries]
        if op == "null" or not entries:
            return [self._read(entry) for entry in entries]
        if op in lists.half:
            return self._inputs_of_half(number, node, entries)
        if op in lists.widest:
            return self._inputs_of_widest(number, node, entries)
        if lists.single_by_attribute(node):
            self._know(number, ["float32"] * self._outputs(node))
            states = self._infer.of(node, None).states
            return [
                self._read(entry) if i in states and entry not in self._single else self._cast_to(entry, "float32")
                for i, entry in enumerate(entries)
            ]
        first = "float16" if entries[0] in self._half else "float32" if entries[0] in self._single else None
        if first is not None:
            self._know(number, self._infer.of(node, first).of_outputs)
        return [self._new(entry) for entry in entries]

    def _inputs_of_half(self, number: int, node: Mapping[str, Any], entries: list[Entry]) -> list[list[int]]:
        types = self._infer.of(node, "float16")
        self._know(number, types.of_outputs)
        found = []
        for i, entry in enumerate(entries):
            variable = self._is_variable(entry)
            parameter = self._cast and variable and self._nodes[entry[0]]["name"] not in self._data
            if entry in self._half:
                found.append(list(self._half[entry]))
            elif parameter or i in types.states or types.of_inputs[i] not in ("float16", None):
                found.append(self._new(entry))
                if self._cast and variable:
                    self._half[entry] = self._new(entry)
            else:
                found.append(self._cast_to(entry, "float16"))
        return found

    def _inputs_of_widest(self, number: int, node: Mapping[str, Any], entries: list[Entry]) -> list[list[int]]:
        if any(entry not in self._half and entry not in self._single for entry in entries):
            name = self._nodes[entries[0][0]]["name"] + self._suffix(entries[0]) + "_amp_multicast"
            made = self._add("amp_multicast", name, {"num_outputs": str(len(entries))}, [self._new(e) for e in entries])
            return [[made, i, entry[2]] for i, entry in enumerate(entries)]
        widest = "float32" if any(entry in self._single for entry in entries) else "float16"
        self._know(number, [widest] * self._outputs(node))
        return [self._cast_to(entry, widest) for entry in entries]

    # ---- results ---------------------------------------------------------------------------------

    def _is_variable(self, entry: Entry) -> bool:
        return bool(self._nodes[entry[0]]["op"] == "null")

    def _outputs(self, node: Mapping[str, Any]) -> int:
        return 1 if node["op"] == "null" else len(self._infer.of(node, None).of_outputs)

    def _know(self, number: int, types: list[str | None]) -> None:
        """Notes the types of the results of a node."""
        for i, dtype in enumerate(types):
            if dtype == "float16":
                self._half[number, i, 0] = [self._places[number], i, 0]
            elif dtype == "float32":
                self._single[number, i, 0] = [self._places[number], i, 0]

    def _new(self, entry: Entry) -> list[int]:
        """The new form of a result, of whatever type."""
        return [self._places[entry[0]], entry[1], entry[2]]

    def _read(self, entry: Entry) -> list[int]:
        """The new form of a result that counts as float32."""
        return list(self._single[entry]) if entry in self._single else self._new(entry)

    def _cast_to(self, entry: Entry, dtype: str) -> list[int]:
        """A result as one of a type: one cast serves all who need it."""
        known = self._half if dtype == "float16" else self._single
        if entry not in known:
            name = f"{self._nodes[entry[0]]['name']}{self._suffix(entry)}_amp_cast_{dtype}"
            known[entry] = [self._add("amp_cast", name, {"dtype": dtype}, [self._new(entry)]), 0, entry[2]]
        return list(known[entry])

    def _suffix(self, entry: Entry) -> str:
        """The part of a cast's name after that of the node: name or number of the result."""
        node = self._nodes[entry[0]]
        if node["op"] == "null":
            return ""
        operator = _mxrt.get_operator(node["op"])
        named = operator is not None and operator.names_outputs
        return self._infer.output_names(node)[entry[1]] if named else f"_{entry[1]}"

    def _add(self, op: str, name: str, attrs: dict[str, str], inputs: list[list[int]]) -> int:
        self._made.append({"op": op, "name": name, "attrs": attrs, "inputs": inputs})
        return len(self._made) - 1


class _Inference:
    """Infers the types of single nodes."""

    def __init__(self) -> None:
        self._symbols: dict[str, Symbol] = {}

    def of(self, node: Mapping[str, Any], first: str | None) -> _Types:
        """The types of a node whose first input has type `first`, None where they are not known."""
        symbol, count = self._alone(node), len(node["inputs"])
        names = [f"x{i}" for i in range(count)]
        arguments, states = symbol.list_arguments(), symbol.list_auxiliary_states()
        args, outs, aux = symbol.infer_type_partial(**({"x0": first} if first else {}))
        known = dict(zip([*arguments, *states], [*(args or []), *(aux or [])], strict=False))
        outputs = list(outs or [None] * len(symbol.list_outputs()))
        return _Types(
            [_name(known.get(name)) for name in names],
            [_name(dtype) for dtype in outputs],
            {i for i, name in enumerate(names) if name in states},
        )

    def output_names(self, node: Mapping[str, Any]) -> list[str]:
        """The names of the results of a node, without its own."""
        return [name.removeprefix("node") for name in self._alone(node).list_outputs()]

    def _alone(self, node: Mapping[str, Any]) -> Symbol:
        """A graph of this node alone."""
        count = len(node["inputs"])
        key = json.dumps([node["op"], node.get("attrs", {}), count, node.get("subgraphs")])
        if key not in self._symbols:
            nodes: list[dict[str, Any]] = [{"op": "null", "name": f"x{i}", "inputs": []} for i in range(count)]
            alone = {**node, "name": "node", "inputs": [[i, 0, 0] for i in range(count)]}
            graph = {"nodes": [*nodes, alone], "arg_nodes": list(range(count)), "heads": [[count, 0, 0]]}
            graph["attrs"] = {"mxnet_version": ["int", 10901]}
            self._symbols[key] = _with_all_outputs(load_json(json.dumps(graph)))
        return self._symbols[key]


def _with_all_outputs(symbol: Symbol) -> Symbol:
    """A node with all its results, of which a file names one."""
    internals = symbol.get_internals()
    names = [name for name in internals.list_outputs() if name == "node" or name.startswith("node_")]
    return internals[names[0]] if len(names) == 1 else _group([internals[name] for name in names])


def _group(symbols: list[Symbol]) -> Symbol:
    from ...symbol import Group

    return Group(symbols)


def _name(dtype: Any) -> str | None:
    return None if dtype is None else np.dtype(dtype).name


def _entry(one: list[int]) -> Entry:
    return one[0], one[1], one[2] if len(one) > 2 else 0


def _in_order(nodes: list[dict[str, Any]], heads: list[list[int]], graph: Mapping[str, Any]) -> dict[str, Any]:
    """A graph whose nodes come in the order in which its results reach them."""
    order: list[int] = []
    seen: set[int] = set()
    for head in heads:
        pending = [(head[0], 0)]
        while pending:
            number, done = pending.pop()
            if number in seen:
                continue
            inputs = nodes[number]["inputs"]
            if done < len(inputs):
                pending.append((number, done + 1))
                pending.append((inputs[done][0], 0))
                continue
            seen.add(number)
            order.append(number)
    places = {number: place for place, number in enumerate(order)}
    found = [{**nodes[n], "inputs": [[places[i], k, v] for i, k, v in nodes[n]["inputs"]]} for n in order]
    rest = {key: value for key, value in graph.items() if key not in ("nodes", "arg_nodes", "node_row_ptr", "heads")}
    return {
        "nodes": found,
        "arg_nodes": [place for place, node in enumerate(found) if node["op"] == "null"],
        "heads": [[places[i], k, v] for i, k, v in heads],
        **rest,
    }


# ---- the types of inputs -------------------------------------------------------------------------


def _types_of_inputs(graph: dict[str, Any], data: list[str]) -> dict[str, str]:
    """The types of inputs that follow from those of the data, float32, and from operators."""
    bare = json.loads(json.dumps(graph))
    for node in bare["nodes"]:
        node.get("attrs", {}).pop("__dtype__", None)
    symbol = load_json(json.dumps(bare))
    args, _, aux = symbol.infer_type_partial(**dict.fromkeys(data, "float32"))
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    found = zip(names, [*(args or []), *(aux or [])], strict=False)
    return {name: np.dtype(dtype).name for name, dtype in found if dtype is not None}


def _types_from_casts(graph: Mapping[str, Any], types: dict[str, str]) -> None:
    """Gives inputs of unknown type that of the cast which reads them, if it is the only one."""
    nodes, visited, before = graph["nodes"], {}, dict(types)

    def visit(name: str, dtype: str) -> None:
        if name not in visited:
            if name not in types:
                visited[name] = types[name] = dtype
        elif visited[name] != dtype:
            types.pop(name, None)
            if name in before:
                types[name] = before[name]

    for node in nodes:
        read = [nodes[one[0]] for one in node["inputs"]]
        if node["op"] == "amp_cast":
            wanted = [(one, node["attrs"]["dtype"]) for one in read]
        elif node["op"] == "amp_multicast" and all(one["op"] == "null" for one in read):
            wanted = [(one, "float16") for one in read]
        else:
            continue
        for one, dtype in wanted:
            if one["op"] == "null":
                visit(one["name"], dtype)
