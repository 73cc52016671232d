"""Symbols of random arrays: ``mx.sym.random``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._operators.functions import module_functions as _module_functions
from .._values.distributions import check_parameters
from .._values.dtypes import operator_dtype
from .._values.extents import extents
from ..base import _Null
from ._make import make as _make
from ._operators import apply
from .symbol import Symbol

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


def _sample(kind: str, parameters: dict[str, Any], shape: Any, dtype: Any, kwargs: dict[str, Any]) -> Symbol:
    attrs: dict[str, Any] = {} if dtype is _Null else {"dtype": operator_dtype(dtype)}
    if shape is not None:
        attrs["shape"] = extents(shape)
    name = kwargs.pop("name", None)
    values = list(parameters.values())
    if all(isinstance(v, Symbol) for v in values):
        return apply(f"_sample_{kind}", f"_sample_{kind}", values, {**attrs, **kwargs}, name)
    check_parameters(values, Symbol, "Symbols")
    return apply(f"_random_{kind}", f"_random_{kind}", [], {**parameters, **attrs, **kwargs}, name)


def uniform(low: Any = 0, high: Any = 1, shape: Any = None, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Evenly distributed between `low` and `high`."""
    return _sample("uniform", {"low": low, "high": high}, shape, dtype, kwargs)


def normal(loc: Any = 0, scale: Any = 1, shape: Any = None, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Normally distributed around `loc` with deviation `scale`."""
    return _sample("normal", {"loc": loc, "scale": scale}, shape, dtype, kwargs)


def randn(*shape: int, **kwargs: Any) -> Symbol:
    """Normally distributed around `loc` with deviation `scale`, 0 and 1 unless given; the shape as
    arguments.
    """
    dtype = kwargs.pop("dtype", _Null)
    return normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), shape or None, dtype, **kwargs)


def poisson(lam: Any = 1, shape: Any = None, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Poisson distributed with mean `lam`."""
    return _sample("poisson", {"lam": lam}, shape, dtype, kwargs)


def exponential(scale: Any = 1, shape: Any = None, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Exponentially distributed with mean `scale`."""
    return _sample("exponential", {"lam": 1.0 / scale}, shape, dtype, kwargs)


def gamma(alpha: Any = 1, beta: Any = 1, shape: Any = None, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Gamma distributed with shape `alpha` and scale `beta`."""
    return _sample("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, kwargs)


def negative_binomial(k: Any = 1, p: Any = 1, shape: Any = None, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """How often one fails before `k` successes that have probability `p` each."""
    return _sample("negative_binomial", {"k": k, "p": p}, shape, dtype, kwargs)


def generalized_negative_binomial(
    mu: Any = 1, alpha: Any = 1, shape: Any = None, dtype: Any = _Null, **kwargs: Any
) -> Symbol:
    """Negative binomial with mean `mu` and dispersion `alpha`."""
    return _sample("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, kwargs)


def randint(low: int, high: int, shape: Any = None, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Whole numbers from `low` to `high`, which is left out; numbers only."""
    if isinstance(low, Symbol) or isinstance(high, Symbol):
        raise ValueError("Distribution parameters of randint must be numbers.")
    return _sample("randint", {"low": low, "high": high}, shape, dtype, kwargs)


def multinomial(data: Symbol, shape: Any = None, get_prob: bool = True, dtype: Any = "int32", **kwargs: Any) -> Symbol:
    """Numbers of classes drawn with the probabilities in the last axis of `data`; with `get_prob`
    also the logarithms of the probabilities of those drawn.
    """
    attrs: dict[str, Any] = {"get_prob": get_prob, "dtype": operator_dtype(dtype)}
    if shape is not None:
        attrs["shape"] = extents(shape)
    name = kwargs.pop("name", None)
    return apply("_sample_multinomial", "_sample_multinomial", [data], {**attrs, **kwargs}, name)


def shuffle(data: Symbol, **kwargs: Any) -> Symbol:
    """The parts of `data` along its first axis in random order."""
    name = kwargs.pop("name", None)
    return apply("_shuffle", "_shuffle", [data], kwargs, name)
