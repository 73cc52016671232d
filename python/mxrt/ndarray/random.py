"""Random arrays: ``mx.nd.random``. As other operators, the functions take a name and ignore it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _mxrt
from .._operators.functions import module_functions as _module_functions
from .._values.distributions import check_parameters
from .._values.dtypes import operator_dtype
from .._values.extents import extents
from ..base import _Null
from ..context import Context, current_context
from ._make import make as _make
from ._refusals import checked_array
from .ndarray import NDArray

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "shuffle",
    "uniform",
]

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._signatures import random as _signatures
    from .._signatures.random import *  # noqa: F403

    __all__ += _signatures.__all__  # type: ignore[has-type]

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = _module_functions(globals(), "random", _make)


def _sample(
    kind: str,
    parameters: dict[str, Any],
    renamed: dict[str, str],
    shape: Any,
    dtype: Any,
    ctx: Any,
    out: Any,
    kwargs: dict[str, Any],
) -> Any:
    """One distribution: with numbers for its parameters, or with arrays, one draw for each
    element. Other keywords are attributes of the operator, except for its name.

    Raises ValueError if the first parameter is neither a number nor an array, AssertionError if
    another is not of the same kind.
    """
    kwargs.pop("name", None)
    values = list(parameters.values())
    if dtype is _Null and isinstance(out, NDArray):
        dtype = out.dtype
    attrs: dict[str, Any] = kwargs if dtype is _Null else {**kwargs, "dtype": operator_dtype(dtype)}
    if all(isinstance(v, NDArray) for v in values):
        if shape is not None:
            attrs["shape"] = extents(shape)
        return _mxrt.invoke(f"_sample_{kind}", tuple(values), attrs, out)
    check_parameters(values, NDArray, "NDArray")
    attrs.update({renamed.get(k, k): v for k, v in parameters.items()})
    if shape is not None:
        attrs["shape"] = extents(shape)
    elif out is None:
        attrs["shape"] = (1,)
    device = (current_context() if ctx is None else Context(ctx))._device
    return _mxrt.invoke(f"_random_{kind}", (), attrs, out, device)


def uniform(
    low: Any = 0,
    high: Any = 1,
    shape: Any = None,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Evenly distributed between `low` and `high`."""
    return _sample("uniform", {"low": low, "high": high}, {}, shape, dtype, ctx, out, kwargs)


def normal(
    loc: Any = 0,
    scale: Any = 1,
    shape: Any = None,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Normally distributed around `loc` with deviation `scale`."""
    return _sample("normal", {"loc": loc, "scale": scale}, {}, shape, dtype, ctx, out, kwargs)


def randn(*shape: int, **kwargs: Any) -> Any:
    """Normally distributed, of the given shape."""
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    return normal(loc, scale, shape or (1,), **kwargs)


def poisson(
    lam: Any = 1, shape: Any = None, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    """Poisson distribution with mean `lam`."""
    return _sample("poisson", {"lam": lam}, {}, shape, dtype, ctx, out, kwargs)


def exponential(
    scale: Any = 1, shape: Any = None, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    """Exponential distribution with mean `scale`."""
    return _sample("exponential", {"lam": 1.0 / scale}, {}, shape, dtype, ctx, out, kwargs)


def gamma(
    alpha: Any = 1,
    beta: Any = 1,
    shape: Any = None,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Gamma distribution with shape `alpha` and scale `beta`."""
    return _sample("gamma", {"alpha": alpha, "beta": beta}, {}, shape, dtype, ctx, out, kwargs)


def negative_binomial(
    k: Any = 1,
    p: Any = 1,
    shape: Any = None,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Failures before the `k`-th success with probability `p`."""
    return _sample("negative_binomial", {"k": k, "p": p}, {}, shape, dtype, ctx, out, kwargs)


def generalized_negative_binomial(
    mu: Any = 1,
    alpha: Any = 1,
    shape: Any = None,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Negative binomial distribution by mean `mu` and dispersion `alpha`."""
    return _sample("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, {}, shape, dtype, ctx, out, kwargs)


def randint(
    low: Any,
    high: Any,
    shape: Any = None,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Whole numbers from `low` up to, but without, `high`."""
    if dtype is _Null and out is None:
        dtype = "int32"
    return _sample("randint", {"low": low, "high": high}, {}, shape, dtype, ctx, out, kwargs)


def multinomial(
    data: NDArray,
    shape: Any = None,
    get_prob: bool = False,
    out: Any = None,
    dtype: Any = "int32",
    **kwargs: Any,
) -> Any:
    """Draws of categories with the given probabilities."""
    kwargs.pop("name", None)
    attrs: dict[str, Any] = {**kwargs, "get_prob": get_prob, "dtype": operator_dtype(dtype)}
    if shape is not None:
        attrs["shape"] = extents(shape)
    return _mxrt.invoke("_sample_multinomial", (checked_array(data),), attrs, out)


def shuffle(data: NDArray, out: Any = None, **kwargs: Any) -> Any:
    """Rows in random order."""
    kwargs.pop("name", None)
    return _mxrt.invoke("_shuffle", (checked_array(data),), kwargs, out)
