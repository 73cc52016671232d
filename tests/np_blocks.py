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


# The name of each block, how it is made, and the shape of its input.
BLOCKS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "cnn": (_cnn, (2, 3, 8, 8)),
    "attention": (_attention, (2, 3, 4)),
    "head": (_mlp, (3, 5)),
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
