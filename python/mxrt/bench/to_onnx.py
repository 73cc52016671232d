"""A symbol with its parameters as an ONNX file, for engines that read nothing of MXNet's.

Covers what convolutional networks, perceptrons and transformers are made of, and segmentation
networks and detectors up to their boxes; whatever else a graph holds is refused by name. Shapes are
written out, batch included, which is the form that peers run fastest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..symbol import Symbol
from . import onnx_file
from .onnx_images import RULES as IMAGES
from .onnx_transformer import RULES as TRANSFORMER
from .onnx_writer import Array, Attrs, OnIntegers, Rule, Untranslatable, Writer

__all__ = ["Untranslatable", "export"]


def export(graph: Symbol, params: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], path: Path) -> None:
    """Writes the graph with these parameters for inputs of these shapes (all float32)."""
    writer = Writer(graph, params, shapes)
    nodes, names = writer.graph, writer.names
    for node, name in zip(nodes["nodes"], names, strict=True):
        if node["op"].startswith(("_contrib_quantize", "_sg_mkldnn_")):
            raise OnIntegers(f"node '{node['name']}' ({node['op']}) computes on 8-bit integers as MXNet does")
        if node["op"] != "null":
            inputs = [_source(names, f"'{node['name']}'", entry) for entry in node["inputs"]]
            writer.translate(RULES.get(node["op"]), node["op"], name, node.get("attrs", {}), inputs)
    heads = [_source(names, "the model", entry) for entry in nodes["heads"]]
    onnx_file.write(path, writer.pieces(heads))


def _source(names: list[str], reader: str, entry: list[int]) -> str:
    if entry[1] != 0:
        raise Untranslatable(f"{reader} reads output {entry[1]} of '{names[entry[0]]}'; only first ones can be")
    return names[entry[0]]


def _same(op: str, **attributes: Any) -> Rule:
    """An operator that ONNX has as well."""
    return lambda w, name, attrs, inputs: w.add(op, inputs, name, **attributes)


def _with_scalar(op: str) -> Rule:
    def rule(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
        w.add(op, [*inputs, w.scalar(f"{name}#scalar", attrs.real("scalar", 1.0))], name)

    return rule


def _window(attrs: Attrs) -> dict[str, tuple[int, ...]]:
    """Kernel, strides and padding, in as many dimensions as there are."""
    kernel = attrs.numbers("kernel", ())
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    pad = attrs.numbers("pad", zeros)
    return {"kernel_shape": kernel, "strides": attrs.numbers("stride", ones), "pads": pad + pad}


def _channels_first(attrs: Attrs) -> None:
    if not attrs.word("layout", "None").startswith(("None", "NC")):
        raise Untranslatable(f"layout {attrs['layout']}")


def _convolution(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    _channels_first(attrs)
    window = _window(attrs)
    dilations = attrs.numbers("dilate", (1,) * len(window["kernel_shape"]))
    w.add("Conv", inputs, name, **window, dilations=dilations, group=attrs.integer("num_group", 1))


def _batch_norm(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    if attrs.integer("axis", 1) != 1:
        raise Untranslatable("only axis 1")
    data, gamma, *rest = inputs
    if attrs.flag("fix_gamma", True):
        gamma = w.constant(f"{name}#gamma", np.ones(w.found[gamma], "float32"))
    w.add("BatchNormalization", [data, gamma, *rest], name, epsilon=attrs.real("eps", 1e-3))


def _dense(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    data, weight, *bias = inputs
    shape = w.found[data]
    if len(shape) != 2:
        if not attrs.flag("flatten", True):
            _dense_over_last_axis(w, name, inputs)
            return
        data = w.add("Flatten", [data], f"{name}#flat", axis=1)
    w.add("Gemm", [data, weight, *bias], name, transB=1)


def _dense_over_last_axis(w: Writer, name: str, inputs: list[str]) -> None:
    data, weight, *bias = inputs
    if weight not in w.constants:
        raise Untranslatable("flatten=False with a weight that is no parameter")
    transposed = w.constant(f"{weight}#transposed", np.ascontiguousarray(w.constants[weight].T))
    product = w.add("MatMul", [data, transposed], f"{name}#product" if bias else name)
    if bias:
        w.add("Add", [product, *bias], name)


def _pooling(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    _channels_first(attrs)
    kind = attrs.word("pool_type", "max")
    onnx = {"max": "MaxPool", "avg": "AveragePool"}.get(kind)
    if onnx is None:
        raise Untranslatable(f"pool_type {kind}")
    if attrs.flag("global_pool", False):
        w.add(f"Global{onnx}", inputs, name)
        return
    convention = attrs.word("pooling_convention", "valid")
    if convention == "same":
        raise Untranslatable("pooling_convention same")
    extra = {"ceil_mode": int(convention == "full")}
    if kind == "avg":
        extra["count_include_pad"] = int(attrs.flag("count_include_pad", True))
    window = _window(attrs)
    before, after = w.found[inputs[0]][2:], w.found[name][2:]
    sides = zip(before, after, window["strides"], window["pads"], strict=False)
    if any((count - 1) * stride >= extent + pad for extent, count, stride, pad in sides):
        raise Untranslatable("pooling_convention full where the last window begins in the padding, which ONNX drops")
    w.add(onnx, inputs, name, **window, **extra)


def _activation(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    known = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign"}
    kind = attrs.word("act_type")
    if kind not in known:
        raise Untranslatable(f"act_type {kind}")
    w.add(known[kind], inputs, name)


def _leaky(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    known = {"leaky": "LeakyRelu", "elu": "Elu"}
    kind = attrs.word("act_type", "leaky")
    if kind == "gelu":
        # In the form that peers find again: ONNX had no Gelu in this version.
        scaled = w.add("Div", [*inputs, w.scalar(f"{name}#root", 2**0.5)], f"{name}#div")
        bell = w.add("Erf", [scaled], f"{name}#erf")
        one = w.add("Add", [bell, w.scalar(f"{name}#one", 1.0)], f"{name}#add")
        w.add("Mul", [w.add("Mul", [*inputs, one], f"{name}#mul"), w.scalar(f"{name}#half", 0.5)], name)
        return
    if kind not in known:
        raise Untranslatable(f"act_type {kind}")
    w.add(known[kind], inputs, name, alpha=attrs.real("slope", 0.25))


def _clip(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    bounds = [w.scalar(f"{name}#{key}", attrs.real(key)) for key in ("a_min", "a_max")]
    w.add("Clip", [*inputs, *bounds], name)


def _reshape(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    w.reshape(inputs[0], w.found[name], name)


def _transpose(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    axes = attrs.numbers("axes", ()) or tuple(reversed(range(len(w.found[name]))))
    w.add("Transpose", inputs, name, perm=axes)


def _softmax(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    if attrs.word("temperature", "None") != "None" and attrs.real("temperature") != 1.0:
        raise Untranslatable(f"temperature {attrs['temperature']}")
    if attrs.flag("use_length", False):
        raise Untranslatable("use_length")
    w.add("Softmax", inputs, name, axis=attrs.integer("axis", -1))


def _softmax_output(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    if attrs.flag("multi_output", False) or attrs.flag("preserve_shape", False) or len(w.found[name]) != 2:
        raise Untranslatable("only over the last of two axes")
    w.add("Softmax", inputs[:1], name, axis=1)  # the label has no influence


def _lrn(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    factors = {"alpha": attrs.real("alpha", 1e-4), "beta": attrs.real("beta", 0.75), "bias": attrs.real("knorm", 2.0)}
    w.add("LRN", inputs, name, size=attrs.integer("nsize"), **factors)


def _dropout(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    if attrs.word("mode", "training") == "always":
        raise Untranslatable("mode always, which drops in inference too")
    w.add("Identity", inputs, name)


def _concat(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    w.add("Concat", inputs, name, axis=attrs.integer("dim", 1))


RULES: dict[str, Rule] = {
    "Activation": _activation,
    "BatchNorm": _batch_norm,
    "Concat": _concat,
    "Convolution": _convolution,
    "Dropout": _dropout,
    "FullyConnected": _dense,
    "LRN": _lrn,
    "LeakyReLU": _leaky,
    "Pooling": _pooling,
    "SoftmaxOutput": _softmax_output,
    "clip": _clip,
    "concat": _concat,
    "softmax": _softmax,
    "transpose": _transpose,
    **IMAGES,
    **TRANSFORMER,
    **dict.fromkeys(("Flatten", "flatten", "Reshape", "reshape", "expand_dims", "squeeze"), _reshape),
    **dict.fromkeys(("_copy", "identity", "BlockGrad"), _same("Identity")),
    **dict.fromkeys(("elemwise_add", "_plus", "_Plus", "broadcast_add", "broadcast_plus"), _same("Add")),
    **dict.fromkeys(("elemwise_sub", "broadcast_sub", "broadcast_minus"), _same("Sub")),
    **dict.fromkeys(("elemwise_mul", "broadcast_mul"), _same("Mul")),
    **dict.fromkeys(("elemwise_div", "broadcast_div"), _same("Div")),
    **{
        f"_{name}_scalar": _with_scalar(op)
        for name, op in {"plus": "Add", "minus": "Sub", "mul": "Mul", "div": "Div"}.items()
    },
    **{name: _same(name.capitalize()) for name in ("abs", "erf", "exp", "log", "relu", "sigmoid", "sqrt", "tanh")},
}
