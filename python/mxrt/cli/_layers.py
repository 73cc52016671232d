"""The layers of a graph: what each makes, how many parameters it has, how much it computes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _mxrt
from ._errors import ModelError

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["Layer", "Written", "layers_of", "macs", "written"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Written:
    """The content of a symbol file, read without building the graph.

    `version` is the version of MXNet that wrote it, where it says one.
    """

    version: str | None
    nodes: list[dict[str, Any]]

    @property
    def operators(self) -> Counter[str]:
        """Names of operators with their counts."""
        return Counter(node["op"] for node in self.nodes if node["op"] != "null")

    @property
    def unsupported(self) -> list[str]:
        """Names of operators that mxrt does not have."""
        return sorted(name for name in self.operators if _mxrt.get_operator(name) is None)


def written(symbol: Path) -> Written:
    """The content of a symbol file. ModelError if it is none."""
    from ..symbol._files import read

    try:
        content = json.loads(read(str(symbol)))
        nodes = content["nodes"]
        version = (content.get("attrs") or {}).get("mxnet_version")
        for node in nodes:
            if not isinstance(node["op"], str) or not isinstance(node["name"], str):
                raise TypeError
    except RecursionError:
        raise ModelError(f"'{symbol}' is no symbol file: its JSON is nested too deeply") from None
    except ValueError as error:
        if hasattr(error, "message"):  # an error of mxrt, which names the file
            raise
        raise ModelError(f"'{symbol}' is no symbol file: {error}; copy or download it again") from None
    except (KeyError, TypeError, AttributeError):
        raise ModelError(
            f"'{symbol}' is no symbol file: expected JSON with 'nodes' that have an 'op' and a 'name', as MXNet's "
            "symbol.save writes it"
        ) from None
    number = version[1] if isinstance(version, list) and len(version) == 2 else None
    text = f"{number // 10000}.{number // 100 % 100}.{number % 100}" if type(number) is int else None
    return Written(text, nodes)


@dataclass(frozen=True)
class Layer:
    """An operator of a graph, for inputs of certain shapes.

    `macs` counts multiplications with an addition; None where shapes are not known.
    """

    name: str
    operator: str
    output: Shape | None
    parameters: int
    macs: int | None


def layers_of(graph: Symbol, shapes: Mapping[str, Shape], held: Mapping[str, Shape]) -> list[Layer]:
    """The layers in the order of the graph."""
    internals = graph.get_internals()
    _, found, _ = internals.infer_shape_partial(**{**held, **shapes})
    outputs = dict(zip(internals.list_outputs(), found or (), strict=False))
    nodes = json.loads(graph.tojson(remove_amp_cast=False))["nodes"]
    made: list[Shape | None] = []
    counted: set[str] = set()
    layers = []
    for node in nodes:
        name = node["name"]
        if node["op"] == "null":
            made.append(held.get(name) or shapes.get(name))
            continue
        output = _known(outputs.get(f"{name}_output") or outputs.get(f"{name}_output0") or _first(outputs, name))
        inputs = [made[number] if output_of == 0 else None for number, output_of, *_ in node["inputs"]]
        own = {nodes[number]["name"] for number, *_ in node["inputs"]} & held.keys() - counted
        counted |= own
        size = sum(math.prod(held[one]) for one in own)
        made.append(output)
        layers.append(Layer(name, node["op"], output, size, macs(node["op"], node.get("attrs") or {}, inputs, output)))
    return layers


def _first(outputs: Mapping[str, Any], name: str) -> Any:
    return next((shape for key, shape in outputs.items() if key.startswith(f"{name}_")), None)


def _known(shape: Any) -> Shape | None:
    return tuple(shape) if shape and min(shape) > 0 else None


def macs(operator: str, attrs: Mapping[str, str], inputs: list[Shape | None], output: Shape | None) -> int | None:
    """Multiplications with an addition of one call; 0 for operators that multiply no matrices."""
    if operator in ("Convolution", "FullyConnected", "Deconvolution"):
        weight = inputs[1] if len(inputs) > 1 else None
        data = inputs[0] if inputs else None
        if weight is None or output is None or data is None:
            return None
        if operator == "Deconvolution":
            return math.prod(data) * math.prod(weight[1:])
        return math.prod(output) * math.prod(weight[1:])
    if operator in ("dot", "batch_dot", "linalg_gemm2", "_linalg_gemm2"):
        data = inputs[0] if inputs else None
        if data is None or output is None or not data:
            return None
        turned = attrs.get("transpose_a", "False") in ("True", "1", "true")
        return math.prod(output) * data[-2 if turned and len(data) > 1 else -1]
    if operator == "RNN":
        weight = inputs[1] if len(inputs) > 1 else None
        data = inputs[0] if inputs else None
        return None if weight is None or data is None else math.prod(weight) * math.prod(data[:2])
    return 0
