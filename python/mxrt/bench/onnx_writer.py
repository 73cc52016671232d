"""The nodes and constants of an ONNX file while a graph is translated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..symbol import Symbol
from . import onnx_file

__all__ = ["Array", "Attrs", "OnIntegers", "Rule", "Untranslatable", "Writer"]

Array = np.ndarray[Any, Any]


class Untranslatable(Exception):
    """The graph has something that this module cannot write as ONNX."""

    remedy = "MXNet 1.9.1 may write it, from the same files: mx.onnx.export_model"


class OnIntegers(Untranslatable):
    """The graph computes on 8-bit integers."""

    remedy = "Write the float32 model that it was made of as ONNX, and quantize that with onnxruntime"


class Attrs(dict[str, str]):
    """Attributes of a node as MXNet writes them, with its defaults."""

    def numbers(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(ast.literal_eval(self[key])) if key in self else default

    def numbers_or_one(self, key: str) -> tuple[int, ...] | None:
        """One number or several; none if the attribute is absent or says so."""
        found = ast.literal_eval(self.get(key, "None"))
        return (found,) if isinstance(found, int) else found and tuple(found)

    def flag(self, key: str, default: bool) -> bool:
        return self.get(key, str(default)) in ("True", "true", "1")


class Writer:
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
        self.nodes: list[tuple[bytes, list[str], str]] = []
        self.constants: dict[str, Array] = {name: params[name] for name in graph.list_inputs() if name in params}
        # MXNet's operator that makes each value, its attributes and its inputs.
        self.origins: dict[str, tuple[str, Attrs, list[str]]] = {}

    def add(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append((onnx_file.node(op, inputs, output, attributes), inputs, output))
        return output

    def constant(self, name: str, value: Array) -> str:
        self.constants[name] = value
        return name

    def scalar(self, name: str, value: str) -> str:
        return self.constant(name, np.array(float(value), "float32"))

    def reshape(self, data: str, shape: tuple[int, ...], output: str) -> str:
        return self.add("Reshape", [data, self.constant(f"{output}#shape", np.array(shape, "int64"))], output)

    def translate(self, rule: Rule | None, op: str, name: str, attrs: Mapping[str, str], inputs: list[str]) -> None:
        self.origins[name] = (op, Attrs(attrs), inputs)
        try:
            if rule is None:
                raise Untranslatable("there is no translation of this operator")
            rule(self, name, Attrs(attrs), inputs)
        except Untranslatable as error:
            raise Untranslatable(f"operator {op} of node '{name}' {dict(attrs)}: {error}") from None

    def pieces(self, heads: list[str]) -> list[bytes]:
        # Layers that others took the weights of have no readers.
        read: set[str] = set(heads)
        nodes: list[bytes] = []
        for node, inputs, output in reversed(self.nodes):
            if output in read:
                nodes.append(node)
                read.update(inputs)
        # Neither have labels, which only training reads, and gammas that count as ones.
        used = [onnx_file.tensor(name, value) for name, value in self.constants.items() if name in read]
        given = [onnx_file.value(name, self.shapes[name], "float32") for name in self.inputs if name in read]
        outputs = [onnx_file.value(name, self.found[name], "float32") for name in heads]
        return onnx_file.model_pieces("mxnet_model", nodes[::-1], used, given, outputs)


Rule = Callable[[Writer, str, Attrs, list[str]], object]
