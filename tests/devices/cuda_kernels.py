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
from cuda_calls import SEQUENCES_AND_IMAGES, Array, Call, named, values
from cuda_draws import DRAWS
from cuda_edges import EDGES
from cuda_elements import ELEMENTS
from cuda_int8 import INT8
from cuda_layouts import layouts, pools
from cuda_linalg import LINEAR_ALGEBRA, in_np
from cuda_products import PRODUCTS
from cuda_tiles import tiles
from cuda_vision import VISION

TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11}
GPU = mx.gpu(0)


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


GROUPS: dict[str, Callable[[], Iterator[Call]]] = {
    **ELEMENTS,
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
    **PRODUCTS,
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
