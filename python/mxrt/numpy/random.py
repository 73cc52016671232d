"""Random arrays: ``mx.np.random``."""

from __future__ import annotations

from typing import Any

import numpy as onp

from .. import _mxrt
from .._values.dtypes import dtype_name
from .._values.extents import extents
from ._call import call, computed_in_python, create, is_tensor
from ._rows import exp
from .multiarray import ndarray

__all__ = [
    "beta",
    "chisquare",
    "choice",
    "exponential",
    "gamma",
    "gumbel",
    "logistic",
    "lognormal",
    "multinomial",
    "multivariate_normal",
    "normal",
    "pareto",
    "power",
    "rand",
    "randint",
    "randn",
    "rayleigh",
    "shuffle",
    "uniform",
    "weibull",
]


def __getattr__(name: str) -> Any:
    if name == "seed":
        raise AttributeError("mx.np.random.seed is not part of MXNet 1.9; use mx.npx.random.seed(n)")
    if not name.startswith("_") and hasattr(onp.random, name):
        raise AttributeError(f"mx.np.random.{name} is not part of MXNet 1.9; use mx.np.array(numpy.random.{name}(...))")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def size_text(size: Any) -> Any:
    if size is None or (isinstance(size, tuple) and not size):
        return "None"
    return extents(size)


def draw(operator: str, parameters: dict[str, Any], size: Any, ctx: Any, out: Any, **more: Any) -> Any:
    """Draws of a distribution whose parameters are numbers or arrays."""
    arrays = [value for value in parameters.values() if is_tensor(value)]
    attrs: dict[str, Any] = {name: "None" if is_tensor(value) else value for name, value in parameters.items()}
    attrs.update(more, size=size_text(size))
    return call(operator, arrays, attrs, out) if arrays else create(operator, attrs, ctx, out)


def uniform(
    low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Evenly distributed between `low` and `high`, float32 unless `dtype` says otherwise."""
    return draw("_npi_uniform", {"low": low, "high": high}, size, ctx, out, dtype=dtype_name(dtype))


def normal(
    loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Normally distributed around `loc` with deviation `scale`, float32 unless `dtype` says
    otherwise.
    """
    return draw("_npi_normal", {"loc": loc, "scale": scale}, size, ctx, out, dtype=dtype_name(dtype))


def lognormal(
    mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """The exponential of a normal distribution."""
    made = normal(mean, sigma, size, dtype, ctx)
    return exp(made, out=out)


def logistic(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """The logistic distribution around `loc`."""
    return draw("_npi_logistic", {"loc": loc, "scale": scale}, size, ctx, out)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """The Gumbel distribution with mode `loc`."""
    return draw("_npi_gumbel", {"loc": loc, "scale": scale}, size, ctx, out)


def rayleigh(scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """The Rayleigh distribution with mode `scale`."""
    return draw("_npi_rayleigh", {"scale": scale}, size, ctx, out)


def exponential(scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """The exponential distribution with mean `scale`."""
    return draw("_npi_exponential", {"scale": scale}, size, ctx, out)


def weibull(a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """The Weibull distribution with shape `a`."""
    return draw("_npi_weibull", {"a": a}, size, ctx, out)


def pareto(a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """The Pareto distribution with shape `a`."""
    return draw("_npi_pareto", {"a": a}, size, ctx, out)


def power(a: Any, size: Any = None) -> Any:
    """The power distribution with exponent `a - 1`, in [0, 1]."""
    return draw("_npi_powerd", {"a": a}, size, None, None)


def gamma(shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """The gamma distribution, float32 unless `dtype` says otherwise."""
    wanted = size if out is None else out.shape
    return draw("_npi_gamma", {"shape": shape, "scale": scale}, wanted, ctx, out, dtype=dtype_name(dtype))


def beta(a: Any, b: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """The beta distribution, float32 unless `dtype` says otherwise."""
    x = gamma(a, 1, size, "float64", ctx)
    y = gamma(b, 1, size, "float64", ctx)
    return (x / (x + y)).astype(dtype_name(dtype))


def chisquare(df: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """The chi-squared distribution with `df` degrees of freedom."""
    return gamma(df / 2, 2.0, size, dtype, ctx)


def rand(*size: int, **kwargs: Any) -> Any:
    """Evenly distributed between 0 and 1, of the given shape."""
    return uniform(0, 1, size, **kwargs)


def randn(*size: int, **kwargs: Any) -> Any:
    """Normally distributed, of the given shape."""
    return normal(0, 1, size, **kwargs)


def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Whole numbers from `low` (0 if only one bound is given) up to, but without, `high`; int64
    unless `dtype` says otherwise.
    """
    if high is None:
        low, high = 0, low
    shape = () if size is None else extents(size)
    attrs = {"low": low, "high": high, "shape": shape, "dtype": "int64" if dtype is None else dtype_name(dtype)}
    return create("_npi_random_randint", attrs, ctx, out)


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draws from the numbers below `a`, or from the elements of an array, with probabilities
    `p`.
    """
    weights = [] if p is None else [p]
    attrs = {"size": size_text(size), "replace": replace, "weighted": p is not None}
    if is_tensor(a):
        places = call("_npi_choice", [a, *weights], {**attrs, "a": "None"})
        return call("_npi_take", (a, places), {"axis": 0, "mode": "clip"}, out)
    if weights:
        return call("_npi_choice", weights, {**attrs, "a": a}, out)
    return create("_npi_choice", {**attrs, "a": a}, ctx, out)


def multinomial(n: int, pvals: Any, size: Any = None) -> Any:
    """How often each outcome occurs in `n` trials with these probabilities."""
    if is_tensor(pvals):
        return call("_npi_multinomial", (pvals,), {"n": n, "pvals": "None", "size": size_text(size)})
    if isinstance(pvals, onp.ndarray):
        raise ValueError("numpy ndarray is not supported! Give a list, or mx.np.array(pvals)")
    if any(isinstance(one, (list, tuple)) for one in pvals):
        raise ValueError("object too deep for desired array")
    return create("_npi_multinomial", {"n": n, "pvals": tuple(pvals), "size": size_text(size)})


def multivariate_normal(mean: Any, cov: Any, size: Any = None, check_valid: Any = None, tol: Any = None) -> Any:
    """Vectors that are normally distributed around `mean` with this matrix of covariances."""
    from . import linalg
    from ._special import einsum

    for name, value in (("check_valid", check_valid), ("tol", tol)):
        if value is not None:
            raise NotImplementedError(f"Parameter `{name}` is not supported")
    if isinstance(mean, _mxrt.SymbolBase) and isinstance(cov, _mxrt.SymbolBase):
        return computed_in_python("mvn_fallback", (mean, cov), {} if size is None else {"size": size})
    if not isinstance(mean, ndarray) or not isinstance(cov, ndarray):
        raise TypeError("multivariate_normal: mean and cov must be arrays of mx.np")
    shape = normal_vectors_shape(mean.shape, cov.shape, size)
    noise = normal(size=shape, dtype=mean.dtype, ctx=mean.context)
    # There is no factorisation in half precision.
    wide = cov.astype("float32") if cov.dtype == onp.float16 else cov
    factor = linalg.cholesky(wide).astype(cov.dtype, copy=False)
    return mean + einsum("...jk,...k->...j", factor, noise)


def normal_vectors_shape(mean: Any, cov: Any, size: Any) -> tuple[int, ...]:
    """The shape of vectors drawn for means and covariances of these shapes; ValueError where they
    do not fit.
    """
    if len(mean) < 1:
        raise ValueError("mean must be at least 1 dimensional")
    if len(cov) < 2:
        raise ValueError("cov must be at least 2 dimensional")
    if cov[-1] != cov[-2]:
        raise ValueError(f"the last two dimensions of cov have to be the same, whereas its shape is {tuple(cov)}")
    if cov[-1] != mean[-1]:
        raise ValueError(f"mean and cov must have same length: {tuple(mean[-1:])} and {tuple(cov[-2:])}")
    shape = onp.broadcast_shapes(tuple(mean), tuple(cov[:-1]))
    return shape if size is None else extents(size) + shape


def shuffle(x: ndarray) -> None:
    """Puts the rows of an array in random order, in place."""
    call("_npi_shuffle", (x,), None, x)
