"""Operators of transformers as ONNX."""

from __future__ import annotations

import numpy as np

from .onnx_writer import Attrs, Rule, Untranslatable, Writer

__all__ = ["RULES"]

# Places of queries, keys and values in the rows of a head.
QUERIES, KEYS, VALUES = range(3)


def _layer_norm(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    axis = attrs.integer("axis", -1)
    if axis not in (-1, len(w.found[inputs[0]]) - 1):
        raise Untranslatable("only over the last axis")
    w.add("LayerNormalization", inputs, name, axis=-1, epsilon=attrs.real("eps", 1e-5))


def _batch_dot(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    sides = list(inputs)
    for side, key in enumerate(("transpose_a", "transpose_b")):
        if attrs.flag(key, False):
            sides[side] = w.add("Transpose", [inputs[side]], f"{name}#{key}", perm=(0, 2, 1))
    w.add("MatMul", sides, name)


def _embedding(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    indices, weight = inputs
    int64 = 7
    # MXNet takes an index beyond the table as its last row.
    last = w.scalar(f"{name}#last", attrs.integer("input_dim") - 1)
    bounded = w.add("Clip", [indices, w.scalar(f"{name}#first", 0.0), last], f"{name}#bounded")
    w.add("Gather", [weight, w.add("Cast", [bounded], f"{name}#indices", to=int64)], name, axis=0)


def _mean(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    axis = attrs.numbers_or_one("axis")
    if not axis or attrs.flag("exclude", False):
        raise Untranslatable("only over axes that are named")
    kept = attrs.flag("keepdims", False)
    if not kept and len(axis) == len(w.found[inputs[0]]):
        # The mean of everything has one axis, not none as in ONNX.
        mean = w.add("ReduceMean", inputs, f"{name}#mean", axes=axis, keepdims=1)
        w.reshape(mean, w.found[name], name)
        return
    w.add("ReduceMean", inputs, name, axes=axis, keepdims=int(kept))


def _div_sqrt_dim(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    root = w.found[inputs[0]][-1] ** 0.5
    w.add("Div", [*inputs, w.scalar(f"{name}#root", root)], name)


def _heads(w: Writer, name: str, joined: str, heads: int, part: int) -> str:
    """Queries, keys or values of interleaved projections, as a matrix for each image and head."""
    tokens, images, units = w.found[joined]
    size = units // heads // 3
    key = f"{name}#{'qkv'[part]}"
    op, attrs, inputs = w.origins.get(joined, ("", Attrs(), []))
    if op == "FullyConnected" and not attrs.flag("flatten", True) and all(i in w.constants for i in inputs[1:]):
        # A layer for each of the three, as other frameworks write it.
        def own(parameter: str) -> np.ndarray:
            rows = w.constants[parameter]
            return rows.reshape(heads, 3, size, *rows.shape[1:])[:, part].reshape(heads * size, *rows.shape[1:])

        weight = w.constant(f"{key}_weight", np.ascontiguousarray(own(inputs[1]).T))
        found = w.add("MatMul", [inputs[0], weight], f"{key}_product")
        if len(inputs) > 2:
            found = w.add("Add", [found, w.constant(f"{key}_bias", own(inputs[2]))], f"{key}_sum")
        found = w.reshape(found, (tokens, images, heads, size), f"{key}_heads")
    else:
        split = w.reshape(joined, (tokens, images, heads, 3, size), f"{key}_split")
        place = w.constant(f"{key}_place", np.array(part, "int64"))
        found = w.add("Gather", [split, place], f"{key}_part", axis=3)
    moved = w.add("Transpose", [found], f"{key}_moved", perm=(1, 2, 0, 3))
    return w.reshape(moved, (images * heads, tokens, size), f"{key}_matrices")


def _selfatt_qk(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    heads = attrs.integer("heads")
    queries, keys = (_heads(w, name, inputs[0], heads, part) for part in (QUERIES, KEYS))
    root = (w.found[inputs[0]][-1] // heads // 3) ** 0.5
    queries = w.add("Div", [queries, w.scalar(f"{name}#root", root)], f"{name}#scaled")
    w.add("MatMul", [queries, w.add("Transpose", [keys], f"{name}#across", perm=(0, 2, 1))], name)


def _selfatt_valatt(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    joined, scores = inputs
    heads, (tokens, images, units) = attrs.integer("heads"), w.found[joined]
    size = units // heads // 3
    product = w.add("MatMul", [scores, _heads(w, name, joined, heads, VALUES)], f"{name}#product")
    split = w.reshape(product, (images, heads, tokens, size), f"{name}#heads")
    moved = w.add("Transpose", [split], f"{name}#moved", perm=(2, 0, 1, 3))
    w.reshape(moved, (tokens, images, heads * size), name)


RULES: dict[str, Rule] = {
    "Embedding": _embedding,
    "LayerNorm": _layer_norm,
    "_contrib_div_sqrt_dim": _div_sqrt_dim,
    "_contrib_interleaved_matmul_selfatt_qk": _selfatt_qk,
    "_contrib_interleaved_matmul_selfatt_valatt": _selfatt_valatt,
    "batch_dot": _batch_dot,
    "mean": _mean,
}
