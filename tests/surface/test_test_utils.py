"""Helpers of tests that programs take from MXNet: ``mx.test_utils``."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from support import run_python


def test_comparisons_say_where_arrays_differ(mx) -> None:
    utils = mx.test_utils
    a = np.arange(6, dtype="float32").reshape(2, 3)
    b = a.copy()
    b[1, 2] += 0.5
    utils.assert_almost_equal(mx.nd.array(a), a + 1e-6)
    with pytest.raises(AssertionError, match=r"maximum error: \(1, 2\), left=5\.0+, right=5\.50000000"):
        utils.assert_almost_equal(mx.nd.array(a), mx.nd.array(b), names=("left", "right"))
    with pytest.raises(AssertionError, match="cannot be compared"):
        utils.assert_almost_equal(a, np.zeros(4))
    utils.assert_almost_equal_with_err(a, b, etol=0.2)
    utils.assert_almost_equal(a, b, rtol=0.2)
    assert utils.almost_equal(a, b, rtol=0.2)
    assert not utils.almost_equal(a, b)
    utils.assert_almost_equal_ignore_nan(np.array([1, np.nan]), np.array([1.0, 2.0]))
    assert utils.same(a, a.copy())
    assert not utils.same(a, b)
    # float16 against float32: the tolerance of the less exact one.
    utils.assert_almost_equal(np.array([1.0], "float16"), np.array([1.05], "float32"))
    shape = utils.rand_shape_nd(3, 4)
    assert utils.rand_ndarray(shape).shape == shape
    assert all(1 <= extent <= 4 for extent in shape)


def test_forward_checks_run_a_graph(mx) -> None:
    utils = mx.test_utils
    a, b = mx.sym.var("a"), mx.sym.var("b")
    left, right = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])
    utils.check_symbolic_forward(a * b, [left, right], [left * right])
    product = a * b
    utils.check_symbolic_forward(product, {"a": left, "b": right}, {product.list_outputs()[0]: left * right})
    with pytest.raises(AssertionError, match="EXPECTED_"):
        utils.check_symbolic_forward(a - b, [left, right], [left])
    assert utils.simple_forward(a + b, a=left, b=right).tolist() == [[4, 7]]
    settings = [{"ctx": mx.cpu(), "a": (2, 3), "type_dict": {"a": dtype}} for dtype in ("float32", "float64")]
    utils.check_consistency(mx.sym.exp(a), settings)
    assert utils.same_symbol_structure(a + b, mx.sym.var("x") + mx.sym.var("y"))
    assert not utils.same_symbol_structure(a + b, a - b)
    for refused in (utils.check_numeric_gradient, utils.check_symbolic_backward, utils.numeric_grad):
        with pytest.raises(mx.base.TrainingNotSupportedError):
            refused(a * b, [left, right])


def test_a_flaky_test_is_tried_again(mx) -> None:
    tries = []

    @mx.test_utils.retry(3)
    def passes_in_the_end():
        tries.append(1)
        assert len(tries) == 2

    passes_in_the_end()
    assert len(tries) == 2
    with mx.test_utils.environment("MXRT_OF_A_TEST", "1"):
        assert mx.util.getenv("MXRT_OF_A_TEST") == "1"
    assert mx.util.getenv("MXRT_OF_A_TEST") is None


def test_random_numbers_are_checked_against_their_distribution(mx) -> None:
    pytest.importorskip("scipy")
    utils = mx.test_utils
    rng = np.random.RandomState(2)
    buckets, probs = utils.gen_buckets_probs_with_ppf(lambda part: 2 * part, 4)
    assert (buckets, probs) == ([(0, 0.5), (0.5, 1), (1, 1.5), (1.5, 2)], [0.25] * 4)
    utils.verify_generator(lambda count: rng.uniform(0, 2, count), buckets, probs, nsamples=20000)
    with pytest.raises(AssertionError, match="Generator test fails"):
        utils.verify_generator(lambda count: rng.uniform(0, 1.9, count), buckets, probs, nsamples=20000)
    utils.verify_generator(lambda count: rng.randint(0, 3, count), [0, 1, 2], [1 / 3] * 3, nsamples=20000)
    assert utils.mean_check(lambda count: rng.normal(1, 2, count), 1, 2, 20000)
    assert not utils.mean_check(lambda count: rng.normal(1.2, 2, count), 1, 2, 20000)
    assert utils.var_check(lambda count: rng.normal(1, 2, count), 2, 20000)
    assert not utils.var_check(lambda count: rng.normal(1, 2.2, count), 2, 20000)


def test_what_is_imported_with_a_star_is_what_mxnets_tests_use(mx) -> None:
    scope: dict = {}
    exec("from mxrt.test_utils import *", scope)
    assert scope["mx"] is mx
    assert scope["np"] is np
    assert {"os", "sys", "npt", "Context", "assert_almost_equal"} <= set(scope)


def test_errors_of_a_child_are_not_shown_where_they_are_discarded(mx) -> None:
    child = run_python("""
        import os
        import mxrt
        with mxrt.test_utils.discard_stderr():
            os.write(2, b"unseen")
        os.write(2, b"seen")
    """)
    assert (child.returncode, child.stderr) == (0, "seen")


def test_small_helpers_of_tests(mx) -> None:
    utils = mx.test_utils
    rng = np.random.RandomState(1)
    summed = utils.collapse_sum_like(rng.rand(2, 3, 4), (3, 1))
    assert summed.shape == (3, 1)
    np.testing.assert_allclose(summed[:, 0], np.random.RandomState(1).rand(2, 3, 4).sum(axis=(0, 2)))
    with pytest.raises(AssertionError, match="broadcast"):
        utils.collapse_sum_like(rng.rand(2, 3), (2,))
    again = utils.DummyIter(mx.io.NDArrayIter(np.arange(4.0), batch_size=2))
    assert [next(again).data[0].asnumpy().tolist() for _ in range(3)] == [[0, 1]] * 3
    half = mx.nd.ones((2,), dtype="float16")
    assert utils.effective_dtype(half) == np.float16
    assert utils.get_tolerance(half, None, utils.default_rtols()) == 1e-2
    assert utils.get_tolerance(half, {np.dtype("float16"): 0.5}, {}) == 0.5
    assert utils.get_identity_mat_batch(2).asnumpy().tolist() == [[[1, 0], [0, 1]]] * 2


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5, 5), (0, 2, 2), (2, 0, 0)])
def test_matrices_have_the_eigenvalues_that_their_names_say(mx, shape) -> None:
    utils = mx.test_utils
    made, symmetric = utils.new_matrix_with_real_eigvals_nd(shape), utils.new_sym_matrix_with_real_eigvals_nd(shape)
    assert made.shape == symmetric.shape == shape
    assert np.array_equal(symmetric, symmetric.swapaxes(-1, -2))
    for place in np.ndindex(*shape[:-2]):
        for matrix in (made[place], symmetric[place]):
            found = np.linalg.eigvals(matrix)
            assert np.abs(found.imag).max(initial=0) < 1e-6 and np.abs(found.real).max(initial=0) < 10 + 1e-6, found
    assert utils.new_matrix_with_real_eigvals_2d(3).shape == (3, 3)
    basis = utils.new_orthonormal_matrix_2d(6)
    np.testing.assert_allclose(basis @ basis.T, np.eye(6), atol=1e-12)


def test_columns_of_a_csr_matrix_are_shuffled_within_rows(mx) -> None:
    csr = SimpleNamespace(indptr=np.array([0, 0, 40, 43]), indices=np.arange(43))
    mx.test_utils.shuffle_csr_column_indices(csr)
    assert sorted(csr.indices[:40]) == list(range(40)) and sorted(csr.indices[40:]) == [40, 41, 42]
    assert list(csr.indices[:40]) != list(range(40))


def test_a_block_is_compared_with_itself_hybridized_and_with_numpy(mx) -> None:
    check, nn = mx.test_utils.check_gluon_hybridize_consistency, mx.gluon.nn
    data = [mx.nd.array([[1, -2, 3]])]
    check(lambda prefix: nn.Dense(4, prefix=prefix), data, test_grad=False)
    check(lambda prefix: nn.HybridLambda("relu", prefix=prefix), data, lambda x: np.maximum(x, 0), test_grad=False)
    with pytest.raises(AssertionError, match="numpy_func"):
        check(lambda prefix: nn.HybridLambda("relu", prefix=prefix), data, lambda x: x, test_grad=False)

    class Undecided(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x + (1 if F is mx.nd else 0)

    with pytest.raises(AssertionError, match="hybridized"):
        check(Undecided, data, test_grad=False)
    with pytest.raises(mx.base.TrainingNotSupportedError, match="test_grad"):
        check(lambda prefix: nn.Dense(4, prefix=prefix), data)
