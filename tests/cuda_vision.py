"""Calls for cuda_kernels.py: boxes, regions and windows of images."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from cuda_calls import Array, Call, named, values

FLOATS = ("float32", "float64", "float16")


def corners(*shape: int, dtype: str = "float32", high: float = 1) -> Array:
    """Boxes whose sides are positive: left, top, right, bottom."""
    return np.sort(values(*shape, 2, 2, dtype=dtype, low=0, high=high), axis=-2).reshape(*shape, 4)


def box_pairs() -> Iterator[Call]:
    for dtype, form in itertools.product(FLOATS, ("corner", "center")):
        a, b = corners(3, 11, dtype=dtype), corners(29, dtype=dtype)
        yield named("contrib.box_iou", a, b, format=form)
        # Boxes without an area, with negative sides, and what is no number.
        odd = np.array([[0, 0, 0, 0], [1, 1, 0, 0], [0, 0, np.inf, 1], [np.nan, 0, 1, 1], [0.2, 0.2, 0.2, 0.9]], dtype)
        yield named("contrib.box_iou", np.concatenate([odd, b[:2]]), odd, format=form)
        shifts, anchors = values(2, 133, 4, dtype=dtype), corners(1, 133, dtype=dtype)
        for clip in (-1, 0.7):
            attrs = {"std0": 0.1, "std1": 0.1, "std2": 0.2, "std3": 1.5, "clip": clip}
            yield named("contrib.box_decode", shifts, anchors, format=form, **attrs)
    yield named("contrib.box_decode", np.full((1, 1, 4), np.nan, "float32"), corners(1, 1), clip=2.0)
    for dtype in FLOATS:
        samples, matches = values(2, 133, dtype=dtype, low=-1, high=2), values(2, 133, dtype=dtype, low=-2, high=9)
        samples[0, :3] = [np.nan, 0.5, np.inf]
        matches[1, :5] = [6.9, 7, -0.9, np.nan, -1]
        terms = [values(4, dtype=dtype), values(4, dtype=dtype, low=0.5, high=2)]
        boxes = [corners(2, 133, dtype=dtype, high=2), corners(2, 7, dtype=dtype, high=2)]
        yield named("contrib.box_encode", samples, matches, *boxes, *terms)


def matching() -> Iterator[Call]:
    for dtype, (rows, columns) in itertools.product(FLOATS, ((13, 5), (40, 70), (1, 1), (300, 3))):
        # Scores of sixteenths, so that some are alike.
        scores = np.round(values(3, rows, columns, dtype=dtype, low=0, high=1) * 16) / 16
        scores[0, 0, 0] = np.nan
        for attrs in ({"threshold": 0.2}, {"threshold": 1e-12, "topk": 3}, {"threshold": 0.6, "is_ascend": True}):
            yield named("contrib.bipartite_matching", scores, **attrs)
    yield named("contrib.bipartite_matching", np.full((2, 9, 20), np.nan, "float32"), threshold=0.5)
    yield named("contrib.bipartite_matching", values(37, 41), threshold=-1e9, topk=-1)
    yield named("contrib.bipartite_matching", np.zeros((2, 0, 3), "float32"), threshold=0.5)


VISION: dict[str, Callable[[], Iterator[Call]]] = {
    "box_pairs": box_pairs,
    "matching": matching,
}
