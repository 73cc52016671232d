"""Records models with sparse inputs and weights under MXNet 1.9.1, for
tests/sparse/test_sparse_models.py.

    python tests/recorded/record_sparse.py     with an interpreter that has MXNet 1.9.1 and scipy

Each model becomes ``sparse/NAME-symbol.json`` and ``sparse/NAME-0000.params``, written by
``Module.save_checkpoint``, with its data and MXNet's results in ``sparse/NAME.npz``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "sparse"
FEATURES, ROWS = 1000, 6


def machine(mx):
    """A factorisation machine of factors and weights of which some rows are stored."""
    x = mx.sym.var("data", stype="csr")
    v = mx.sym.var("v", shape=(FEATURES, 8), stype="row_sparse")
    w = mx.sym.var("w", shape=(FEATURES, 1), stype="row_sparse")
    linear = mx.sym.broadcast_add(mx.sym.dot(x, w), mx.sym.var("bias", shape=(1,)))
    pairs = mx.sym.sum(mx.sym.square(mx.sym.dot(x, v)), axis=1, keepdims=True)
    own = mx.sym.dot(mx.sym.square(x), mx.sym._internal._square_sum(v, axis=1, keepdims=True))
    return mx.sym.LogisticRegressionOutput(linear + 0.5 * (pairs - own), mx.sym.var("label"), name="out")


def sagemaker_machine(mx):
    """A factorisation machine with the names of SageMaker's, whose weights are dense."""
    x, v = mx.sym.var("data", stype="csr"), mx.sym.var("v", shape=(FEATURES, 8))
    linear = mx.sym.dot(x, mx.sym.var("w1_weight", shape=(FEATURES, 1)))
    linear = mx.sym.broadcast_add(linear, mx.sym.var("w0_weight", shape=(1,)))
    pairs = mx.sym.sum(mx.sym.square(mx.sym.dot(x, v)), axis=1, keepdims=True)
    own = mx.sym.dot(mx.sym.square(x), mx.sym.sum(mx.sym.square(v), axis=1, keepdims=True))
    return mx.sym.LogisticRegressionOutput(linear + 0.5 * (pairs - own), name="out")


def learner(mx):
    """A linear learner: a dense layer of a csr matrix, with the names of SageMaker's."""
    x = mx.sym.var("data", stype="csr")
    layer = mx.sym.FullyConnected(x, mx.sym.var("fc0_weight", shape=(3, FEATURES)), num_hidden=3, name="fc0")
    return mx.sym.SoftmaxOutput(layer, name="out")


def wide_and_deep(mx):
    """A linear part over many features, and layers over few."""
    x, dense = mx.sym.var("data", stype="csr"), mx.sym.var("dense")
    w = mx.sym.var("wide_weight", shape=(FEATURES, 2), stype="row_sparse")
    wide = mx.sym.broadcast_add(mx.sym.sparse.dot(x, w), mx.sym.var("wide_bias", shape=(2,)))
    deep = mx.sym.Activation(mx.sym.FullyConnected(dense, num_hidden=16, name="fc1"), act_type="relu")
    deep = mx.sym.FullyConnected(deep, num_hidden=2, name="fc2")
    return mx.sym.SoftmaxOutput(wide + deep, mx.sym.var("label"), name="out")


def embedding(mx):
    """Rows of a table of which some are stored, and a layer."""
    table = mx.sym.var("table", shape=(FEATURES, 8), stype="row_sparse")
    found = mx.sym.contrib.SparseEmbedding(mx.sym.var("data"), table, input_dim=FEATURES, output_dim=8)
    return mx.sym.FullyConnected(found, num_hidden=3, name="fc")


def layers(mx):
    """Operators that keep zeros, one that has no kernel for sparse arrays, and a sparse result."""
    x = mx.sym.var("data", stype="csr")
    scaled = mx.sym.sqrt(mx.sym.abs(x)) * 3
    kept = mx.sym.sparse.retain(mx.sym.var("rows", shape=(FEATURES, 4), stype="row_sparse"), mx.sym.var("wanted"))
    dense = mx.sym.dot(scaled, kept)
    soft = mx.sym.softmax(scaled, axis=1)
    return mx.sym.Group([dense, scaled, mx.sym.sum(soft, axis=0), mx.sym.cast_storage(dense, stype="row_sparse"), kept])


def stored_rows(mx, rng, shape):
    """An array of which a tenth of the rows are stored."""
    rows = np.sort(rng.choice(shape[0], shape[0] // 10, replace=False))
    values = rng.normal(size=(len(rows), *shape[1:])).astype("float32")
    return mx.nd.sparse.row_sparse_array((values, rows), shape=shape)


def matrix(rng):
    """Values, columns and row pointers; a row without values among them."""
    counts = np.array([40, 0, 3, 40, 1, 17])
    columns = np.concatenate([np.sort(rng.choice(FEATURES, n, replace=False)) for n in counts])
    return rng.normal(size=len(columns)).astype("float32"), columns, np.concatenate([[0], np.cumsum(counts)])


def record(mx, name, symbol, others):
    rng = np.random.default_rng(len(name))
    values, columns, pointers = matrix(rng)
    given = {"data": mx.nd.sparse.csr_matrix((values, columns, pointers), shape=(ROWS, FEATURES))}
    kept = {"csr_values": values, "csr_columns": columns, "csr_pointers": pointers}
    for key, array in others(rng).items():
        given[key] = mx.nd.array(array)
        kept[key] = array
    names = [one for one in given if one in symbol.list_arguments()]
    label = next((one for one in symbol.list_arguments() if one.endswith("label")), None)
    labels = [(label, (ROWS, 1) if name.endswith("machine") else (ROWS,))] if label else None
    module = mx.mod.Module(symbol, data_names=names, label_names=[label] if labels else None)
    module.bind([(one, given[one].shape) for one in names], labels, for_training=False)
    shapes = symbol.infer_shape(**{one: given[one].shape for one in names})[0]
    hints = symbol.attr_dict()
    arguments = {}
    for one, shape in zip(symbol.list_arguments(), shapes, strict=True):
        if one in names or one == label:
            continue
        if hints.get(one, {}).get("__storage_type__") == "1":
            arguments[one] = stored_rows(mx, rng, shape)
        else:
            arguments[one] = mx.nd.array(rng.normal(size=shape).astype("float32"))
    module.set_params(arguments, {})
    module.forward(mx.io.DataBatch([given[one] for one in names]), is_train=False)
    outputs = module._exec_group.execs[0].outputs
    for i, output in enumerate(outputs):
        kept[f"output{i}"] = output.asnumpy()
        kept[f"stype{i}"] = output.stype
    kept["names"] = np.array(names)
    FOLDER.mkdir(exist_ok=True)
    module.save_checkpoint(str(FOLDER / name), 0)
    # As the parameters are stored in the module, some of which are sparse.
    mx.nd.save(str(FOLDER / f"{name}-0000.params"), {f"arg:{key}": value for key, value in arguments.items()})
    np.savez_compressed(FOLDER / f"{name}.npz", **kept)


def main() -> None:
    import mxnet as mx

    record(mx, "machine", machine(mx), lambda rng: {})
    record(mx, "sagemaker_machine", sagemaker_machine(mx), lambda rng: {})
    record(mx, "learner", learner(mx), lambda rng: {})
    dense = lambda rng: {"dense": rng.normal(size=(ROWS, 5)).astype("float32")}  # noqa: E731
    record(mx, "wide_and_deep", wide_and_deep(mx), dense)
    record(mx, "embedding", embedding(mx), lambda rng: {"data": rng.integers(0, FEATURES, (ROWS,)).astype("float32")})
    record(mx, "layers", layers(mx), lambda rng: {"wanted": np.arange(300, 900, 100).astype("float32")})


if __name__ == "__main__":
    sys.exit(main())
