"""Calls for cuda_kernels.py: products and convolutions in large tiles (tiles.h)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import mxrt as mx
from cuda_calls import Call, named, values
from cuda_layouts import with_weights

# Channels, filters and groups of convolutions whose channels are padded to pieces.
PADDED = [(3, 24, 1), (5, 8, 1), (1, 8, 1), (6, 32, 2), (22, 40, 1)]


def tiles() -> Iterator[Call]:
    for dtype in ("float32", "float16"):
        # Small and large tiles with edges, parts of the depth, both orders of the right operand.
        for m, n, k in ((1, 24, 40), (70, 72, 8), (65, 130, 640), (3, 8, 2048)):
            layer = [values(m, k, dtype=dtype, low=-1, high=1), values(n, k, dtype=dtype, low=-1, high=1)]
            yield named("FullyConnected", *layer, values(n, dtype=dtype), num_hidden=n)
            right = values(k, (n + 7) // 8 * 8, dtype=dtype, low=-1, high=1)
            yield named("dot", layer[0], right)
            yield from dense_functions(m, n, k, dtype)
        for transposed in (False, True):
            shape = (96, 72, 40) if transposed else (96, 40, 72)
            given = [values(96, 72, 40, dtype=dtype, low=-1, high=1), values(*shape, dtype=dtype, low=-1, high=1)]
            yield named("batch_dot", *given, transpose_b=transposed)
        heads = values(24, 2, 4 * 3 * 8, dtype=dtype, low=-1, high=1)
        yield named("contrib.interleaved_matmul_selfatt_qk", heads, heads=4)
        scores = values(8, 24, 24, dtype=dtype, low=0, high=1)
        yield named("contrib.interleaved_matmul_selfatt_valatt", heads, scores, heads=4)
        yield from images(dtype)
    yield from groups()
    # What does not lie together by 16 bytes has other kernels.
    yield named("dot", values(33, 36), values(36, 37))


def dense_functions(m: int, n: int, k: int, dtype: str) -> Iterator[Call]:
    """Functions of a dense layer's result, with and without bias and residual."""
    x, w, b, r = (mx.sym.var(name) for name in "xwbr")
    biased = mx.sym.FullyConnected(x, w, b, num_hidden=n)
    given = [values(m, k, dtype=dtype, low=-1, high=1), values(n, k, dtype=dtype, low=-1, high=1)]
    bias, residual = values(n, dtype=dtype), values(m, n, dtype=dtype)
    gelu = mx.sym.LeakyReLU(biased, act_type="gelu")
    yield "dense gelu", mx.gluon.SymbolBlock(gelu, [x, w, b]), [*given, bias]
    sigmoid = mx.sym.sigmoid(mx.sym.FullyConnected(x, w, num_hidden=n, no_bias=True))
    yield "dense sigmoid", mx.gluon.SymbolBlock(sigmoid, [x, w]), given
    tanh = mx.sym.tanh(biased + r)
    yield "dense residual tanh", mx.gluon.SymbolBlock(tanh, [x, w, b, r]), [*given, bias, residual]


def groups() -> Iterator[Call]:
    """Enough tiles for warpgroups, with edges: fewer steps than shared memory holds, and more."""
    for m, n, k in ((390, 1544, 40), (780, 904, 392)):
        layer = [values(m, k, dtype="float16", low=-1, high=1), values(n, k, dtype="float16", low=-1, high=1)]
        yield named("FullyConnected", *layer, values(n, dtype="float16"), num_hidden=n)
        yield from dense_functions(m, n, k, "float16")
        yield named("dot", layer[0], values(k, n, dtype="float16", low=-1, high=1))
    # Rows of the result that are no whole pieces.
    odd = [values(640, 64, dtype="float16"), values(1226, 64, dtype="float16")]
    yield named("FullyConnected", *odd, no_bias=True, num_hidden=1226)
    x, w, b, r = (mx.sym.var(name) for name in "xwbr")
    for channels, filters, count, size in ((24, 72, 1, 79), (64, 40, 1, 79), (16, 192, 2, 57)):
        weights = {
            "w": values(filters, channels // count, 3, 3, dtype="float16", low=-0.3, high=0.3),
            "b": values(filters, dtype="float16"),
        }
        shaped = {"kernel": (3, 3), "stride": (1, 1), "pad": (1, 2), "dilate": (1, 2)}
        graph = mx.sym.relu(mx.sym.Convolution(x, w, b, num_filter=filters, num_group=count, **shaped) + r)
        image = values(1, channels, size, size, dtype="float16", low=-1, high=1)
        given = [image, values(1, filters, size, size, dtype="float16")]
        yield f"groups {channels} to {filters}", with_weights(graph, weights), given


def images(dtype: str) -> Iterator[Call]:
    x, w, b, r = (mx.sym.var(name) for name in "xwbr")
    shaped = {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 2), "dilate": (1, 2)}
    # Channels of whole pieces, fewer and more than a step is deep, of groups, and padded ones.
    for channels, filters, groups in ((8, 16, 1), (40, 72, 1), (320, 8, 1), (32, 32, 2), *PADDED):
        weights = {
            "w": values(filters, channels // groups, 3, 2, dtype=dtype, low=-0.3, high=0.3),
            "b": values(filters, dtype=dtype),
        }
        graph = mx.sym.Convolution(x, w, b, num_filter=filters, num_group=groups, **shaped)
        image = values(2, channels, 11, 9, dtype=dtype, low=-1, high=1)
        yield f"{channels} to {filters} {dtype}", with_weights(graph, weights), [image]
    yield from first_layers(dtype)
    for size, channels in itertools.product((112, 9), (8,)):
        weights = {"w": values(72, channels, 1, 1, dtype=dtype), "b": values(72, dtype=dtype)}
        graph = mx.sym.relu(mx.sym.Convolution(x, w, b, kernel=(1, 1), num_filter=72) + r)
        given = [values(1, channels, size, size, dtype=dtype), values(1, 72, size, size, dtype=dtype)]
        yield f"residual {size} {dtype}", with_weights(graph, weights), given
    # A residual after parts.
    weights = {"w": values(16, 64, 3, 3, dtype=dtype, low=-0.3, high=0.3), "b": values(16, dtype=dtype)}
    graph = mx.sym.Convolution(x, w, b, kernel=(3, 3), pad=(1, 1), num_filter=16) + r
    given = [values(1, 64, 8, 8, dtype=dtype, low=-1, high=1), values(1, 16, 8, 8, dtype=dtype)]
    yield f"parts {dtype}", with_weights(mx.sym.relu(graph), weights), given


def first_layers(dtype: str) -> Iterator[Call]:
    """Images of few channels with even strides, of which two pixels are one piece in float16."""
    x, w = mx.sym.var("x"), mx.sym.var("w")
    for channels, size, kernel, stride, pad in (
        (3, (33, 35), (7, 7), (2, 2), (3, 3)),
        (3, (20, 38), (11, 11), (4, 4), (2, 2)),
        (1, (9, 16), (4, 6), (1, 2), (0, 1)),
        (4, (8, 9), (3, 1), (1, 2), (1, 0)),
        (2, (12, 7), (1, 5), (3, 6), (0, 4)),
    ):
        shaped = {"kernel": kernel, "stride": stride, "pad": pad, "num_filter": 24, "no_bias": True}
        weights = {"w": values(24, channels, *kernel, dtype=dtype, low=-0.3, high=0.3)}
        image = values(2, channels, *size, dtype=dtype, low=-1, high=1)
        yield f"first layer {kernel} {dtype}", with_weights(mx.sym.Convolution(x, w, **shaped), weights), [image]
