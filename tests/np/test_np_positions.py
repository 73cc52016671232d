"""Keys with arrays in them: NumPy's results, in time and memory of the result's size."""

from __future__ import annotations

import random
import re
import time
import warnings
from typing import Any

import numpy as onp
import pytest

INTEGERS = ("int8", "uint8", "int32", "int64", "uint64")


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def integers(pick: random.Random, extent: int, reach: int) -> Any:
    """Indices of an axis, of some shape and type; with a reach a few are out of range."""
    shape = pick.choice([(), (1,), (2,), (3,), (2, 3), (1, 3), (2, 1), (0,)])
    kind = pick.choice(INTEGERS)
    lowest = 0 if kind.startswith("u") else -extent - reach
    highest = max(extent + reach, lowest + 1)
    values = [pick.randrange(lowest, highest) for _ in range(int(onp.prod(shape)))]
    made = onp.array(values, kind).reshape(shape)
    return made.tolist() if pick.random() < 0.3 and made.ndim else made


def flags(pick: random.Random, shape: tuple[int, ...]) -> Any:
    return onp.array([pick.random() < 0.5 for _ in range(int(onp.prod(shape)))], bool).reshape(shape)


def random_key(pick: random.Random, shape: tuple[int, ...]) -> Any:
    """A key with an array in it, for an array of this shape; one in ten does not fit it."""
    reach = 2 if pick.random() < 0.1 else 0
    parts: list[Any] = []
    axis = 0
    while axis < len(shape) + (1 if reach else 0):
        extent = shape[axis] if axis < len(shape) else 2
        kind = pick.randrange(9)
        if kind <= 2:
            parts.append(integers(pick, extent, reach))
        elif kind == 3 and extent:
            parts.append(pick.choice([int, onp.int32])(pick.randrange(-extent - reach, extent + reach)))
        elif kind == 4:
            parts.append(slice(*(pick.choice([None, -3, -1, 0, 1, 2, 5]) for _ in range(2)), pick.choice([1, 2, -1])))
        elif kind == 5:
            parts.append(None)
            continue
        elif kind == 6:
            count = pick.randrange(1, max(len(shape) - axis, 1) + 1)
            parts.append(flags(pick, tuple(n + pick.randrange(reach + 1) for n in shape[axis : axis + count])))
            axis += count - 1
        elif kind == 7 and Ellipsis not in [part for part in parts if part is Ellipsis]:
            parts.append(Ellipsis)
            axis += pick.randrange(0, 2)
            continue
        elif kind == 8:
            parts.append(pick.choice([True, False, onp.array(True)]))
            continue
        axis += 1
        if pick.random() < 0.2:
            break
    return parts[0] if len(parts) == 1 else tuple(parts)


def has_array(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, (list, onp.ndarray, bool)) for part in parts)


def as_ours(mx: Any, pick: random.Random, key: Any) -> Any:
    """The key with some of its arrays as arrays of mx.np."""
    if isinstance(key, tuple):
        return tuple(as_ours(mx, pick, part) for part in key)
    if isinstance(key, onp.ndarray) and key.dtype.name in ("bool", "int8", "int32", "int64") and pick.random() < 0.3:
        return mx.np.array(key, dtype=key.dtype)
    return key


def outcome(function: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except IndexError as error:
            # Without the code that errors of mxrt end with.
            return re.sub(r" \[MX-\w+\]$", "", str(error).splitlines()[0])


@pytest.mark.parametrize("seed", range(8))
def test_random_keys_pick_and_set_what_numpy_does_or_fail_with_its_words(mx: Any, seed: int) -> None:
    pick = random.Random(seed)
    checked = failed = 0
    while checked < 600:
        shape = tuple(pick.choice([0, 1, 2, 3, 4, 5]) for _ in range(pick.randrange(1, 5)))
        key = random_key(pick, shape)
        if not has_array(key):
            continue
        # Lists are indices, an empty one too.
        plain = tuple(onp.array(p, int) if isinstance(p, list) else p for p in key) if isinstance(key, tuple) else key
        plain = onp.array(plain, int) if isinstance(plain, list) else plain
        values = onp.arange(onp.prod(shape), dtype=onp.int32).reshape(shape)
        ours = mx.np.array(values, dtype="int32")
        own_key = as_ours(mx, pick, key)
        expected, found = outcome(lambda: values[plain]), outcome(lambda: ours[own_key])  # noqa: B023
        checked += 1
        if isinstance(expected, str):
            assert found.endswith(expected) or expected in found, (shape, key)
            failed += 1
            continue
        assert not isinstance(found, str), (shape, key, found)
        onp.testing.assert_array_equal(found.asnumpy(), expected, err_msg=f"{shape} {key!r}")
        assert found.shape == expected.shape and found.dtype == expected.dtype, (shape, key)
        new = onp.arange(1000, 1000 + expected.size, dtype=onp.int32).reshape(expected.shape)
        values[plain] = new
        ours[own_key] = new
        onp.testing.assert_array_equal(ours.asnumpy(), values, err_msg=f"{shape} {key!r}")
    assert 0 < failed < checked // 2


@pytest.mark.parametrize("seed", range(2))
def test_arrays_of_nd_take_the_same_keys_of_indices(mx: Any, seed: int) -> None:
    pick = random.Random(seed)
    checked = 0
    while checked < 300:
        shape = tuple(pick.randrange(1, 5) for _ in range(pick.randrange(1, 4)))
        key = random_key(pick, shape)
        parts = key if isinstance(key, tuple) else (key,)
        if not has_array(key) or any(getattr(p, "dtype", "") == "bool" or isinstance(p, bool) for p in parts):
            continue
        values = onp.arange(onp.prod(shape), dtype=onp.float32).reshape(shape)
        plain = tuple(onp.array(p, int) if isinstance(p, list) else p for p in parts)
        expected = outcome(lambda: values[plain])  # noqa: B023
        array = mx.nd.array(values)
        checked += 1
        if isinstance(expected, str):
            assert outcome(lambda: array[key]) == expected, (shape, key)  # noqa: B023
            continue
        if any(isinstance(p, onp.ndarray) and p.ndim == 0 for p in parts) or not expected.size:
            continue
        onp.testing.assert_array_equal(array[key].asnumpy(), expected, err_msg=f"{shape} {key!r}")
        array[key] = expected + 1000
        values[plain] = expected + 1000
        onp.testing.assert_array_equal(array.asnumpy(), values, err_msg=f"{shape} {key!r}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_rows_of_every_type_are_picked_by_one_array(mx: Any, dtype: str) -> None:
    values = onp.arange(120).reshape(10, 3, 4)
    values = (values % 7 % 2 if dtype == "bool" else values).astype(dtype)
    x = mx.np.array(values, dtype=dtype)
    for index in ([0, -1, 9], [[3, -10], [2, 2]], []):
        found = x[onp.array(index, int)]
        assert found.dtype == dtype
        onp.testing.assert_array_equal(found.asnumpy(), values[onp.array(index, int)])
    with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with size 10"):
        x[[0, 10]]
    with pytest.raises(IndexError, match="index -11 is out of bounds for axis 0 with size 10"):
        x[[0, -11]]


def test_two_elements_of_a_large_array_are_picked_without_looking_at_all_of_it(mx: Any) -> None:
    large = mx.np.ones((200_000, 100))
    legacy = large.as_nd_ndarray()
    index = mx.np.array([0, 1])
    large.wait_to_read()

    def write() -> Any:
        large[[0], [1]] = 5
        return large

    for what in (lambda: large[index], lambda: large[[0, 1]], write, lambda: legacy[[0, 1]]):
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            what().wait_to_read()
            times.append(time.perf_counter() - begin)
        # All positions of the array take 160 MB, and at least 20 ms.
        assert min(times) < 0.01, times
