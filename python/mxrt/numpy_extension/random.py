"""Random arrays that NumPy does not have: ``mx.npx.random``."""

from __future__ import annotations

from typing import Any

from .._values.dtypes import dtype_name
from ..numpy._call import call, create, is_tensor
from ..numpy.random import draw, size_text
from ..random import seed as _seed

__all__ = ["bernoulli", "normal_n", "seed", "uniform_n"]


def seed(seed: int, ctx: Any = "all") -> None:
    """Starts the random stream again. One stream serves all contexts."""
    _seed(seed, ctx)


def bernoulli(
    prob: Any = None, logit: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """1 with a probability, else 0; `prob` or `logit` is given. float32 unless `dtype` says
    otherwise.
    """
    if (prob is None) == (logit is None):
        raise ValueError("Either `prob` or `logit` must be specified, but not both. ")
    given = logit if prob is None else prob
    attrs: dict[str, Any] = {
        "prob": "None",
        "logit": "None",
        "is_logit": prob is None,
        "size": size_text(size),
        "dtype": dtype_name(dtype),
    }
    if is_tensor(given):
        return call("_npi_bernoulli", (given,), attrs, out)
    attrs["logit" if prob is None else "prob"] = given
    return create("_npi_bernoulli", attrs, ctx, out)


def uniform_n(low: Any = 0.0, high: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Evenly distributed between `low` and `high`, with axes before those of the parameters."""
    return draw("_npi_uniform_n", {"low": low, "high": high}, batch_shape, ctx, None, dtype=dtype_name(dtype))


def normal_n(loc: Any = 0.0, scale: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Normally distributed around `loc`, with axes before those of the parameters."""
    return draw("_npi_normal_n", {"loc": loc, "scale": scale}, batch_shape, ctx, None, dtype=dtype_name(dtype))
