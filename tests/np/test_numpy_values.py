"""Numbers and element types that MXNet 1.9.1 gives, where mxrt once gave others or refused."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

INT32, INT64 = np.iinfo("int32").min, np.iinfo("int64").min


@pytest.fixture
def interface(mx: Any) -> Any:
    """The interface of NumPy, with its shapes."""
    mx.npx.set_np()
    yield mx.np
    mx.npx.reset_np()


def deficient(n: int) -> list[np.ndarray]:
    """Matrices without full rank."""
    i, j = np.indices((n, n))
    return [np.ones((n, n)), i * j, i * n + j, (i // 2 + 1) * (j // 2 + 1), i // 2 == j // 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 7, 11, 33])
def test_matrices_without_full_rank_have_all_factors(interface: Any, dtype: str, n: int) -> None:
    near = 1e-4 if dtype == "float32" else 1e-10
    for a in deficient(n):
        a = a.astype(dtype)
        x = interface.array(a, dtype=dtype)
        scale = float(np.abs(a).sum())
        u, values, v = (part.asnumpy() for part in interface.linalg.svd(x))
        np.testing.assert_allclose((u * values) @ v, a, atol=near * scale)
        wanted = np.linalg.svd(a.astype("float64"), compute_uv=False)
        np.testing.assert_allclose(values, wanted, atol=near * scale)
        assert abs(float(interface.linalg.norm(x, ord="nuc").asnumpy()) - wanted.sum()) <= near * scale
        assert abs(float(interface.linalg.norm(x, ord=2).asnumpy()) - wanted[0]) <= near * scale
        inverse = interface.linalg.pinv(x, rcond=1e-5).asnumpy()
        np.testing.assert_allclose(a @ inverse @ a, a, atol=near * scale)
        # MXNet refuses some of these for their rounding.
        real = np.sort(interface.linalg.eigvals(x).asnumpy())
        np.testing.assert_allclose(real, np.sort(np.linalg.eigvals(a.astype("float64")).real), atol=near * scale)
        symmetric = interface.array(a + a.T, dtype=dtype)
        found = interface.linalg.eigvalsh(symmetric).asnumpy()
        np.testing.assert_allclose(found, np.linalg.eigvalsh((a + a.T).astype("float64")), atol=near * scale)


def test_eigenvalues_of_a_symmetric_matrix_come_in_the_order_of_mxnet(interface: Any) -> None:
    """The general method has an order of its own; values of `eigh` ascend."""
    for matrix, wanted in (([[2, 0], [0, 1]], [2, 1]), ([[1, 2], [2, 1]], [3, -1])):
        given = interface.array(matrix, dtype="float32")
        np.testing.assert_allclose(interface.linalg.eig(given)[0].asnumpy(), wanted, 1e-6)
        np.testing.assert_allclose(interface.linalg.eigvals(given).asnumpy(), wanted, 1e-6)
        np.testing.assert_allclose(interface.linalg.eigh(given)[0].asnumpy(), sorted(wanted), 1e-6)


@pytest.mark.parametrize(
    ("dtype", "values", "wanted"),
    [
        ("bool", [True, False], True),
        ("bool", [False, False], False),
        ("int8", [1, -2, 3], True),
        ("int32", [1, 0, 0], True),
        ("int32", [1, -1], False),
        ("float32", [0.25, -0.25], False),
    ],
)
def test_a_mean_as_bool_is_that_of_mxnet(interface: Any, dtype: str, values: Any, wanted: bool) -> None:
    mean = interface.mean(interface.array(values, dtype=dtype), dtype="bool")
    assert (mean.asnumpy().dtype, bool(mean.asnumpy())) == (np.dtype("bool"), wanted)


@pytest.mark.parametrize(
    ("dtype", "values", "power", "wanted"),
    [
        ("bool", [True, False], 300, [INT64, 0]),
        ("int32", [3, 0], 300, [INT32, 0]),
        ("int64", [3, 0], 300, [INT64, 0]),
        ("float16", [3, 0], 300, [np.inf, 0]),
        ("float32", [3, 0], 300, [np.inf, np.nan]),
    ],
)
def test_powers_of_two_are_those_of_mxnet(interface: Any, dtype: str, values: Any, power: int, wanted: Any) -> None:
    got = interface.ldexp(interface.array(values, dtype=dtype), power).asnumpy()
    np.testing.assert_array_equal(got.astype("float64"), np.array(wanted, "float64"))


def test_the_norm_of_bool_is_bool(interface: Any) -> None:
    truths = interface.array([[True, True], [False, False]], dtype="bool")
    assert interface.linalg.norm(truths).asnumpy().tolist() is True
    assert interface.linalg.norm(truths, axis=1).asnumpy().tolist() == [True, False]


def test_many_trials_take_no_longer_than_few(interface: Any) -> None:
    begun = time.monotonic()
    counts = interface.random.multinomial(10**9, [0.25, 0.75]).asnumpy()
    assert time.monotonic() - begun < 5
    assert counts.sum() == 10**9 and abs(counts[0] - 25 * 10**7) < 10**5


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_draws_with_arrays_as_parameters_are_float32(mx: Any, dtype: str) -> None:
    one, symbol = mx.nd.ones(2, dtype=dtype), [mx.sym.var("a"), mx.sym.var("b")]
    for name in ("uniform", "normal", "gamma", "negative_binomial", "generalized_negative_binomial"):
        assert getattr(mx.nd.random, name)(one, one).dtype is np.float32, name
        assert getattr(mx.nd, f"sample_{name}")(one, one).dtype is np.float32, name
        assert getattr(mx.nd, f"sample_{name}")(one, one, dtype="float64").dtype is np.float64, name
        made = getattr(mx.sym, f"sample_{name}")(*symbol)
        assert made.infer_type(a=dtype)[1] == [np.float32], name
    for name in ("poisson", "exponential"):
        assert getattr(mx.nd.random, name)(one).dtype is np.float32, name


def test_an_image_may_have_another_type_than_the_one_it_is_resized_like(mx: Any) -> None:
    image, like = mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 2, 2))
    for dtype in ("float16", "float64", "int32"):
        assert mx.nd.contrib.BilinearResize2D(image, like.astype(dtype), mode="like").dtype is np.float32
    assert mx.nd.contrib.BilinearResize2D(image.astype("float64"), like, mode="like").dtype is np.float64


def test_none_is_a_tuple_in_calls_and_in_files(mx: Any) -> None:
    a, m = mx.nd.arange(16).reshape((1, 1, 4, 4)), mx.nd.arange(12).reshape((3, 4))
    assert mx.nd.slice_like(m, mx.nd.ones((2, 2)), axes=None).shape == (3, 4)
    assert mx.nd.tile(m, reps=None).shape == (3, 4)
    assert mx.nd.broadcast_axis(m, axis=None, size=None).shape == (3, 4)
    assert mx.nd.Dropout(m, axes=None).shape == (3, 4)
    assert mx.nd.contrib.AdaptiveAvgPooling2D(a, output_size=None).asscalar() == 7.5
    made = mx.sym.Pooling(mx.sym.var("data"), kernel=None, global_pool=True, pool_type="max")
    text = made.tojson()
    assert '"kernel": "None"' in text
    assert mx.sym.load_json(text).eval(data=a)[0].asscalar() == 15
    with pytest.raises(mx.MXNetError, match="kernel"):
        mx.nd.Pooling(a, kernel=None)


def test_errors_of_draws_and_images_name_what_there_is(mx: Any) -> None:
    with pytest.raises(mx.MXNetError, match=r"lam must be 0 or more, got -1 \["):
        mx.nd.random.poisson(lam=-1).wait_to_read()
    with pytest.raises(mx.MXNetError, match=r"lam must be positive, got -1 \["):
        mx.nd.random.exponential(scale=-1).wait_to_read()
    with pytest.raises(mx.MXNetError, match="height of 1000000000000 pixels; expected 1 to 2147483647"):
        mx.nd.image.resize(mx.nd.ones((4, 6, 3)), size=(10**12, 10**12))
