"""Whole numbers of Python that no number of the library holds, and arrays without elements."""

from __future__ import annotations

import numpy as np
import pytest

HUGE = 2**70

#: What is asked for, the class of the error, and what its text names.
HUGE_CASES = {
    "set_bulk_size": (lambda mx: mx.engine.set_bulk_size(HUGE), ValueError, "set_bulk_size"),
    "bulk": (lambda mx: mx.engine.bulk(HUGE).__enter__(), ValueError, "set_bulk_size"),
    "zeros": (lambda mx: mx.nd.zeros((2, HUGE)), ValueError, "_zeros: the shape"),
    "ones": (lambda mx: mx.nd.ones(HUGE), ValueError, "_ones: the shape"),
    "full": (lambda mx: mx.nd.full((HUGE,), 1), ValueError, "_full: the shape"),
    "empty": (lambda mx: mx.nd.empty((HUGE,)), ValueError, "empty: the shape"),
    "parameter": (lambda mx: mx.gluon.Parameter("w", shape=(HUGE,)).initialize(), ValueError, "the shape"),
    "csr": (lambda mx: mx.nd.sparse.zeros("csr", (HUGE, 2)), ValueError, "sparse: the shape"),
    "index": (lambda mx: mx.nd.ones((2, 3))[[HUGE]], IndexError, "an index"),
    "negative index": (lambda mx: mx.nd.ones((2, 3))[[-HUGE]], IndexError, "an index"),
    "positions": (
        lambda mx: mx.nd.sparse.row_sparse_array(([[1.0]], [HUGE]), shape=(4, 1)),
        ValueError,
        "row numbers|indices",
    ),
    "reshape": (lambda mx: mx.nd.ones((2, 3)).reshape((HUGE, -1)), ValueError, "eshape"),
    "moveaxis": (lambda mx: mx.nd.moveaxis(mx.nd.ones((2, 3)), HUGE, 0), IndexError, "moveaxis"),
    "repeat": (lambda mx: mx.nd.arange(0, 1, 1, HUGE), ValueError, "repeat"),
    "context": (lambda mx: mx.cpu(HUGE), ValueError, "device_id"),
    "batch_size": (lambda mx: mx.io.NDArrayIter(np.zeros((4, 2)), batch_size=HUGE), ValueError, "batch_size"),
    "infer_shape": (lambda mx: (mx.sym.var("x") + 1).infer_shape(x=(HUGE, 2)), ValueError, "x: the shape"),
    "bind": (lambda mx: (mx.sym.var("x") + 1).simple_bind(mx.cpu(), x=(-HUGE,)), ValueError, "x: the shape"),
}


@pytest.mark.parametrize("case", HUGE_CASES)
def test_a_number_that_is_too_large_is_an_error_that_names_the_argument(mx, case: str) -> None:
    ask, kind, text = HUGE_CASES[case]
    with pytest.raises(mx.MXNetError, match=text) as raised:
        ask(mx)
    assert isinstance(raised.value, kind)


def test_a_reshape_whose_product_wraps_around_is_refused(mx) -> None:
    with pytest.raises(mx.MXNetError, match="reshape"):
        mx.nd.empty((0,)).reshape((2**32, 2**32))


@pytest.mark.parametrize("shape", [(0,), 0, (2, 0)])
def test_full_makes_arrays_without_elements(mx, shape) -> None:
    made = mx.nd.full(shape, 7)
    assert made.shape == (shape if isinstance(shape, tuple) else (shape,))
    assert made.size == 0
    # The operators of zeros and ones infer shapes, where 0 is unknown.
    with pytest.raises(mx.MXNetError, match="inferring shapes failed"):
        mx.nd.zeros(shape)


def test_full_of_no_axes_needs_shapes_of_numpy(mx) -> None:
    with pytest.raises(mx.MXNetError, match="_full inferring shapes failed"):
        mx.nd.full((), 7)
    with mx.util.np_shape(True):
        assert mx.nd.full((), 7).asscalar() == 7


RANGES = [(5,), (0, 5), (2, 10.5, 0.7), (3, -2, -0.9), (1.5, 9, 2.5), (0, 4, 1, 3)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int32", "int64", "uint16", None])
def test_ranges_are_those_of_numpy(mx, dtype) -> None:
    name = dtype or "float64"
    for given in RANGES:
        start, stop, step, repeat = ((0, given[0]) if len(given) == 1 else given[:2]) + (*given[2:], 1, 1)[:2]
        whole = (np.trunc(start), np.trunc(step)) if "int" in name else (start, step)
        count = np.arange(np.ceil((stop - start) / step))
        want = np.repeat(whole[0] + count * whole[1], repeat).astype(name)
        found = mx.nd.arange(*given[:2], *given[2:], dtype=dtype)
        assert found.dtype == np.dtype(name)
        np.testing.assert_array_equal(found.asnumpy(), want)
    for num in (0, 1, 2, 17):
        for endpoint in (True, False):
            found = mx.nd.linspace(-1.5, 10, num, endpoint, dtype=dtype)
            np.testing.assert_array_equal(found.asnumpy(), np.linspace(-1.5, 10, num, endpoint).astype(name))
    for sides in ((0, 0, 0), (3, 0, 1), (2, 5, -1), (0, 4, 0)):
        np.testing.assert_array_equal(
            mx.nd.eye(*sides, dtype=dtype).asnumpy(), np.eye(sides[0], sides[1] or sides[0], sides[2])
        )


def test_ranges_are_made_on_the_device_that_is_asked_for(mx) -> None:
    for made in (mx.nd.arange(3, ctx=mx.cpu(2)), mx.nd.eye(2, ctx=mx.cpu(2)), mx.nd.linspace(0, 1, 3, ctx=mx.cpu(2))):
        assert made.context == mx.cpu(2)
    with mx.cpu(3):
        assert mx.nd.arange(3).context == mx.cpu(3)


def test_split_v2_says_what_is_wrong_with_positions_and_axes(mx) -> None:
    x = mx.nd.ones((2, 3))
    with pytest.raises(mx.MXNetError, match="negative position"):
        mx.nd.split_v2(x, (-1,))
    with pytest.raises(IndexError, match="axis 5 does not exist"):
        mx.nd.split_v2(x, 2, axis=5)
