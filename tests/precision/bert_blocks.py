"""A BERT classifier as GluonNLP 0.10 builds it, small, with computed weights. Used by the tests of
quantization and by recorded/record_bert8.py, which runs it in MXNet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

VOCABULARY, UNITS, HIDDEN, LENGTH, HEADS, CLASSES, BATCH = 40, 32, 64, 16, 4, 5, 2
PARTS = ("query", "key", "value")


def attention(mx: Any) -> Any:
    class Attention(mx.gluon.HybridBlock):
        def __init__(self, prefix: str | None = None) -> None:
            super().__init__(prefix=prefix)
            with self.name_scope():
                for part in PARTS:
                    setattr(self, f"{part}_bias", self.params.get(f"{part}_bias", shape=(UNITS,), init="zeros"))
                    setattr(self, f"{part}_weight", self.params.get(f"{part}_weight", shape=(UNITS, UNITS)))
                self.dropout_layer = mx.gluon.nn.Dropout(0.1)

        def hybrid_forward(self, F: Any, data: Any, valid: Any, **parts: Any) -> Any:
            weights = [parts[f"{p}_weight"].reshape(shape=(HEADS, -1, 0), reverse=True) for p in PARTS]
            biases = [parts[f"{p}_bias"].reshape(shape=(HEADS, -1), reverse=True) for p in PARTS]
            weight = F.concat(*weights, dim=-2).reshape(shape=(-1, 0), reverse=True)
            bias = F.stack(*biases, axis=1).reshape(-1)
            projected = F.FullyConnected(data, weight, bias, num_hidden=3 * UNITS, no_bias=False, flatten=False)
            scores = F.contrib.interleaved_matmul_selfatt_qk(projected, heads=HEADS)
            valid = F.broadcast_axis(F.expand_dims(valid, axis=1), axis=1, size=HEADS)
            valid = valid.reshape(shape=(-1, 0), reverse=True)
            weights = self.dropout_layer(F.softmax(scores, length=valid, use_length=True, axis=-1))
            return F.contrib.interleaved_matmul_selfatt_valatt(projected, weights, heads=HEADS)

    return Attention


def cell(mx: Any) -> Any:
    nn, Attention = mx.gluon.nn, attention(mx)

    class Gelu(mx.gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.LeakyReLU(x, act_type="gelu")

    class Cell(mx.gluon.HybridBlock):
        def __init__(self, prefix: str | None = None) -> None:
            super().__init__(prefix=prefix)
            with self.name_scope():
                self.attention_cell = Attention()
                self.proj = nn.Dense(UNITS, flatten=False, prefix="proj_")
                self.layer_norm = nn.LayerNorm(in_channels=UNITS, epsilon=1e-12)
                self.ffn_1 = nn.Dense(HIDDEN, flatten=False, prefix="ffn_1_")
                self.activation = Gelu()
                self.ffn_2 = nn.Dense(UNITS, flatten=False, prefix="ffn_2_")
                self.last_norm = nn.LayerNorm(in_channels=UNITS, epsilon=1e-12)
                self.dropout_layer = nn.Dropout(0.1)

        def hybrid_forward(self, F: Any, data: Any, valid: Any) -> Any:
            made = self.dropout_layer(self.proj(self.attention_cell(data, valid)))
            made = self.layer_norm(made + data)
            return self.last_norm(self.dropout_layer(self.ffn_2(self.activation(self.ffn_1(made)))) + made)

    return Cell


def classifier(mx: Any) -> Any:
    """A block of token numbers, their segments and the lengths of the sentences."""
    nn, Cell = mx.gluon.nn, cell(mx)

    class Classifier(mx.gluon.HybridBlock):
        def __init__(self, prefix: str | None = None) -> None:
            super().__init__(prefix=prefix)
            with self.name_scope():
                self.word_embed = nn.Embedding(VOCABULARY, UNITS, prefix="word_embed_")
                self.token_type_embed = nn.Embedding(2, UNITS, prefix="token_type_embed_")
                self.position_weight = self.params.get("position_weight", shape=(LENGTH, UNITS))
                self.layer_norm = nn.LayerNorm(in_channels=UNITS, epsilon=1e-12)
                self.cell = Cell(prefix="transformer0_")
                self.pooler = nn.Dense(UNITS, flatten=False, activation="tanh", prefix="pooler_")
                self.classifier = nn.Dense(CLASSES, prefix="classifier_")

        def hybrid_forward(self, F: Any, words: Any, types: Any, lengths: Any, position_weight: Any) -> Any:
            data = F.transpose(self.word_embed(words) + self.token_type_embed(types), axes=(1, 0, 2))
            steps = F.contrib.arange_like(data, axis=0)
            zeros = F.reshape(F.zeros_like(steps), shape=(1, -1))
            valid = F.cast(F.broadcast_add(F.reshape(lengths, shape=(-1, 1)), zeros), dtype="int32")
            positions = F.Embedding(steps, position_weight, LENGTH, UNITS)
            data = self.layer_norm(F.broadcast_add(data, F.expand_dims(positions, axis=1)))
            data = F.SequenceMask(self.cell(data, valid), sequence_length=lengths, use_sequence_length=True, axis=0)
            first = F.slice_axis(F.transpose(data, axes=(1, 0, 2)), axis=1, begin=0, end=1)
            return self.classifier(self.pooler(first.reshape(shape=(-1, UNITS))))

    return Classifier(prefix="bert_")


def weights(name: str, shape: tuple[int, ...], rng: np.random.RandomState) -> Any:
    """Computed parameters. Integers of the weights of dense layers are such that no two products of
    neighbours exceed 16 bits together: oneDNN is exact without VNNI as well.
    """
    if name.endswith("gamma"):
        return rng.uniform(0.7, 1.3, shape)
    if name.endswith(("beta", "bias")):
        return rng.normal(0, 0.1, shape)
    if "embed" in name or "position" in name:
        return rng.normal(0, 1, shape)
    limit = 2.4 / np.sqrt(shape[-1])
    value = np.clip(rng.normal(0, limit / 2, shape), -0.49 * limit, 0.49 * limit)
    value[:, 0], value[:, 1] = limit * np.sign(value[:, 0]), 0
    return value


def make(mx: Any) -> Any:
    """The block with its weights."""
    net = classifier(mx)
    net.initialize()
    net(*[mx.nd.array(array) for array in batches(1)[0]])
    rng = np.random.RandomState(1)
    for name, parameter in sorted(net.collect_params().items()):
        parameter.set_data(mx.nd.array(weights(name, parameter.shape, rng).astype(np.float32)))
    return net


def batches(count: int) -> list[tuple[Any, Any, Any]]:
    """Words, segments and lengths of some batches; the last serves as the test."""
    rng = np.random.RandomState(7)
    made = []
    for _ in range(count):
        words = rng.randint(0, VOCABULARY, (BATCH, LENGTH)).astype(np.float32)
        lengths = rng.randint(LENGTH // 2, LENGTH + 1, BATCH).astype(np.float32)
        types = (np.arange(LENGTH)[None] >= lengths[:, None] / 2).astype(np.float32)
        made.append((words, types, lengths))
    return made


def iterator(mx: Any, data: list[tuple[Any, Any, Any]]) -> Any:
    """The batches as calibration data."""

    class Batches(mx.io.DataIter):
        def __init__(self) -> None:
            super().__init__(BATCH)
            self.reset()
            self.provide_data = [mx.io.DataDesc(f"data{i}", array.shape) for i, array in enumerate(data[0])]
            self.provide_label: list[Any] = []

        def reset(self) -> None:
            self._left = iter(data)

        def next(self) -> Any:
            return mx.io.DataBatch([mx.nd.array(array) for array in next(self._left)], [])

    return Batches()
