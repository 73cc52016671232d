"""The encoder of BERT-base as GluonNLP writes it, with computed weights, from embedded tokens to
the last layer.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

import mxrt as mx

NAME = "bert_base"
LAYERS, UNITS, HEADS, HIDDEN = 12, 768, 12, 3072
# Tokens of the inputs of each network; all have the weights of the first.
TOKENS = {NAME: 128, f"{NAME}-s16": 16, f"{NAME}-s512": 512}
EPSILON = 1e-12
# Inputs that are saved.
SAMPLES = 4

Layer = dict[str, np.ndarray]


def write(base: str) -> None:
    """Writes the files of the network: -symbol.json, -0000.params, -expected.npy, which has the
    output for the first input, and -input.npy. Graph and weights of other lengths than the first
    are links to that network's.
    """
    name = Path(base).name
    random = np.random.default_rng(768)
    layers = [_layer(random) for _ in range(LAYERS)]
    data = random.standard_normal((SAMPLES, TOKENS[name], UNITS), "float32")
    Path(base).parent.mkdir(parents=True, exist_ok=True)
    if name == NAME:
        _graph().save(f"{base}-symbol.json")
        named = {f"arg:layer{i}_{key}": value for i, layer in enumerate(layers) for key, value in layer.items()}
        mx.nd.save(f"{base}-0000.params", {key: mx.nd.array(value) for key, value in named.items()})
    else:
        for end in ("-symbol.json", "-0000.params"):
            Path(base + end).unlink(missing_ok=True)
            Path(base + end).symlink_to(NAME + end)
    np.save(f"{base}-expected.npy", _answer(layers, data[0])[None].astype("float32"))
    np.save(f"{base}-input.npy", data)


def _layer(random: np.random.Generator) -> Layer:
    def dense(name: str, outputs: int, inputs: int) -> Layer:
        weight = random.standard_normal((outputs, inputs), "float32") / np.float32(inputs**0.5)
        return {f"{name}_weight": weight, f"{name}_bias": random.uniform(-0.1, 0.1, outputs).astype("float32")}

    def norm(name: str) -> Layer:
        gamma, beta = random.uniform(0.5, 1.5, UNITS), random.uniform(-0.5, 0.5, UNITS)
        return {f"{name}_gamma": gamma.astype("float32"), f"{name}_beta": beta.astype("float32")}

    parts = [dense("qkv", 3 * UNITS, UNITS), dense("proj", UNITS, UNITS), norm("norm0")]
    parts += [dense("ffn0", HIDDEN, UNITS), dense("ffn1", UNITS, HIDDEN), norm("norm1")]
    return {key: value for part in parts for key, value in part.items()}


def _graph() -> mx.sym.Symbol:
    x = mx.sym.transpose(mx.sym.var("data"), axes=(1, 0, 2))
    for i in range(LAYERS):
        x = _encoder_cell(x, f"layer{i}_")
    return mx.sym.transpose(x, axes=(1, 0, 2), name="encoded")


def _encoder_cell(x: mx.sym.Symbol, prefix: str) -> mx.sym.Symbol:
    def dense(data: mx.sym.Symbol, units: int, name: str) -> mx.sym.Symbol:
        return mx.sym.FullyConnected(data, num_hidden=units, flatten=False, name=prefix + name)

    def norm(data: mx.sym.Symbol, name: str) -> mx.sym.Symbol:
        return mx.sym.LayerNorm(data, eps=EPSILON, name=prefix + name)

    joined = dense(x, 3 * UNITS, "qkv")
    scores = mx.sym.softmax(mx.sym.contrib.interleaved_matmul_selfatt_qk(joined, heads=HEADS))
    mixed = mx.sym.contrib.interleaved_matmul_selfatt_valatt(joined, scores, heads=HEADS)
    x = norm(x + dense(mixed, UNITS, "proj"), "norm0")
    hidden = mx.sym.LeakyReLU(dense(x, HIDDEN, "ffn0"), act_type="gelu")
    return norm(x + dense(hidden, UNITS, "ffn1"), "norm1")


def _answer(layers: list[Layer], x: np.ndarray) -> np.ndarray:
    """The output for one input, in float64 by numpy."""
    x = x.astype("float64")
    for layer in layers:
        joined = _dense(layer, "qkv", x).reshape(-1, HEADS, 3, UNITS // HEADS)
        queries, keys, values = joined.transpose(2, 1, 0, 3)
        scores = np.exp(queries @ keys.transpose(0, 2, 1) / (UNITS // HEADS) ** 0.5)
        scores /= scores.sum(-1, keepdims=True)
        mixed = (scores @ values).transpose(1, 0, 2).reshape(-1, UNITS)
        x = _norm(layer, "norm0", x + _dense(layer, "proj", mixed))
        hidden = _dense(layer, "ffn0", x)
        hidden *= 0.5 * (1 + np.vectorize(math.erf)(hidden / 2**0.5))
        x = _norm(layer, "norm1", x + _dense(layer, "ffn1", hidden))
    return x


def _dense(layer: Layer, name: str, x: np.ndarray) -> np.ndarray:
    return x @ layer[f"{name}_weight"].astype("float64").T + layer[f"{name}_bias"]


def _norm(layer: Layer, name: str, x: np.ndarray) -> np.ndarray:
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON)
    return x * layer[f"{name}_gamma"] + layer[f"{name}_beta"]
