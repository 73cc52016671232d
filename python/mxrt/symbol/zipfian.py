"""Classes drawn by their rank: ``mx.sym.contrib.rand_zipfian``."""

from __future__ import annotations

import math

from ..ndarray.zipfian import expected_counts
from . import random
from .symbol import Symbol

__all__ = ["rand_zipfian"]


def rand_zipfian(true_classes: Symbol, num_sampled: int, range_max: int) -> tuple[Symbol, Symbol, Symbol]:
    """Classes that are drawn at each call, as by :func:`mxrt.nd.contrib.rand_zipfian`, and the
    expected counts of `true_classes` and of the drawn ones.
    """
    drawn = random.uniform(0, math.log(range_max + 1), (num_sampled,), "float64")
    classes = (drawn.exp() - 1).astype("int64") % range_max
    return classes, *(expected_counts(of, num_sampled, range_max) for of in (true_classes, classes))
