"""Fused nodes of oneDNN, as MXNet's backend MKLDNN_QUANTIZE makes them: before a model is quantized
and after it."""

from __future__ import annotations

from typing import Any

from ._quantize_graph import Entry, Node, as_json, consumers, order

# Functions that a convolution or a dense layer applies to its results.
ACTIVATIONS = {"Activation", "LeakyReLU", "clip"}
CONV, DENSE = "_sg_mkldnn_conv", "_sg_mkldnn_fully_connected"


def _is_relu(node: Node) -> bool:
    """Whether integers go through the function unchanged in kind: relu, or relu6."""
    match node.op:
        case "Activation":
            return node.attrs.get("act_type") == "relu"
        case "clip":
            return float(node.attrs.get("a_min", "-1")) == 0.0
    return False


class _Chain:
    """Nodes that become one."""

    def __init__(self, first: Node):
        self.nodes = [first]
        self.sum: Entry | None = None
        self.attrs: dict[str, str] = {}

    @property
    def last(self) -> Node:
        return self.nodes[-1]

    def take(self, node: Node, flag: str) -> None:
        self.nodes.append(node)
        self.attrs[flag] = "true"


def _convolution(first: Node, readers: dict[int, list[tuple[Node, int]]], taken: set[int]) -> _Chain:
    chain = _Chain(first)
    while True:
        found = readers.get(id(chain.last), [])
        if len(found) != 1 or id(found[0][0]) in taken:
            return chain
        node, index = found[0]
        if node.op == "BatchNorm" and len(chain.nodes) == 1 and index == 0 and not node.flag("output_mean_var"):
            chain.take(node, "with_bn")
        elif node.op == "elemwise_add" and chain.sum is None:
            if node.inputs[0][0] is node.inputs[1][0]:
                return chain
            chain.take(node, "with_sum")
            chain.sum = node.inputs[1 - index]
        elif _is_relu(node):
            chain.take(node, "with_postsum_act" if chain.sum else "with_act")
            return chain
        else:
            return chain


def _dense(first: Node, readers: dict[int, list[tuple[Node, int]]], taken: set[int]) -> _Chain:
    chain = _Chain(first)
    found = readers.get(id(first), [])
    if len(found) == 1 and _is_relu(found[0][0]) and id(found[0][0]) not in taken:
        chain.take(found[0][0], "with_eltwise")
    return chain


def _nested(chain: _Chain) -> tuple[list[Entry], dict[str, Any]]:
    """The inputs of the nodes of a chain, and the graph of them. What is added comes last."""
    inputs: list[Entry] = []
    variables: dict[tuple[int, int], Node] = {}
    inner: dict[int, Node] = {}

    def variable(entry: Entry) -> Entry:
        key = (id(entry[0]), entry[1])
        if key not in variables:
            variables[key] = Node("null", f"{entry[0].name}{entry[1]}")
            inputs.append(entry)
        return (variables[key], 0)

    for node in chain.nodes:
        copy = node.copy()
        entries = node.inputs
        if node.op == "elemwise_add" and chain.sum is not None and entries[0] == chain.sum:
            entries = [entries[1], entries[0]]
        copy.inputs = [(inner[id(e[0])], e[1]) if id(e[0]) in inner else variable(e) for e in entries]
        inner[id(node)] = copy
    return inputs, as_json([(inner[id(chain.last)], 0)])


def fuse(heads: list[Entry], excluded: set[str]) -> list[Entry]:
    """Joins convolutions with BatchNorm, sum and relu, and dense layers with relu."""
    readers, taken = consumers(heads), set[int]()
    chains: dict[int, tuple[str, _Chain]] = {}
    for node in order(heads):
        if id(node) in taken or node.name in excluded or node.op not in ("Convolution", "FullyConnected"):
            continue
        is_conv = node.op == "Convolution"
        if is_conv and len(node.attrs.get("kernel", "").strip("()[], ").split(",")) not in (2, 3):
            continue
        chain = (_convolution if is_conv else _dense)(node, readers, taken)
        taken |= {id(part) for part in chain.nodes}
        chains[id(chain.last)] = (CONV if is_conv else DENSE, chain)
    inside = {id(part) for _, chain in chains.values() for part in chain.nodes}
    new: dict[int, Node] = {}
    # A node that waits for what its sum adds is made where the last of its chain stands.
    for number, node in enumerate(order(heads)):
        if id(node) in chains:
            op, chain = chains[id(node)]
            inputs, graph = _nested(chain)
            words = "_".join(_WORDS[part.op] for part in chain.nodes)
            made = Node(op, f"sg_mkldnn_{words}_{number}", chain.attrs)
            made.inputs = [(new[id(source)], index) for source, index in inputs]
            made.subgraphs = [graph]
            new[id(node)] = made
        elif id(node) not in inside:
            made = node.copy()
            made.inputs = [(new[id(source)], index) for source, index in node.inputs]
            new[id(node)] = made
    return [(new[id(node)], index) for node, index in heads]


_WORDS = {"Convolution": "conv", "BatchNorm": "bn", "elemwise_add": "add", "Activation": "act", "clip": "act"}
_WORDS |= {"FullyConnected": "fully_connected"}


def join_requantize(heads: list[Entry]) -> list[Entry]:
    """Lets fused layers and sums return bytes, or float32, themselves."""
    readers = consumers(heads)
    replaced: dict[int, Node] = {}
    for node in order(heads):
        if node.op != "_contrib_requantize":
            continue
        layer = node.inputs[0][0]
        if layer.op not in (CONV, DENSE, "_contrib_quantized_elemwise_add"):
            continue
        if any(reader is not node for reader, _ in readers[id(layer)]):
            continue
        after = {id(reader): reader for reader, _ in readers[id(node)]}
        if layer.op == DENSE and all(reader.op == "_contrib_dequantize" for reader in after.values()):
            layer.attrs["enable_float_output"] = "True"
            replaced |= dict.fromkeys(after, layer)
        elif "min_calib_range" in node.attrs and "max_calib_range" in node.attrs:
            for end in ("min_calib_range", "max_calib_range"):
                layer.attrs[end] = node.attrs[end]
            replaced[id(node)] = layer
    for node in order(heads):
        node.inputs = [(replaced.get(id(source), source), index) for source, index in node.inputs]
    return [(replaced.get(id(node), node), index) for node, index in heads]
