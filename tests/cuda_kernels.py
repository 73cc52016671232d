"""A child of test_cuda_kernels.py: operators on gpu(0), against those of the CPU.

    cuda_kernels.py [--orders FIRST-LAST] [--first] [--daily] [GROUP ...]

The driver is the stand-in of crates/cuda-standin, where kernels run on the host: those with
barriers with the threads of a block in as many orders as asked for, up to six. With a real driver
they run on the GPU. Prints one line of JSON: the number of calls, and those that gave something
else; with --first it ends at the first. Exits with 1 if there is one. With --daily some calls that
take long on the host are left out.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mxrt as mx
from cuda_calls import SEQUENCES_AND_IMAGES, Array, Call, named, of_16_bits, values
from cuda_draws import DRAWS
from cuda_edges import EDGES
from cuda_int8 import INT8
from cuda_layouts import layouts, pools
from cuda_linalg import LINEAR_ALGEBRA, in_np
from cuda_tiles import dense_functions, tiles
from cuda_vision import VISION

TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11}
GPU = mx.gpu(0)


# ---- elements ------------------------------------------------------------------------------------

INTEGERS = ("uint8", "int8", "int32", "int64")


def conversions() -> Iterator[Call]:
    ends = [300, -1, 127.5, -128.5, 255.9, 3e9, -3e9, 2147483647, -2147483648, 1e19, -1e19, 1.9, -0.5]
    for dtype, to in itertools.product(("float32", "float64"), INTEGERS):
        x = np.array([*ends, np.nan, np.inf, -np.inf], dtype)
        yield f"to {to}", lambda x, to=to: [x.astype(to), mx.nd.Cast(x + 0, dtype=to)], [x]
    halves = np.array([300, -1, 65504, -65504, np.nan, np.inf, -0.5], "float16")
    for to in (*INTEGERS, "bool"):
        yield f"to {to}", lambda x, to=to: x.astype(to), [halves]
    # By way of a double, the first would be rounded to another number of single precision.
    numbers = np.array([9007199791611905, -9007199791611905, 2**62 + 1, -(2**63), 300, 255, -129], "int64")
    for to in ("float32", "float64", "float16", "uint8", "int8", "int32", "bool"):
        yield f"to {to}", lambda x, to=to: x.astype(to), [numbers]
    for to in INTEGERS:
        filled = lambda x, to=to: [mx.nd.full((3,), v, dtype=to, ctx=x.context) for v in (300, -1, 3e9)]  # noqa: E731
        yield f"full of {to}", filled, [values(1)]


UNARY = {
    "abs sign negative square cbrt exp expm1 sin cos arctan sinh cosh tanh arcsinh degrees radians floor ceil trunc "
    "fix rint round sigmoid softsign relu erf logical_not hard_sigmoid": (-2.2, 2.2),
    "rcbrt reciprocal sqrt rsqrt log log2 log10 log1p gamma gammaln": (0.2, 4),
    "tan": (-1.2, 1.2),
    "arcsin arccos arctanh": (-0.95, 0.95),
    "arccosh": (1.1, 4),
}
COMPARISONS = "equal not_equal greater greater_equal lesser lesser_equal logical_and logical_or logical_xor"
BINARY = f"add sub mul div mod power maximum minimum hypot {COMPARISONS}"


def elementwise() -> Iterator[Call]:
    for names, (low, high) in UNARY.items():
        for name, dtype in itertools.product(names.split(), ("float32", "float64", "float16")):
            if name != "logical_not" or dtype != "float16":
                yield named(name, values(3, 5, 7, dtype=dtype, low=low, high=high))
    for name, dtype in itertools.product(("abs", "sign", "negative", "relu"), ("int32", "int64", "int8")):
        yield named(name, values(4, 70, dtype=dtype, low=-100, high=100))
    for dtype in ("int32", "int64", "int8", "uint8"):
        a, b = values(4, 70, dtype=dtype, low=0, high=9), values(4, 70, dtype=dtype, low=0, high=4)
        if dtype != "uint8":
            b = b - 2
        yield named("square", a)
        yield named("clip", a - 3, a_min=1, a_max=5)
        for name in ("div", "mod", "power", "hypot"):
            yield named(f"broadcast_{name}", a, b)
        yield "integers and numbers", lambda x: [x / 2, 7 / x, x % 3, 20 % x, x**3, 2**x], [a + 1]
    yield named("broadcast_power", values(9, dtype="int32", low=9, high=99), values(9, dtype="int32", low=6, high=30))
    yield named("relu", values(1100, 1100))
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], "float32")
    for name in ("relu", "abs", "sign", "round", "rint", "fix", "sigmoid", "tanh", "exp", "sqrt", "floor"):
        yield named(name, special)
    for name in ("isnan", "isinf", "isfinite"):
        yield named(f"contrib.{name}", special)
    for name, dtype in itertools.product(BINARY.split(), ("float32", "float64")):
        low = 0.3 if name in ("power", "mod", "div") else -2
        a, b = values(2, 1, 5, 1, 3, dtype=dtype, low=low), values(1, 4, 5, 2, 1, dtype=dtype, low=low, high=3)
        yield named(f"broadcast_{name}", a, b)
    for name, dtype in itertools.product(("add", "mul", "maximum", "greater"), ("int32", "int64", "float16")):
        yield named(f"broadcast_{name}", values(6, 1, dtype=dtype), values(6, 9, dtype=dtype, low=-9, high=9))
    yield named("elemwise_add", values(1031), values(1031, low=-1))
    scalars: dict[str, Callable[[Any], Any]] = {
        "+": lambda x: 2.5 + x * 3,
        "-": lambda x: 2.5 - x,
        "/": lambda x: 2.5 / x,
        "%": lambda x: x % 0.7,
        "**": lambda x: (x * x + 1) ** 1.5,
        ">": lambda x: x > 0.25,
        "==": lambda x: x == 1,
    }
    for name, call in scalars.items():
        yield f"scalar {name}", call, [values(5, 77)]
    yield "scalars of integers", lambda x: (x + 3) * 2 - 1, [values(200, dtype="int32", low=-50, high=50)]
    for name in ("leaky", "elu", "selu", "gelu"):
        yield named("LeakyReLU", values(3, 4, 5), act_type=name, slope=0.3)
    for slopes in (values(4, low=0.1, high=0.4), values(1, low=0.1, high=0.4)):
        yield named("LeakyReLU", values(3, 4, 5), slopes, act_type="prelu")
    yield named("Activation", values(3, 4), act_type="softrelu")
    yield named("clip", values(30), a_min=-0.5, a_max=1)
    for count, dtype in itertools.product((1, 2, 5, 8), ("float32", "float16", "int32")):
        yield named("add_n", *[values(6, 50, dtype=dtype, low=1, high=n + 3) for n in range(count)])
    yield named("smooth_l1", values(60), scalar=1.5)
    yield named("contrib.div_sqrt_dim", values(3, 17))
    types = ("float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool")
    for a, b in itertools.product(types, types):
        low = 0 if "uint8" in (a, b) else -3
        yield named("cast", values(45, dtype=a, low=low, high=3), dtype=b)
    yield from conversions()


def chains() -> Iterator[Call]:
    """Functions that a plan joins."""
    x, y, z = (mx.sym.var(name) for name in "xyz")
    graphs = {
        "one loop": mx.sym.relu(x * 2 + 1) * mx.sym.sigmoid(y) - z / 3,
        "broadcast": mx.sym.tanh(mx.sym.broadcast_add(x, y)) * mx.sym.broadcast_mul(x, z),
        "read twice": mx.sym.exp(x) / (mx.sym.exp(x) + y + z),
        "results": mx.sym.Group([x + y, mx.sym.square(x + y) * z, mx.sym.mean(x * z, axis=1)]),
    }
    for name, graph in graphs.items():
        inputs = [values(6, 50), values(6, 50, low=1), values(6, 50, low=-1)]
        if name == "broadcast":
            inputs[1:] = [values(1, 50), values(6, 1)]
        net = mx.gluon.SymbolBlock(graph, [x, y, z])
        yield f"chain {name}", net, inputs


# ---- moving --------------------------------------------------------------------------------------


def assigned(x: Any, y: Any) -> list[Any]:
    x[1:3] = y
    x[:, ::2] = 7
    x[3, 1:4] = y[0, 1:4]
    return [x, x[::2, 1:], x[-1]]


def by_numbers(x: Any, y: Any) -> list[Any]:
    x[[1, 4, 1], 2] = y[0, :3]
    x[[0, 3]] = y
    return [x, x[[4, 0], [1, 1]], x[:, [3, 0, 3]]]


def copied(x: Any) -> Any:
    made = mx.nd.zeros(x.shape, ctx=x.context, dtype=x.dtype)
    x.copyto(made)
    return made


def ranged(x: Any) -> Any:
    return mx.nd.arange(1, 9, 1.5, repeat=3, ctx=x.context, dtype=x.dtype)


def turned(dtype: str) -> Iterator[Call]:
    """Tiles with edges, and few rows or columns, whose pieces are aligned or not."""
    for shape in ((2, 70, 45), (1, 65, 130), (3, 9, 64), (2, 3, 2064), (2, 3, 4111), (1, 8, 300), (2, 5, 2048)):
        x = values(*shape, dtype=dtype, low=-99, high=99)
        yield named("transpose", x, axes=(0, 2, 1))
        yield named("transpose", np.ascontiguousarray(x.transpose(0, 2, 1)), axes=(0, 2, 1))
    yield named("transpose", values(3, 20, 2, 33, dtype=dtype, low=-99, high=99), axes=(2, 3, 0, 1))
    yield named("transpose", values(3, 11, 2, 3, 10, dtype=dtype, low=-99, high=99), axes=(3, 4, 2, 1, 0))


def moving() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16", "int8", "int64"):
        x = values(3, 4, 5, 6, dtype=dtype, low=-9, high=9)
        yield named("transpose", x, axes=(2, 0, 3, 1))
        yield named("slice", x, begin=(2, None, 4, 0), end=(None, 3, 0, 6), step=(-1, 2, -2, 3))
        yield from turned(dtype)
    x = values(3, 4, 5)
    yield named("flip", x, axis=1)
    yield named("swapaxes", x, dim1=0, dim2=2)
    yield named("reshape", x, shape=(-1, 10))
    yield named("expand_dims", x, axis=1)
    yield named("squeeze", values(1, 3, 1, 5))
    yield named("flatten", x)
    yield named("slice_axis", x, axis=2, begin=1, end=-1)
    yield named("slice_like", x, values(2, 2, 2))
    yield named("split", x, num_outputs=2, axis=1)
    yield named("concat", x, values(3, 7, 5), values(3, 1, 5), dim=1)
    yield named("stack", x, values(3, 4, 5, low=1), axis=-1)
    yield named("broadcast_to", values(1, 4, 1), shape=(3, 4, 5))
    yield named("broadcast_axis", values(1, 4, 1), axis=(0, 2), size=(3, 5))
    for mode, dtype in itertools.product(("constant", "edge", "reflect"), ("float32", "int32")):
        attrs = {"mode": mode, "constant_value": 3}
        yield named("pad", values(2, 3, 4, 5, dtype=dtype), pad_width=(0, 0, 0, 0, 2, 1, 0, 3), **attrs)
        if dtype == "float32":
            yield named("pad", values(1, 2, 3, 4, 5), pad_width=(0, 0, 0, 0, 2, 1, 3, 0, 1, 4), **attrs)
    yield named("UpSampling", values(2, 3, 4, 5), scale=3, sample_type="nearest")
    yield named("UpSampling", values(2, 3, 4, 5), values(2, 1, 8, 10), scale=2, sample_type="nearest", num_args=2)
    yield "assigned", assigned, [values(5, 6), values(2, 6)]
    for dtype in ("float32", "float64", "float16", "int8"):
        yield "by numbers", by_numbers, [values(5, 6, dtype=dtype), values(2, 6, dtype=dtype)]
    yield "copied", copied, [values(5, 6)]
    yield "ones like", lambda x: mx.nd.ones_like(x) + mx.nd.zeros_like(x), [values(5, 6)]
    for dtype in ("float32", "int32", "float64"):
        yield "range", ranged, [values(1, dtype=dtype)]
    yield "made", lambda x: [mx.nd.ones((3, 4), ctx=x.context), mx.nd.full((300,), 2.5, ctx=x.context)], [values(1)]


# ---- indexing ------------------------------------------------------------------------------------


def indexing() -> Iterator[Call]:
    wild = np.array([[-7, 0, 3], [9, 1, -1]], "float32")
    for dtype in ("float32", "float16", "float64", "int8"):
        for axis, mode in itertools.product((0, 1, 2), ("clip", "wrap")):
            yield named("take", values(5, 4, 6, dtype=dtype), wild, axis=axis, mode=mode)
    yield named("take", values(5, 4), np.array([4, 0, 2], "int64"), mode="raise")
    yield named("Embedding", np.array([[1, 3], [0, 2]], "float32"), values(4, 9), input_dim=4, output_dim=9)
    yield named("pick", values(3, 4, 5), values(3, 5, low=0, high=3, dtype="int32"), axis=1)
    yield named("pick", values(7, 5), np.array([0, 9, -3, 2, 4, 1, 1], "float32"), axis=1, mode="clip", keepdims=True)
    yield named("batch_take", values(4, 3), np.array([0, 2, 1, 2], "int32"))
    for dtype in ("float32", "float64", "float16", "int32"):
        places = np.array([[0, 2, -1, 1], [3, -4, 0, 2]], "float32")
        yield named("gather_nd", values(3, 4, dtype=dtype), places)
        yield named("gather_nd", values(3, 4, 5, 2, dtype=dtype), places.astype("int64").reshape(2, 2, 2))
        yield named("gather_nd", values(3, 4, dtype=dtype), np.array([[2, 0]], "int32"))
    yield named("one_hot", np.array([[1, 0], [4, -1]], "float32"), depth=5, on_value=2, off_value=-1)
    yield named("one_hot", np.array([1, 3], "int32"), depth=4, dtype="int64")
    condition = np.array([[1, 0, 2], [0, 0, -1]], "float32")
    yield named("where", condition, values(2, 3), values(2, 3, low=1))
    yield named("where", np.array([0, 1], "int32"), values(2, 30), values(2, 30, low=1))


# ---- sums and normalisations ---------------------------------------------------------------------


def long_sums() -> Iterator[Call]:
    """Sums whose numbers all have one sign, so that what is lost at each adds up; and numbers whose
    squares and products are out of the range of their type.
    """
    long = np.full((1, 1 << 20), 0.1, "float32")
    long[:, ::5] = 0.3
    for name in ("sum", "mean", "nansum", "norm"):
        yield named(name, long)
    yield named("norm", long, ord=1)
    yield named("moments", long + 3, axes=None)
    yield in_np("variance", lambda x: [mx.np.var(x), mx.np.std(x, ddof=1), mx.np.mean(x)], long)
    yield named("mean", values(1 << 20, 2, dtype="float16", low=0, high=1), axis=0)
    for numbers in ([1e20, 1e20, -3e19], [1e-30, 2e-30, 0], [1e30, 1e-30, 1e30, 1e-30], [1e-30, 1e-30, 1e30, 1e30]):
        x = np.array([numbers], "float32")
        for name in ("norm", "prod", "nanprod"):
            yield named(name, x, axis=1)
        yield "norms of rows", lambda x: x / mx.nd.norm(x), [x]


def of_nothing(name: str, x: Array, **attrs: Any) -> Call:
    """A function of mx.nd of an array that may have no elements."""

    def call(x: Any) -> Any:
        with mx.util.np_shape(True):
            return getattr(mx.nd, name)(x, **attrs)

    return f"{name} of nothing {attrs}", call, [x]


def reductions() -> Iterator[Call]:
    yield from long_sums()
    for name in ("sum", "prod", "mean", "nansum", "nanprod", "norm"):
        for dtype, shape in itertools.product(("float32", "int32"), ((0, 3), (3, 0))):
            yield of_nothing(name, np.zeros(shape, dtype), axis=0)
    for name, axis in itertools.product(("max", "min"), (0, 1)):
        yield of_nothing(name, np.zeros((3, 0) if axis == 0 else (0, 3), "float32"), axis=axis)
    yield of_nothing("moments", np.zeros((0, 3), "float32"), axes=0)
    for dtype in ("int8", "uint8", "int32", "int64"):
        low = 0 if dtype == "uint8" else -100
        # Sums of 8 bits wrap; of 256 elements the number of elements does, too.
        for count, name in itertools.product((40, 256), ("mean", "norm", "nansum", "nanprod", "prod", "sum")):
            yield named(name, values(3, count, dtype=dtype, low=low, high=100), axis=1)
        yield named("norm", values(3, 40, dtype=dtype, low=low, high=100), axis=1, ord=1)
    for name, axis in itertools.product(("sum", "mean", "max", "min", "prod"), (None, 1, (0, 2), -1)):
        yield named(name, values(4, 33, 7, low=0.6, high=1.4), axis=axis)
    for size in (1, 31, 128, 129, 1000):
        yield named("sum", values(3, size), axis=1, keepdims=True)
        yield named("sum", values(size, 3, dtype="float64"), axis=0)
    yield named("sum", values(4, 33, 7), axis=1, exclude=True)
    with_nan = values(5, 40)
    with_nan[::2, ::3] = np.nan
    for name in ("nansum", "nanprod", "max", "min", "sum"):
        yield named(name, with_nan, axis=1)
    for order, axis in itertools.product((1, 2), (0, 1, (0, 1))):
        yield named("norm", values(40, 5), ord=order, axis=axis)
    for dtype in ("int32", "int64", "float16"):
        for name in ("sum", "max", "min"):
            yield named(name, values(6, 150, dtype=dtype, low=-20, high=20), axis=1)
    for dtype, axes in itertools.product(("float32", "float64", "float16"), (None, 1, (0, 2), (0, 1, 2))):
        yield named("moments", values(4, 33, 7, dtype=dtype), axes=axes, keepdims=axes == 1)
    yield named("moments", values(3, 300), axes=1)
    for dtype, axis in itertools.product(("float32", "float64", "int32", "int64", "int8"), (None, 0, 1)):
        yield named("cumsum", values(5, 300, dtype=dtype, low=0, high=1), axis=axis)
    yield named("cumsum", values(3, 4, 5, dtype="float16"), axis=-2)
    yield named("cumsum", values(3, 7, dtype="int32"), axis=1, dtype="float64")
    ties = np.array([[1, 3, 3, -2], [0, 0, 0, 0], [5, -1, 5, -1]], "float32")
    for name, axis in itertools.product(("argmax", "argmin"), (0, 1)):
        yield named(name, ties, axis=axis)
        yield named(name, values(4, 33, 7), axis=axis)
    yield from long_searches()


def long_searches() -> Iterator[Call]:
    """Rows that blocks search, with several numbers that are the extreme, or with NaNs."""
    for name, dtype in itertools.product(("argmax", "argmin"), ("float32", "float64", "float16", "int64", "int8")):
        whole = values(3, 1000, dtype=dtype, low=-20, high=20)
        whole[0], whole[1, ::37], whole[2, 500:] = 3, 21, -21
        for axis in (0, 1, None):
            yield named(name, whole, axis=axis)
    special = values(4, 300)
    special[0, 7], special[1, 290], special[2, [140, 13, 299]], special[3, 0] = np.nan, np.nan, np.nan, np.nan
    special[3, [5, 200]] = np.inf
    for name, axis in itertools.product(("argmax", "argmin"), (0, 1, None)):
        yield named(name, special, axis=axis)
        yield named(name, special[:, :20].copy(), axis=axis)
        yield named(name, values(3, 400, 5), axis=1)
        yield named(name, np.full((2, 200), -np.inf, "float32"), axis=1)


def order() -> Iterator[Call]:
    ties = np.array([[2, 0, -0.0, np.nan, 2, -np.inf], [1, 1, 1, 1, 1, 1], [np.inf, 3, np.nan, -1, 3, 9]], "float32")
    for up, axis in itertools.product((True, False), (0, 1, None)):
        for x in (ties, values(3, 4, 5, dtype="int64", low=-3, high=3), values(7, 33, dtype="float16")):
            yield named("sort", x, axis=axis, is_ascend=up)
            yield named("argsort", x, axis=axis, is_ascend=up, dtype="int32")
            for kind in ("both", "mask", "value", "indices"):
                yield named("topk", x, axis=axis, is_ascend=up, k=3, ret_typ=kind, dtype="float64")
    for dtype in ("float64", "int8", "uint8", "int32"):
        yield named("topk", values(5, 40, dtype=dtype, low=0, high=9), k=11, ret_typ="both")
    # More than a block sorts, and rows that share a block.
    for shape in ((2, 1024), (1, 1025), (2, 5000), (90, 17), (3, 1)):
        yield named("argsort", values(*shape, low=-40, high=40, dtype="int32"), dtype="int64")
        yield named("sort", values(*shape), is_ascend=False)


def rows() -> Iterator[Call]:
    long = np.full((1, 1, 1 << 20), 0.1, "float32")
    long[:, :, ::5] = 0.3
    one = np.ones(1, "float32")
    yield named("InstanceNorm", long, one, one)
    yield named("GroupNorm", long, one, one, num_groups=1, output_mean_var=True)
    yield named("LayerNorm", long, long[0, 0], long[0, 0], output_mean_var=True)
    for name in ("softmax", "log_softmax"):
        yield named(name, long)
    for scale in (1, 1e25, 1e-25):
        yield named("L2Normalization", values(3, 70) * np.float32(scale), eps=1e-10 if scale == 1 else 0)
    for dtype in ("float32", "float64"):
        for name, axis in itertools.product(("softmax", "log_softmax", "softmin"), (-1, 1)):
            yield named(name, values(3, 150, 4, dtype=dtype, low=-9, high=9), axis=axis)
    yield named("softmax", values(2, 1000), temperature=2.5)
    for dtype, extent in itertools.product(("float32", "float16"), (2, 128, 130, 1024, 1026)):
        row = values(5, extent, dtype=dtype)
        row[3, 1] = np.inf if extent == 2 else np.nan if extent == 130 else row[3, 1]
        for name in ("softmax", "log_softmax", "softmin"):
            yield named(name, row)
        scales = [values(extent, dtype=dtype, low=low) for low in (0.5, -1)]
        yield named("LayerNorm", values(7, extent, dtype=dtype), *scales, output_mean_var=extent == 128)
    lengths = np.array([[3, 1], [0, 5]], "int32")
    yield named("softmax", values(2, 5, 2), lengths, axis=1, use_length=True)
    yield named("log_softmax", values(4, 7, dtype="float16"))
    for axis, dtype in itertools.product((-1, 1), ("float32", "float64")):
        inputs = [array.astype(dtype) for array in (values(5, 65, 65), values(65, low=0.5), values(65, low=-1))]
        yield named("LayerNorm", *inputs, axis=axis, output_mean_var=axis == 1)
    for dtype in ("float32", "float64", "float16"):
        image = values(3, 6, 5, 7, dtype=dtype)
        for name, count, attrs in (("InstanceNorm", 6, {}), ("GroupNorm", 2, {"num_groups": 2})):
            yield named(name, image, values(count, dtype=dtype, low=0.5), values(count, dtype=dtype, low=-1), **attrs)
        for mode in ("instance", "channel", "spatial"):
            yield named("L2Normalization", image, mode=mode)
        for size in (1, 3, 5, 13):
            yield named("LRN", image, nsize=size, alpha=0.1, beta=0.6, knorm=1.5)
    yield named("GroupNorm", values(2, 4, 9), values(4), values(4, low=-1), num_groups=4, output_mean_var=True)
    yield named("LRN", values(2, 33, 3, 3), nsize=9)
    statistics = [values(4, low=0.5, high=1.5), values(4), values(4, low=-1), values(4, low=0.2)]
    for fix_gamma, dtype in itertools.product((True, False), ("float32", "float64")):
        inputs = [array.astype(dtype) for array in (values(3, 4, 5, 6), *statistics)]
        yield named("BatchNorm", *inputs, fix_gamma=fix_gamma, use_global_stats=True)


def pooling() -> Iterator[Call]:
    x = values(2, 3, 9, 11)
    for kind, convention in itertools.product(("max", "avg", "sum"), ("valid", "full")):
        attrs = {"pool_type": kind, "pooling_convention": convention}
        yield named("Pooling", x, kernel=(3, 2), stride=(2, 3), pad=(1, 1), **attrs)
    yield named("Pooling", x, kernel=(3, 3), pad=(1, 1), pool_type="avg", count_include_pad=False)
    for p in (1, 2, 3):
        yield named("Pooling", values(2, 3, 9, 11, low=0), kernel=(2, 2), pool_type="lp", p_value=p)
    for kind in ("max", "avg"):
        yield named("Pooling", x, pool_type=kind, global_pool=True)
    yield named("Pooling", values(2, 3, 20), kernel=(4,), stride=(3,), pool_type="max")
    yield named("Pooling", values(1, 2, 5, 6, 7), kernel=(2, 3, 2), stride=(1, 2, 2), pool_type="avg")
    yield named("Pooling", values(2, 3, 9, 11, dtype="float64"), kernel=(2, 2), pool_type="max")
    yield named("Pooling", values(2, 3, 9, 11, dtype="float16"), kernel=(2, 2), pool_type="avg")
    yield from pools()


def drawn_for_each() -> Iterator[Call]:
    """Numbers with parameters of their own, some of which make no distribution."""
    with_two = ("uniform", "normal", "gamma", "negative_binomial", "generalized_negative_binomial")
    for name, parameters in (*((name, 2) for name in with_two), ("exponential", 1), ("poisson", 1)):
        for dtype, shape in itertools.product(("float32", "float64", "float16"), ((), (70,))):

            def call(*given: Any, name: str = name, shape: tuple[int, ...] = shape) -> Any:
                mx.random.seed(5)
                return getattr(mx.nd, f"sample_{name}")(*given, shape=shape)

            numbers = np.array([[0.5, 1, 3], [0, -1, np.nan], [0.1, 7, 30]], dtype)
            yield f"sample_{name} {shape}", call, [numbers, numbers[::-1].copy()][:parameters]


def random() -> Iterator[Call]:
    """The numbers of the CPU."""

    def drawn(name: str, *parameters: float, **attrs: Any) -> Call:
        def call(x: Any) -> Any:
            mx.random.seed(11)
            function = getattr(mx.nd.random, name)
            return [function(*parameters, shape=(3, 400), ctx=x.context, **attrs) for _ in range(2)]

        return f"random {name} {attrs}", call, [values(1)]

    yield from drawn_for_each()
    yield drawn("uniform", -1.5, 4.0)
    yield drawn("uniform", -1.5, 4.0, dtype="float64")
    yield drawn("normal", 1.0, 2.0)
    yield drawn("exponential", 2.0)
    yield drawn("gamma", 2.5, 1.5)
    yield drawn("gamma", 0.4, 2.0, dtype="float64")
    for mean in (0.0, 3.0, 40.0):
        yield drawn("poisson", mean)
    yield drawn("negative_binomial", 4, 0.3)
    yield drawn("generalized_negative_binomial", 5.0, 0.5)
    yield drawn("generalized_negative_binomial", 5.0, 0.0)
    yield drawn("randint", -5, 1 << 20)
    yield drawn("randint", -(1 << 40), 1 << 41, dtype="int64")


# ---- products ------------------------------------------------------------------------------------


def products() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16"):
        for m, n, k in ((1, 1, 1), (65, 67, 33), (3, 130, 16), (128, 64, 100)):
            for a, b in ((False, False), (True, False), (False, True)):
                left = values(*((k, m) if a else (m, k)), dtype=dtype)
                right = values(*((n, k) if b else (k, n)), dtype=dtype)
                yield named("dot", left, right, transpose_a=a, transpose_b=b)
    for dtype in ("float32", "float16"):
        yield named("batch_dot", values(3, 20, 9, dtype=dtype), values(3, 20, 17, dtype=dtype), transpose_a=True)
    for dtype in ("float32", "float64", "float16"):
        layer = [values(5, 40, dtype=dtype), values(70, 40, dtype=dtype), values(70, dtype=dtype)]
        yield named("FullyConnected", *layer, num_hidden=70)
    yield named("FullyConnected", values(2, 3, 10), values(7, 10), num_hidden=7, no_bias=True, flatten=False)
    for dtype in ("float32", "float16"):
        yield from dense_functions(5, 70, 40, dtype)
    inputs = [values(2, 6, 11, 9), values(8, 3, 3, 2), values(8)]
    attrs = {"kernel": (3, 2), "num_filter": 8, "stride": (2, 1), "pad": (1, 2), "dilate": (1, 2), "num_group": 2}
    for dtype in ("float32", "float64", "float16"):
        yield named("Convolution", *[x.astype(dtype) for x in inputs], **attrs)
    attrs = {"kernel": (3, 2), "num_filter": 4, "stride": (2, 3), "pad": (1, 0), "dilate": (1, 2), "num_group": 2}
    for dtype in ("float32", "float64", "float16"):
        spread = [x.astype(dtype) for x in (values(2, 6, 7, 5), values(6, 2, 3, 2), values(4))]
        yield named("Deconvolution", *spread, no_bias=False, **attrs)
    attrs = {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1), "num_filter": 70}
    yield named("Deconvolution", values(1, 65, 6, 6), values(65, 70, 4, 4), **attrs)
    yield named("Deconvolution", values(2, 3, 9), values(3, 5, 3), kernel=(3,), num_filter=5, stride=(2,), adj=(1,))
    attrs = {"scale": 2, "sample_type": "bilinear", "num_filter": 3, "num_args": 2}
    yield named("UpSampling", values(2, 3, 4, 5), values(3, 1, 4, 4), **attrs)
    yield named("Convolution", values(2, 5, 14), values(70, 5, 3), kernel=(3,), num_filter=70, no_bias=True)
    yield named("Convolution", values(1, 2, 5, 6, 7), values(3, 2, 2, 3, 2), values(3), kernel=(2, 3, 2), num_filter=3)
    data = mx.sym.var("x")
    layers = mx.sym.Convolution(data, mx.sym.var("w"), kernel=(3, 3), num_filter=8, no_bias=True)
    statistics = [mx.sym.var(name) for name in ("gamma", "beta", "mean", "variance")]
    layers = mx.sym.relu(mx.sym.BatchNorm(layers, *statistics, fix_gamma=False))
    layers = mx.sym.FullyConnected(mx.sym.Pooling(layers, global_pool=True, pool_type="avg"), num_hidden=5, name="fc")
    given = [values(2, 3, 9, 9), values(8, 3, 3, 3, low=-0.3, high=0.3)]
    given += [values(8, low=0.5, high=1.5), values(8), values(8, low=-1), values(8, low=0.3), values(5, 8), values(5)]
    named_inputs = [data, *(mx.sym.var(name) for name in layers.list_inputs()[1:])]
    for dtype in ("float32", "float16"):
        net = mx.gluon.SymbolBlock(layers, named_inputs)
        # BatchNorm's parameters are of single precision in any case.
        yield "network", net, [x if 2 <= n < 6 else x.astype(dtype) for n, x in enumerate(given)]
    for a, b, dtype in itertools.product((False, True), (False, True), ("float32", "float16")):
        left = values(*((3, 4, 6) if a else (3, 6, 4)), dtype=dtype)
        right = values(*((3, 5, 4) if b else (3, 4, 5)), dtype=dtype)
        yield named("linalg.gemm2", left, right, transpose_a=a, transpose_b=b, alpha=0.5)
        added = values(3, 6, 5, dtype=dtype)
        for beta in (1, 0, -2.5):
            attrs = {"transpose_a": a, "transpose_b": b, "alpha": -2, "beta": beta}
            yield named("linalg.gemm", left, right, added, **attrs)
            # Two axes between those of rows and columns.
            apart = [values(2, *x.shape[1:2], 3, 2, x.shape[2], dtype=dtype) for x in (left, right, added)]
            yield named("linalg.gemm", *apart, axis=1, **attrs)
    yield from products_of_bfloat16()
    yield from products_of_integers()
    for dtype in ("float32", "float16"):
        heads, scores = values(7, 2, 4 * 3 * 8, dtype=dtype), values(8, 7, 7, dtype=dtype, low=0, high=1)
        yield named("contrib.interleaved_matmul_selfatt_qk", heads, heads=4)
        yield named("contrib.interleaved_matmul_selfatt_valatt", heads, scores, heads=4)
    x, w, b, r = (mx.sym.var(name) for name in "xwbr")
    sums = mx.sym.Convolution(x, w, b, kernel=(3, 3), pad=(1, 1), num_filter=4)
    for graph in (mx.sym.relu(sums + r), mx.sym.clip(sums, 0, 6) * r, mx.sym.LeakyReLU(sums, slope=0.1) + r):
        net = mx.gluon.SymbolBlock(graph, [x, w, b, r])
        yield "fused layer", net, [values(2, 3, 8, 8), values(4, 3, 3, 3), values(4), values(2, 4, 8, 8)]


def products_of_integers() -> Iterator[Call]:
    for dtype in ("int8", "uint8", "int32", "int64", "bool"):
        for m, n, k in ((1, 1, 1), (65, 67, 33), (5, 3, 0), (3, 130, 16)):
            a, b = (values(*shape, dtype="int64", low=-9, high=99).astype(dtype) for shape in ((m, k), (k, n)))
            yield in_np("dot of integers", mx.np.dot, a, b)
        a, b = (values(*shape, dtype="int64", low=-9, high=9).astype(dtype) for shape in ((3, 5, 9), (3, 9, 4)))
        yield in_np("matmul of integers", mx.np.matmul, a, b)
        yield in_np("einsum of integers", lambda a, b: mx.np.einsum("bij,bjk->bki", a, b), a, b)
        yield in_np("tensordot of integers", lambda a, b: mx.np.tensordot(a, b, ((2,), (1,))), a, b)


def products_of_two_grids() -> Iterator[Call]:
    """More products than the third axis of a grid has blocks."""
    yield named("batch_dot", values(65540, 1, 3), values(65540, 3, 1))


def other_products_of_several_grids() -> Iterator[Call]:
    """Other products that are shared out in the same way, and more rows than the second axis of a
    grid has for tiles of 64.
    """
    yield named("linalg.gemm", values(65540, 1, 3), values(65540, 3, 1), values(65540, 1, 1), alpha=2)
    yield in_np("matmul of two batches", mx.np.matmul, values(1, 32800, 1, 3), values(2, 1, 3, 1))
    yield named("FullyConnected", values(65535 * 64 + 3, 1), values(2, 1), values(2), num_hidden=2)


def products_of_bfloat16() -> Iterator[Call]:
    """Products of numbers that bfloat16 holds, so sums differ by the rounding of float32 alone."""

    x, w, b = (mx.sym.var(name) for name in "xwb")
    layers = [
        (mx.sym.FullyConnected(x, w, b, num_hidden=70), [values(5, 41), values(70, 41), values(70)]),
        (mx.sym.dot(x, w) + b, [values(65, 33), values(33, 67), values(65, 67)]),
        (mx.sym.batch_dot(x, w, transpose_a=True) + b, [values(3, 20, 9), values(3, 20, 17), values(3, 9, 17)]),
        (
            mx.sym.Convolution(x, w, b, kernel=(3, 2), num_filter=8, stride=(2, 1), pad=(1, 2), num_group=2),
            [values(2, 6, 11, 9), values(8, 3, 3, 2), values(8)],
        ),
    ]
    for graph, given in layers:
        net = mx.gluon.SymbolBlock(graph, [x, w, b])
        net.hybridize(precision="bf16")
        yield f"bfloat16 {graph.name}", net, [*map(of_16_bits, given[:2]), given[2]]


GROUPS: dict[str, Callable[[], Iterator[Call]]] = {
    "elementwise": elementwise,
    "chains": chains,
    "moving": moving,
    "indexing": indexing,
    "reductions": reductions,
    "order": order,
    "rows": rows,
    "pooling": pooling,
    "random": random,
    **DRAWS,
    **SEQUENCES_AND_IMAGES,
    **LINEAR_ALGEBRA,
    **INT8,
    **VISION,
    **EDGES,
    "products": products,
    # Their blocks compute as those of small products do: one order suffices.
    "two_grids": products_of_two_grids,
    "grids": other_products_of_several_grids,
    "layouts": layouts,
    "tiles": tiles,
}
# Half a minute on the host.
LONG = {"grids"}
WITH_BARRIERS = {
    *("reductions", "order", "rows", "pooling", "moving", "products", "layouts", "tiles", "detection", "nms"),
    *("linalg", "int8", "matching", "proposals", "multibox_target", "edges", "ctc", "draws", "density"),
}


def called(call: Callable[..., Any], inputs: list[Array], ctx: Any) -> list[Array]:
    with ctx:
        made = call(*[mx.nd.array(array, ctx=ctx, dtype=array.dtype) for array in inputs])
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    assert all(one.context == ctx for one in made)
    return [one.asnumpy() for one in made]


def difference(found: list[Array], wanted: list[Array]) -> str | None:
    """The difference of two lists of results, if there is one."""
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in wanted]:
        return f"{[(a.shape, a.dtype) for a in found]}, expected {[(a.shape, a.dtype) for a in wanted]}"
    for a, b in zip(found, wanted, strict=True):
        tolerance = TOLERANCE.get(a.dtype.name, 0)
        near = np.isclose(a.astype("float64"), b.astype("float64"), tolerance, tolerance, equal_nan=True)
        if not (near.all() if tolerance else np.array_equal(a, b)):
            at = tuple(int(i) for i in np.argwhere(~near)[0]) if not near.all() else ()
            return f"{int((~near).sum())} of {a.size} elements differ, at {list(at)}: {a[at]}, expected {b[at]}"
    return None


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--orders", default="0-5")
    options.add_argument("--first", action="store_true")
    options.add_argument("--daily", action="store_true")
    options.add_argument("groups", nargs="*")
    given = options.parse_args()
    groups = given.groups or [group for group in GROUPS if not (given.daily and group in LONG)]
    low, high = map(int, given.orders.split("-"))
    driver = ctypes.CDLL("libcuda.so.1")
    is_standin = hasattr(driver, "mxrt_standin_order")
    calls, wrong = 0, []
    for group in groups:
        for name, call, inputs in GROUPS[group]():
            if wrong and given.first:
                break
            wanted = called(call, inputs, mx.cpu())
            for order in range(low, high + 1) if group in WITH_BARRIERS else [0]:
                assert not is_standin or driver.mxrt_standin_order(order) == 0
                try:
                    said = difference(called(call, inputs, GPU), wanted)
                except mx.base.MXNetError as error:
                    said = " ".join(str(error).split())[:300]
                calls += 1
                if said:
                    wrong.append(f"{group}: {name} {[(i.shape, i.dtype.name) for i in inputs]} order {order}: {said}")
                    break
    print(json.dumps({"calls": calls, "wrong": wrong}))
    return 1 if wrong or not calls else 0


if __name__ == "__main__":
    sys.exit(main())
