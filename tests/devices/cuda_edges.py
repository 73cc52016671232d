"""Calls for cuda_kernels.py: extreme numbers, windows of nothing, matrices without full rank."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

import mxrt as mx
from cuda_calls import Call, named, values
from cuda_linalg import in_np

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e30, -1e30, 65504.0, 0.5, -1.5, 20.5, -20.5]
# Integers that neither single nor double precision holds, and the ends of 64 bits.
LARGE = [2**24 + 1, -(2**24) - 1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 3, -1, 0]


def functions() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16"):
        with np.errstate(over="ignore"):
            x = np.array(SPECIAL, dtype)
        for low, high in ((1, -1), (-1e30, 1.5), (-np.inf, np.inf)):
            yield named("clip", x, a_min=low, a_max=high)
        yield named("Activation", x, act_type="softrelu")
        yield named("erfinv", values(70, dtype=dtype, low=-1, high=1))
        yield named("erfinv", np.array([0.0, 1, -1, 1.5, np.nan, 1e-7, 0.9995], dtype))
        for name in ("selu", "gelu", "elu", "leaky"):
            yield named("LeakyReLU", values(70, dtype=dtype, low=-9, high=9), act_type=name, slope=0.3)
    large = np.array(LARGE, "int64")
    for name in ("abs", "negative", "square", "sign"):
        yield named(name, large)
    for low, high in ((-1e30, 1e30), (1, -1), (-0.5, 2**24), (1.5, 1e10)):
        yield named("clip", large, a_min=low, a_max=high)
        for dtype in ("int8", "uint8", "int32"):
            yield named("clip", values(40, dtype=dtype, low=0, high=100), a_min=low, a_max=high)
    for name in ("power", "hypot", "mod", "div"):
        yield named(f"broadcast_{name}", large, np.array(LARGE[::-1], "int64"))
    for dtype in ("int8", "uint8", "int32", "int64"):
        whole = values(40, dtype=dtype, low=0, high=9)
        for name in ("exp", "log", "sin", "arctan", "tanh", "sqrt", "rsqrt", "reciprocal", "cbrt", "gamma", "sigmoid"):
            yield named(name, whole)
        yield in_np("functions of two", lambda x: [mx.np.copysign(x, -2), mx.np.arctan2(x, 3)], whole)
    yield "a number of 64 bits", lambda x: [x - 1e30, 1e30 - x, x > 1e30], [large]
    truths = np.array([[False, True], [True, True]])
    for name in ("add", "sub", "mul", "maximum"):
        yield named(f"broadcast_{name}", truths, truths[::-1].copy())
    for name, axis in itertools.product(("sum", "mean", "prod", "max", "min", "nansum", "norm"), (0, 1, None)):
        yield named(name, truths[:1], axis=axis)
    yield in_np("running sums of truths", lambda x: [mx.np.cumsum(x), mx.np.cumsum(x, 0, dtype="float64")], truths)
    spread = np.array([[1e30, -1e30, 3e29], [1e-30, 2e-30, 0]], "float32")
    yield in_np("variances", lambda x: [mx.np.std(x, axis=1), mx.np.var(x * 1e-12, axis=1)], spread)


def positions() -> Iterator[Call]:
    """Indices and lengths that 64 bits do not hold, and numbers too large for their types."""
    for dtype in ("float32", "float64", "float16"):
        wild = np.array([np.nan, np.inf, -np.inf, 2.9, -0.5, -1.5], dtype)
        for mode in ("clip", "wrap"):
            yield named("take", values(5, 3), wild, mode=mode)
            yield named("pick", values(6, 5), wild, axis=1, mode=mode)
        yield named("one_hot", wild, depth=3)
        for name in ("SequenceMask", "SequenceLast", "SequenceReverse"):
            yield named(name, values(4, 6), wild, use_sequence_length=True)
        yield named("softmax", values(6, 4), wild, use_length=True)
    for dtype, number in itertools.product(("int8", "uint8", "int32", "int64"), (300, -1, 3e9, 1e30)):
        yield named("one_hot", np.array([1, 0]), depth=3, on_value=number, off_value=-number, dtype=dtype)
        ended = np.array([1, 2], "int32")
        yield named("SequenceMask", values(4, 2, dtype=dtype), ended, use_sequence_length=True, value=number)


def windows() -> Iterator[Call]:
    """Windows that end before they begin, and pixels with shares of nothing."""
    for spatial, dtype in itertools.product(((2,), (2, 5), (2, 2, 3)), ("float32", "float64", "float16")):
        attrs = {"kernel": (1,) * len(spatial), "stride": (3,) * len(spatial), "pooling_convention": "full"}
        for kind, padded in (("avg", True), ("avg", False), ("max", True), ("sum", True)):
            image = values(2, 8, *spatial, dtype=dtype)
            yield named("Pooling", image, pool_type=kind, count_include_pad=padded, **attrs)
    image = values(2, 8, 6, 7)
    image[:, ::3, 1::2] = np.nan
    image[:, 1, ::2] = -np.inf
    for layout in ("NCHW", "NHWC"):
        turned = image if layout == "NCHW" else np.ascontiguousarray(image.transpose(0, 2, 3, 1))
        for kernel in ((1, 1), (2, 3)):
            yield named("Pooling", turned, kernel=kernel, pool_type="max", layout=layout)
    yield named("contrib.BilinearResize2D", image, height=6, width=7, align_corners=False)
    nowhere = np.array([[0, np.inf, 0, 3, 3], [1, 0, np.nan, 4, 4], [0, -1e30, 1, 1e30, 2], [1, 9e18, 0, -9e18, 9]])
    for scale, dtype in itertools.product((0, 0.5, 1), ("float32", "float64")):
        regions = nowhere.astype(dtype)
        yield named("ROIPooling", values(2, 3, 5, 5, dtype=dtype), regions, pooled_size=(2, 2), spatial_scale=scale)
    attrs = {"scale": 2, "sample_type": "bilinear", "num_filter": 3, "num_args": 2}
    grown = [array.astype("float16") for array in (values(2, 3, 4, 5), values(3, 1, 4, 4))]
    yield named("UpSampling", *grown, **attrs)


def matrices() -> Iterator[Call]:
    """Matrices without full rank, of subnormal numbers, and with NaN."""
    for order, dtype in itertools.product((5, 64), ("float32", "float64")):
        down, right = np.arange(order)[:, None], np.arange(order)[None, :]
        blocks, mask = down % 2 == right % 2, np.maximum(down, right) >= order // 2
        for made in (0 * down + 0 * right + 3, down * right, blocks, mask):
            yield "eigenvalues", lambda x: mx.nd.linalg.syevd(x)[1], [(made / order**2).astype(dtype)]
    for least in (5e-324, 3e-310):
        yield named("linalg.gelqf", least * np.arange(1, 16, dtype="float64").reshape(3, 5) ** 2)
    for dtype in ("float32", "float64"):
        lacking = np.array([[[0, np.nan], [1, 2]], [[np.nan, 0], [0, 0]], [[3, 1], [1, np.nan]]], dtype)
        yield named("linalg.gelqf", lacking)


def sums() -> Iterator[Call]:
    """Diagonals and products at the ends of types, and matrices that are not read."""
    for dtype in ("float32", "float64", "float16"):
        with np.errstate(over="ignore"):
            special = np.resize(np.array(SPECIAL, dtype), (4, 4))
        yield in_np("traces", lambda x: [mx.np.trace(x), mx.np.trace(x, 1), mx.np.trace(-x * 0)], special)
        factors = [values(3, 4, dtype=dtype), values(4, 2, dtype=dtype), np.full((3, 2), np.nan, dtype)]
        yield named("linalg.gemm", *factors, beta=0)
        yield named("linalg.gemm", *factors, beta=1e-3)
        yield named("linalg.gemm", values(3, 0, dtype=dtype), values(0, 2, dtype=dtype), factors[0][:, :2], beta=-3)
    # Sums that float32 does not hold.
    yield in_np("trace of large numbers", mx.np.trace, np.diag(np.array([2**24, 1, 1, 1], "float32")))
    yield in_np("trace of nothing", lambda x: [mx.np.trace(x), mx.np.trace(x, axis1=1, axis2=2)], values(0, 3, 4))
    large = np.array(LARGE[:8], "int64").reshape(2, 4)
    yield in_np("traces of 64 bits", lambda x: [mx.np.trace(x), mx.np.trace(x, 2)], large)
    yield in_np("products of 64 bits", lambda x: [mx.np.dot(x[:, :1], x[:1]), mx.np.dot(x, x.T)], large)
    small = np.array([[127, -128], [100, 100]], "int8")
    yield in_np("products that wrap", lambda x: [mx.np.dot(x, x), mx.np.matmul(x, x.T)], small)


def edges() -> Iterator[Call]:
    yield from functions()
    yield from positions()
    yield from windows()
    yield from matrices()
    yield from sums()


EDGES: dict[str, Callable[[], Iterator[Call]]] = {"edges": edges}
