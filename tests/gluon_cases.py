"""Blocks whose answers are compared with MXNet's: each case is run with either module.

``python tests/gluon_cases.py``, with a Python that has MXNet 1.9.1, writes
``tests/recorded/gluon.json`` again.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).parent / "recorded" / "gluon.json"


def numbers(name: str, shape, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Numbers that depend on nothing but their name."""
    return np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF).uniform(low, high, shape).astype("float32")


def plain(value):
    """Arrays in nested lists as lists of numbers."""
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return [float(f"{number:.7g}") for number in value.asnumpy().ravel()], list(value.shape)


def fill(mx, block) -> None:
    """Gives parameters computed values, by the attributes that lead to them."""
    for name, parameter in block._collect_params_with_prefix().items():
        if name.endswith("weight") and len(parameter.shape) > 1:
            bound = np.sqrt(6.0 / np.prod(parameter.shape[1:]))
            values = numbers(name, parameter.shape) * bound
        elif name.endswith(("gamma", "running_var")):
            values = numbers(name, parameter.shape, 0.7, 1.3)
        else:
            values = numbers(name, parameter.shape, -0.1, 0.1)
        parameter.set_data(mx.nd.array(values))


def names_of(block) -> list:
    return [[name, p.name, list(p.shape)] for name, p in block._collect_params_with_prefix().items()]


def answers(mx, block, *inputs) -> dict:
    """Names, shapes and results of a block, as it is and hybridised."""
    block.initialize()
    block(*inputs)
    fill(mx, block)
    found = {"repr": repr(block), "params": names_of(block), "plain": plain(block(*inputs))}
    block.hybridize()
    found["hybrid"] = plain(block(*inputs))
    return found


# ---- layers --------------------------------------------------------------------------------------

IMAGE, VOLUME, ROW = (2, 4, 6, 7), (1, 2, 5, 6, 4), (2, 3, 9)

LAYERS: dict[str, tuple[str, tuple[int, ...]]] = {
    "Dense": ("nn.Dense(3, prefix='b_')", (2, 5)),
    "Dense of rows": ("nn.Dense(3, activation='tanh', flatten=False, use_bias=False, prefix='b_')", (2, 4, 5)),
    "Activation": ("nn.Activation('softrelu', prefix='b_')", (2, 5)),
    "LeakyReLU": ("nn.LeakyReLU(0.3, prefix='b_')", (2, 5)),
    "PReLU": ("nn.PReLU(in_channels=5, prefix='b_')", (2, 5)),
    "ELU": ("nn.ELU(0.7, prefix='b_')", (2, 5)),
    "SELU": ("nn.SELU(prefix='b_')", (2, 5)),
    "GELU": ("nn.GELU(prefix='b_')", (2, 5)),
    "Swish": ("nn.Swish(1.5, prefix='b_')", (2, 5)),
    "Flatten": ("nn.Flatten(prefix='b_')", IMAGE),
    "Dropout": ("nn.Dropout(0.5, prefix='b_')", (2, 5)),
    "Dropout of nothing": ("nn.Dropout(0, prefix='b_')", (2, 5)),
    "BatchNorm": ("nn.BatchNorm(prefix='b_')", IMAGE),
    "BatchNorm of the last axis": ("nn.BatchNorm(axis=-1, scale=False, epsilon=1e-3, prefix='b_')", IMAGE),
    "InstanceNorm": ("nn.InstanceNorm(prefix='b_', scale=True)", IMAGE),
    "LayerNorm": ("nn.LayerNorm(prefix='b_')", (2, 3, 5)),
    "Conv1D": ("nn.Conv1D(4, 3, strides=2, padding=1, prefix='b_')", ROW),
    "Conv2D": ("nn.Conv2D(4, 3, padding=(1, 0), dilation=2, groups=2, activation='relu', prefix='b_')", IMAGE),
    "Conv2D without bias": ("nn.Conv2D(3, (1, 2), strides=(2, 1), use_bias=False, in_channels=4, prefix='b_')", IMAGE),
    "Conv3D": ("nn.Conv3D(3, 2, prefix='b_')", VOLUME),
    "Conv1DTranspose": ("nn.Conv1DTranspose(4, 3, strides=2, prefix='b_')", ROW),
    "Conv2DTranspose": (
        "nn.Conv2DTranspose(4, 3, strides=2, padding=1, output_padding=1, groups=2, in_channels=4, prefix='b_')",
        IMAGE,
    ),
    "MaxPool1D": ("nn.MaxPool1D(3, 2, prefix='b_')", ROW),
    "MaxPool2D": ("nn.MaxPool2D(3, ceil_mode=True, padding=1, prefix='b_')", IMAGE),
    "MaxPool3D": ("nn.MaxPool3D(prefix='b_')", VOLUME),
    "AvgPool1D": ("nn.AvgPool1D(prefix='b_')", ROW),
    "AvgPool2D": ("nn.AvgPool2D((2, 3), 2, 1, count_include_pad=False, prefix='b_')", IMAGE),
    "AvgPool3D": ("nn.AvgPool3D(prefix='b_')", VOLUME),
    "GlobalMaxPool1D": ("nn.GlobalMaxPool1D(prefix='b_')", ROW),
    "GlobalMaxPool2D": ("nn.GlobalMaxPool2D(prefix='b_')", IMAGE),
    "GlobalMaxPool3D": ("nn.GlobalMaxPool3D(prefix='b_')", VOLUME),
    "GlobalAvgPool1D": ("nn.GlobalAvgPool1D(prefix='b_')", ROW),
    "GlobalAvgPool2D": ("nn.GlobalAvgPool2D(prefix='b_')", IMAGE),
    "GlobalAvgPool3D": ("nn.GlobalAvgPool3D(prefix='b_')", VOLUME),
    "GroupNorm": ("nn.GroupNorm(2, prefix='b_')", IMAGE),
    "ReflectionPad2D": ("nn.ReflectionPad2D(2, prefix='b_')", IMAGE),
    "HybridLambda": ("nn.HybridLambda('tanh', prefix='b_')", (2, 5)),
    "HybridConcurrent": ("joined(mx)", IMAGE),
    "Identity": ("contrib.nn.Identity(prefix='b_')", (2, 5)),
    "PixelShuffle1D": ("contrib.nn.PixelShuffle1D(3)", ROW),
    "PixelShuffle2D": ("contrib.nn.PixelShuffle2D((2, 1))", IMAGE),
    "PixelShuffle3D": ("contrib.nn.PixelShuffle3D((1, 2, 1))", VOLUME),
    "BatchNormReLU": ("nn.BatchNormReLU(prefix='b_')", IMAGE),
    "DeformableConvolution": ("contrib.cnn.DeformableConvolution(3, (3, 3), padding=1, prefix='b_')", IMAGE),
    "ModulatedDeformableConvolution": (
        "contrib.cnn.ModulatedDeformableConvolution(3, (3, 3), padding=1, prefix='b_')",
        IMAGE,
    ),
}


def joined(mx):
    made = mx.gluon.contrib.nn.HybridConcurrent(axis=1, prefix="b_")
    with made.name_scope():
        made.add(mx.gluon.contrib.nn.Identity())
        made.add(mx.gluon.nn.Conv2D(2, 1))
    return made


def layer(mx, name: str) -> dict:
    text, shape = LAYERS[name]
    space = {"mx": mx, "nn": mx.gluon.nn, "contrib": mx.gluon.contrib, "joined": joined}
    return answers(mx, eval(text, space), mx.nd.array(numbers("x", shape)))


def embedding(mx) -> dict:
    return answers(mx, mx.gluon.nn.Embedding(6, 3, prefix="b_"), mx.nd.array([[0, 5], [2, 2]]))


# ---- losses --------------------------------------------------------------------------------------

LOSSES: dict[str, tuple[str, str]] = {
    "L2": ("L2Loss()", "p l w"),
    "L1": ("L1Loss(weight=0.7)", "p l w"),
    "SigmoidBCE": ("SigmoidBCELoss()", "p q w v"),
    "SigmoidBCE plain": ("SigmoidBCELoss(weight=2)", "p q"),
    "SigmoidBCE from_sigmoid": ("SigmoidBCELoss(from_sigmoid=True)", "q d"),
    "SoftmaxCE": ("SoftmaxCELoss()", "p c"),
    "SoftmaxCE dense": ("SoftmaxCELoss(sparse_label=False, weight=0.5)", "p d w"),
    "SoftmaxCE from_logits": ("SoftmaxCELoss(from_logits=True)", "p c"),
    "KLDiv": ("KLDivLoss()", "p d"),
    "KLDiv not from_logits": ("KLDivLoss(from_logits=False)", "p d w"),
    "Huber": ("HuberLoss(rho=0.4)", "p l"),
    "Hinge": ("HingeLoss()", "p s"),
    "SquaredHinge": ("SquaredHingeLoss(margin=0.5)", "p s w"),
    "Logistic": ("LogisticLoss()", "p s"),
    "Logistic binary": ("LogisticLoss(label_format='binary')", "p q"),
    "Triplet": ("TripletLoss(margin=0.3)", "p l q"),
    "PoissonNLL": ("PoissonNLLLoss()", "p q"),
    "CosineEmbedding": ("CosineEmbeddingLoss(margin=0.1)", "p l o"),
    "CTC": ("CTCLoss()", "t k"),
}


def loss(mx, name: str) -> list:
    text, wanted = LOSSES[name]
    p, label, q = (mx.nd.array(numbers(n, (4, 5), low)) for n, low in (("p", -1), ("l", -1), ("q", 0.1)))
    given = {
        "p": p,
        "l": label,
        "q": q,
        "s": mx.nd.sign(label),
        "d": mx.nd.softmax(label),
        "w": mx.nd.array(numbers("w", (4, 1), 0)),
        "v": mx.nd.array(numbers("v", (1, 5), 1, 2)),
        "c": mx.nd.array([1, 0, 4, 2]),
        "o": mx.nd.array([1, -1, 1, -1]),
        "t": mx.nd.array(numbers("t", (2, 6, 4))),
        "k": mx.nd.array([[1, 0, -1], [2, 1, 0]]),
    }
    block = eval(text, vars(mx.gluon.loss))
    arguments = [given[letter] for letter in wanted.split()]
    before = plain(block(*arguments))
    block.hybridize()
    return [before, plain(block(*arguments))]


# ---- cells ---------------------------------------------------------------------------------------


def stacked(mx):
    rnn = mx.gluon.rnn
    made = rnn.HybridSequentialRNNCell(prefix="b_")
    with made.name_scope():
        made.add(rnn.LSTMCell(5))
        made.add(rnn.DropoutCell(0.3))
        made.add(rnn.ResidualCell(rnn.GRUCell(5)))
        made.add(rnn.ZoneoutCell(rnn.RNNCell(3, activation="relu"), 0.2, 0.1))
    return made


def bidirectional(mx):
    rnn = mx.gluon.rnn
    return rnn.BidirectionalCell(rnn.LSTMCell(4, prefix="l_"), rnn.GRUCell(3, prefix="r_"))


CELLS: dict[str, Callable] = {
    "RNNCell": lambda mx: mx.gluon.rnn.RNNCell(5, prefix="b_"),
    "LSTMCell": lambda mx: mx.gluon.rnn.LSTMCell(5, prefix="b_"),
    "GRUCell": lambda mx: mx.gluon.rnn.GRUCell(5, prefix="b_"),
    "HybridSequentialRNNCell": stacked,
    "BidirectionalCell": bidirectional,
    "LSTMPCell": lambda mx: mx.gluon.contrib.rnn.LSTMPCell(5, 3, prefix="b_"),
    "VariationalDropoutCell": lambda mx: mx.gluon.contrib.rnn.VariationalDropoutCell(
        mx.gluon.rnn.LSTMCell(5, prefix="b_"), 0.2, 0.0, 0.1
    ),
}
CONV_CELLS = [f"Conv{axes}D{kind}Cell" for kind in ("RNN", "LSTM", "GRU") for axes in (1, 2)]


def cell(mx, name: str) -> dict:
    x, lengths = mx.nd.array(numbers("x", (2, 3, 4))), mx.nd.array([2, 3])
    block = CELLS[name](mx)
    block.initialize()
    block.unroll(3, x)
    fill(mx, block)
    found = {"repr": repr(block), "params": names_of(block)}
    ways = {
        "joined": lambda: block.unroll(3, x, merge_outputs=True),
        "steps of time first": lambda: block.unroll(3, x.swapaxes(0, 1), layout="TNC", merge_outputs=False),
    }
    if name != "BidirectionalCell":  # MXNet itself fails for it here
        ways["lengths"] = lambda: block.unroll(3, x, valid_length=lengths)
    else:
        ways["lengths"] = lambda: block.unroll(3, x, valid_length=lengths, merge_outputs=True)
    for way, run in ways.items():
        found[way] = plain(run())
    return found


def conv_cell(mx, name: str) -> dict:
    axes = int(name[4])
    block = getattr(mx.gluon.contrib.rnn, name)((2, *(5,) * axes), 3, 3, 3, i2h_pad=(1,) * axes, prefix="b_")
    block.initialize()
    fill(mx, block)
    x = mx.nd.array(numbers("x", (2, 3, 2, *(5,) * axes)))
    layout = "NT" + block._conv_layout[1:]
    return {
        "repr": repr(block),
        "params": names_of(block),
        "plain": plain(block.unroll(3, x, layout=layout, merge_outputs=True)),
    }


FUSED = {
    "LSTM": "LSTM(5, num_layers=2, bidirectional=True, dropout=0.1, prefix='b_')",
    "GRU": "GRU(4, layout='NTC', prefix='b_')",
    "RNN": "RNN(3, activation='tanh', prefix='b_')",
}


def fused(mx, name: str) -> dict:
    block = eval(FUSED[name], vars(mx.gluon.rnn))
    x = mx.nd.array(numbers("x", (3, 2, 4)))
    found = answers(mx, block, x)
    block.hybridize(False)
    found["states"] = plain(block(x, block.begin_state(x.shape[block._layout.find("N")])))
    return found


# ---- the model zoo -------------------------------------------------------------------------------

MODELS = [
    *[f"resnet{n}_v{v}" for v in (1, 2) for n in (18, 34, 50, 101, 152)],
    *[f"vgg{n}{bn}" for bn in ("", "_bn") for n in (11, 13, 16, 19)],
    *["alexnet", "densenet121", "densenet161", "densenet169", "densenet201", "squeezenet1.0", "squeezenet1.1"],
    *["inceptionv3", "mobilenet1.0", "mobilenet0.75", "mobilenet0.5", "mobilenet0.25"],
    *[f"mobilenetv2_{width}" for width in ("1.0", "0.75", "0.5", "0.25")],
]
QUICK = ["alexnet", "resnet18_v1", "resnet50_v2", "squeezenet1.1", "mobilenet0.25", "mobilenetv2_0.25", "vgg11_bn"]


def model(mx, name: str) -> dict:
    """A digest of names and shapes and of the exported graph, and the answers to a small image."""
    edge = 299 if name.startswith("inception") else 224 if name.startswith(("dense", "squeeze")) else 64
    net = mx.gluon.model_zoo.vision.get_model(name, classes=10, prefix="zoo_")
    net.initialize(mx.init.Zero())
    x = mx.nd.array(numbers("image", (1, 3, edge, edge)))
    net(x)
    fill(mx, net)
    out = net(x)
    net.hybridize()
    hybrid = net(x)
    nodes = json.loads(net._cached_graph[1].tojson())["nodes"]
    return {
        "params": digest([names_of(net), list(net.collect_params())]),
        "graph": digest(nodes),
        "plain": plain(out)[0],
        "hybrid": plain(hybrid)[0],
    }


def digest(value) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def record() -> None:
    import mxnet as mx

    found = {
        "layers": {name: layer(mx, name) for name in LAYERS},
        "embedding": embedding(mx),
        "losses": {name: loss(mx, name) for name in LOSSES},
        "cells": {name: cell(mx, name) for name in CELLS},
        "conv_cells": {name: conv_cell(mx, name) for name in CONV_CELLS},
        "fused": {name: fused(mx, name) for name in FUSED},
        "models": {name: model(mx, name) for name in MODELS},
    }
    RECORDED.write_text(json.dumps(found, separators=(",", ":")).replace('"},"', '"},\n"') + "\n")


if __name__ == "__main__":
    record()
