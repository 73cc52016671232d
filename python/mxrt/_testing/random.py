"""Random inputs for tests, and checks of random numbers: parts of ``mx.test_utils``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..context import Context, current_context
from ..ndarray import NDArray, array, sparse

__all__ = [
    "chi_square_check",
    "create_2d_tensor",
    "create_sparse_array",
    "create_sparse_array_zd",
    "create_vector",
    "gen_buckets_probs_with_ppf",
    "mean_check",
    "rand_coord_2d",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "rand_sparse_ndarray",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
    "var_check",
    "verify_generator",
]


def random_arrays(*shapes: tuple[int, ...]) -> Any:
    """Normally distributed numpy arrays of float32: a list, or a single one."""
    arrays = [np.asarray(np.random.randn(*shape), dtype=np.float32) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(
    *shapes: tuple[int, ...], low: float = 0.0, high: float = 1.0, dtype: Any = np.float32
) -> list[Any]:
    """Evenly distributed numpy arrays."""
    return [np.random.uniform(low, high, size=shape).astype(dtype) for shape in shapes]


def random_sample(population: list[Any], k: int) -> list[Any]:
    """`k` elements of a list, in random order."""
    if not 0 <= k <= len(population):
        raise AssertionError(f"random_sample: {k} elements of {len(population)}")
    mixed = list(population)
    np.random.shuffle(mixed)
    return mixed[:k]


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of two axes; extents up to those given."""
    return _rand_shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of three axes; extents up to those given."""
    return _rand_shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape; extents up to `dim`."""
    return _rand_shape((dim,) * num_dim, allow_zero_size)


def _rand_shape(most: tuple[int, ...], allow_zero_size: bool) -> tuple[int, ...]:
    return tuple(int(np.random.randint(0 if allow_zero_size else 1, dim + 1)) for dim in most)


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """A random pair of whole numbers."""
    return int(np.random.randint(x_low, x_high)), int(np.random.randint(y_low, y_high))


def rand_ndarray(
    shape: tuple[int, ...],
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
    distribution: str | None = None,
    ctx: Context | None = None,
) -> NDArray:
    """A normally distributed array; of a sparse one a part, `density`, is stored."""
    if stype != "default":
        return rand_sparse_ndarray(shape, stype, density=density, dtype=dtype, ctx=ctx)[0]
    return array(random_arrays(shape), ctx=ctx or current_context(), dtype=dtype)


def rand_sparse_ndarray(
    shape: tuple[int, ...],
    stype: str,
    density: float | None = None,
    dtype: Any = None,
    distribution: str | None = None,
    data_init: float | None = None,
    rsp_indices: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
    ctx: Context | None = None,
) -> tuple[NDArray, Any]:
    """A sparse array, and its parts: values and row numbers, or row pointers, columns and values.

    Values are evenly distributed from 0 to 1. `modifier_func` changes those of row_sparse.
    `distribution` is "uniform" or, for csr, "powerlaw": each row stores twice as many values as the
    row before it. Columns always rise within a row, whatever `shuffle_csr_indices` says.
    """
    if stype not in ("csr", "row_sparse"):
        raise AssertionError(f"unknown storage type {stype!r}; expected csr or row_sparse")
    if distribution not in (None, "uniform") and (distribution != "powerlaw" or stype != "csr"):
        raise AssertionError(f"Distribution {distribution} not supported for {stype}")
    part = np.random.rand() if density is None else density
    kind = np.float32 if dtype is None else dtype
    if stype == "row_sparse":
        chosen = np.flatnonzero(np.random.rand(shape[0]) < part)
        if rsp_indices is not None:
            # As MXNet does: fractions are cut off.
            chosen = np.unique(np.asarray(rsp_indices).astype(np.int64))
        stored = np.random.rand(len(chosen), *shape[1:]).astype(kind)
        if data_init is not None:
            stored[...] = data_init
        if modifier_func is not None and stored.size:
            stored = np.vectorize(modifier_func)(stored).astype(kind)
        rows = sparse.row_sparse_array((stored, chosen), shape=shape, dtype=kind, ctx=ctx)
        return rows, (stored, chosen)
    if distribution == "powerlaw":
        values = _powerlaw(shape, part).astype(kind)
    else:
        values = np.random.rand(*shape).astype(kind)
        if data_init is not None:
            values[...] = data_init
        values[np.random.rand(*shape) >= part] = 0
    matrix = sparse.csr_matrix(values, shape=shape, dtype=kind, ctx=ctx)
    return matrix, (matrix.indptr, matrix.indices, matrix.data)


def _powerlaw(shape: tuple[int, ...], density: float) -> np.ndarray[Any, Any]:
    """A matrix of which `density` is stored: one value of each row, then twice as many in each row
    as in the one before it, until all columns are filled.
    """
    rows, columns = shape
    left = int(rows * columns * density)
    if not 0 <= density <= 1 or left < 2 * rows:
        raise ValueError(f"not supported for this density: {density} for this shape ({rows},{columns})")
    counts = np.ones(rows, np.int64)
    left -= rows
    for row in range(rows):
        # Of more than 62 powers of two none is below the number of columns.
        more = min(columns, 2 ** min(row + 1, 62)) - 1
        counts[row] += min(more, left)
        left -= min(more, left)
    if left > 0:
        raise ValueError(f"not supported for this density: {density} for this shape ({rows},{columns})")
    return np.where(np.arange(columns) < counts[:, None], 1 + np.random.uniform(0.001, 2, shape), 0)


def create_sparse_array(
    shape: tuple[int, ...],
    stype: str,
    data_init: float | None = None,
    rsp_indices: Any = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    density: float = 0.5,
    shuffle_csr_indices: bool = False,
) -> NDArray:
    """A sparse array; `rsp_indices` are the rows that a row_sparse one stores."""
    return rand_sparse_ndarray(
        shape,
        stype,
        density=density,
        dtype=dtype,
        data_init=data_init,
        rsp_indices=rsp_indices,
        modifier_func=modifier_func,
    )[0]


def create_sparse_array_zd(
    shape: tuple[int, ...],
    stype: str,
    density: float,
    data_init: float | None = None,
    rsp_indices: Any = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
) -> NDArray:
    """A sparse array that may store nothing."""
    if stype == "row_sparse" and rsp_indices is None and density == 0.0:
        rsp_indices = np.zeros(0, np.int64)
    return create_sparse_array(shape, stype, data_init, rsp_indices, dtype, modifier_func, density)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> NDArray:
    """An array of shape (rows, columns) that holds the number of the row."""
    return array(np.repeat(np.arange(rows)[:, None], columns, axis=1), dtype=dtype)


def create_vector(size: int, dtype: Any = np.int64) -> NDArray:
    """0, 1, 2 and so on."""
    return array(np.arange(size), dtype=dtype)


# ---- random numbers ------------------------------------------------------------------------------


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Ranges of equal probability, and that probability, from the inverse of a distribution
    function.
    """
    if nbuckets <= 0:
        raise AssertionError(f"gen_buckets_probs_with_ppf: {nbuckets} buckets")
    edges = [ppf(place / nbuckets) for place in range(nbuckets + 1)]
    return list(itertools.pairwise(edges)), [1.0 / nbuckets] * nbuckets


def mean_check(generator: Callable[[int], Any], mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of random numbers is within three deviations of `mu`."""
    mean = np.asarray(generator(nsamples)).mean()
    return bool(abs(mean - mu) < 3 * sigma / math.sqrt(nsamples))


def var_check(generator: Callable[[int], Any], sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of random numbers is within three deviations of that of a normal
    distribution.
    """
    variance = np.asarray(generator(nsamples)).var(ddof=1)
    return bool(abs(variance - sigma**2) < 3 * math.sqrt(2 * sigma**4 / (nsamples - 1)))


def chi_square_check(
    generator: Callable[[int], Any], buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000
) -> tuple[float, Any, Any]:
    """How probable it is that random numbers fall into buckets as they did, and how often they did
    and should.

    Buckets are ranges in rising order, or single values. ImportError without scipy.
    """
    from scipy import stats  # type: ignore[import-not-found,import-untyped,unused-ignore]

    if len(probs) != len(buckets):
        raise AssertionError(f"chi_square_check: {len(buckets)} buckets, but {len(probs)} probabilities")
    samples = np.asarray(generator(nsamples))
    wanted = nsamples * np.asarray(probs, np.float64)
    if isinstance(buckets[0], (list, tuple)):
        found = np.array([((samples >= low) & (samples < high)).sum() for low, high in buckets])
    else:
        found = np.array([(samples == value).sum() for value in buckets])
    # Rounded probabilities, and numbers outside of all buckets, make sums differ a little.
    wanted *= found.sum() / wanted.sum()
    return float(stats.chisquare(f_obs=found, f_exp=wanted)[1]), found, wanted


def verify_generator(
    generator: Callable[[int], Any],
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1000000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """AssertionError unless a part `success_rate` of `nrepeat` chi-square checks give more than
    `alpha`.
    """
    results = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    found = [result[0] for result in results]
    if sum(value > alpha for value in found) < nrepeat * success_rate:
        raise AssertionError(
            f"Generator test fails, Chi-square p={found}, obs_freq={[result[1] for result in results]}, "
            f"expected_freq={[result[2] for result in results]}.\nbuckets={buckets}, probs={probs}"
        )
    return found
