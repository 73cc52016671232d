"""Fused nodes of oneDNN, as MXNet's backends MKLDNN and MKLDNN_QUANTIZE make them: before a model
is quantized and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._quantize_graph import Entry, Node, as_json, consumers, order

CONV, DENSE = "_sg_mkldnn_conv", "_sg_mkldnn_fully_connected"
# Products of attention, and the operators that stand for them.
ATTENTION = {
    "_contrib_interleaved_matmul_selfatt_qk": "_sg_mkldnn_selfatt_qk",
    "_contrib_interleaved_matmul_selfatt_valatt": "_sg_mkldnn_selfatt_valatt",
}


def _is_function(node: Node, of: str, quantize: bool, summed: bool) -> bool:
    """Whether a convolution or a dense layer applies this function to its results itself."""
    match node.op:
        case "Activation":
            known = {"relu"} if quantize else {"relu", "sigmoid", "tanh", "softrelu"}
            return node.attrs.get("act_type") in known
        case "LeakyReLU":
            kind = node.attrs.get("act_type", "leaky")
            if of == DENSE:
                # Bytes of a dense layer after leaky would be unsigned, and lose what is negative.
                return kind == "gelu" or (kind in ("leaky", "elu") and not quantize)
            return kind in ("leaky", "gelu")
        case "clip":
            # A sum is calibrated before the clip, so integers could not be clipped.
            return float(node.attrs.get("a_min", "-1")) == 0.0 and not (quantize and summed)
        case "abs":
            return of == DENSE
        case "square" | "sqrt" | "exp":
            return of == DENSE and not quantize
    return False


def _is_identity(node: Node) -> bool:
    """Whether the results are the input, which another operator made."""
    drops = node.op == "Dropout" and node.attrs.get("mode", "training") == "training"
    return (drops or node.op == "_copy") and node.inputs[0][0].op != "null"


def _is_of_filters(node: Node) -> bool:
    """Whether a node is a BatchNorm that a convolution can apply to its filters. MXNet fuses those
    along other axes, too, and takes their values for those of filters.
    """
    return node.op == "BatchNorm" and node.attrs.get("axis", "1") == "1" and not node.flag("output_mean_var")


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


def _convolution(first: Node, readers: dict[int, list[tuple[Node, int]]], taken: set[int], quantize: bool) -> _Chain:
    chain = _Chain(first)
    while True:
        found = readers.get(id(chain.last), [])
        if len(found) != 1 or id(found[0][0]) in taken:
            return chain
        node, index = found[0]
        if len(chain.nodes) == 1 and index == 0 and _is_of_filters(node):
            chain.take(node, "with_bn")
        elif node.op == "elemwise_add" and chain.sum is None:
            if node.inputs[0][0] is node.inputs[1][0]:
                return chain
            chain.take(node, "with_sum")
            chain.sum = node.inputs[1 - index]
        elif _is_function(node, CONV, quantize, chain.sum is not None):
            chain.take(node, "with_postsum_act" if chain.sum else "with_act")
            return chain
        else:
            return chain


def _dense(first: Node, readers: dict[int, list[tuple[Node, int]]], taken: set[int], quantize: bool) -> _Chain:
    chain = _Chain(first)
    found = readers.get(id(first), [])
    if len(found) == 1 and id(found[0][0]) not in taken and _is_function(found[0][0], DENSE, quantize, False):
        chain.take(found[0][0], "with_eltwise")
        chain.attrs["with_eltwise"] = "True"
    return chain


def _attention(node: Node) -> _Chain:
    chain = _Chain(node)
    chain.attrs = {"heads": node.attrs["heads"], "quantized": "False", "enable_float_output": "False"}
    return chain


def _chain(
    node: Node, readers: dict[int, list[tuple[Node, int]]], taken: set[int], quantize: bool
) -> tuple[str, _Chain] | None:
    """The nodes that become one, from this one on, and the operator of that one."""
    match node.op:
        case "Convolution":
            if len(node.attrs.get("kernel", "").strip("()[], ").split(",")) in (2, 3):
                return CONV, _convolution(node, readers, taken, quantize)
        case "FullyConnected":
            return DENSE, _dense(node, readers, taken, quantize)
        case op if op in ATTENTION:
            return ATTENTION[op], _attention(node)
    return None


def _nested(chain: _Chain, name_of: Callable[[Entry], str]) -> tuple[list[Entry], dict[str, Any]]:
    """The inputs of the nodes of a chain, and the graph of them. What is added comes last.

    `name_of` has the name of an input, which MXNet numbers: an array that is read twice, as data
    and as what is added, is two inputs.
    """
    inputs: list[Entry] = []
    names: dict[str, int] = {}
    inner: dict[int, Node] = {}

    def variable(entry: Entry) -> Entry:
        name = name_of(entry)
        inputs.append(entry)
        names[name] = names.get(name, -1) + 1
        return (Node("null", f"{name}{names[name]}"), 0)

    for node in chain.nodes:
        copy = node.copy()
        entries = node.inputs
        if node.op == "elemwise_add" and chain.sum is not None and entries[0] == chain.sum:
            entries = [entries[1], entries[0]]
        copy.inputs = [(inner[id(e[0])], e[1]) if id(e[0]) in inner else variable(e) for e in entries]
        inner[id(node)] = copy
    return inputs, as_json([(inner[id(chain.last)], 0)])


def _words(op: str, chain: _Chain) -> str:
    """The name of a fused node without its number, as MXNet names them."""
    if op == CONV:
        words = {"Convolution": "conv", "BatchNorm": "bn", "elemwise_add": "add"}
        return "sg_mkldnn_" + "_".join(words.get(part.op, "act") for part in chain.nodes)
    return op.removeprefix("_") + ("_eltwise" if len(chain.nodes) > 1 else "")


def _without_identities(heads: list[Entry]) -> list[Entry]:
    new: dict[int, Node] = {}
    for node in order(heads):
        new[id(node)] = new[id(node.inputs[0][0])] if _is_identity(node) else node.copy()
        if not _is_identity(node):
            new[id(node)].inputs = [(new[id(source)], _index(source, index)) for source, index in node.inputs]
    return [(new[id(node)], _index(node, index)) for node, index in heads]


def _index(source: Node, index: int) -> int:
    """The output of what stays, for an output of a node that may be an identity."""
    while _is_identity(source):
        source, index = source.inputs[0]
    return index


def fuse(heads: list[Entry], quantize: bool = True) -> list[Entry]:
    """Joins convolutions with BatchNorm, sum and a function, dense layers with a function; names
    products of attention. With `quantize` only functions that work on integers are joined.
    """
    heads = _without_identities(heads)
    readers, taken = consumers(heads), set[int]()
    # By the last node of a chain: the operator and the name of what it becomes, and its place in
    # the order in which MXNet makes them.
    chains: dict[int, tuple[str, str, tuple[int, int], _Chain]] = {}
    counts: dict[int, int] = {}
    for node in order(heads):
        if id(node) in taken:
            continue
        found = _chain(node, readers, taken, quantize)
        if found is None:
            continue
        op, chain = found
        # Convolutions come first, then dense layers; both products of attention are counted
        # together.
        kind = {CONV: 0, DENSE: 1}.get(op, 2)
        place = (kind, counts.get(kind, 0))
        counts[kind] = place[1] + 1
        taken |= {id(part) for part in chain.nodes}
        chains[id(chain.last)] = (op, f"{_words(op, chain)}_{place[1]}", place, chain)
    inside = {id(part) for *_, chain in chains.values() for part in chain.nodes}
    new: dict[int, Node] = {}
    for node in order(heads):
        # A node that waits for what its sum adds is made where the last of its chain stands.
        if id(node) in chains:
            op, name, place, chain = chains[id(node)]

            def name_of(entry: Entry, place: tuple[int, int] = place) -> str:
                source = chains.get(id(entry[0]))
                return f"{source[1]}_output" if source and source[2] < place else entry[0].output_name(entry[1])

            inputs, graph = _nested(chain, name_of)
            made = Node(op, name, chain.attrs)
            made.inputs = [(new[id(source)], index) for source, index in inputs]
            made.subgraphs = [graph]
            new[id(node)] = made
        elif id(node) not in inside:
            made = node.copy()
            made.inputs = [(new[id(source)], index) for source, index in node.inputs]
            new[id(node)] = made
    return [(new[id(node)], index) for node, index in heads]


# Layers on integers that can return float32 instead of sums.
_MAKES_FLOATS = {DENSE, "_contrib_quantized_elemwise_mul", *ATTENTION.values()}


def join_requantize(heads: list[Entry]) -> list[Entry]:
    """Lets fused layers, sums and products return bytes, or float32, themselves."""
    readers = consumers(heads)
    replaced: dict[int, Node] = {}
    for node in order(heads):
        if node.op != "_contrib_requantize":
            continue
        layer = node.inputs[0][0]
        if layer.op not in _MAKES_FLOATS | {CONV, "_contrib_quantized_elemwise_add"}:
            continue
        if any(reader is not node for reader, _ in readers[id(layer)]):
            continue
        after = {id(reader): reader for reader, _ in readers[id(node)]}
        if layer.op in _MAKES_FLOATS and all(reader.op == "_contrib_dequantize" for reader in after.values()):
            layer.attrs["enable_float_output"] = "True"
            replaced |= dict.fromkeys(after, layer)
        elif "min_calib_range" in node.attrs and "max_calib_range" in node.attrs:
            layer.attrs |= {end: node.attrs[end] for end in ("min_calib_range", "max_calib_range")}
            if layer.op == CONV and _adds_signed_to_unsigned(layer):
                layer.attrs["max_calib_range"] = f"{float(node.attrs['max_calib_range']) * 255 / 127:.9g}"
            replaced[id(node)] = layer
    for node in order(heads):
        node.inputs = [(replaced.get(id(source), source), index) for source, index in node.inputs]
    return [(replaced.get(id(node), node), index) for node, index in heads]


def _is_unsigned(node: Node) -> bool:
    """Whether the first output of a node of a quantized graph is uint8."""
    match node.op:
        case "_contrib_quantize_v2" | "_contrib_requantize":
            kind = node.attrs.get("out_type", "int8")
            if node.op == "_contrib_requantize" and node.inputs[0][0].op == CONV:
                return _makes_unsigned(node.inputs[0][0])
            return kind == "uint8" or (kind == "auto" and float(node.attrs.get("min_calib_range", "-1")) >= 0)
        case op if op == CONV:
            return _makes_unsigned(node)
        case "_contrib_quantized_pooling" | "_contrib_quantized_act" | "_contrib_quantized_flatten":
            return _is_unsigned(node.inputs[0][0])
        case "_contrib_quantized_concat" | "_contrib_quantized_elemwise_add":
            return all(_is_unsigned(source) for source, index in node.inputs if index == 0)
    return False


def _makes_unsigned(conv: Node) -> bool:
    """Whether the bytes that a fused convolution returns are unsigned: its function says it."""
    last = conv.subgraphs[0]["nodes"][-1]
    function = last.get("attrs", {}).get("act_type", "relu") if last["op"] == "Activation" else last["op"]
    return function in ("relu", "clip", "sigmoid", "softrelu")


def _adds_signed_to_unsigned(conv: Node) -> bool:
    """Whether a fused convolution with uint8 results adds int8. oneDNN, and so mxrt, then computes
    in int8 and cuts off what is above 127: only half of the range could be used.
    """
    if not conv.flag("with_sum"):
        return False
    ranges = 4
    added = conv.inputs[-ranges - 1][0]
    return _makes_unsigned(conv) and not _is_unsigned(added)


def align_scales(heads: list[Entry]) -> list[Entry]:
    """Gives all that Concat joins one range, so that it joins integers without changing them."""
    readers = consumers(heads)
    for node in order(heads):
        if node.op == "_contrib_quantized_concat":
            sources = _calibrated_sources(node, readers)
            if len(sources) > 1:
                low = min(0.0, *(float(source.attrs["min_calib_range"]) for source in sources))
                high = max(0.0, *(float(source.attrs["max_calib_range"]) for source in sources))
                for source in sources:
                    source.attrs["min_calib_range"], source.attrs["max_calib_range"] = f"{low:.9g}", f"{high:.9g}"
    return heads


def finish(heads: list[Entry]) -> list[Entry]:
    """The graph that MXNet's backend MKLDNN_QUANTIZE makes of a quantized one."""
    return align_scales(join_requantize(heads))


def _calibrated_sources(concat: Node, readers: dict[int, list[tuple[Node, int]]]) -> list[Node]:
    """The calibrated nodes that a Concat alone reads, through Pooling and Concat."""
    found: dict[int, Node] = {}
    visited = {id(concat): concat}
    queue = [concat]
    while queue:
        for source, _ in queue.pop().inputs:
            if id(source) in visited or any(id(reader) not in visited for reader, _ in readers[id(source)]):
                continue
            if "min_calib_range" in source.attrs and "max_calib_range" in source.attrs:
                found[id(source)] = source
            elif source.op in ("_contrib_quantized_concat", "_contrib_quantized_pooling"):
                visited[id(source)] = source
                queue.append(source)
    return list(found.values())
