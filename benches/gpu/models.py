"""Models for measurements on GPUs: artifacts of the zoo of the tests, and an encoder, each for mxrt
and for torch with the same parameters.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models"
sys.path.insert(0, str(MODELS))

import make_zoo  # noqa: E402

LAYERS, WIDTH, HEADS, STEPS = 12, 768, 12, 128


def zoo_file(name: str) -> str:
    """The files of a network, computed once per machine; the path without their endings."""
    folder = Path(os.environ.get("MXRT_ZOO", "/tmp/mxrt-zoo"))
    if not (folder / f"{name}.complete").exists():
        make_zoo.make(str(MODELS / "zoo"), name, str(folder))
        (folder / f"{name}.complete").touch()
    return str(folder / name)


def zoo_block(mx: Any, name: str, ctx: Any, dtype: str = "float32") -> Any:
    """A SymbolBlock of a network."""
    prefix = zoo_file(name)
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params", ctx=ctx)
    if dtype != "float32":
        net.cast(dtype)
    return net


def encoder_values(seed: int = 0) -> dict[str, np.ndarray]:
    """Parameters of the encoder: those of FullyConnected are (outputs, inputs)."""
    numbers = np.random.default_rng(seed)
    shapes = {"qkv": (3 * WIDTH, WIDTH), "out": (WIDTH, WIDTH), "up": (4 * WIDTH, WIDTH), "down": (WIDTH, 4 * WIDTH)}
    made = {}
    for layer in range(LAYERS):
        for name, (rows, columns) in shapes.items():
            weight = numbers.standard_normal((rows, columns), dtype="float32") * 0.7 / columns**0.5
            made[f"l{layer}_{name}_weight"] = weight
            made[f"l{layer}_{name}_bias"] = numbers.standard_normal(rows, dtype="float32") * 0.1
        for name in ("norm1", "norm2"):
            made[f"l{layer}_{name}_gamma"] = 1 + numbers.standard_normal(WIDTH, dtype="float32") * 0.1
            made[f"l{layer}_{name}_beta"] = numbers.standard_normal(WIDTH, dtype="float32") * 0.1
    return made


def encoder_block(mx: Any, ctx: Any, dtype: str = "float32") -> Any:
    """The encoder as a graph of MXNet's operators; data of (STEPS, batch, WIDTH)."""
    x = data = mx.sym.var("data")

    def dense(x: Any, layer: int, name: str, size: int) -> Any:
        return mx.sym.FullyConnected(x, num_hidden=size, flatten=False, name=f"l{layer}_{name}")

    for layer in range(LAYERS):
        qkv = mx.sym.reshape(dense(x, layer, "qkv", 3 * WIDTH), shape=(0, 0, HEADS, 3, -1))
        # Heads of interleaved queries, keys and values.
        qkv = mx.sym.reshape(qkv, shape=(0, 0, -1))
        scores = mx.sym.softmax(mx.sym.contrib.interleaved_matmul_selfatt_qk(qkv, heads=HEADS))
        mixed = mx.sym.contrib.interleaved_matmul_selfatt_valatt(qkv, scores, heads=HEADS)
        x = mx.sym.LayerNorm(x + dense(mixed, layer, "out", WIDTH), name=f"l{layer}_norm1")
        hidden = mx.sym.LeakyReLU(dense(x, layer, "up", 4 * WIDTH), act_type="gelu")
        x = mx.sym.LayerNorm(x + dense(hidden, layer, "down", WIDTH), name=f"l{layer}_norm2")
    net = mx.gluon.SymbolBlock(x, data)
    values = encoder_values()
    for name, parameter in net.collect_params().items():
        parameter._load_init(mx.nd.array(values[name]), [ctx])
    if dtype != "float32":
        net.cast(dtype)
    return net


def zoo_values(name: str) -> dict[str, np.ndarray]:
    """Parameters of a network by name."""
    spec = make_zoo.load_spec(str(MODELS / "zoo"), name)
    pairs = make_zoo.parameters(spec, make_zoo.load_calib(str(MODELS / "zoo"), name))
    return {key.split(":", 1)[1]: np.asarray(value) for key, value in pairs}
