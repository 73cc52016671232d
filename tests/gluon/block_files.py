"""Blocks whose parameter files are exchanged with MXNet.

``python tests/gluon/block_files.py``, with a Python that has MXNet 1.9.1, writes the folder
``tests/recorded/blocks`` again: for each block a file of ``save_parameters``, one of
``collect_params().save``, and its answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from gluon_cases import fill, numbers, plain

FOLDER = Path(__file__).parents[1] / "recorded" / "blocks"


def dense(mx):
    return mx.gluon.nn.Dense(3, prefix="head_"), (2, 4)


def convolutions(mx):
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="")
    net.add(nn.Conv2D(2, 3), nn.BatchNorm(), nn.PReLU(), nn.Flatten(), nn.Dense(2, use_bias=False))
    return net, (1, 2, 4, 4)


def nested(mx):
    nn = mx.gluon.nn
    net = nn.Sequential(prefix="outer_")
    with net.name_scope():
        for _ in range(2):
            inner = nn.HybridSequential()
            with inner.name_scope():
                inner.add(nn.Dense(3, activation="relu"), nn.LayerNorm())
            net.add(inner)
        net.add(nn.Dense(1))
    return net, (2, 3)


def shared(mx):
    """Two layers with one set of parameters, under both attributes in the file."""
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="twice_")
    with net.name_scope():
        first = nn.Dense(3, in_units=3, activation="tanh")
        net.add(first, nn.Dense(3, in_units=3, params=first.params))
    return net, (2, 3)


def tied(mx):
    """A decoder that uses the weights of the embedding, and has a bias of its own."""
    gluon = mx.gluon

    class Model(gluon.HybridBlock):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.words = gluon.nn.Embedding(5, 3)
                self.out = gluon.nn.Dense(5, in_units=3, flatten=False, params=self.words.params)

        def hybrid_forward(self, F, x):
            return self.out(self.words(x))

    return Model(prefix="lm_"), (2, 3)


def constant(mx):
    gluon = mx.gluon

    class Scaled(gluon.HybridBlock):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.scale = self.params.get_constant("scale", mx.nd.array([[1.0, 2.0, 4.0]]))
                self.shift = self.params.get("shift", shape=(1, 3), init="zeros")

        def hybrid_forward(self, F, x, scale, shift):
            return F.broadcast_add(F.broadcast_mul(x, scale), shift)

    return Scaled(prefix="c_"), (2, 3)


def fused_lstm(mx):
    return mx.gluon.rnn.LSTM(3, 2, bidirectional=True, prefix="lstm_"), (4, 2, 3)


def cells(mx):
    gluon = mx.gluon

    class Last(gluon.Block):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.stack = gluon.rnn.SequentialRNNCell()
                with self.stack.name_scope():
                    self.stack.add(gluon.rnn.GRUCell(3))
                    self.stack.add(gluon.rnn.ResidualCell(gluon.rnn.LSTMCell(3)))
                self.out = gluon.nn.Dense(2)

        def forward(self, x):
            outputs, _ = self.stack.unroll(x.shape[1], x, merge_outputs=False)
            return self.out(outputs[-1])

    return Last(prefix="cells_"), (2, 3, 4)


def attention(mx):
    gluon, nn = mx.gluon, mx.gluon.nn

    class Attention(gluon.HybridBlock):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.query, self.key, self.value = (nn.Dense(4, flatten=False, prefix=f"{n}_") for n in "qkv")
                self.norm = nn.LayerNorm()

        def hybrid_forward(self, F, x):
            scores = F.softmax(F.batch_dot(self.query(x), self.key(x), transpose_b=True))
            return self.norm(F.batch_dot(scores, self.value(x)) + x)

    return Attention(prefix="att_"), (2, 3, 4)


def half(mx):
    net = mx.gluon.nn.Dense(3, in_units=4, prefix="half_")
    net.cast("float16")
    return net, None


def groups(mx):
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="g_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, groups=2), nn.GroupNorm(num_groups=2), nn.Conv2DTranspose(2, 2, strides=2))
        net.add(nn.InstanceNorm(), nn.GlobalAvgPool2D())
    return net, (1, 2, 5, 5)


def branches(mx):
    nn, contrib = mx.gluon.nn, mx.gluon.contrib.nn
    net = nn.HybridSequential(prefix="b_")
    with net.name_scope():
        side = contrib.HybridConcurrent(axis=1)
        with side.name_scope():
            side.add(nn.Dense(2), contrib.Identity(), nn.Dense(1, activation="sigmoid"))
        net.add(side, contrib.SyncBatchNorm(), nn.Dense(2))
    return net, (2, 3)


BLOCKS: dict[str, Callable] = {
    build.__name__: build
    for build in (
        *(dense, convolutions, nested, shared, tied, constant, fused_lstm, cells, attention, half, groups, branches),
    )
}


def made(mx, name: str, values: bool):
    """A block, with computed parameters if `values`, and its input."""
    with mx.name.NameManager():
        block, shape = BLOCKS[name](mx)
    block.initialize()
    if shape is None:
        return block, None
    x = mx.nd.array([[0, 1, 2], [4, 3, 1]]) if name == "tied" else mx.nd.array(numbers("x", shape))
    block(x)
    if values:
        kept = {p.name: p.data().copy() for p in block.collect_params().values() if "scale" in p.name}
        fill(mx, block)
        for parameter in block.collect_params().values():
            if parameter.name in kept:
                parameter.set_data(kept[parameter.name])
    return block, x


if __name__ == "__main__":
    import mxnet

    FOLDER.mkdir(exist_ok=True)
    found = {}
    for name in BLOCKS:
        block, x = made(mxnet, name, values=True)
        if x is None:
            block.weight.set_data(mxnet.nd.array(numbers("w", (3, 4)), dtype="float16"))
        block.save_parameters(str(FOLDER / f"{name}.params"))
        block.collect_params().save(str(FOLDER / f"{name}-names.params"))
        found[name] = None if x is None else plain(block(x))
    (FOLDER / "answers.json").write_text(json.dumps(found, indent=0) + "\n")
