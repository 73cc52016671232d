"""Arrays of ``mx.np``: indexing as NumPy has it, shared elements, failures, protocols."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as onp
import pytest


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def basic(pick: random.Random, extent: int) -> Any:
    kind = pick.randrange(4)
    if kind == 0:
        return pick.randrange(-extent, extent)
    if kind == 1:
        return slice(None)
    step = pick.choice([1, 2, -1])
    return slice(pick.randrange(-extent, extent + 1), pick.randrange(-extent, extent + 1), step)


def advanced(pick: random.Random, shape: tuple[int, ...]) -> Any:
    kind = pick.randrange(4)
    if kind == 0:
        return onp.array([pick.random() < 0.5 for _ in range(int(onp.prod(shape)))]).reshape(shape)
    axis = pick.randrange(len(shape))
    index = onp.array([pick.randrange(-shape[axis], shape[axis]) for _ in range(3)])
    key: list[Any] = [slice(None)] * axis + [index]
    if kind == 2 and axis + 1 < len(shape):
        key.append(pick.randrange(shape[axis + 1]))
    return (*key, None) if kind == 3 else tuple(key)


def keys(seed: int) -> list[tuple[tuple[int, ...], Any]]:
    pick = random.Random(seed)
    made = []
    for _ in range(150):
        shape = tuple(pick.randrange(1, 5) for _ in range(pick.randrange(1, 4)))
        if pick.random() < 0.5:
            key = [basic(pick, extent) for extent in shape[: pick.randrange(1, len(shape) + 1)]]
            if pick.random() < 0.3:
                key.insert(pick.randrange(len(key) + 1), None)
            if pick.random() < 0.3:
                key.append(Ellipsis)
            made.append((shape, tuple(key)))
        else:
            made.append((shape, advanced(pick, shape)))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_keys_of_every_kind_pick_and_set_what_numpy_does(mx: Any, seed: int) -> None:
    for shape, key in keys(seed):
        want = onp.arange(onp.prod(shape), dtype="float32").reshape(shape)
        x = mx.np.array(want)
        picked = x[key]
        assert type(picked) is mx.np.ndarray
        assert picked.shape == want[key].shape, (shape, key)
        onp.testing.assert_array_equal(picked.asnumpy(), want[key])
        value = -onp.arange(want[key].size, dtype="float32").reshape(want[key].shape)
        # An index that occurs twice leaves open which value stays.
        x[key] = -7.0
        want[key] = -7.0
        onp.testing.assert_array_equal(x.asnumpy(), want)
        if not any(isinstance(part, onp.ndarray) for part in (key if isinstance(key, tuple) else ())):
            x[key] = mx.np.array(value)
            want[key] = value
            onp.testing.assert_array_equal(x.asnumpy(), want)


def test_keys_may_be_arrays_of_np_whatever_their_type(mx: Any) -> None:
    x = mx.np.arange(6).reshape(2, 3)
    assert x[mx.np.array([1.0, 0.0])].tolist() == [[3, 4, 5], [0, 1, 2]]
    assert x[x > 3].tolist() == [4, 5]
    x[x > 3] = mx.np.array([8.0, 9.0])
    assert x.tolist() == [[0, 1, 2], [3, 8, 9]]


def test_parts_and_the_array_of_nd_share_elements(mx: Any) -> None:
    x = mx.np.zeros((2, 3))
    row, legacy = x[1], x.as_nd_ndarray()
    row[:] = 5
    x[0, 0] = 1
    assert legacy.asnumpy().tolist() == [[1, 0, 0], [5, 5, 5]]
    legacy[0, 1] = 2
    assert x[0].tolist() == [1, 2, 0]
    assert type(legacy) is mx.nd.NDArray
    assert legacy.as_np_ndarray()[0, 0].shape == ()
    x.reshape(-1)[0] = 9
    assert x[0, 0].item() == 1, "reshape copies"
    x.reshape_view(-1)[0] = 9
    assert x[0, 0].item() == 9


def test_a_failure_reaches_all_that_is_computed_from_it(mx: Any) -> None:
    bad = mx.npx.constraint_check(mx.np.array([False], dtype=bool), "the constraint of this test")
    later = mx.np.where(bad, mx.np.ones((2,)), 0) + 1
    for _ in range(2):
        with pytest.raises(ValueError, match="the constraint of this test"):
            later.asnumpy()
    with pytest.raises(ValueError, match="the constraint of this test"):
        bad.item()
    assert (mx.np.ones((2,)) + 1).tolist() == [2, 2]


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 2)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_a_pickle_keeps_shape_type_and_class(mx: Any, shape: tuple[int, ...], dtype: str) -> None:
    x = mx.np.ones(shape, dtype=dtype)
    again = pickle.loads(pickle.dumps(x))
    assert (type(again), again.shape, again.dtype) == (mx.np.ndarray, shape, x.dtype)
    onp.testing.assert_array_equal(again.asnumpy(), x.asnumpy())


def test_functions_of_numpy_compute_on_arrays_of_np(mx: Any) -> None:
    x = mx.np.array([[1.0, 2.0], [3.0, 4.0]])
    assert type(onp.sum(x)) is mx.np.ndarray
    assert type(onp.stack([x, x])) is mx.np.ndarray
    assert onp.linalg.norm(x).item() == pytest.approx(5.477226)
    assert type(onp.multiply(x, x)) is mx.np.ndarray
    # Functions that MXNet does not have are NumPy's, on a copy.
    assert onp.median(x) == 2.5
    assert type(onp.cbrt(x)) is mx.np.ndarray
    assert type(onp.logaddexp(x, x)) is mx.np.ndarray
    out = mx.np.zeros((2, 2))
    assert onp.exp(x, out=out) is out
    onp.testing.assert_allclose(out.asnumpy(), onp.exp(x.asnumpy()), rtol=1e-6)


def test_numpy_and_other_libraries_share_the_elements(mx: Any) -> None:
    x = mx.np.arange(4)
    shared = onp.from_dlpack(x)
    assert shared.tolist() == [0, 1, 2, 3]
    assert onp.asarray(x).dtype == "float32"


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ("np.median", "numpy.median"),
        ("np.linalg.matrix_transpose", "numpy.linalg.matrix_transpose"),
        ("np.random.poisson", "numpy.random.poisson"),
        ("np.random.seed", "npx.random.seed"),
        ("np.ones(2).softmax", "as_nd_ndarray"),
        ("np.ones(2).exp", "mx.np.exp"),
        ("npx.sin", "mx.np.sin"),
        ("np.sin(mx.nd.ones(2))", "as_np_ndarray"),
        ("np.sin(onp.ones(2))", "mx.np.array"),
        ("np.pad(np.ones(2), ((1, 1),), mode='wrap')", "constant, edge"),
    ],
)
def test_what_is_not_there_says_what_works(mx: Any, expression: str, advice: str) -> None:
    with pytest.raises((AttributeError, TypeError, ValueError), match=advice):
        eval(expression, {"mx": mx, "np": mx.np, "npx": mx.npx, "onp": onp})


def test_symbols_of_np_compute_what_arrays_do(mx: Any) -> None:
    def run(F: Any, x: Any, y: Any) -> Any:
        z = F.np.tanh(x) * 2 - y[0] / 4
        parts = F.np.split(z, 3, axis=1)
        joined = F.np.concatenate([parts[2], parts[0]], axis=1)
        return F.np.where(joined > 0, joined, F.np.full((), 0.5)).sum(axis=-1).reshape(2, 1) + F.np.arange(2)

    x, y = mx.np.arange(6).reshape(2, 3), mx.np.ones((2, 3))
    symbols = [mx.sym.var(name).as_np_ndarray() for name in ("x", "y")]
    graph = run(mx.sym, *symbols)
    assert type(graph) is mx.sym.np._Symbol
    assert sorted(graph.list_arguments()) == ["x", "y"]
    [got] = graph.eval(x=x, y=y)
    onp.testing.assert_allclose(got.asnumpy(), run(mx.nd, x, y).asnumpy(), rtol=1e-6)


def test_every_public_name_of_np_has_a_docstring(mx: Any) -> None:
    for module in (mx.np, mx.np.linalg, mx.np.random):
        for name in module.__all__:
            found = getattr(module, name)
            assert not callable(found) or found.__doc__, name
