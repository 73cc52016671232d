"""Functions of ``mx.np`` on symbols, images, and what they say of bad arguments."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def computed(mx: Any, function: Callable[..., Any], *arrays: onp.ndarray) -> Any:
    """Result of a function of symbols for arrays, computed as a graph."""
    symbols = [mx.sym.var(f"data{i}").as_np_ndarray() for i in range(len(arrays))]
    made = function(mx.sym.np, *symbols)
    out = mx.gluon.SymbolBlock(made, symbols)(*[mx.np.array(one, dtype=one.dtype) for one in arrays])
    return [one.asnumpy() for one in out] if isinstance(out, list) else out.asnumpy()


M = onp.arange(6, dtype="float32").reshape(2, 3)


@pytest.mark.parametrize(
    ("function", "array"),
    [
        (lambda np, x: np.resize(x, (3, 3)), M),
        (lambda np, x: np.resize(x, 4), M),
        (lambda np, x: np.flip(x), M),
        (lambda np, x: np.flip(x, (0, -1)), M),
    ],
)
def test_a_symbol_gives_what_numpy_gives(mx: Any, function: Callable[..., Any], array: onp.ndarray) -> None:
    onp.testing.assert_array_equal(computed(mx, function, array), function(onp, array))


def test_a_symbol_of_flat_indices_gives_them_along_each_axis(mx: Any) -> None:
    indices = onp.array([5, 0, 3], "int64")
    made = computed(mx, lambda np, x: np.unravel_index(x, (2, 3)), indices)
    onp.testing.assert_array_equal(made, onp.stack(onp.unravel_index(indices, (2, 3))))


def test_symbols_that_mxnet_computes_in_python_are_its_nodes(mx: Any) -> None:
    x, cov = (mx.sym.var(name).as_np_ndarray() for name in ("x", "cov"))
    for made, kind in (
        (mx.sym.np.resize(x, (2, 2)), "resize_fallback"),
        (mx.sym.np.unravel_index(x, (2, 3)), "unravel_index_fallback"),
        (mx.sym.np.random.multivariate_normal(x, cov, size=3), "mvn_fallback"),
    ):
        node = json.loads(made.tojson())["nodes"][-1]
        assert (node["op"], node["attrs"]["op_type"]) == ("Custom", kind)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_symbol_draws_vectors_of_a_distribution(mx: Any, dtype: str) -> None:
    mean, cov = onp.array([1, -2], dtype), onp.array([[0.25, 0.1], [0.1, 1]], dtype)
    made = computed(mx, lambda np, a, b: np.random.multivariate_normal(a, b, size=4000), mean, cov)
    assert (made.shape, made.dtype) == ((4000, 2), onp.dtype(dtype))
    drawn = made.astype("float64")
    assert abs(drawn.mean(axis=0) - mean).max() < 0.1
    assert abs(onp.cov(drawn.T) - cov).max() < 0.12


def test_parts_of_an_empty_axis_are_empty_whatever_the_indices(mx: Any) -> None:
    empty = onp.zeros((0, 2), "float32")
    for cuts in ((1, 3), (3, 1), 4):
        made = computed(mx, lambda np, x, cuts=cuts: np.split(x, cuts, axis=0)[-1], empty)
        assert made.shape == (0, 2)


def test_a_slice_of_no_axes_is_everything(mx: Any) -> None:
    whole = computed(mx, lambda _, x: mx.sym.npx.slice(x, begin=(), end=(), step=None), M)
    onp.testing.assert_array_equal(whole, M)


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda np, x: np.split(x, 2, axis=9), ValueError, "split: axis 9 is out of bounds"),
        (lambda np, x: np.array_split(x, 2, axis=-3), ValueError, "array_split: axis -3"),
        (lambda np, x: np.split(x, 0), ValueError, "larger than 0"),
        (lambda np, x: np.array_split(x, 2**40), ValueError, "number sections"),
        (lambda np, x: np.exp(x, where=x), NotImplementedError, "where="),
        (lambda np, x: np.histogram(x, 0, (0, 1)), ValueError, "`bins` must be positive"),
        (lambda np, x: np.delete(x, 7), IndexError, "index 7 is out of bounds"),
        (lambda np, x: np.delete(x, -3, axis=0), IndexError, "index -3 is out of bounds"),
        (lambda np, x: np.delete(np.zeros((0,)), 0), IndexError, "index 0 is out of bounds"),
        (lambda np, x: np.max(np.zeros((0, 3)), axis=0), ValueError, "reduction operation maximum which has no"),
        (lambda np, x: np.min(np.zeros((0, 3))), ValueError, "reduction operation minimum which has no identity"),
        (lambda np, x: np.argmin(np.zeros((0,))), ValueError, "argmin of an empty sequence"),
        (lambda np, x: np.linalg.pinv(x, np.ones((3,))), ValueError, "rcond has shape (3,)"),
    ],
)
def test_a_bad_argument_is_an_error_of_the_call(mx: Any, call: Callable[..., Any], kind: type, says: str) -> None:
    with pytest.raises(kind) as caught:
        call(mx.np, mx.np.array(M))
    assert says in str(caught.value)


@pytest.mark.parametrize("name", "add sub mul truediv mod pow eq ne lt le gt ge iadd isub imul itruediv".split())
def test_arrays_of_two_interfaces_do_not_mix(mx: Any, name: str) -> None:
    ours, theirs = mx.np.ones((2,)), mx.nd.ones((2,))
    for left, right in ((ours, theirs), (theirs, ours)):
        with pytest.raises(TypeError, match="as_np_ndarray"):
            getattr(operator, name)(left, right)


def test_functions_without_keywords_have_out_and_numbers_on_either_side(mx: Any) -> None:
    np, x = mx.np, mx.np.array([1.0, 4.0])
    out = np.zeros((2,))
    assert np.sqrt(x, out) is out
    assert out.tolist() == [1, 2]
    assert np.subtract(3, x, out=out) is out
    assert out.tolist() == [2, -1]
    assert np.subtract(onp.float32(3), x).tolist() == np.subtract(True + 2, x).tolist() == [2, -1]
    assert np.greater(2, x).tolist() == [True, False]
    assert np.add(1, 2) == 3


def test_a_power_in_place_makes_another_array_as_in_mxnet(mx: Any) -> None:
    x = y = mx.np.array([1, 2, 3], dtype="uint8")
    y **= mx.np.array([2, 2, 2], dtype="int32")
    assert (x.tolist(), y.tolist(), y.dtype.name) == ([1, 2, 3], [1, 4, 9], "int32")


def test_a_whole_number_on_the_left_of_a_symbol_counts_as_a_float_as_in_mxnet(mx: Any) -> None:
    x, symbol = mx.np.array([1, -3, 7], dtype="int8"), mx.sym.var("x").as_np_ndarray()
    of_graph = mx.gluon.SymbolBlock(2**symbol, [symbol])(x)
    assert (of_graph.dtype.name, of_graph.tolist()) == ("float64", [2, 0.125, 128])
    assert mx.gluon.SymbolBlock(symbol - 2, [symbol])(x).dtype.name == "int8"
    assert (2 - x).dtype.name == "int8"


def test_numbers_beyond_an_integer_type_wrap_around_as_in_mxnet(mx: Any) -> None:
    for array in (mx.nd.zeros((2,), dtype="uint8"), mx.np.zeros((2,), dtype="uint8")):
        array[0], array[1] = -1, 300
        assert array.asnumpy().tolist() == [255, 44]
        array[:] = [-2, 257]
        assert array.asnumpy().tolist() == [254, 1]
    assert mx.nd.array([-1, 300.7], dtype="uint8").asnumpy().tolist() == [255, 44]
    assert mx.nd.full((1,), 200, dtype="int8").asnumpy().tolist() == [-56]
    with pytest.raises(TypeError, match="source_array"):
        mx.nd.array([2**70], dtype="int32")


def test_mixed_whole_numbers_are_subtracted_and_divided(mx: Any) -> None:
    np = mx.np
    a, b = np.array([[1, 2, 5]], dtype="int8"), np.array([[2], [1]], dtype="int32")
    assert (a - b).dtype.name == "int32" and (a - b).tolist() == [[-1, 0, 3], [0, 1, 4]]
    assert (a % b).tolist() == [[1, 0, 1], [0, 0, 0]]
    assert np.cumsum(np.array([True, False, True])).tolist() == [1, 1, 2]
    assert np.average(np.array([1, 2, 4], dtype="int32")).tolist() == 2
    assert np.linspace(0, 1, 0).shape == (0,)


def test_images_are_decoded_by_the_operators_of_the_interface(mx: Any, tmp_path: Any) -> None:
    pixels = (onp.arange(4 * 5 * 3) * 7 % 256).astype("uint8").reshape(4, 5, 3)
    file = mx.image.imencode(mx.nd.array(pixels, dtype="uint8"), ".png") if hasattr(mx.image, "imencode") else None
    if file is None:
        packed = mx.recordio.pack_img(mx.recordio.IRHeader(0, 0.0, 0, 0), pixels, img_fmt=".png")
        _, file = mx.recordio.unpack(packed)
    (tmp_path / "image.png").write_bytes(file)
    read = mx.np._internal.cvimread(str(tmp_path / "image.png"), to_rgb=False)
    decoded = mx.np._internal.cvimdecode(mx.np.array(onp.frombuffer(file, "uint8"), dtype="uint8"), to_rgb=False)
    for made in (read, decoded):
        assert type(made) is mx.np.ndarray
        onp.testing.assert_array_equal(made.asnumpy(), pixels)


def test_the_images_of_npx_are_those_of_mx_image_and_its_own_operators(mx: Any) -> None:
    assert mx.npx.image.ImageIter is mx.image.ImageIter
    assert mx.npx.image.resize_short is mx.image.resize_short
    assert {"ImageIter", "imread", "to_tensor", "normalize"} <= set(dir(mx.npx.image))
    assert mx.npx.image.to_tensor(mx.np.zeros((4, 5, 3), dtype="uint8")).shape == (3, 4, 5)
    with pytest.raises(AttributeError, match="no_such_thing"):
        mx.npx.image.no_such_thing  # noqa: B018


def test_functions_that_numpy_renamed_keep_their_names(mx: Any) -> None:
    a = mx.np.array([[3.0, 1.0], [0.0, 2.0]])
    assert all(name in dir(mx.np) for name in ("alltrue", "in1d", "msort", "trapz"))
    assert mx.np.alltrue(a, axis=0).asnumpy().tolist() == [False, True]
    found = mx.np.in1d(a, mx.np.array([1.0, 2.0]))
    assert isinstance(found, mx.np.ndarray) and found.asnumpy().tolist() == [False, True, False, True]
    assert mx.np.msort(a).asnumpy().tolist() == [[0, 1], [3, 2]]
    assert mx.np.trapz(a, dx=2.0).asnumpy().tolist() == [4, 2]
