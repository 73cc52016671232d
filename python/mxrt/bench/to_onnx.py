"""A symbol with its parameters as an ONNX file, for engines that read nothing of MXNet's.

Covers what convolutional networks and perceptrons are made of; whatever else a graph holds is
refused by name. Shapes are written out, batch included, which is the form that peers run fastest.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..symbol import Symbol
from . import onnx_file

__all__ = ["Untranslatable", "export"]

Array = np.ndarray[Any, Any]


class Untranslatable(Exception):
    """The graph has something that this module cannot write as ONNX."""

    remedy = "MXNet 1.9.1 may write it, from the same files: mx.onnx.export_model"


class OnIntegers(Untranslatable):
    """The graph computes on 8-bit integers."""

    remedy = "Write the float32 model that it was made of as ONNX, and quantize that with onnxruntime"


def export(graph: Symbol, params: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], path: Path) -> None:
    """Writes the graph with these parameters for inputs of these shapes (all float32)."""
    writer = _Writer(graph, params, shapes)
    nodes = json.loads(graph.tojson())
    names = _unique([node["name"] for node in nodes["nodes"]])
    for node, name in zip(nodes["nodes"], names, strict=True):
        if node["op"].startswith(("_contrib_quantize", "_sg_mkldnn_")):
            raise OnIntegers(f"node '{node['name']}' ({node['op']}) computes on 8-bit integers as MXNet does")
        if node["op"] != "null":
            inputs = [_source(names, node, entry) for entry in node["inputs"]]
            writer.translate(node["op"], name, node.get("attrs", {}), inputs)
    heads = [names[entry[0]] for entry in nodes["heads"]]
    onnx_file.write(path, writer.pieces(heads))


def _unique(names: list[str]) -> list[str]:
    """ONNX wants one name for one value; MXNet lets a layer that is used twice have one name."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return out


def _source(names: list[str], node: dict[str, Any], entry: list[int]) -> str:
    if entry[1] != 0:
        raise Untranslatable(f"'{node['name']}' reads output {entry[1]} of '{names[entry[0]]}'; only first ones can be")
    return names[entry[0]]


class _Attrs(dict[str, str]):
    """Attributes of a node as MXNet writes them, with its defaults."""

    def numbers(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(ast.literal_eval(self[key])) if key in self else default

    def flag(self, key: str, default: bool) -> bool:
        return self.get(key, str(default)) in ("True", "true", "1")


class _Writer:
    """ONNX nodes and constants as they come."""

    def __init__(self, graph: Symbol, params: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.params, self.shapes = params, shapes
        inner = graph.get_internals()
        known = {name: value.shape for name, value in params.items() if name in graph.list_arguments()}
        _, found, _ = inner.infer_shape(**{**known, **shapes})
        # By the name of the value: `convolution0_output` is that of node `convolution0`.
        self.found = {
            name.removesuffix("_output"): tuple(s) for name, s in zip(inner.list_outputs(), found or [], strict=True)
        }
        self.inputs = [name for name in graph.list_inputs() if name in shapes]
        self.nodes: list[bytes] = []
        self.constants: dict[str, Array] = {name: params[name] for name in graph.list_inputs() if name in params}
        self.read: set[str] = set()

    def add(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(onnx_file.node(op, inputs, output, attributes))
        self.read.update(inputs)
        return output

    def constant(self, name: str, value: Array) -> str:
        self.constants[name] = value
        return name

    def scalar(self, name: str, value: str) -> str:
        return self.constant(name, np.array(float(value), "float32"))

    def translate(self, op: str, name: str, attrs: Mapping[str, str], inputs: list[str]) -> None:
        rule = RULES.get(op)
        try:
            if rule is None:
                raise Untranslatable("there is no translation of this operator")
            rule(self, name, _Attrs(attrs), inputs)
        except Untranslatable as error:
            raise Untranslatable(f"operator {op} of node '{name}' {dict(attrs)}: {error}") from None

    def pieces(self, heads: list[str]) -> list[bytes]:
        # Labels, which only training reads, and gammas that count as ones have no readers.
        used = [onnx_file.tensor(name, value) for name, value in self.constants.items() if name in self.read]
        inputs = [onnx_file.value(name, self.shapes[name], "float32") for name in self.inputs if name in self.read]
        outputs = [onnx_file.value(name, self.found[name], "float32") for name in heads]
        return onnx_file.model_pieces("mxnet_model", self.nodes, used, inputs, outputs)


Rule = Callable[[_Writer, str, _Attrs, list[str]], object]


def _same(op: str, **attributes: Any) -> Rule:
    """An operator that ONNX has as well."""
    return lambda w, name, attrs, inputs: w.add(op, inputs, name, **attributes)


def _with_scalar(op: str) -> Rule:
    return lambda w, name, attrs, inputs: w.add(op, [*inputs, w.scalar(f"{name}#scalar", attrs["scalar"])], name)


def _window(attrs: _Attrs) -> dict[str, tuple[int, ...]]:
    """Kernel, strides and padding, in as many dimensions as there are."""
    kernel = attrs.numbers("kernel", ())
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    pad = attrs.numbers("pad", zeros)
    return {"kernel_shape": kernel, "strides": attrs.numbers("stride", ones), "pads": pad + pad}


def _convolution(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    if not attrs.get("layout", "None").startswith(("None", "NC")):
        raise Untranslatable(f"layout {attrs['layout']}")
    window = _window(attrs)
    dilations = attrs.numbers("dilate", (1,) * len(window["kernel_shape"]))
    w.add("Conv", inputs, name, **window, dilations=dilations, group=int(attrs.get("num_group", 1)))


def _batch_norm(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    if attrs.get("axis", "1") != "1":
        raise Untranslatable("only axis 1")
    data, gamma, *rest = inputs
    if attrs.flag("fix_gamma", True):
        gamma = w.constant(f"{name}#gamma", np.ones_like(w.params[gamma]))
    w.add("BatchNormalization", [data, gamma, *rest], name, epsilon=float(attrs.get("eps", 1e-3)))


def _dense(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    data, weight, *bias = inputs
    shape = w.found[data]
    if len(shape) != 2:
        if not attrs.flag("flatten", True):
            raise Untranslatable("flatten=False")
        data = w.add("Flatten", [data], f"{name}#flat", axis=1)
    w.add("Gemm", [data, weight, *bias], name, transB=1)


def _pooling(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    kind = attrs.get("pool_type", "max")
    onnx = {"max": "MaxPool", "avg": "AveragePool"}.get(kind)
    if onnx is None:
        raise Untranslatable(f"pool_type {kind}")
    if attrs.flag("global_pool", False):
        w.add(f"Global{onnx}", inputs, name)
        return
    convention = attrs.get("pooling_convention", "valid")
    if convention == "same":
        raise Untranslatable("pooling_convention same")
    extra = {"ceil_mode": int(convention == "full")}
    if kind == "avg":
        extra["count_include_pad"] = int(attrs.flag("count_include_pad", True))
    w.add(onnx, inputs, name, **_window(attrs), **extra)


def _activation(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    known = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign"}
    kind = attrs["act_type"]
    if kind not in known:
        raise Untranslatable(f"act_type {kind}")
    w.add(known[kind], inputs, name)


def _leaky(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    known = {"leaky": "LeakyRelu", "elu": "Elu"}
    kind = attrs.get("act_type", "leaky")
    if kind not in known:
        raise Untranslatable(f"act_type {kind}")
    w.add(known[kind], inputs, name, alpha=float(attrs.get("slope", 0.25)))


def _clip(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    bounds = [w.scalar(f"{name}#{key}", attrs[key]) for key in ("a_min", "a_max")]
    w.add("Clip", [*inputs, *bounds], name)


def _reshape(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    shape = w.constant(f"{name}#shape", np.array(w.found[name], "int64"))
    w.add("Reshape", [inputs[0], shape], name)


def _transpose(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    axes = attrs.numbers("axes", ()) or tuple(reversed(range(len(w.found[name]))))
    w.add("Transpose", inputs, name, perm=axes)


def _softmax(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    if attrs.get("temperature", "None") not in ("None", "1.0") or attrs.flag("use_length", False):
        raise Untranslatable("temperature or use_length")
    w.add("Softmax", inputs, name, axis=int(attrs.get("axis", -1)))


def _softmax_output(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    if attrs.flag("multi_output", False) or attrs.flag("preserve_shape", False) or len(w.found[name]) != 2:
        raise Untranslatable("only over the last of two axes")
    w.add("Softmax", inputs[:1], name, axis=1)  # the label has no influence


def _lrn(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    factors = {"alpha": attrs.get("alpha", 1e-4), "beta": attrs.get("beta", 0.75), "bias": attrs.get("knorm", 2.0)}
    w.add("LRN", inputs, name, size=int(attrs["nsize"]), **{key: float(value) for key, value in factors.items()})


def _concat(w: _Writer, name: str, attrs: _Attrs, inputs: list[str]) -> None:
    w.add("Concat", inputs, name, axis=int(attrs.get("dim", 1)))


RULES: dict[str, Rule] = {
    "Activation": _activation,
    "BatchNorm": _batch_norm,
    "Concat": _concat,
    "Convolution": _convolution,
    "FullyConnected": _dense,
    "LRN": _lrn,
    "LeakyReLU": _leaky,
    "Pooling": _pooling,
    "SoftmaxOutput": _softmax_output,
    "clip": _clip,
    "concat": _concat,
    "softmax": _softmax,
    "transpose": _transpose,
    **dict.fromkeys(("Flatten", "flatten", "Reshape", "reshape", "expand_dims", "squeeze"), _reshape),
    **dict.fromkeys(("Dropout", "_copy", "identity", "BlockGrad"), _same("Identity")),
    **dict.fromkeys(("elemwise_add", "_plus", "_Plus", "broadcast_add", "broadcast_plus"), _same("Add")),
    **dict.fromkeys(("elemwise_sub", "broadcast_sub", "broadcast_minus"), _same("Sub")),
    **dict.fromkeys(("elemwise_mul", "broadcast_mul"), _same("Mul")),
    **dict.fromkeys(("elemwise_div", "broadcast_div"), _same("Div")),
    **{
        f"_{name}_scalar": _with_scalar(op)
        for name, op in {"plus": "Add", "minus": "Sub", "mul": "Mul", "div": "Div"}.items()
    },
    **{name: _same(name.capitalize()) for name in ("abs", "exp", "log", "relu", "sigmoid", "sqrt", "tanh")},
}
