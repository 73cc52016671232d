"""Computed weights for a quantized graph whose trained ones are no part of it.

The ranges in such a graph fit its trained weights. `fit` draws others, runs the graph once in
float32 under MXNet, and scales each layer so that its results fill the range. Last layers are
solved by least squares, so that best classes mean something.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

LAYERS = ("Convolution", "Deconvolution", "FullyConnected")
# The standard deviation of a layer's results as a part of its range, the mean of what a relu reads
# as a multiple of it, and the factor for results that are added to others. Untrained layers
# otherwise amplify a rounding until best classes say nothing.
SPREAD, SHIFT, RESIDUAL = 1 / 5, 1.5, 0.3
# Rows that a last layer is solved with.
ROWS = 4000


def call(mx: Any, op: str, attrs: dict[str, str], inputs: list[Any]) -> Any:
    """The results of an operator whose attributes are texts, as a graph stores them."""
    attrs = {name: value for name, value in attrs.items() if name != "num_args" and not name.startswith("__")}
    for prefix, module in (("_contrib_", mx.nd.contrib), ("_", mx.nd._internal)):
        if op.startswith(prefix):
            return getattr(module, op.removeprefix("_contrib_"))(*inputs, **attrs)
    return getattr(mx.nd, op)(*inputs, **attrs)


def drawn(shape: tuple[int, ...], rng: np.random.RandomState) -> np.ndarray:
    """Weights of a layer.

    On processors without VNNI, oneDNN adds two products of neighbouring channels in 16 bits, and
    halves the weights that multiply int8 data. Here no two products exceed 16 bits together, and
    all integers but a filter's largest, 127 for the first channel, are even.
    """
    value = np.clip(rng.normal(0, 0.25, shape), -0.49, 0.49)
    value = 2 * np.rint(63.5 * value) / 127
    if len(shape) > 1 and shape[1] > 1:
        first = value.reshape(*shape[:2], -1)
        first[:, 0, 0], first[:, 1, 0] = np.where(first[:, 0, 0] < 0, -1, 1), 0
    return value.astype(np.float32)


def solved(rows: np.ndarray, labels: np.ndarray, classes: int, rng: np.random.RandomState) -> tuple[Any, Any]:
    """Weights and bias of a dense layer that tells labels apart, by least squares.

    Every other weight is 0, so that no two products of neighbours exceed 16 bits here either.
    """
    if len(rows) > ROWS:
        kept = rng.choice(len(rows), ROWS, replace=False)
        rows, labels = rows[kept], labels[kept]
    middle = rows.mean(0)
    rows = (rows - middle).astype(np.float64)
    rows[:, 1::2] = 0
    wanted = np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)
    level = wanted.mean(0)
    wide = rows.shape[1] > len(rows)
    products = rows @ rows.T if wide else rows.T @ rows
    products[np.diag_indices_from(products)] += 0.1 * np.trace(products) / len(products) + 1e-9
    if wide:
        weight = (rows.T @ np.linalg.solve(products, wanted - level)).T
    else:
        weight = np.linalg.solve(products, rows.T @ (wanted - level)).T
    unused = ~np.isin(np.arange(classes), labels)
    weight[unused, ::2] = rng.normal(0, 0.1 * weight[~unused].std(), weight[unused, ::2].shape)
    return weight.astype(np.float32), (level - weight @ middle).astype(np.float32)


def last_layers(nodes: list[dict[str, Any]], heads: Sequence[Sequence[int]]) -> set[int]:
    """The layers after which no other layer comes."""
    found, seen, left = set(), set(), [head[0] for head in heads]
    while left:
        at = left.pop()
        if at in seen:
            continue
        seen.add(at)
        if nodes[at]["op"] in LAYERS or nodes[at]["op"].startswith("_sg_mkldnn"):
            found.add(at)
        else:
            left += [entry[0] for entry in nodes[at]["inputs"]]
    return found


class Fit:
    """One run through a graph, which gives each parameter its value.

    A parameter that has no value yet is its name among the inputs of a node.
    """

    def __init__(self, mx: Any, shapes: dict[str, tuple[int, ...]], inks: np.ndarray, labels: np.ndarray) -> None:
        self.mx, self.shapes, self.inks, self.labels = mx, shapes, inks, labels
        self.rng = np.random.RandomState(5)
        self.parameters: dict[str, Any] = {}
        self.spread, self.shift = 1.0, 0.0

    def put(self, name: str, value: Any) -> Any:
        """Sets a parameter."""
        self.parameters[name] = self.mx.nd.array(value).reshape(self.shapes[name])
        return self.parameters[name]

    def near(self, shape: tuple[int, ...], middle: float, width: float) -> np.ndarray:
        """Numbers about a middle."""
        return self.rng.uniform(middle - width, middle + width, shape).astype(np.float32)

    def constant(self, slot: Any) -> Any:
        """An array, or a parameter that no layer has: the boxes of a detector, a scale."""
        if not isinstance(slot, str):
            return slot
        shape = self.shapes[slot]
        if "anchor" not in slot:
            return self.put(slot, self.near(shape, 1, 0.2))
        height, width = shape[2:4]
        boxes = np.zeros((*shape[:4], shape[4] // 4, 4), np.float32)
        boxes[..., 0] = (np.arange(width) + 0.5)[:, None] / width
        boxes[..., 1] = (np.arange(height) + 0.5)[:, None, None] / height
        boxes[..., 2:] = self.near((shape[4] // 4, 2), 0.4, 0.3)
        return self.put(slot, boxes)

    def labels_of(self, rows: int, height: int, width: int) -> np.ndarray:
        """The class of each row of a last layer: an image's, or a pixel's, 0 without ink."""
        if rows == len(self.labels):
            return self.labels
        inks = self.inks[:, :: self.inks.shape[1] // height, :: self.inks.shape[2] // width][:, :height, :width]
        return np.where(inks > 0.4, self.labels[:, None, None], 0).reshape(-1)

    def layer(self, op: str, attrs: dict[str, str], slots: list[Any], last: bool, scaled: bool) -> Any:
        """Weights of a layer, and its results. A layer before BatchNorm is not `scaled`."""
        data, name = slots[0], slots[1]
        bias = slots[2] if len(slots) > 2 else None
        shape = self.shapes[name]
        if last and bias and op != "Deconvolution" and np.prod(shape[2:]) == 1:
            values = data.asnumpy()
            height, width = values.shape[2:] if values.ndim == 4 else (1, 1)
            rows = values.transpose(0, 2, 3, 1).reshape(-1, shape[1]) if values.ndim == 4 else values
            weight, start = solved(rows, self.labels_of(len(rows), height, width), shape[0], self.rng)
            return call(self.mx, op, attrs, [data, self.put(name, weight), self.put(bias, start)])
        weight = drawn(shape, self.rng)
        start = [] if bias is None else [self.put(bias, self.near(self.shapes[bias], 0, 0.3))]
        made = call(self.mx, op, attrs, [data, self.put(name, weight), *start])
        if not scaled:
            return made
        axes = tuple(axis for axis in range(made.ndim) if axis != 1)
        middle, width = self.moments(made, axes)
        scale = self.spread * self.near(middle.shape, 1, 0.3) / np.sqrt(width + 1e-12)
        filters = (1, -1) if op == "Deconvolution" else (-1, 1)
        self.put(name, weight * scale.reshape(*filters, *[1] * (len(shape) - 2)))
        shift = middle * scale if bias is None else self.start(middle.shape)
        if bias is not None:
            self.put(bias, shift + (start[0].asnumpy() - middle) * scale)
        across = (1, -1, *[1] * (made.ndim - 2))
        made = (made - self.mx.nd.array(middle.reshape(across))) * self.mx.nd.array(scale.reshape(across))
        return made + self.mx.nd.array(shift.reshape(across))

    def moments(self, made: Any, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each channel."""
        middle = self.mx.nd.mean(made, axis=axes)
        square = self.mx.nd.mean(made * made, axis=axes)
        middle, square = middle.asnumpy(), square.asnumpy()
        return middle, np.maximum(square - middle * middle, 0)

    def start(self, shape: tuple[int, ...]) -> np.ndarray:
        """Means of a layer's results."""
        return self.spread * self.near(shape, self.shift, 0.3)

    def norm(self, attrs: dict[str, str], slots: list[Any]) -> Any:
        """Parameters of a BatchNorm, and its results."""
        data, *names = slots
        middle, width = self.moments(data, (0, 2, 3))
        values = (
            self.near(middle.shape, 1, 0.3),
            self.start(middle.shape),
            middle,
            width / self.spread**2 + 1e-6,
        )
        arrays = [self.put(name, value) for name, value in zip(names, values, strict=True)]
        return call(self.mx, "BatchNorm", {**attrs, "use_global_stats": "True"}, [data, *arrays])

    def fused(self, node: dict[str, Any], slots: list[Any], last: bool) -> Any:
        """The results of a node that holds a graph, within the node's range."""
        graph, attrs = node["subgraphs"][0], node.get("attrs", {})
        ranged = [float(attrs[name]) for name in ("min_calib_range", "max_calib_range") if name in attrs]
        if ranged:
            self.spread, self.shift = SPREAD * max(map(abs, ranged)), SHIFT if ranged[0] >= 0 else 0.0
            if attrs.get("with_sum"):
                self.spread, self.shift = RESIDUAL * self.spread, 0.0
        given = dict(zip(graph["arg_nodes"], slots, strict=False))
        made = self.run(graph["nodes"], graph["heads"], given, last_layers(graph["nodes"], graph["heads"]), last)
        self.spread, self.shift = 1.0, 0.0
        return self.mx.nd.clip(made, *ranged) if ranged else made

    def run(
        self,
        nodes: list[dict[str, Any]],
        heads: Sequence[Sequence[int]],
        given: dict[int, Any],
        last: set[int],
        outermost: bool = True,
    ) -> Any:
        """The results of a graph's first head. `given` has the values of inputs."""
        uses = [entry[0] for node in nodes for entry in node["inputs"]] + [head[0] for head in heads]
        final = {at: number for number, at in enumerate(uses)}
        normed = {node["inputs"][0][0] for node in nodes if node["op"] == "BatchNorm"}
        values: dict[int, list[Any]] = {}
        number = 0
        for at, node in enumerate(nodes):
            slots = [values[i][n] for i, n, *_ in node["inputs"]]
            if node["op"] == "null":
                made = given.get(at, node["name"])
            else:
                made = self.node(node, slots, outermost and at in last, at not in normed)
            # The ranges that follow integers are read by nothing that is computed here.
            values[at] = made if isinstance(made, list) else [made, None, None]
            for entry in node["inputs"]:
                if final[entry[0]] == number:
                    del values[entry[0]]
                number += 1
        at, output, *_ = heads[0]
        return values[at][output]

    def node(self, node: dict[str, Any], slots: list[Any], last: bool, scaled: bool) -> Any:
        """The results of a node."""
        op, attrs = node["op"], node.get("attrs", {})
        if op.startswith("_sg_mkldnn"):
            return self.fused(node, slots, last)
        if op in ("_contrib_quantize_v2", "_contrib_dequantize", "Dropout"):
            return slots[0]
        if op in LAYERS:
            return self.layer(op, attrs, slots, last, scaled)
        if op == "BatchNorm":
            return self.norm(attrs, slots)
        if op == "_contrib_quantized_concat":
            return call(self.mx, "Concat", attrs, slots[: int(attrs["num_args"])])
        if op == "_contrib_quantized_pooling":
            return call(self.mx, "Pooling", attrs, slots[:1])
        return call(self.mx, op, attrs, [self.constant(slot) for slot in slots])


def fit(mx: Any, graph: dict[str, Any], images: np.ndarray, inks: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Parameters of a graph, by name with `arg:` or `aux:`, for images and what they show.

    `inks` are the images as planes from 0 to 1, one for each label.
    """
    symbol = mx.sym.load_json(json.dumps(graph))
    arguments, _, states = symbol.infer_shape(data=images.shape)
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    run = Fit(mx, dict(zip(names, [*arguments, *states], strict=True)), inks, labels)
    nodes, heads = graph["nodes"], graph["heads"]
    data = next(at for at, node in enumerate(nodes) if node["name"] == "data")
    run.run(nodes, heads, {data: mx.nd.array(images)}, last_layers(nodes, heads))
    prefix = dict.fromkeys(symbol.list_auxiliary_states(), "aux")
    return {f"{prefix.get(name, 'arg')}:{name}": array for name, array in run.parameters.items()}
