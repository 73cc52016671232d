"""Batches of sparse arrays: iterators, loaders, LibSVM files."""

from __future__ import annotations

import numpy as np
import pytest

from sparse_arrays import DENSE, parts, stored
from support import last_json, run_python


def test_batches_of_csr_matrices_are_csr(mx) -> None:
    batches = mx.io.NDArrayIter(
        {"data": stored(mx, DENSE, "csr")}, mx.nd.array([0, 1, 2]), batch_size=2, last_batch_handle="discard"
    )
    assert batches.provide_data[0].shape == (2, 4)
    found = [(parts(batch.data[0]), batch.label[0].asnumpy().tolist()) for batch in batches]
    assert found == [(["csr", [1, 2], [1, 3], [0, 2, 2]], [0, 1])]
    with pytest.raises(NotImplementedError, match="discard"):
        mx.io.NDArrayIter(stored(mx, DENSE, "csr"), batch_size=2)


def test_batches_of_libsvm_rows_are_csr_unless_dense_ones_are_wanted(mx, tmp_path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1 3:2\n0\n2 0:3 2:-4 3:0\n1 1:7\n")
    batches = list(mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(4,), batch_size=3))
    # Zeros that a line has are stored, as in MXNet.
    first = ["csr", [1, 2, 3, -4, 0], [1, 3, 0, 2, 3], [0, 2, 2, 5]]
    assert [parts(batch.data[0]) for batch in batches] == [first, ["csr", [7, 1, 2], [1, 1, 3], [0, 1, 3, 3]]]
    assert [(batch.label[0].asnumpy().tolist(), batch.pad) for batch in batches] == [([1, 0, 2], 0), ([1, 1, 0], 2)]
    [dense, _] = mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(4,), batch_size=3, dense=True)
    assert parts(dense.data[0]) == ["default", DENSE.tolist()]


def test_a_loader_makes_csr_batches_of_csr_rows_in_every_kind_of_worker(mx) -> None:
    rows = mx.gluon.data.ArrayDataset(stored(mx, DENSE, "csr"), [7, 8, 9])
    for workers in ({}, {"num_workers": 1}, {"num_workers": 1, "thread_pool": True}):
        batches = list(mx.gluon.data.DataLoader(rows, 2, last_batch="keep", **workers))
        assert [parts(data) for data, _ in batches] == [
            ["csr", [1, 2], [1, 3], [0, 2, 2]],
            ["csr", [3, -4], [0, 2], [0, 2]],
        ]
        assert [labels.asnumpy().tolist() for _, labels in batches] == [[7, 8], [9]]


def test_libsvm_rows_of_a_million_columns_take_memory_for_their_values_alone(tmp_path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{i} {i}:1 999999:{i}.5\n" for i in range(1000)))
    code = f"""
    import json
    import mxrt as mx
    mx.set_memory_limit(8 << 20)
    rows = mx.io.LibSVMIter(data_libsvm={str(path)!r}, data_shape=(1_000_000,), batch_size=100)
    found = [batch.data[0] for batch in rows]
    print(json.dumps([len(found), found[9].shape, float(found[9].data.asnumpy()[-1]), found[9].indices.shape]))
    """
    assert last_json(run_python(code)) == [10, [100, 1_000_000], 999.5, [200]]


def test_a_module_predicts_and_scores_batches_of_libsvm_rows(mx, tmp_path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1 3:2\n0\n1 0:3 2:-4\n")
    net = mx.sym.dot(mx.sym.var("data", stype="csr"), mx.sym.var("weight", stype="row_sparse"))
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, mx.sym.var("softmax_label"), name="softmax"))
    rows = mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(4,), batch_size=3, label_name="softmax_label")
    module.bind(rows.provide_data, rows.provide_label, for_training=False)
    weight = mx.nd.array([[1, 0], [0, 1], [0, 2], [0, 0]]).tostype("row_sparse")
    module.set_params({"weight": weight}, {})
    scores = np.exp(DENSE @ weight.asnumpy())
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(module.predict(rows).asnumpy(), expected, rtol=1e-5)
    rows.reset()
    assert module.score(rows, "acc") == [("accuracy", 2 / 3)]
