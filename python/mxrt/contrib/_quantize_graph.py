"""The graph of a quantized model, made of the graph of a float32 one.

Graphs are lists of nodes here, read from the JSON of a symbol and written back to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from ..symbol import Symbol, load_json

# An output of a node.
Entry = tuple["Node", int]


class Node:
    """An operator or a variable; inputs are outputs of other nodes."""

    __slots__ = ("attrs", "inputs", "name", "op", "outputs", "subgraphs")

    def __init__(self, op: str, name: str, attrs: dict[str, str] | None = None, inputs: list[Entry] | None = None):
        self.op, self.name = op, name
        self.attrs: dict[str, str] = dict(attrs or {})
        self.inputs: list[Entry] = inputs or []
        self.subgraphs: list[Any] = []
        # Names of the outputs as a symbol lists them, where the node was read from one.
        self.outputs: dict[int, str] = {}

    def copy(self) -> Node:
        """A copy of the operator without inputs."""
        node = Node(self.op, self.name, self.attrs)
        node.subgraphs, node.outputs = self.subgraphs, self.outputs
        return node

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is true or false."""
        return self.attrs.get(name, str(default)).lower() in ("true", "1")

    def output_name(self, index: int) -> str:
        """Name of an output in lists of outputs."""
        default = self.name if self.op == "null" else f"{self.name}_output"
        return self.outputs.get(index, default)


def read(symbol: Symbol) -> list[Entry]:
    """The outputs of a symbol, with all nodes that make them."""
    internals = symbol.get_internals()
    graph = internals._as_data()
    nodes: list[Node] = []
    for entry in graph["nodes"]:
        node = Node(entry["op"], entry["name"], entry.get("attrs"))
        node.inputs = [(nodes[i], index) for i, index, *_ in entry["inputs"]]
        node.subgraphs = entry.get("subgraphs", [])
        nodes.append(node)
    for (i, index, *_), name in zip(graph["heads"], internals.list_outputs(), strict=True):
        nodes[i].outputs[index] = name
    own = symbol._as_data()
    if len(own["nodes"]) != len(graph["nodes"]):
        raise ValueError("the symbol cannot be quantized: its nodes have no single order")
    return [(nodes[i], index) for i, index, *_ in own["heads"]]


def order(heads: Iterable[Entry]) -> list[Node]:
    """All nodes, inputs before those that read them."""
    done: dict[int, Node] = {}
    stack: list[tuple[Node, int]] = []
    for head, _ in heads:
        stack.append((head, 0))
        while stack:
            node, next_input = stack.pop()
            if id(node) in done:
                continue
            if next_input < len(node.inputs):
                stack.append((node, next_input + 1))
                stack.append((node.inputs[next_input][0], 0))
            else:
                done[id(node)] = node
    return list(done.values())


def as_json(heads: list[Entry]) -> dict[str, Any]:
    """The graph as symbol JSON."""
    nodes = order(heads)
    places = {id(node): i for i, node in enumerate(nodes)}

    def entries(inputs: list[Entry]) -> list[list[int]]:
        return [[places[id(node)], index, 0] for node, index in inputs]

    written = []
    for node in nodes:
        entry: dict[str, Any] = {"op": node.op, "name": node.name, "inputs": entries(node.inputs)}
        if node.attrs:
            entry["attrs"] = node.attrs
        if node.subgraphs:
            entry["subgraphs"] = node.subgraphs
        written.append(entry)
    variables = [i for i, node in enumerate(nodes) if node.op == "null"]
    return {"nodes": written, "arg_nodes": variables, "heads": entries(heads)}


def write(heads: list[Entry]) -> Symbol:
    """The symbol of a graph."""
    graph = as_json(heads)
    graph["attrs"] = {"mxnet_version": ["int", 10901]}
    return load_json(json.dumps(graph))


def consumers(heads: list[Entry]) -> dict[int, list[tuple[Node, int]]]:
    """The nodes that read any output of a node, and as which input; a result counts as one."""
    readers: dict[int, list[tuple[Node, int]]] = {}
    for node in order(heads):
        for i, (made, _) in enumerate(node.inputs):
            readers.setdefault(id(made), []).append((node, i))
    for i, (made, _) in enumerate(heads):
        readers.setdefault(id(made), []).append((Node("null", "result"), i))
    return readers


def nested(node: Node, op: str) -> dict[str, Any] | None:
    """The node of an operator in a nested graph, as JSON."""
    graphs = node.subgraphs or [{"nodes": []}]
    return next((inner for inner in graphs[0]["nodes"] if inner["op"] == op), None)


# ----------------------------------------------------------------------------- what is quantized

# Operators that are always quantized, and those that are where their neighbours are.
MUST = {"Convolution", "FullyConnected", "RNN", "_sg_mkldnn_conv", "_sg_mkldnn_fully_connected"}
MUST |= {"_sg_mkldnn_selfatt_qk", "_sg_mkldnn_selfatt_valatt"}
QUANTIZED = {
    "Convolution": "_contrib_quantized_conv",
    "FullyConnected": "_contrib_quantized_fully_connected",
    "RNN": "_contrib_quantized_rnn",
    "Pooling": "_contrib_quantized_pooling",
    "Activation": "_contrib_quantized_act",
    "Concat": "_contrib_quantized_concat",
    "Flatten": "_contrib_quantized_flatten",
    "elemwise_add": "_contrib_quantized_elemwise_add",
    "elemwise_mul": "_contrib_quantized_elemwise_mul",
    "Embedding": "_contrib_quantized_embedding",
    "BatchNorm": "_contrib_quantized_batch_norm",
    **{name: name for name in MUST if name.startswith("_sg_")},
}
# Operators whose outputs have names in MXNet; a node that quantizes the output of another operator
# is named after its number.
_NAMES_OUTPUTS = set(
    """
    Activation BatchNorm BatchNorm_v1 BilinearSampler Concat Convolution Convolution_v1 Correlation Crop Custom
    Deconvolution Dropout FullyConnected GridGenerator GroupNorm IdentityAttachKLSparseReg InstanceNorm
    L2Normalization LRN LayerNorm LeakyReLU MakeLoss Pad Pooling Pooling_v1 RNN ROIPooling SVMOutput SequenceLast
    SequenceMask SequenceReverse SliceChannel SoftmaxActivation SoftmaxOutput SpatialTransformer SwapAxis UpSampling
    _CachedOp _contrib_BatchNormWithReLU _contrib_DeformableConvolution _contrib_DeformablePSROIPooling
    _contrib_MultiBoxDetection _contrib_MultiBoxPrior _contrib_MultiBoxTarget _contrib_MultiProposal
    _contrib_PSROIPooling _contrib_Proposal _contrib_ROIAlign _contrib_RROIAlign _contrib_SyncBatchNorm
    _contrib_count_sketch _contrib_fft _contrib_hawkesll _contrib_ifft _contrib_index_array
    _contrib_interleaved_matmul_encdec_qk _contrib_interleaved_matmul_encdec_valatt
    _contrib_interleaved_matmul_selfatt_qk _contrib_interleaved_matmul_selfatt_valatt _npi_concatenate _npi_dstack
    _npi_hstack _npi_matmul _npi_std _npi_var _rnn_param_concat _sg_mkldnn_conv _sg_mkldnn_fully_connected
    _sg_mkldnn_selfatt_qk _sg_mkldnn_selfatt_valatt col2im elemwise_add im2col make_loss softmax softmin
    """.split()
)
# Operators whose bytes have the type of those they read.
_KEEPS_TYPE = {"Pooling", "Activation", "Concat", "Flatten", "elemwise_add"}
# Operators whose results have 32 bits.
SUMS = {"Convolution", "FullyConnected", "elemwise_add", "elemwise_mul"} | {n for n in MUST if n.startswith("_sg_")}


def _spatial(attrs: dict[str, str]) -> int:
    return len([part for part in attrs.get("kernel", "").strip("()[] ").split(",") if part.strip()])


def _has_form(node: Node) -> bool:
    """Whether an operator on integers takes these attributes, here and in MXNet."""
    attrs = node.attrs
    match node.op:
        case "Convolution":
            layout = attrs.get("layout", "None")
            plain = attrs.get("num_group", "1") == "1" and layout in ("None", "NCHW", "NCDHW")
            return plain and _spatial(attrs) in (2, 3)
        case "Pooling":
            # MXNet has no integers of one spatial axis, nor for a kernel that is left out.
            windows = _spatial(attrs) in (2, 3) and attrs.get("layout", "None") in ("None", "NCHW", "NCDHW")
            return windows and attrs.get("pool_type", "max") in ("max", "avg")
        case "Activation":
            return attrs.get("act_type") == "relu"
        case "Concat":
            return int(attrs.get("dim", "1")) > 0
        case "Embedding":
            return attrs.get("dtype", "float32") == "float32"
        case "RNN":
            other = node.flag("use_sequence_length") or attrs.get("projection_size", "None") != "None"
            return attrs.get("mode") == "lstm" and not other
        case "BatchNorm":
            return not node.flag("output_mean_var") and attrs.get("axis", "1") == "1"
        case "_sg_mkldnn_conv":
            conv = nested(node, "Convolution")
            return conv is not None and _spatial(conv.get("attrs", {})) in (2, 3)
    return node.op in QUANTIZED


def _quantized(node: Node, granularity: str) -> Node:
    made = Node(QUANTIZED[node.op], f"quantized_{node.name}", node.attrs)
    made.subgraphs = node.subgraphs
    if node.op.startswith("_sg_") or node.op == "RNN":
        # As MXNet writes it.
        made.attrs["quantized"] = "true" if node.op in ("_sg_mkldnn_conv", "RNN") else "True"
    if node.op == "_sg_mkldnn_fully_connected" and granularity == "channel-wise":
        made.attrs["channel_wise_quantize"] = "True"
    return made


def stays_float(node: Node, index: int, granularity: str) -> bool:
    """Whether an operator on integers takes this input in float32."""
    match node.op:
        case "BatchNorm":
            return index != 0
        case "Embedding":
            return index == 0
        case "RNN":
            return index in (1, 2, 3)
        case "_sg_mkldnn_conv":
            return index != 0 and not (node.flag("with_sum") and index == len(node.inputs) - 1)
        case "_sg_mkldnn_fully_connected":
            return granularity == "channel-wise" and index in (1, 2)
    return False


def _takes_int8(node: Node, index: int) -> bool:
    """Whether the operator on integers reads this input as int8 alone. MXNet's plain convolution
    accepts uint8, but gives its sums a range that is right for int8 only; its relu takes bytes
    above 127 for negative numbers.
    """
    match node.op:
        case "Convolution" | "elemwise_mul" | "Activation" | "_sg_mkldnn_selfatt_qk":
            return True
        case "_sg_mkldnn_selfatt_valatt":
            return index == 0
        case "FullyConnected" | "_sg_mkldnn_fully_connected" | "Embedding":
            return index > 0
    return False


def _takes_uint8(node: Node, index: int) -> bool:
    """Whether the operator on integers reads this input as uint8 alone."""
    return node.op == "_sg_mkldnn_selfatt_valatt" and index == 1


def _signed(nodes: list[Node], chosen: set[int]) -> set[int]:
    """The nodes whose value, as integers, must be int8 because of the nodes that read it."""
    signed: set[int] = set()
    for node in reversed(nodes):
        if id(node) in chosen:
            passed_on = id(node) in signed and node.op in _KEEPS_TYPE
            signed |= {id(made) for i, (made, _) in enumerate(node.inputs) if passed_on or _takes_int8(node, i)}
    return signed


def _makes_uint8(node: Node) -> bool:
    """Whether the bytes of an operator are unsigned whatever reads them."""
    while node.op in _KEEPS_TYPE:
        node = node.inputs[0][0]
    flags = ("with_act", "with_postsum_act", "with_eltwise", "with_relu")
    return node.op in ("_sg_mkldnn_conv", "_sg_mkldnn_fully_connected") and any(map(node.flag, flags))


def _reads_unsigned(node: Node, dtype: str) -> bool:
    """Whether an operator of int8 alone would read uint8."""
    if node.op not in ("Activation", "elemwise_mul", "_sg_mkldnn_selfatt_qk", "_sg_mkldnn_selfatt_valatt"):
        return False
    sources = [source for i, (source, _) in enumerate(node.inputs) if _takes_int8(node, i)]
    return dtype == "uint8" or any(map(_makes_uint8, sources))


def _chosen(heads: list[Entry], excluded: set[str], operators: set[str], dtype: str, mode: str) -> set[int]:
    """The nodes to quantize."""
    nodes = order(heads)
    names = {id(n): {n.name, *(inner["name"] for g in n.subgraphs for inner in g["nodes"])} for n in nodes}
    able = [n for n in nodes if _has_form(n) and n.op not in operators and not names[id(n)] & excluded]
    able = [n for n in able if not _reads_unsigned(n, dtype)]
    if mode == "full":
        return {id(n) for n in able}
    must = [n for n in able if n.op in MUST]
    others = {id(n) for n in able if n.op not in MUST}
    readers: dict[int, list[Node]] = {}
    for node in nodes:
        for made, _ in node.inputs:
            readers.setdefault(id(made), []).append(node)

    def reached(step: Callable[[Node], list[Node]]) -> set[int]:
        found: set[int] = set()
        queue = list(must)
        while queue:
            for node in step(queue.pop()):
                if id(node) in others and id(node) not in found:
                    found.add(id(node))
                    queue.append(node)
        return found

    before = reached(lambda node: [made for made, _ in node.inputs])
    behind = reached(lambda node: readers.get(id(node), []))
    return {id(n) for n in must} | (before & behind)


class _Quantizer:
    """Builds the quantized graph node by node."""

    def __init__(self, nodes: list[Node], chosen: set[int], dtype: str, granularity: str):
        self.chosen, self.dtype, self.granularity = chosen, dtype, granularity
        self.signed = _signed(nodes, chosen)
        readers = [node for node in nodes if id(node) in chosen]
        self.unsigned = {id(e[0]) for n in readers for i, e in enumerate(n.inputs) if _takes_uint8(n, i)}
        # By old node: the new one whose first output holds its value, as integers or not.
        self.new: dict[int, Node] = {}
        self.integers: dict[tuple[int, int], Node] = {}
        self.floats: dict[tuple[int, int], Node] = {}
        # New nodes that are calibrated, and the names of the float32 values that do it.
        self.calibrated: list[str] = []

    def out_type(self, node: Node) -> str:
        """The type of a value as integers, in the words of MXNet's attribute."""
        if id(node) in self.unsigned:
            return "uint8"
        return "int8" if self.dtype == "auto" and id(node) in self.signed else self.dtype

    def makes_integers(self, node: Node) -> bool:
        """Whether the new node of this one has integers and a range as outputs."""
        return id(node) in self.chosen and node.op != "RNN"

    def as_float(self, entry: Entry) -> Entry:
        """A value in float32."""
        node, index = entry
        if not self.makes_integers(node):
            return (self.new[id(node)], index)
        if (id(node), index) not in self.floats:
            made = self.new[id(node)]
            inputs = [(made, 0), (made, 1), (made, 2)]
            self.floats[id(node), index] = Node("_contrib_dequantize", f"{node.name}_dequantize", None, inputs)
        return (self.floats[id(node), index], 0)

    def as_integers(self, entry: Entry, asymmetric: bool) -> list[Entry]:
        """A value as integers, and its range."""
        node, index = entry
        if self.makes_integers(node):
            made = self.new[id(node)]
        else:
            made = self.integers.get((id(node), index)) or self.quantize(entry, asymmetric)
            self.integers[id(node), index] = made
        return [(made, 0), (made, 1), (made, 2)]

    def quantize(self, entry: Entry, asymmetric: bool) -> Node:
        node, index = entry
        full = node.output_name(index)
        name = full if node.op == "null" or node.op in _NAMES_OUTPUTS else f"{node.name}_{index}"
        operator = "_contrib_quantize_asym" if asymmetric else "_contrib_quantize_v2"
        made = Node(operator, f"{name}_quantize", None, [(self.new[id(node)], index)])
        if not asymmetric:
            made.attrs["out_type"] = self.out_type(node)
        self.calibrated.append(full)
        return made

    def add(self, node: Node) -> None:
        """Adds the new form of a node."""
        if id(node) not in self.chosen:
            made = node.copy()
            made.inputs = [self.as_float(entry) for entry in node.inputs]
            self.new[id(node)] = made
            return
        made = _quantized(node, self.granularity)
        ranges: list[Entry] = []
        for i, entry in enumerate(node.inputs):
            if stays_float(node, i, self.granularity):
                made.inputs.append(self.as_float(entry))
                continue
            value, *ends = self.as_integers(entry, node.op == "RNN" and i == 0)
            made.inputs.append(value)
            ranges += ends
        made.inputs += ranges
        if node.op == "BatchNorm":
            self.calibrated.append(node.output_name(0))
        if node.op in SUMS:
            sums = [(made, 0), (made, 1), (made, 2)]
            self.calibrated.append(node.output_name(0))
            made = Node("_contrib_requantize", f"requantize_{node.name}", {"out_type": self.out_type(node)}, sums)
        self.new[id(node)] = made


def quantize(
    heads: list[Entry],
    excluded: set[str],
    operators: set[str],
    offline: set[str],
    dtype: str,
    mode: str,
    granularity: str,
) -> tuple[list[Entry], list[str]]:
    """The quantized graph, and the names of the float32 values that calibrate it.

    Parameters in `offline` become variables that hold integers.
    """
    nodes = order(heads)
    quantizer = _Quantizer(nodes, _chosen(heads, excluded, operators, dtype, mode), dtype, granularity)
    for node in nodes:
        quantizer.add(node)
    new = [quantizer.as_float(entry) for entry in heads]
    names = _offline(new, offline)
    calibrated = [name for name in dict.fromkeys(quantizer.calibrated) if name not in names]
    return new, calibrated


def _offline(heads: list[Entry], offline: set[str]) -> set[str]:
    """Puts variables in the place of quantized parameters; returns the parameters."""
    made: dict[tuple[int, int], Node] = {}
    found: set[str] = set()
    for node in order(heads):
        for i, (source, index) in enumerate(node.inputs):
            quantizes = source.op == "_contrib_quantize_v2" and source.inputs[0][0].op == "null"
            if quantizes and source.inputs[0][0].name in offline:
                found.add(source.inputs[0][0].name)
                name = source.name + ("", "_min", "_max")[index]
                node.inputs[i] = (made.setdefault((id(source), index), Node("null", name)), 0)
    return found


def fixed_gammas(heads: list[Entry]) -> set[str]:
    """Names of gammas that a BatchNorm in float32 takes for 1. That on integers takes their values,
    in MXNet too.
    """
    fixed: set[str] = set()
    read: set[str] = set()
    for node in order(heads):
        for i, (source, _) in enumerate(node.inputs):
            is_fixed = node.op == "_contrib_quantized_batch_norm" and i == 1 and node.flag("fix_gamma", True)
            (fixed if is_fixed else read).add(source.name)
    return fixed - read


def calibrating(node: Node) -> Entry | None:
    """The value whose range a node of a quantized graph is given; None where it takes no range."""
    match node.op:
        case "_contrib_requantize" | "_contrib_quantize_v2" | "_contrib_quantize_asym":
            return node.inputs[0]
        case "_contrib_quantized_batch_norm":
            return (node, 0)
    return None


def calibrate(heads: list[Entry], table: dict[str, tuple[float, float]]) -> None:
    """Writes ranges into the nodes that take one, by the names of the float32 values."""
    for node in order(heads):
        value = calibrating(node)
        if value is None:
            continue
        source, index = value
        name = source.output_name(index)
        if source.name.startswith("quantized_"):
            name = name.removeprefix("quantized_")
        if name in table:
            low, high = table[name]
            if low == high == 0.0:
                # What was zero in all data, such as a first state, stays so in any range.
                low, high = -1.0, 1.0
            node.attrs["min_calib_range"] = f"{low:.9g}"
            node.attrs["max_calib_range"] = f"{high:.9g}"
