"""Comparisons of arrays for tests: parts of ``mx.test_utils``."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ndarray import NDArray, waitall

__all__ = [
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err",
    "assert_exception",
    "assign_each",
    "assign_each2",
    "compare_ndarray_tuple",
    "default_atols",
    "default_numeric_eps",
    "default_rtols",
    "effective_dtype",
    "get_atol",
    "get_etol",
    "get_rtol",
    "get_tolerance",
    "get_tols",
    "np_reduce",
    "plain",
    "retry",
    "same",
    "same_array",
]

_FLOATS = {np.dtype(np.float16): (1e-2, 1e-1), np.dtype(np.float32): (1e-4, 1e-3), np.dtype(np.float64): (1e-5, 1e-20)}
_EXACT = [np.dtype(name) for name in ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")]


def default_rtols() -> dict[Any, float]:
    """Relative tolerances by element type."""
    return {**{dtype: found[0] for dtype, found in _FLOATS.items()}, **dict.fromkeys(_EXACT, 0)}


def default_atols() -> dict[Any, float]:
    """Absolute tolerances by element type."""
    return {**{dtype: found[1] for dtype, found in _FLOATS.items()}, **dict.fromkeys(_EXACT, 0)}


def get_rtol(rtol: float | None = None, dtype: Any = np.float64) -> float:
    """A relative tolerance: the one given, or that of an element type."""
    return default_rtols()[np.dtype(dtype)] if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: Any = np.float64) -> float:
    """An absolute tolerance: the one given, or that of an element type."""
    return default_atols()[np.dtype(dtype)] if atol is None else atol


def get_etol(etol: float | None = None) -> float:
    """The share of elements that may differ: the given one, or none."""
    return 0 if etol is None else etol


def default_numeric_eps() -> dict[Any, float]:
    """Steps for numeric gradients by element type, powers of two so that none loses bits."""
    return {np.dtype(kind): 2.0**-bits for kind, bits in ((np.float16, 6), (np.float32, 9), (np.float64, 14))}


def effective_dtype(dat: Any) -> Any:
    """The element type whose accuracy operators have: that of the array on every device here."""
    return np.dtype(dat.dtype)


def get_tolerance(dat: Any, tol: Any, default_tol: dict[Any, float]) -> float:
    """The tolerance for an array: a number, or that of its element type in `tol`, else in
    `default_tol`.
    """
    if isinstance(tol, numbers.Real):
        return float(tol)
    dtype = effective_dtype(dat)
    given = tol or {}
    return float(given[dtype] if dtype in given else default_tol[dtype])


def get_tols(x: Any, y: Any, rtol: Any, atol: Any) -> tuple[float, float]:
    """Tolerances for a comparison: those given, as numbers or by element type, or the larger ones
    of the two types.
    """
    both = [v if hasattr(v, "dtype") else np.asarray(v) for v in (x, y)]

    def pick(given: Any, defaults: dict[Any, float]) -> float:
        return max(get_tolerance(one, given, defaults) for one in both)

    return pick(rtol, default_rtols()), pick(atol, default_atols())


def plain(value: Any) -> Any:
    """An array as a numpy array."""
    return value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)


def same(a: Any, b: Any) -> bool:
    """Whether two numpy arrays are equal in shape and values."""
    return bool(np.array_equal(a, b))


def same_array(array1: NDArray, array2: NDArray) -> bool:
    """Whether two arrays share their memory."""
    return array1._shares_storage(array2)


def _check_shapes(a: Any, b: Any) -> None:
    if a.shape != b.shape:
        raise AssertionError(f"a.shape = {a.shape} and b.shape = {b.shape} are not equal")


def almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether ``|a - b| <= atol + rtol * |b|`` everywhere; the tolerances are those of float64
    unless given.
    """
    a, b = plain(a), plain(b)
    if not use_broadcast:
        _check_shapes(a, b)
    return bool(np.allclose(a, b, rtol=get_rtol(rtol), atol=get_atol(atol), equal_nan=equal_nan))


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: Any = None,
    atol: Any = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """AssertionError unless ``|a - b| <= atol + rtol * |b|`` everywhere; it says where the error is
    largest.

    Tolerances are those of the less exact element type unless given. `mismatches` says how many
    places are listed.
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = plain(a), plain(b)
    if not use_broadcast:
        _check_shapes(a, b)
    if a.dtype == np.bool_ and b.dtype == np.bool_:
        np.testing.assert_equal(a, b)
        return
    try:
        equal = np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    except ValueError:  # shapes that cannot be broadcast
        equal = False
    if not equal:
        raise AssertionError(_report(a, b, rtol, atol, names, equal_nan, mismatches[0]))


def _report(a: Any, b: Any, rtol: float, atol: float, names: tuple[str, str], equal_nan: bool, listed: int) -> str:
    """The positions at which two arrays differ, the worst first."""
    try:
        a, b = np.broadcast_arrays(a, b)
    except ValueError:
        return f"{names[0]} has shape {a.shape}, {names[1]} has shape {b.shape}: they cannot be compared"
    bad = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    exact_a, exact_b = a.astype("float64"), b.astype("float64")
    with np.errstate(invalid="ignore"):
        error = np.where(bad, np.abs(exact_a - exact_b) / (atol + rtol * np.abs(exact_b) + 1e-20), 0)
    error = np.where(np.isnan(error), np.inf, error)
    places = [np.unravel_index(flat, error.shape) for flat in np.argsort(error, axis=None)[::-1][: bad.sum()]]

    def row(place: Any) -> str:
        shown = tuple(int(one) for one in place)
        return f"{shown}, {names[0]}={exact_a[place]:.8f}, {names[1]}={exact_b[place]:.8f}"

    lines = [
        f"Error {error[places[0]]:f} exceeds tolerance rtol={rtol:e}, atol={atol:e} "
        f"(mismatch {100 * len(places) / bad.size:f}%).",
        f"Location of maximum error: {row(places[0])}",
        *(f"  Location of error: {row(place)}" for place in places[1:listed]),
    ]
    return "\n".join(lines)


def assert_allclose(a: Any, b: Any, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True) -> None:
    """``assert_almost_equal`` with numpy's tolerances."""
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: Any = None,
    atol: Any = None,
    etol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """``assert_almost_equal``, where a part `etol` of the elements may differ."""
    share = get_etol(etol)
    if share > 0:
        rtol, atol = get_tols(a, b, rtol, atol)
        if 1 - np.mean(np.isclose(plain(a), plain(b), rtol=rtol, atol=atol)) <= share:
            return
    assert_almost_equal(a, b, rtol, atol, names, equal_nan, mismatches=mismatches)


def assert_almost_equal_ignore_nan(
    a: Any, b: Any, rtol: Any = None, atol: Any = None, names: tuple[str, str] = ("a", "b")
) -> None:
    """``assert_almost_equal``, except for places where either is NaN."""
    a, b = np.copy(plain(a)), np.copy(plain(b))
    unknown = np.isnan(a) | np.isnan(b)
    a[unknown] = b[unknown] = 0
    assert_almost_equal(a, b, rtol, atol, names)


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Any = None, atol: Any = None) -> None:
    """``assert_almost_equal`` for nested tuples of arrays; None equals None."""
    if t1 is None or t2 is None:
        if t1 is not t2:
            raise AssertionError("one is None, the other is not")
    elif isinstance(t1, tuple):
        for one, other in zip(t1, t2, strict=True):
            compare_ndarray_tuple(one, other, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def assert_exception(f: Callable[..., Any], exception_type: Any, *args: Any, **kwargs: Any) -> None:
    """AssertionError unless calling `f` raises an exception of this type."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{f} raised nothing, expected {exception_type}")


def assign_each(the_input: Any, function: Callable[[Any], Any] | None) -> Any:
    """A function of each element of a numpy array."""
    return np.array(the_input) if function is None else np.vectorize(function, otypes=["float64"])(the_input)


def assign_each2(input1: Any, input2: Any, function: Callable[[Any, Any], Any] | None) -> Any:
    """A function of each pair of elements of two numpy arrays of one shape."""
    if function is None:
        return np.array(input1)
    _check_shapes(input1, input2)
    return np.vectorize(function, otypes=["float64"])(input1, input2)


def np_reduce(dat: Any, axis: Any, keepdims: bool, numpy_reduce_func: Callable[..., Any]) -> Any:
    """A numpy reduction along several axes, or all with None, one after another, the last axis
    first.
    """
    axes = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    found = dat
    for one in sorted((place % dat.ndim for place in axes), reverse=True):
        found = numpy_reduce_func(found, axis=one)
        if keepdims:
            found = np.expand_dims(found, one)
    return found


def retry(n: int) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """A decorator that runs a test up to `n` times, until it passes."""
    if n <= 0:
        raise AssertionError("retry: n must be positive")

    def decorate(test: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(test)
        def wrapper(*args: Any, **kwargs: Any) -> None:
            for number in range(n):
                try:
                    test(*args, **kwargs)
                    return
                except AssertionError:
                    if number == n - 1:
                        raise
                    waitall()

        return wrapper

    return decorate
