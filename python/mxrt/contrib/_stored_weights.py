"""Weights of fused convolutions, stored as the integers that they become.

A fused convolution takes float32 weights and rounds each filter to 8 bits itself, in MXNet too, so
files of such models are as large as before. Here a file has the integers and a step for each
filter, and the graph multiplies them. mxrt does that once, when it packs the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import ndarray
from ..ndarray import NDArray
from ._fuse_graph import CONV
from ._quantize_graph import Entry, Node, consumers, order

__all__ = ["stored"]

# What MXNet's files write for types of elements.
_FLOAT32, _INT8 = "0", "5"


def stored(heads: list[Entry], args: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """The arguments with integers for weights that quantized convolutions alone read; the nodes of
    the graph are changed to make weights of them.
    """
    made = dict(args)
    readers = consumers(heads)
    for node in order(heads):
        if node.op != "null" or node.name not in args:
            continue
        if all(_rounds(reader) and index == 1 for reader, index in readers[id(node)]):
            integers, steps = _integers(made.pop(node.name).asnumpy())
            made[f"{node.name}_quantize"] = ndarray.array(integers, dtype="int8")
            made[f"{node.name}_step"] = ndarray.array(steps)
            numbers = _variable(f"{node.name}_quantize", _INT8, integers.shape)
            cast = Node("Cast", f"{node.name}_cast", {"dtype": "float32"}, [(numbers, 0)])
            step = _variable(f"{node.name}_step", _FLOAT32, steps.shape)
            weight = Node("broadcast_mul", node.name, {}, [(cast, 0), (step, 0)])
            for reader, _ in readers[id(node)]:
                reader.inputs[1] = (weight, 0)
    return made


def _rounds(node: Node) -> bool:
    """Whether a node rounds each filter of its weights by a step of its own: one of known range."""
    known = "min_calib_range" in node.attrs or node.flag("enable_float_output")
    return node.op == CONV and node.flag("quantized") and known


def _variable(name: str, dtype: str, shape: tuple[int, ...]) -> Node:
    """An argument whose type and shape MXNet's Module cannot infer."""
    return Node("null", name, {"__dtype__": dtype, "__shape__": str(shape)})


def _integers(weight: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Integers and steps whose products a convolution rounds to the same integers."""
    largest = np.abs(weight.astype("float64")).max(axis=tuple(range(1, weight.ndim)), keepdims=True)
    largest[largest == 0] = 1
    # A convolution rounds to steps of largest / 127.5, and saturates.
    integers = np.clip(np.rint(weight * (127.5 / largest)), -127, 127)
    return integers.astype("int8"), (largest / 127).astype("float32")
