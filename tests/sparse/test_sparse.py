"""Sparse arrays: how they are made, read, computed with and saved. Values and storage types are
MXNet's."""

from __future__ import annotations

import itertools
import pickle
import sys
import threading
import warnings

import numpy as np
import pytest

from sparse_arrays import DENSE, parts, stored
from support import last_json, run_python

OTHER = np.array([[5, 0, 0, -2], [1, 0, 0, 0], [0, 0, 0, 0]], "float32")
FULL = np.arange(1, 13, dtype="float32").reshape(3, 4)


CSR = ["csr", [1, 2, 3, -4], [1, 3, 0, 2], [0, 2, 2, 4]]
ROWS = ["row_sparse", [[0, 1, 0, 2], [3, 0, -4, 0]], [0, 2]]


@pytest.fixture
def quiet():
    """Without warnings of dense copies."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\nStorage type fallback")
        yield


def test_arrays_are_made_of_dense_ones_of_parts_and_of_shapes(mx) -> None:
    sparse = mx.nd.sparse
    assert parts(stored(mx, DENSE, "csr")) == CSR
    assert parts(stored(mx, DENSE, "row_sparse")) == ROWS
    assert parts(sparse.csr_matrix((CSR[1], CSR[2], CSR[3]), shape=(3, 4))) == CSR
    assert parts(sparse.csr_matrix(([2, 1, 3, -4], ([0, 0, 2, 2], [3, 1, 0, 2])), shape=(3, 4))) == CSR
    assert parts(sparse.row_sparse_array((ROWS[1], ROWS[2]), shape=(3, 4))) == ROWS
    assert sparse.csr_matrix((CSR[1], CSR[2], CSR[3])).shape == (3, 4)
    assert sparse.row_sparse_array((ROWS[1], ROWS[2])).shape == (3, 4)
    assert parts(sparse.zeros("csr", (2, 3))) == parts(sparse.csr_matrix((2, 3))) == ["csr", [], [], [0, 0, 0]]
    assert parts(sparse.empty("row_sparse", (2, 3))) == ["row_sparse", [], []]
    assert parts(mx.nd.zeros((2, 3), stype="csr")) == ["csr", [], [], [0, 0, 0]]
    assert sparse.csr_matrix(DENSE.astype("float64")).dtype is np.float64
    assert sparse.csr_matrix(([1, 2], [0, 0], [0, 1, 2]), shape=(2, 1), dtype="int32").dtype is np.int32
    for array in (mx.nd.array, sparse.array, sparse.csr_matrix):
        assert parts(array(stored(mx, DENSE, "csr"))) == CSR


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], np.int64),
        ((1.5, 2), np.float64),
        (np.array([1, 2], "int32"), np.int32),
        (np.array([1, 2], "float64"), np.float64),
        (np.array([1, 2], "float16"), np.float32),
    ],
)
def test_values_at_coordinates_have_the_type_that_scipy_gives_them(mx, values, dtype) -> None:
    places = ([0, 1], [1, 0])
    assert mx.nd.sparse.csr_matrix((values, places), shape=(2, 2)).dtype is dtype
    asked = mx.nd.sparse.csr_matrix((values, places), shape=(2, 2), dtype="float16")
    assert asked.dtype is np.float16
    # Those of the other form have MXNet's own type.
    given = mx.nd.sparse.csr_matrix((values, [0, 1], [0, 1, 2]), shape=(2, 2)).dtype
    assert given is (values.dtype.type if isinstance(values, np.ndarray) else np.float32)


def test_quotients_of_one_shape_are_dense(mx, quiet) -> None:
    csr, dense = stored(mx, DENSE, "csr"), mx.nd.array(np.where(DENSE == 2, 4, 0))
    found = mx.nd.sparse.divide(csr, dense)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = DENSE / np.where(DENSE == 2, 4, 0)
    assert found.stype == "default"
    np.testing.assert_array_equal(found.asnumpy(), expected)
    assert mx.nd.sparse.divide(csr, mx.nd.ones((1, 4))).stype == mx.nd.sparse.divide(csr, 2).stype == "csr"


def test_what_cannot_be_assigned_is_refused_with_the_classes_of_mxnet(mx) -> None:
    csr, rows = stored(mx, DENSE, "csr"), stored(mx, DENSE, "row_sparse")
    for key in (0, 7, (slice(None), 0)):
        with pytest.raises(TypeError, match="only supports"):
            rows[key] = 1
        with pytest.raises(ValueError, match="only supports"):
            csr[key] = 1
    for array in (csr, rows):
        for key in ("a", None, [0]):
            with pytest.raises(AssertionError):
                array[key] = 1
        with pytest.raises(ValueError, match="not implemented yet"):
            array[0:1] = 1
        with pytest.raises(ValueError, match="ambiguous"):
            bool(array)
    assert bool(stored(mx, DENSE[:1, 3:], "csr")) and not mx.nd.sparse.zeros("csr", (1, 1))


def test_matrices_of_scipy_become_csr_and_come_back(mx) -> None:
    scipy = pytest.importorskip("scipy.sparse")
    matrix = scipy.csr_matrix(([2.0, 1.0, -4.0, 3.0], [3, 1, 2, 0], [0, 2, 2, 4]), shape=(3, 4))
    for array in (mx.nd.array, mx.nd.sparse.array, mx.nd.sparse.csr_matrix):
        made = array(matrix)
        assert parts(made) == CSR
        assert (made.asscipy() != matrix).nnz == 0


def test_an_array_says_what_it_is(mx) -> None:
    csr, rows = stored(mx, DENSE, "csr"), stored(mx, DENSE, "row_sparse")
    assert type(csr) is mx.nd.sparse.CSRNDArray and type(rows) is mx.nd.sparse.RowSparseNDArray
    assert isinstance(rows, mx.nd.sparse.BaseSparseNDArray) and isinstance(rows, mx.nd.NDArray)
    assert (csr.shape, csr.ndim, len(csr), csr.dtype, csr.context) == ((3, 4), 2, 3, np.float32, mx.cpu())
    assert repr(csr) == "\n<CSRNDArray 3x4 @cpu(0)>" and repr(rows) == "\n<RowSparseNDArray 3x4 @cpu(0)>"
    assert csr.indices.dtype is csr.indptr.dtype is rows.indices.dtype is np.int64
    assert np.array_equal(csr.asnumpy(), DENSE) and np.array_equal(rows.asnumpy(), DENSE)
    assert csr.check_format() is None and rows.check_format(full_check=False) is None
    for refused in (lambda: csr.reshape((4, 3)), lambda: rows._at(0), lambda: csr._slice(0, 1)):
        with pytest.raises(mx.base.NotSupportedForSparseNDArray):
            refused()
    with pytest.raises(NotImplementedError):
        csr.size  # noqa: B018


def test_parts_are_copies(mx) -> None:
    csr = stored(mx, DENSE, "csr")
    csr.data[:] = 9
    csr.indptr[:] = 9
    assert parts(csr) == CSR


def test_rows_are_sliced(mx) -> None:
    csr, rows = stored(mx, DENSE, "csr"), stored(mx, DENSE, "row_sparse")
    assert parts(csr[0]) == ["csr", [1, 2], [1, 3], [0, 2]]
    assert parts(csr[-1]) == ["csr", [3, -4], [0, 2], [0, 2]]
    assert parts(csr[1:3]) == ["csr", [3, -4], [0, 2], [0, 0, 2]]
    assert csr[:] is csr and rows[:] is rows
    for key in (slice(None, None, 2), (1, 2)):
        with pytest.raises(ValueError, match=r"continuous slicing|Multi-dimension"):
            csr[key]
    with pytest.raises(ValueError, match="int key"):
        rows[0]
    with pytest.raises(IndexError):
        csr[3]


def test_arrays_are_copied_converted_and_assigned(mx) -> None:
    for stype in ("csr", "row_sparse"):
        array = stored(mx, DENSE, stype)
        expected = parts(array)
        assert parts(array.copy()) == parts(array.tostype(stype)) == parts(array.copyto(mx.cpu())) == expected
        assert (
            parts(array.tostype("default")) == parts(array.copyto(mx.nd.zeros((3, 4)))) == ["default", DENSE.tolist()]
        )
        assert array.astype("float64").dtype is np.float64
        assert parts(array.astype("float64")) == expected
        assert parts(pickle.loads(pickle.dumps(array))) == expected
        target = mx.nd.sparse.zeros(stype, (3, 4))
        target[:] = array
        assert parts(target) == expected
        target[:] = mx.nd.array(OTHER)
        assert np.array_equal(target.asnumpy(), OTHER)
        with pytest.warns(RuntimeWarning, match="not efficient"):
            target[:] = DENSE
        assert parts(target) == expected
        dense = mx.nd.zeros((3, 4))
        dense[:] = array
        assert np.array_equal(dense.asnumpy(), DENSE)
        with pytest.raises(ValueError, match="not implemented yet"):
            target[0:1] = 3
    with pytest.raises(ValueError, match="not supported"):
        stored(mx, DENSE, "csr").tostype("row_sparse")
    with pytest.raises(ValueError, match="numeric types"):
        stored(mx, DENSE, "csr")[:] = 3


def test_signs_give_the_storage_types_of_mxnet(mx, quiet) -> None:
    for stype in ("csr", "row_sparse"):
        a, b, d = stored(mx, DENSE, stype), stored(mx, OTHER, stype), mx.nd.array(FULL)
        for result, expected, kind in (
            (a + b, DENSE + OTHER, stype),
            (a - b, DENSE - OTHER, stype),
            (a * b, DENSE * OTHER, stype),
            (a * d, DENSE * FULL, stype),
            (d * a, DENSE * FULL, "default"),
            (a + d, DENSE + FULL, "default"),
            (d - a, FULL - DENSE, "default"),
            (a * 2, DENSE * 2, stype),
            (2 * a, DENSE * 2, stype),
            (a / 2, DENSE / 2, stype),
            (-a, -DENSE, stype),
            (abs(a), abs(DENSE), stype),
            (a + 1, DENSE + 1, "default"),
            (a + 0, DENSE, stype),
            (1 - a, 1 - DENSE, "default"),
            (a**2, DENSE**2, "default"),
            (a > 1, DENSE > 1, stype),
            (a == 2, DENSE == 2, stype),
            (a != 2, DENSE != 2, "default"),
        ):
            assert result.stype == kind
            assert np.array_equal(result.asnumpy(), expected)
        a += b
        assert a.stype == stype and np.array_equal(a.asnumpy(), DENSE + OTHER)
        a += d
        assert a.stype == stype and np.array_equal(a.asnumpy(), DENSE + OTHER + FULL)


def test_sums_store_what_either_side_has_without_zeros_in_csr(mx) -> None:
    csr = stored(mx, DENSE, "csr") + stored(mx, OTHER, "csr")
    assert parts(csr) == ["csr", [5, 1, 1, 3, -4], [0, 1, 0, 0, 2], [0, 2, 3, 5]]
    rows = stored(mx, DENSE, "row_sparse") * stored(mx, OTHER, "row_sparse")
    assert parts(rows)[2] == [0, 1, 2]


PRODUCTS = [
    ("csr", "default", False, None, "default"),
    ("csr", "row_sparse", False, None, "default"),
    ("csr", "default", True, None, "row_sparse"),
    ("csr", "row_sparse", True, None, "row_sparse"),
    ("csr", "default", True, "default", "default"),
    ("csr", "default", False, "csr", "csr"),
    ("csr", "default", False, "row_sparse", "row_sparse"),
    ("default", "csr", False, None, "csr"),
    ("default", "csr", False, "default", "default"),
    ("csr", "csr", False, None, "default"),
    ("row_sparse", "default", False, None, "default"),
    ("default", "default", False, None, "default"),
    ("default", "default", False, "csr", "csr"),
    ("default", "default", False, "row_sparse", "row_sparse"),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("left", "right", "transposed", "asked", "made"), PRODUCTS)
def test_products_have_the_storage_types_of_mxnet(mx, left, right, transposed, asked, made, dtype, quiet) -> None:
    a, b = DENSE.astype(dtype), (OTHER if transposed else OTHER.T.copy()).astype(dtype)
    stored_a = mx.nd.array(a, dtype=dtype).tostype(left)
    stored_b = mx.nd.array(b, dtype=dtype).tostype(right)
    result = mx.nd.dot(stored_a, stored_b, transpose_a=transposed, forward_stype=asked)
    assert (result.stype, result.dtype) == (made, np.dtype(dtype).type)
    assert np.array_equal(result.asnumpy(), (a.T if transposed else a) @ b)


@pytest.mark.parametrize("asked", ["csr", "row_sparse"])
def test_a_product_of_dense_matrices_is_stored_as_it_is_asked_for(mx, asked, quiet) -> None:
    given = {"left": mx.nd.array(DENSE), "right": mx.nd.array(OTHER.T)}
    net = mx.sym.dot(*(mx.sym.var(name) for name in given), forward_stype=asked)
    block = mx.gluon.SymbolBlock(net + 0, [mx.sym.var(name) for name in given])
    block.hybridize()
    product = net.bind(mx.cpu(), given).forward()[0]
    assert (product.stype, product.asnumpy().tolist()) == (asked, (DENSE @ OTHER.T).tolist())
    assert block(*given.values()).asnumpy().tolist() == product.asnumpy().tolist()
    into = mx.nd.zeros((3, 3))
    mx.nd.dot(*given.values(), forward_stype=asked, out=into)
    assert (into.stype, into.asnumpy().tolist()) == ("default", product.asnumpy().tolist())
    with pytest.raises(mx.MXNetError, match="a csr array has two axes"):
        mx.nd.dot(given["left"][0], given["left"][0], forward_stype="csr").wait_to_read()


def test_products_of_whole_numbers_are_exact(mx) -> None:
    a, b = DENSE.astype("int64") * 1000003, FULL.astype("int64").T.copy()
    product = mx.nd.dot(mx.nd.array(a, dtype="int64").tostype("csr"), mx.nd.array(b, dtype="int64"))
    assert product.dtype is np.int64 and np.array_equal(product.asnumpy(), a @ b)


def test_a_transposed_product_stores_the_rows_that_columns_name(mx) -> None:
    product = mx.nd.dot(stored(mx, DENSE, "csr"), mx.nd.array(OTHER), transpose_a=True)
    assert product.indices.asnumpy().tolist() == [0, 1, 2, 3]
    product = mx.nd.dot(stored(mx, DENSE, "csr"), stored(mx, OTHER, "row_sparse"), transpose_a=True)
    assert parts(product) == ["row_sparse", [[5, 0, 0, -2], [10, 0, 0, -4]], [1, 3]]


def test_a_product_by_a_transposed_csr_matrix_is_stored_as_csr(mx, quiet) -> None:
    left, right = np.array([[1, 0, 2], [0, 0, 0]], "f4"), np.array([[0, 1, 0], [0, 0, 0], [2, 0, 3]], "f4")
    given = {"left": mx.nd.array(left), "right": stored(mx, right, "csr")}
    names = [mx.sym.var(name) for name in given]
    for asked, made in ((None, "csr"), ("csr", "csr"), ("default", "default"), ("row_sparse", "row_sparse")):
        net = mx.sym.dot(*names, transpose_b=True, forward_stype=asked)
        for product in (
            mx.nd.dot(*given.values(), transpose_b=True, forward_stype=asked),
            net.bind(mx.cpu(), given).forward()[0],
        ):
            assert (product.stype, product.asnumpy().tolist()) == (made, (left @ right.T).tolist()), asked
    assert mx.nd.dot(*given.values(), transpose_b=True).indices.asnumpy().tolist() == [2]


def test_what_is_damaged_is_an_error_wherever_it_is_used(mx, quiet) -> None:
    bad = [
        mx.nd.sparse.csr_matrix(([7, 8, 9], [0, 2, 1], [0, 5, 2, 3]), shape=(3, 4)),
        mx.nd.sparse.csr_matrix(([7, 8, 9], [2, 1, 1], [0, 2, 2, 3]), shape=(3, 4)),
        mx.nd.sparse.csr_matrix(([7, 8, 9], [1, 2, 4], [0, 2, 2, 3]), shape=(3, 4)),
        mx.nd.sparse.csr_matrix(([7, 8, 9], [1, 2, -1], [0, 2, 2, 3]), shape=(3, 4)),
        mx.nd.sparse.csr_matrix(([7, 8, 9], [1, 2, 1], [0, 2, 2, 2**62]), shape=(3, 4)),
        mx.nd.sparse.csr_matrix(([7, 8], [1, 2, 1], [0, 2, 2, 3]), shape=(3, 4)),
        mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [1, 4]), shape=(3, 2)),
        mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [1, -2]), shape=(3, 2)),
        mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [1, 0]), shape=(3, 2)),
    ]
    uses = [
        lambda array: array.check_format(),
        lambda array: array.asnumpy(),
        lambda array: array.data,
        lambda array: (array * 2).wait_to_read(),
        lambda array: mx.nd.exp(array).asnumpy(),
    ]
    for array, use in itertools.product(bad, uses):
        with pytest.raises(mx.base.MXNetError, match=r"row|column|values"):
            use(array)
    good = stored(mx, DENSE, "csr")
    good.copyto(bad[0])
    assert parts(bad[0]) == CSR
    with pytest.raises(mx.base.MXNetError, match="row 7 is not in the array"):
        stored(mx, DENSE, "row_sparse").retain(mx.nd.array([1, 7])).asnumpy()


def test_retain_of_an_array_without_rows_stores_none(mx) -> None:
    kept = mx.nd.sparse.zeros("row_sparse", (3, 2)).retain(mx.nd.array([1]))
    assert parts(kept) == ["row_sparse", [], []] and kept.asnumpy().tolist() == [[0, 0]] * 3


def test_operators_without_a_kernel_get_dense_copies_and_warn_once(mx, monkeypatch) -> None:
    csr = stored(mx, DENSE, "csr")
    monkeypatch.setattr(sys.modules["mxrt.ndarray._sparse_arrays"], "_WARNED", {})
    with pytest.warns(mx.base.MXNetRuntimeWarning, match="operator = exp\ninput storage types = \\[csr, \\]"):
        assert np.allclose(mx.nd.exp(csr).asnumpy(), np.exp(DENSE), rtol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mx.nd.exp(csr).wait_to_read()
        (csr + 1).wait_to_read()
        (csr + mx.nd.array(FULL)).wait_to_read()


def test_a_variable_hides_the_warnings_of_dense_copies() -> None:
    code = """
    import json, warnings
    import mxrt as mx
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        mx.nd.exp(mx.nd.ones((2, 2)).tostype("csr")).wait_to_read()
    print(json.dumps(len(found)))
    """
    for value, warned in (("0", 0), ("1", 1)):
        assert last_json(run_python(code, env={"MXNET_STORAGE_FALLBACK_LOG_VERBOSE": value})) == warned


def test_results_are_stored_as_the_arrays_of_out_are(mx) -> None:
    for stype in ("csr", "row_sparse"):
        out = mx.nd.sparse.zeros(stype, (3, 4))
        assert mx.nd.abs(mx.nd.array(DENSE), out=out) is out
        assert out.stype == stype and np.array_equal(out.asnumpy(), abs(DENSE))
        dense = mx.nd.zeros((3, 4))
        mx.nd.square(stored(mx, DENSE, stype), out=dense)
        assert np.array_equal(dense.asnumpy(), DENSE**2)


def test_lookups_and_layers_read_what_is_stored(mx) -> None:
    table = stored(mx, DENSE, "row_sparse")
    found = mx.nd.Embedding(mx.nd.array([2, 1, 0]), table, input_dim=3, output_dim=4)
    assert np.array_equal(found.asnumpy(), DENSE[[2, 1, 0]])
    weight, bias = np.arange(8, dtype="float32").reshape(2, 4), np.array([10, 20], "float32")
    csr = stored(mx, DENSE, "csr")
    layer = mx.nd.FullyConnected(csr, mx.nd.array(weight), mx.nd.array(bias), num_hidden=2)
    assert np.array_equal(layer.asnumpy(), DENSE @ weight.T + bias)
    assert parts(mx.nd.take(csr, mx.nd.array([2, 0])))[1:] == [[3, -4, 1, 2], [0, 2, 1, 3], [0, 2, 4]]
    chosen = mx.nd.where(csr, mx.nd.array(FULL), mx.nd.array(-FULL))
    assert np.array_equal(chosen.asnumpy(), np.where(DENSE != 0, FULL, -FULL))
    assert parts(mx.nd._internal._scatter_plus_scalar(csr, scalar=2.0))[1] == [3, 4, 5, -2]
    assert parts(mx.nd._internal._square_sum(table, axis=1, keepdims=True)) == ["row_sparse", [[5], [25]], [0, 2]]
    assert mx.nd.contrib.getnnz(csr, axis=0).asnumpy().tolist() == [1, 1, 1, 1]


def test_files_hold_sparse_arrays(mx, tmp_path) -> None:
    path = str(tmp_path / "sparse.params")
    mx.nd.save(path, {"c": stored(mx, DENSE, "csr"), "r": stored(mx, DENSE, "row_sparse"), "d": mx.nd.array(DENSE)})
    loaded = mx.nd.load(path)
    assert [parts(loaded["c"]), parts(loaded["r"])] == [CSR, ROWS]
    assert loaded["d"].stype == "default"


#: ``mx.nd.save(path, {"c": csr, "r": row_sparse})`` of the same matrix, written by MXNet 1.9.1.
RECORDED = bytes.fromhex(
    "120100000000000000000000000000000200000000000000"
    "c9fa93f9020000000100000004000000000000000200000003000000000000000400000000000000"
    "010000000000000000000000060000000100000004000000000000000600000001000000040000000000 0000"
    "0000803f0000004000004040000080c0"
    "0000000000000000020000000000000002000000000000000400000000000000"
    "0100000000000000030000000000000000000000000000000200000000000000"
    "c9fa93f901000000020000000200000000000000040000000000000002000000030000000000000004000000 00000000"
    "0100000000000000000000000600000001000000020000000000 0000"
    "000000000000803f00000000000000400000404000000000000080c000000000"
    "00000000000000000200000000000000"
    "0200000000000000010000000000000063010000000000000072"
)


def test_files_are_those_of_mxnet_byte_for_byte(mx, tmp_path) -> None:
    loaded = mx.nd.load_frombuffer(RECORDED)
    assert [parts(loaded["c"]), parts(loaded["r"])] == [CSR, ROWS]
    path = tmp_path / "sparse.params"
    mx.nd.save(str(path), loaded)
    assert path.read_bytes() == RECORDED


def test_a_file_of_an_array_that_was_still_being_computed_is_read(mx) -> None:
    """MXNet writes its storage shape, here (0, 1), before the array is computed."""
    stored_shape = bytes.fromhex("c9fa93f901000000020000000200000000000000 0400000000000000")
    stale = bytes.fromhex("c9fa93f901000000020000000000000000000000 0100000000000000")
    assert RECORDED.count(stored_shape) == 1
    assert parts(mx.nd.load_frombuffer(RECORDED.replace(stored_shape, stale))["r"]) == ROWS


def test_files_with_damaged_positions_are_errors_that_name_the_array(mx) -> None:
    rows = bytes.fromhex("000000000000000002000000000000000200000000000000010000000000000063")
    columns = bytes.fromhex("0100000000000000030000000000000000000000000000000200000000000000")
    pointers = bytes.fromhex("0000000000000000020000000000000002000000000000000400000000000000")
    for part, at, number, words in (
        (rows, 8, 3, "array 'r': row_sparse: row 3"),
        (rows, 0, -1, "array 'r': row_sparse: row -1"),
        (rows, 0, 2, "array 'r': row_sparse: row 2"),
        (columns, 24, 4, "array 'c': csr: column 4"),
        (columns, 0, 3, "array 'c': csr: column 3"),
        (pointers, 0, 1, "array 'c': csr: the first row pointer is 1"),
        (pointers, 8, 5, "array 'c': csr: row pointer 5 of row 1"),
    ):
        assert RECORDED.count(part) == 1
        damaged = part[:at] + number.to_bytes(8, "little", signed=True) + part[at + 8 :]
        with pytest.raises(mx.base.MXNetDataError, match=words):
            mx.nd.load_frombuffer(RECORDED.replace(part, damaged))


def test_a_graph_takes_sparse_arrays_from_many_threads(mx) -> None:
    """A factorisation machine; the reference is its formula in numpy."""
    x, v, w = mx.sym.var("data", stype="csr"), mx.sym.var("v", stype="row_sparse"), mx.sym.var("w")
    linear = mx.sym.dot(x, w)
    pairs = mx.sym.square(mx.sym.dot(x, v)) - mx.sym.dot(mx.sym.square(x), mx.sym.square(v))
    net = mx.sym.broadcast_add(linear, 0.5 * mx.sym.sum(pairs, axis=1, keepdims=True))
    rng = np.random.default_rng(7)
    factors, weights = rng.normal(size=(50, 8)).astype("float32"), rng.normal(size=(50, 1)).astype("float32")
    args = {"v": mx.nd.array(factors).tostype("row_sparse"), "w": mx.nd.array(weights)}

    def expected(data):
        squares = (data @ factors) ** 2 - (data**2) @ (factors**2)
        return data @ weights + 0.5 * squares.sum(axis=1, keepdims=True)

    failures = []

    def call(seed: int) -> None:
        data = np.random.default_rng(seed).normal(size=(6, 50)).astype("float32")
        data[np.random.default_rng(seed + 100).random(data.shape) < 0.9] = 0
        executor = net.bind(mx.cpu(), {**args, "data": mx.nd.array(data).tostype("csr")}, grad_req="null")
        for _ in range(5):
            found = executor.forward(is_train=False)[0].asnumpy()
            if not np.allclose(found, expected(data), rtol=1e-4, atol=1e-4):
                failures.append((seed, found, expected(data)))

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_calls_of_one_graph_may_differ_in_storage_shape_and_content(mx, quiet) -> None:
    x, w = mx.sym.var("x"), mx.sym.var("w")
    net = mx.gluon.SymbolBlock(mx.sym.dot(mx.sym.square(x), w) + 1, x)
    weight = FULL.reshape(4, 3)
    net.collect_params()["w"].shape = weight.shape
    net.initialize(mx.init.Constant(mx.nd.array(weight)))
    calls = [(DENSE, "csr"), (DENSE[:1], "csr"), (OTHER, "csr"), (DENSE, "default"), (DENSE[:1], "default")]
    # Each call comes after each other one.
    for one, other in itertools.product(calls, repeat=2):
        for values, stype in (one, other):
            made = net(stored(mx, values, stype))
            np.testing.assert_array_equal(made.asnumpy(), values**2 @ weight + 1)


def test_rows_of_a_power_law_store_twice_as_many_values_as_those_before(mx) -> None:
    matrix, _ = mx.test_utils.rand_sparse_ndarray((5, 16), "csr", density=0.5, distribution="powerlaw")
    assert np.diff(matrix.indptr.asnumpy()).tolist() == [2, 4, 8, 16, 10]
    assert matrix.data.asnumpy().min() > 1
    with pytest.raises(ValueError, match="density"):
        mx.test_utils.rand_sparse_ndarray((5, 16), "csr", density=0.1, distribution="powerlaw")
    with pytest.raises(AssertionError, match="powerlaw"):
        mx.test_utils.rand_sparse_ndarray((5, 16), "row_sparse", density=0.5, distribution="powerlaw")
    with pytest.raises(AssertionError, match="unknown storage type 'dense'; expected csr or row_sparse"):
        mx.test_utils.rand_sparse_ndarray((5, 16), "dense")


def test_random_sparse_arrays_are_evenly_distributed_from_zero(mx) -> None:
    for kind in ("csr", "row_sparse"):
        values = mx.test_utils.rand_ndarray((200, 20), kind, density=0.9).asnumpy()
        stored = values[values != 0]
        assert stored.min() > 0 and 0.9 < stored.max() < 1 and 0.45 < stored.mean() < 0.55
    np.random.seed(5)
    rows, (stored, numbers) = mx.test_utils.rand_sparse_ndarray((4, 2), "row_sparse", density=0.7)
    np.random.seed(5)
    chosen = np.flatnonzero(np.random.rand(4) < 0.7)
    assert numbers.tolist() == chosen.tolist()
    assert np.array_equal(stored, np.random.rand(len(chosen), 2).astype("float32"))
    assert np.array_equal(rows.asnumpy()[chosen], stored)


def test_rows_to_store_may_be_none_or_fractions(mx) -> None:
    none = mx.test_utils.rand_sparse_ndarray((3, 2), "row_sparse", rsp_indices=[])[0]
    assert parts(none) == ["row_sparse", [], []]
    some = mx.test_utils.rand_sparse_ndarray((7, 1), "row_sparse", rsp_indices=[3.5, 3, 0], data_init=2)[0]
    assert parts(some) == ["row_sparse", [[2], [2]], [0, 3]]


def test_a_quadratic_function_without_a_constant_keeps_a_csr_matrix(mx) -> None:
    matrix = stored(mx, DENSE, "csr")
    found = mx.nd.contrib.quadratic(matrix, a=2, b=3, c=0)
    assert parts(found) == ["csr", [5, 14, 27, 20], [1, 3, 0, 2], [0, 2, 2, 4]]
    with pytest.warns(mx.base.MXNetWarning):
        dense = mx.nd.contrib.quadratic(matrix, a=2, b=3, c=1)
    assert parts(dense) == ["default", (2 * DENSE**2 + 3 * DENSE + 1).tolist()]


def test_stored_rows_are_divided_by_stored_rows(mx) -> None:
    rows = mx.nd.sparse.row_sparse_array(([[2, 4], [6, 9]], [0, 2]), shape=(4, 2))
    divisor = mx.nd.sparse.row_sparse_array(([[1, 2], [5, 5], [2, 3]], [0, 1, 2]), shape=(4, 2))
    found = mx.nd._internal._scatter_elemwise_div(rows, divisor)
    assert parts(found) == ["row_sparse", [[2, 2], [3, 3]], [0, 2]]
    fewer = mx.nd.sparse.row_sparse_array(([[1, 2]], [0]), shape=(4, 2))
    found = mx.nd._internal._scatter_elemwise_div(rows, fewer)
    assert parts(found) == ["row_sparse", [[2, 2], [np.inf, np.inf]], [0, 2]]
    matrix = stored(mx, [[1, 2], [5, 5], [2, 0], [0, 0]], "csr")
    found = mx.nd._internal._scatter_elemwise_div(rows, matrix)
    assert parts(found) == ["row_sparse", [[2, 2], [3, np.inf]], [0, 2]]
