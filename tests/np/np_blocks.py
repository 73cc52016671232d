"""Gluon blocks of programs of the numpy interface. recorded/record_np_blocks.py runs and exports
them under MXNet 1.9.1, and test_np_gluon.py runs them under mxrt.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

__all__ = ["BLOCKS", "filled", "outputs", "sample"]


def sample(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Numbers around 0, the same on every machine."""
    count = int(onp.prod(shape))
    return (((onp.arange(count) * 37 + seed * 11) % 101 - 50) / 40).reshape(shape).astype("float32")


def fill(net: Any) -> None:
    """Gives parameters numbers that depend on their place and shape alone."""
    for place, parameter in enumerate(net.collect_params().values()):
        values = sample(parameter.shape, place) / 4
        if "var" in parameter.name:
            values = abs(values) + 1
        made = parameter.data().copy()
        made[:] = values
        parameter.set_data(made)


def _cnn(mx: Any) -> Any:
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="cnn_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(2), nn.Flatten())
        net.add(nn.Dense(5, activation="tanh"), nn.LayerNorm(), nn.Dropout(0.5), nn.Dense(3))
    return net


def _attention(mx: Any) -> Any:
    class Attention(mx.gluon.HybridBlock):
        """Scaled dot-product attention with the operators of F.np and F.npx."""

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.query = mx.gluon.nn.Dense(4, flatten=False)
                self.key = mx.gluon.nn.Dense(4, flatten=False)
                self.scale = self.params.get("scale", shape=(4,), init="ones")

        def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
            query, key = self.query(x) * scale, self.key(x)
            scores = F.npx.batch_dot(query, key, transpose_b=True) / 2.0
            weights = F.npx.softmax(scores, axis=-1)
            out = F.np.matmul(weights, x)
            return F.np.concatenate([out, F.np.tanh(x) - 1], axis=-1), F.np.mean(weights, axis=1)

    return Attention(prefix="attention_")


def _mlp(mx: Any) -> Any:
    class Head(mx.gluon.HybridBlock):
        """Reductions to a scalar, comparisons, slices, and arrays that are made inside."""

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.dense = mx.gluon.nn.Dense(6)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            y = F.npx.relu(self.dense(x))
            kept = F.np.where(y > 0.1, y, F.np.zeros_like(y))
            return F.np.sum(kept), (kept.reshape(-1, 2, 3) ** 2).transpose(0, 2, 1), 1 - kept / (1 + F.np.abs(y))

    return Head(prefix="head_")


def _encoder(mx: Any) -> Any:
    class Encoder(mx.gluon.HybridBlock):
        """A layer of a transformer: heads, a mask, layer normalisation and GELU."""

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.parts = mx.gluon.nn.Dense(24, flatten=False)
                self.joined = mx.gluon.nn.Dense(8, flatten=False)
                self.first, self.second = mx.gluon.nn.LayerNorm(), mx.gluon.nn.LayerNorm()
                self.wide = mx.gluon.nn.Dense(16, flatten=False)
                self.narrow = mx.gluon.nn.Dense(8, flatten=False)

        def heads(self, F: Any, x: Any) -> Any:
            return F.np.transpose(F.np.reshape(x, (2, 5, 2, 4)), (0, 2, 1, 3))

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            query, key, value = (self.heads(F, part) for part in F.np.split(self.parts(x), 3, axis=-1))
            scores = F.np.einsum("bhqd,bhkd->bhqk", query, key) / 2.0
            allowed = F.np.tril(F.np.ones_like(scores))
            weights = F.npx.softmax(F.np.where(allowed, scores, -1e9 * F.np.ones_like(scores)), axis=-1)
            mixed = F.np.transpose(F.np.matmul(weights, value), (0, 2, 1, 3))
            x = self.first(x + self.joined(F.np.reshape(mixed, (2, 5, 8))))
            return self.second(x + self.narrow(F.npx.leaky_relu(self.wide(x), act_type="gelu")))

    return Encoder(prefix="encoder_")


def _residual(mx: Any) -> Any:
    nn = mx.gluon.nn

    class Residual(mx.gluon.HybridBlock):
        """Convolutions of several groups with a shortcut, and global pooling."""

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.stem = nn.Conv2D(8, 3, padding=1)
                self.norm = nn.BatchNorm()
                self.depthwise = nn.Conv2D(8, 3, padding=1, groups=8, use_bias=False)
                self.pointwise = nn.Conv2D(8, 1)
                self.pool = nn.GlobalAvgPool2D()
                self.dense = nn.Dense(4)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            x = F.npx.relu(self.norm(self.stem(x)))
            x = F.npx.relu(x + self.pointwise(self.depthwise(x)))
            return F.npx.log_softmax(self.dense(self.pool(x)), axis=-1), F.np.max(x, axis=(2, 3))

    return Residual(prefix="residual_")


def _words(mx: Any) -> Any:
    class Words(mx.gluon.HybridBlock):
        """Embeddings that are averaged over the words that are there."""

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.vectors = mx.gluon.nn.Embedding(9, 6)
                self.dense = mx.gluon.nn.Dense(3, in_units=6)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            words = F.np.floor(F.np.abs(x) * 7)
            there = F.np.expand_dims(words > 0, -1).astype("float32")
            total = F.np.sum(self.vectors(words) * there, axis=1)
            mean = total / F.np.maximum(F.np.sum(there, axis=1), 1.0)
            return self.dense(mean), F.npx.one_hot(F.np.argmax(mean, axis=-1), 6)

    return Words(prefix="words_")


def _recurrent(mx: Any) -> Any:
    class Recurrent(mx.gluon.HybridBlock):
        """A gated recurrent network, step by step, over features of convolutions in time."""

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.features = mx.gluon.nn.Conv1D(5, 3, padding=1, activation="softrelu")
                self.update = mx.gluon.nn.Dense(5, activation="sigmoid")
                self.candidate = mx.gluon.nn.Dense(5, activation="tanh")

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            steps = F.np.split(F.np.transpose(self.features(x), (2, 0, 1)), 4, axis=0)
            state, states = F.np.zeros_like(F.np.squeeze(steps[0], axis=0)), []
            for step in steps:
                both = F.np.concatenate([F.np.squeeze(step, axis=0), state], axis=1)
                gate = self.update(both)
                state = gate * state + (1 - gate) * self.candidate(both)
                states.append(state)
            return F.np.stack(states, axis=1), F.np.mean(state)

    return Recurrent(prefix="recurrent_")


def _algebra(mx: Any) -> Any:
    class Algebra(mx.gluon.HybridBlock):
        """Products over several axes, and a factorisation."""

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.weight = self.params.get("weight", shape=(4, 3), init="ones")

        def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
            y = F.np.tensordot(x, weight, axes=((2,), (0,)))
            gram = F.np.matmul(y, F.np.swapaxes(y, -1, -2)) + 4 * F.np.eye(3)
            factor = F.np.linalg.cholesky(gram)
            return factor, F.np.linalg.solve(gram, y), F.np.linalg.norm(y, axis=-1), F.np.dot(y, F.np.transpose(weight))

    return Algebra(prefix="algebra_")


def _pieces(mx: Any) -> Any:
    class Pieces(mx.gluon.HybridBlock):
        """Elements moved: parts, joins, shifts, borders and orders."""

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            first, second = F.np.split(x, 2, axis=1)
            stacked = F.np.stack([first, F.np.flip(second, axis=1)], axis=1)
            shifted = F.npx.slice(F.np.roll(stacked, 1, axis=-1), begin=(None, None, 0), end=(None, None, 2))
            wide = F.np.pad(x, ((0, 0), (1, 2)), mode="constant")
            parts = F.np.concatenate([F.np.ravel(shifted), F.np.tile(F.np.sum(x), (2,))], axis=0)
            return parts, wide, F.np.repeat(F.np.sort(x, axis=-1), 2, axis=0), F.np.argsort(x, axis=-1)

    return Pieces(prefix="pieces_")


def _gates(mx: Any) -> Any:
    class Gates(mx.gluon.HybridBlock):
        """Functions of each element, statistics, and choices by comparison."""

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.gate = mx.gluon.nn.Dense(6, activation="sigmoid")
                self.path = mx.gluon.nn.Dense(6)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            gate, path = self.gate(x), self.path(x)
            y = gate * F.np.tanh(path) + (1 - gate) * F.np.exp(-F.np.square(path))
            centred = (y - F.np.mean(y, axis=-1, keepdims=True)) / (F.np.std(y, axis=-1, keepdims=True) + 0.1)
            inside = (centred > -1) * (centred < 1)
            return F.np.clip(centred, -1, 1), F.np.cumsum(y, axis=1), F.np.var(y), inside, F.np.log1p(F.np.abs(path))

    return Gates(prefix="gates_")


# The name of each block, how it is made, and the shape of its input.
BLOCKS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "cnn": (_cnn, (2, 3, 8, 8)),
    "attention": (_attention, (2, 3, 4)),
    "head": (_mlp, (3, 5)),
    "encoder": (_encoder, (2, 5, 8)),
    "residual": (_residual, (2, 3, 6, 6)),
    "words": (_words, (3, 4)),
    "recurrent": (_recurrent, (2, 6, 4)),
    "algebra": (_algebra, (2, 3, 4)),
    "pieces": (_pieces, (3, 4)),
    "gates": (_gates, (4, 5)),
}


def filled(mx: Any, name: str) -> tuple[Any, Any]:
    """A block with its parameters, and its input."""
    make, shape = BLOCKS[name]
    net, x = make(mx), mx.np.array(sample(shape, 7))
    net.initialize()
    net(x)
    fill(net)
    return net, x


def outputs(out: Any) -> list[Any]:
    """The results of a call as NumPy's arrays."""
    return [one.asnumpy() for one in (out if isinstance(out, (list, tuple)) else [out])]
