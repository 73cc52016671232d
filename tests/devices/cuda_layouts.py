"""Calls for cuda_kernels.py: networks with constant weights, in which images have their channels
last.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import mxrt as mx
from cuda_calls import Array, Call, of_16_bits, values


def with_weights(graph: Any, weights: dict[str, Array], **options: Any) -> Callable[..., Any]:
    """A network whose inputs are `x` and perhaps `r`; the rest are its parameters."""

    def call(*arrays: Any) -> Any:
        data = [mx.sym.var(name) for name in "xr"[: len(arrays)]]
        net = mx.gluon.SymbolBlock(graph, data)
        for name, parameter in net.collect_params().items():
            value = mx.nd.array(weights[name], ctx=mx.cpu(), dtype=weights[name].dtype)
            parameter._load_init(value, [arrays[0].context], cast_dtype=True, dtype_source="saved")
        net.hybridize(**options)
        return net(*arrays)

    return call


def layouts() -> Iterator[Call]:
    x, r, w, b = (mx.sym.var(name) for name in "xrwb")
    shaped = {"kernel": (3, 2), "num_filter": 8, "stride": (2, 1), "pad": (1, 2), "dilate": (1, 2), "num_group": 2}
    for dtype in ("float32", "float64", "float16"):
        given = {"w": values(8, 3, 3, 2, dtype=dtype), "b": values(8, dtype=dtype)}
        graph = mx.sym.Convolution(x, w, b, **shaped)
        yield f"convolution {dtype}", with_weights(graph, given), [values(2, 6, 11, 9, dtype=dtype)]
    wide = {"kernel": (1, 1), "num_filter": 70, "no_bias": True}
    for dtype in ("float32", "float16"):
        graph = mx.sym.Convolution(x, w, **wide)
        weights = {"w": values(70, 65, 1, 1, dtype=dtype)}
        yield f"wide {dtype}", with_weights(graph, weights), [values(1, 65, 9, 8, dtype=dtype)]
    shaped = {"kernel": (3, 2), "num_filter": 6, "stride": (2, 1), "pad": (1, 2), "dilate": (1, 2), "num_group": 6}
    for dtype in ("float32", "float64", "float16"):
        given = {"w": values(6, 1, 3, 2, dtype=dtype), "b": values(6, dtype=dtype)}
        graph = mx.sym.relu(mx.sym.Convolution(x, w, b, **shaped))
        yield f"depth-wise {dtype}", with_weights(graph, given), [values(2, 6, 7, 7, dtype=dtype)]
    # Numbers that bfloat16 holds, so sums differ by the rounding of float32 alone.
    given, image = {"w": of_16_bits(values(70, 65, 3, 3)), "b": values(70)}, of_16_bits(values(1, 65, 9, 8))
    graph = mx.sym.Convolution(x, w, b, kernel=(3, 3), num_filter=70)
    yield "bfloat16", with_weights(graph, given, precision="bf16"), [image]
    # What is broadcast, in whichever order its bytes are the same, and what is not.
    sums = mx.sym.Convolution(x, mx.sym.var("w"), mx.sym.var("b"), kernel=(3, 3), pad=(1, 1), num_filter=4)
    given = {"w": values(4, 3, 3, 3), "b": values(4)}
    for graph in (mx.sym.relu(sums + r), mx.sym.clip(sums, 0, 6) * r, mx.sym.LeakyReLU(sums, slope=0.1) + r):
        yield "residual", with_weights(graph, given), [values(2, 3, 8, 8), values(2, 4, 8, 8)]
    for shape in ((1, 4, 1, 1), (2, 1, 8, 8), (1, 1, 1, 8), (1, 4, 8, 1), (2, 4, 1, 1)):
        graph = mx.sym.broadcast_add(mx.sym.tanh(sums), r)
        yield f"broadcast {shape}", with_weights(graph, given), [values(2, 3, 8, 8), values(*shape)]
    # Branches, pools, and readers that want the channels first.
    branches = [mx.sym.Pooling(mx.sym.relu(sums), kernel=(3, 3), pad=(1, 1), pool_type=kind) for kind in ("max", "avg")]
    joined = mx.sym.concat(*branches, mx.sym.cast(sums, dtype="float32") * 2, r, dim=1)
    normal = mx.sym.LRN(joined, nsize=3, alpha=0.1)
    ends = [normal, mx.sym.sum(joined, axis=1), mx.sym.softmax(sums, axis=1), mx.sym.transpose(joined, (0, 2, 3, 1))]
    yield "branches", with_weights(mx.sym.Group(ends), given), [values(2, 3, 8, 8), values(2, 5, 8, 8)]
    statistics = {name: values(4, low=0.5, high=1.5) for name in ("gamma", "beta", "mean", "variance")}
    weights = {**given, **statistics, "w": values(4, 4, 3, 3)}
    first = mx.sym.Convolution(x, mx.sym.var("w1"), b, kernel=(3, 3), pad=(1, 1), num_filter=4)
    twice = mx.sym.Convolution(
        mx.sym.BatchNorm(mx.sym.tanh(first), *map(mx.sym.var, statistics), fix_gamma=False) + first,
        w,
        kernel=(3, 3),
        num_filter=4,
        no_bias=True,
    )
    dense = mx.sym.FullyConnected(mx.sym.Pooling(twice, global_pool=True, pool_type="avg"), num_hidden=5, name="fc")
    weights |= {"w1": given["w"], "fc_weight": values(5, 4), "fc_bias": values(5)}
    folded = mx.sym.relu(mx.sym.BatchNorm(first, *map(mx.sym.var, statistics), fix_gamma=False))
    for dtype in ("float32", "float16"):
        cast = {name: v if name in statistics else v.astype(dtype) for name, v in weights.items()}
        yield f"folded {dtype}", with_weights(folded, cast), [values(2, 3, 8, 8, dtype=dtype)]
        yield f"network {dtype}", with_weights(dense, cast), [values(2, 3, 8, 8, dtype=dtype)]
    # A pool or a reshape between, and results that are images.
    shapes = mx.sym.reshape(mx.sym.relu(sums), (0, 0, -1))
    graph = mx.sym.Group([shapes, mx.sym.flatten(sums), sums, mx.sym.exp(sums), mx.sym.exp(sums)])
    yield "results", with_weights(graph, given), [values(2, 3, 8, 8)]


def pools() -> Iterator[Call]:
    """Pools of images with their channels last, which are some pieces of 16 bytes or none. Numbers
    are negative as well, so that zeros from outside of a window would show.
    """
    x, w = mx.sym.var("x"), mx.sym.var("w")
    kinds: list[dict[str, Any]] = [
        {"pool_type": "max", "kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
        {"pool_type": "max", "kernel": (2, 5), "stride": (3, 2), "pooling_convention": "full"},
        {"pool_type": "avg", "kernel": (3, 2), "stride": (2, 1), "pad": (1, 1)},
        {"pool_type": "avg", "kernel": (3, 3), "pad": (1, 1), "count_include_pad": False},
        {"pool_type": "lp", "kernel": (2, 2), "p_value": 2},
        # Windows that the threads of a block share.
        {"pool_type": "avg", "global_pool": True},
        {"pool_type": "sum", "kernel": (7, 6), "stride": (2, 3), "pad": (3, 2)},
        {"pool_type": "avg", "kernel": (7, 6), "pad": (3, 2), "count_include_pad": False},
    ]
    for dtype, channels in (("float32", 40), ("float16", 40), ("float16", 72), ("float32", 7), ("float64", 8)):
        weights = {"w": values(channels, 3, 1, 1, dtype=dtype, low=-0.3, high=0.1)}
        image = mx.sym.Convolution(x, w, kernel=(1, 1), num_filter=channels, no_bias=True)
        for attrs in kinds:
            graph = mx.sym.Pooling(image, **attrs)
            yield f"{channels} channels {attrs}", with_weights(graph, weights), [values(2, 3, 9, 11, dtype=dtype)]
    weights = {"w": values(8, 3, 1, 1, 1, low=-0.3, high=0.3)}
    image = mx.sym.Convolution(x, w, kernel=(1, 1, 1), num_filter=8, no_bias=True)
    for kind, kernel in itertools.product(("max", "sum"), ((2, 3, 2), (3, 5, 4))):
        graph = mx.sym.Pooling(image, pool_type=kind, kernel=kernel, stride=(1, 2, 2), pad=(1, 1, 1))
        yield f"volumes {kind} {kernel}", with_weights(graph, weights), [values(2, 3, 5, 6, 7)]
