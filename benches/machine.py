"""A factorisation machine over a million features, for benches: `mx` is MXNet or mxrt."""

from __future__ import annotations

from typing import Any

import numpy as np

FEATURES, FACTORS, STORED = 1_000_000, 64, 40


def symbol(mx: Any) -> Any:
    """The graph: csr data, row_sparse weights, and a probability for each row."""
    x = mx.sym.var("data", stype="csr")
    v = mx.sym.var("v", shape=(FEATURES, FACTORS), stype="row_sparse")
    w = mx.sym.var("w", shape=(FEATURES, 1), stype="row_sparse")
    linear = mx.sym.broadcast_add(mx.sym.dot(x, w), mx.sym.var("bias", shape=(1,)))
    pairs = mx.sym.sum(mx.sym.square(mx.sym.dot(x, v)), axis=1, keepdims=True)
    own = mx.sym.dot(mx.sym.square(x), mx.sym._internal._square_sum(v, axis=1, keepdims=True))
    return mx.sym.LogisticRegressionOutput(linear + 0.5 * (pairs - own), mx.sym.var("label"), name="out")


def weights(mx: Any) -> dict[str, Any]:
    """Weights of which every row is stored."""
    random, rows = np.random.RandomState(0), np.arange(FEATURES)
    stored = {
        name: mx.nd.sparse.row_sparse_array(
            (random.normal(0, 0.01, (FEATURES, width)).astype("float32"), rows), shape=(FEATURES, width)
        )
        for name, width in (("v", FACTORS), ("w", 1))
    }
    return {**stored, "bias": mx.nd.zeros((1,))}


def row() -> dict[str, np.ndarray]:
    """Values, columns and row pointers of one row."""
    random = np.random.RandomState(1)
    return {
        "values": random.normal(size=STORED).astype("float32"),
        "indices": np.sort(random.choice(FEATURES, STORED, replace=False)).astype("int64"),
        "indptr": np.array([0, STORED]),
    }


def data(mx: Any) -> Any:
    """The row as an array."""
    return mx.nd.sparse.csr_matrix(tuple(row().values()), shape=(1, FEATURES))
