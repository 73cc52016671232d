"""The nodes and constants of an ONNX file while a graph is translated."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..symbol import Symbol, load_json
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
    """Attributes of a node as MXNet writes them, under Python 2 too, with its defaults."""

    def _value(self, key: str) -> Any:
        return ast.literal_eval(re.sub(r"(?<=\d)L\b", "", self.get(key, "None").strip()))

    def numbers(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Several numbers; the default if the attribute is absent, or has none."""
        return self.numbers_or_one(key) or default

    def numbers_or_one(self, key: str) -> tuple[int, ...] | None:
        """One number or several; none if the attribute is absent or says so."""
        found = self._value(key)
        return (found,) if isinstance(found, int) else found and tuple(found)

    def integer(self, key: str, default: int | None = None) -> int:
        """One whole number. Untranslatable where it lacks and has no default."""
        found = self._value(key)
        found = default if found is None else found
        if found is None:
            raise Untranslatable(f"there is no {key}")
        return int(found)

    def real(self, key: str, default: float | None = None) -> float:
        """One number. Untranslatable where it lacks and has no default."""
        found = self.get(key, default)
        if found is None:
            raise Untranslatable(f"there is no {key}")
        return float(found)

    def word(self, key: str, default: str | None = None) -> str:
        """A name of one of several kinds. Untranslatable where it lacks and has no default."""
        found = self.get(key, default)
        if found is None:
            raise Untranslatable(f"there is no {key}")
        return found

    def flag(self, key: str, default: bool) -> bool:
        """Whether an attribute is true."""
        return self.get(key, str(default)).lower() in ("true", "1")


class Writer:
    """ONNX nodes and constants as they come."""

    def __init__(self, graph: Symbol, params: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = shapes
        content = graph._as_data(remove_amp_cast=True)
        self.graph: dict[str, Any] = content
        # Names of the values that nodes compute first, by the numbers of nodes, and their shapes.
        self.names = _names(content["nodes"])
        self.found = dict(zip(self.names, _shapes(graph, content, params, shapes), strict=True))
        self.inputs = list(dict.fromkeys(name for name in graph.list_inputs() if name in shapes))
        self.nodes: list[tuple[bytes, list[str], str]] = []
        self.constants: dict[str, Array] = {name: params[name] for name in graph.list_inputs() if name in params}
        self.made: set[str] = set()
        # MXNet's operator that makes each value, its attributes and its inputs.
        self.origins: dict[str, tuple[str, Attrs, list[str]]] = {}

    def add(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        if output in self.made:
            raise Untranslatable(f"two values would be called '{output}'")
        self.made.add(output)
        self.nodes.append((onnx_file.node(op, inputs, output, attributes), inputs, output))
        return output

    def constant(self, name: str, value: Array) -> str:
        self.constants[name] = value
        return name

    def scalar(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, "float32"))

    def reshape(self, data: str, shape: tuple[int, ...], output: str) -> str:
        return self.add("Reshape", [data, self.constant(f"{output}#shape", np.array(shape, "int64"))], output)

    def translate(self, rule: Rule | None, op: str, name: str, attrs: Mapping[str, str], inputs: list[str]) -> None:
        self.origins[name] = (op, Attrs(attrs), inputs)
        try:
            if rule is None:
                raise Untranslatable("there is no translation of this operator")
            if attrs.get("dtype", "None") not in ("None", "float32"):
                raise Untranslatable(f"dtype {attrs['dtype']}")
            rule(self, name, Attrs(attrs), inputs)
        except Untranslatable as error:
            raise Untranslatable(f"operator {op} of node '{name}' {dict(attrs)}: {error}") from None
        except (ArithmeticError, LookupError, SyntaxError, TypeError, ValueError) as error:
            raise Untranslatable(
                f"operator {op} of node '{name}' {dict(attrs)}: it has a form that no translation reads "
                f"({type(error).__name__}: {error})"
            ) from None

    def pieces(self, heads: list[str]) -> list[bytes]:
        """The pieces of the file, whose outputs are these values."""
        heads = self._outputs(heads)
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

    def _outputs(self, heads: list[str]) -> list[str]:
        """Names of outputs, each of which a node of its own computes: ONNX wants that."""
        found: list[str] = []
        for head in heads:
            if head in found or head in self.inputs or head in self.constants:
                name = head
                while name in self.found or name in self.made or name in self.constants:
                    name += "#output"
                self.found[name] = self.found[head]
                head = self.add("Identity", [head], name)
            found.append(head)
        return found


def _names(nodes: list[dict[str, Any]]) -> list[str]:
    """Names of nodes. ONNX wants one name for one value; MXNet lets a layer that is used twice have
    one name, and variables of one name are one input.
    """
    seen = {node["name"] for node in nodes if node["op"] == "null"}
    names = []
    for node in nodes:
        name, number = node["name"], 1
        while node["op"] != "null" and name in seen:
            number += 1
            name = f"{node['name']}#{number}"
        seen.add(name)
        names.append(name)
    return names


def _shapes(
    graph: Symbol, content: Mapping[str, Any], params: Mapping[str, Array], given: Mapping[str, tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Shapes of the first outputs of all nodes."""
    nodes = content["nodes"]
    every = load_json(json.dumps({**content, "heads": [[number, 0, 0] for number in range(len(nodes))]}))
    known = {name: value.shape for name, value in params.items() if name in graph.list_arguments()}
    _, found, _ = every.infer_shape(**{**known, **given})
    if found is None:
        raise Untranslatable("the shapes of its inputs do not say those of its layers")
    return [tuple(shape) for shape in found]


Rule = Callable[[Writer, str, Attrs, list[str]], object]
