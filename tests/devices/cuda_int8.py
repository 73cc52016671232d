"""Calls for cuda_kernels.py: 8-bit integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from cuda_calls import Array, Call, named, values


def ends(low: float, high: float) -> list[Array]:
    """A range as two arrays."""
    return [np.array([low], "float32"), np.array([high], "float32")]


def integers(*shape: int, dtype: str = "int8") -> Array:
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)
    return values(*shape, dtype=dtype, low=low, high=high)


def int8() -> Iterator[Call]:
    yield from numbers()
    yield from sums()
    yield from layers()


def numbers() -> Iterator[Call]:
    for out_type in ("int8", "uint8"):
        for low, high in ((-1.7, 2.3), (0, 0.31), (0, 0)):
            yield named("contrib.quantize", values(5, 70), *ends(low, high), out_type=out_type)
            if high:
                attrs = {"out_type": out_type, "min_calib_range": low, "max_calib_range": high}
                yield named("contrib.quantize_v2", values(5, 70), **attrs)
        for size in (1, 7, 130, 5000):
            yield named("contrib.quantize_v2", values(size, low=-3), out_type=out_type)
        passed = integers(3, 70, dtype=out_type)
        yield named("contrib.quantize_v2", passed, out_type=out_type)
        yield named("contrib.quantize_v2", passed, out_type=out_type, min_calib_range=-1, max_calib_range=1)
        yield named("contrib.dequantize", passed, *ends(-1.3, 0.9))
        yield named("contrib.dequantize", passed, *ends(0, 0))
    yield named("contrib.quantize_v2", values(9), out_type="auto", min_calib_range=0, max_calib_range=1)
    # Halves between integers, numbers out of range, and what is none.
    special = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.6, -200, 300, 0, -0.0, np.nan], "float32")
    for out_type in ("int8", "uint8"):
        yield named("contrib.quantize", special, *ends(-127, 127 if out_type == "int8" else 255), out_type=out_type)
        for data in (special, np.zeros(5, "float32"), np.full(3, np.nan, "float32")):
            yield named("contrib.quantize_v2", data, out_type=out_type)
    infinite = np.array([np.inf, -np.inf, 1, 0], "float32")
    yield named("contrib.quantize_v2", infinite, min_calib_range=-1, max_calib_range=2)
    for out_type, size in itertools.product(("int8", "uint8"), (1, 300, 5000)):
        data = values(size, dtype="int32", low=-3e8, high=2e8)
        yield named("contrib.requantize", data, *ends(-4, 4), out_type=out_type)
        attrs = {"min_calib_range": 0, "max_calib_range": 0.2}
        yield named("contrib.requantize", data, *ends(-4, 4), out_type=out_type, **attrs)
    extreme = np.array([-(2**31), 2**31 - 1, 0, 77], "int32")
    yield named("contrib.requantize", extreme, *ends(-1, 1))
    yield named("contrib.requantize", np.zeros(3, "int32"), *ends(-1, 1))


def sums() -> Iterator[Call]:
    for a, b in itertools.product(("int8", "uint8"), ("int8", "uint8")):
        x, y = integers(3, 90, dtype=a), integers(3, 90, dtype=b)
        for first, second in ((ends(-1, 1), ends(-2.5, 2)), (ends(0, 0), ends(0, 0.3)), (ends(0, 0), ends(0, 0))):
            yield named("contrib.quantized_elemwise_add", x, y, *first, *second)
            attrs = {"min_calib_range": -2.1, "max_calib_range": 1.9}
            yield named("contrib.quantized_elemwise_add", x, y, *first, *second, **attrs)
    for dtype in ("int8", "uint8"):
        x = integers(2, 3, 5, 7, dtype=dtype)
        yield named("contrib.quantized_act", x, *ends(-1, 2), act_type="relu")
        yield named("contrib.quantized_flatten", x, *ends(-1, 2))


def layers() -> Iterator[Call]:
    for dtype in ("int8", "uint8"):
        image = integers(2, 3, 9, 7, dtype=dtype)
        for kind, attrs in itertools.product(
            ("max", "avg"),
            (
                {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 1)},
                {"kernel": (2, 3), "pooling_convention": "full", "stride": (2, 2)},
                {"kernel": (1, 1), "global_pool": True},
            ),
        ):
            yield named("contrib.quantized_pooling", image, *ends(-1, 1), pool_type=kind, **attrs)
        attrs = {"kernel": (3, 3), "pad": (1, 1), "count_include_pad": False}
        yield named("contrib.quantized_pooling", image, *ends(-1, 1), pool_type="avg", **attrs)
        yield named("contrib.quantized_pooling", integers(2, 3, 11, dtype=dtype), *ends(-1, 1), kernel=(4,))
        ranges = [*ends(-1.5, 1), *ends(-0.3, 0.4)]
        for bias in (False, True):
            # A layer with a bias has its range last.
            added = [integers(5)] if bias else []
            last = ends(-0.2, 0.1) if bias else []
            data, weight = integers(3, 2, 37, dtype=dtype), integers(5, 74)
            attrs = {"num_hidden": 5, "no_bias": not bias}
            yield named("contrib.quantized_fully_connected", data, weight, *added, *ranges, *last, **attrs)
            nothing = [*ends(0, 0), *ends(-0.3, 0.4)]
            yield named("contrib.quantized_fully_connected", data, weight, *added, *nothing, *last, **attrs)
            given = {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 2), "dilate": (1, 2)}
            given |= {"num_group": 2, "num_filter": 8, "no_bias": not bias}
            added = [integers(8)] if bias else []
            data, weight = integers(2, 6, 11, 9, dtype=dtype), integers(8, 3, 3, 2)
            yield named("contrib.quantized_conv", data, weight, *added, *ranges, *last, **given)
        attrs = {"num_filter": 4, "no_bias": True}
        data, weight = integers(2, 5, 14, dtype=dtype), integers(4, 5, 3)
        yield named("contrib.quantized_conv", data, weight, *ranges, kernel=(3,), **attrs)
        data, weight = integers(1, 2, 5, 6, 7, dtype=dtype), integers(4, 2, 2, 3, 2)
        yield named("contrib.quantized_conv", data, weight, *ranges, kernel=(2, 3, 2), **attrs)


INT8: dict[str, Callable[[], Iterator[Call]]] = {"int8": int8}
