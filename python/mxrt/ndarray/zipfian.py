"""Classes drawn by their rank: ``mx.nd.contrib.rand_zipfian``."""

from __future__ import annotations

import math
from typing import Any

from ..context import current_context
from . import random
from .ndarray import NDArray

__all__ = ["rand_zipfian"]


def rand_zipfian(
    true_classes: NDArray, num_sampled: int, range_max: int, ctx: Any = None
) -> tuple[NDArray, NDArray, NDArray]:
    """Classes from 0 to `range_max` - 1, drawn with replacement: class k with the probability
    (log(k + 2) - log(k + 1)) / log(range_max + 1).

    The numbers are drawn on `ctx`, without it in the current context.

    Returns `num_sampled` classes (int64), and how often each of `true_classes` and each drawn one
    is expected among them (float64).
    """
    drawn = random.uniform(0, math.log(range_max + 1), (num_sampled,), "float64", ctx or current_context())
    classes = (drawn.exp() - 1).astype("int64") % range_max
    return classes, *(
        expected_counts(of.as_in_context(classes.context), num_sampled, range_max) for of in (true_classes, classes)
    )


def expected_counts(classes: Any, num_sampled: int, range_max: int) -> Any:
    """How often each class is expected among `num_sampled` draws."""
    rank = classes.astype("float64") + 1.0
    return ((rank + 1.0) / rank).log() / math.log(range_max + 1) * num_sampled
