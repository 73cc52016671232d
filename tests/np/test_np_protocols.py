"""NumPy's own functions on arrays of ``mx.np``: which MXNet computes, and which NumPy."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

# _NUMPY_ARRAY_UFUNC_LIST of MXNet 1.9.1, without `abs` and `bitwise_not`: NumPy's ufuncs have other
# names. `divide` is the new name of `true_divide`.
DISPATCHED = (
    "absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or bitwise_xor cbrt ceil "
    "copysign cos cosh degrees divide equal exp expm1 fabs floor greater greater_equal hypot invert lcm less "
    "less_equal log log10 log2 logical_not matmul maximum minimum mod multiply negative not_equal power reciprocal "
    "remainder rint sign sin sinh sqrt square subtract tan tanh true_divide trunc"
).split()


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def test_the_ufuncs_that_mxnet_computes_are_those_of_its_list(mx: Any) -> None:
    from mxrt.numpy import _protocols

    assert sorted(_protocols.UFUNCS) == DISPATCHED
    assert all(hasattr(mx.np, name) for name in DISPATCHED)


@pytest.mark.parametrize("name", ["log1p", "radians", "deg2rad", "rad2deg", "isnan", "isinf", "isfinite"])
@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float32", "float64"])
def test_other_ufuncs_give_the_values_and_types_of_numpy(mx: Any, name: str, dtype: str) -> None:
    values = onp.array([1, 2, 30], dtype)
    function = getattr(onp, name)
    found, expected = function(mx.np.array(values, dtype=dtype)), function(values)
    assert type(found) is mx.np.ndarray and found.dtype == expected.dtype
    onp.testing.assert_array_equal(found.asnumpy(), expected)
    single = function(mx.np.array(2, dtype=dtype))
    assert type(single) is type(function(onp.array(2, dtype)))


def test_options_of_numpy_work_where_numpy_computes(mx: Any) -> None:
    f = mx.np.array([0.5, 1.5, float("nan")])
    b = onp.array([True, False, True])
    whether = mx.np.ones(3, dtype=bool)
    assert onp.isnan(f, where=b, out=whether).tolist() == [False, True, True]
    assert onp.log1p(f, dtype="float64").dtype == "float64"
    onp.testing.assert_array_equal(onp.ldexp(f, mx.np.array([1, 2, 3], dtype="int32")).asnumpy(), [1, 6, onp.nan])
    out = mx.np.zeros(3)
    assert onp.log1p(f, out=out) is out
    onp.testing.assert_array_equal(out.asnumpy(), onp.log1p(f.asnumpy()))


def test_factors_are_those_of_numpy(mx: Any) -> None:
    values = onp.array([[2.0, 1.0], [1.0, 3.0], [0.0, 1.0]], "float32")
    u, s, v = onp.linalg.svd(mx.np.array(values))
    assert (u.shape, s.shape, v.shape) == ((3, 3), (2,), (2, 2))
    u, s, v = mx.np.linalg.svd(mx.np.array(values.T))
    assert (u.shape, s.shape, v.shape) == ((2, 2), (2,), (2, 3))
    square = mx.np.array(values[:2])
    assert type(onp.linalg.det(square)) is onp.float32
    onp.testing.assert_array_equal(onp.rot90(square).asnumpy(), onp.rot90(values[:2]))


def test_the_functions_that_mx_np_computes_are_listed(mx: Any) -> None:
    protocol = mx.numpy_dispatch_protocol
    assert set(DISPATCHED) == set(protocol._NUMPY_ARRAY_UFUNC_LIST)
    for name in protocol._NUMPY_ARRAY_FUNCTION_LIST:
        space, _, last = f"np.{name}".rpartition(".")
        assert callable(getattr(mx.np.linalg if space == "np.linalg" else mx.np, last)), name


def test_a_failing_function_of_a_protocol_is_named(mx: Any) -> None:
    @mx.numpy_dispatch_protocol.with_array_function_protocol
    def summed(x: Any) -> Any:
        assert type(onp.sum(x)) is mx.np.ndarray

    summed(mx.np.ones(3))
    with pytest.raises(RuntimeError, match="summed, which needs NumPy's array function protocol, failed"):
        summed(onp.ones(3))
