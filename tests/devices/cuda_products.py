"""Calls of cuda_kernels.py: products of matrices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import mxrt as mx
from cuda_calls import Call, named, of_16_bits, values
from cuda_linalg import in_np
from cuda_tiles import dense_functions


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


PRODUCTS: dict[str, Callable[[], Iterator[Call]]] = {
    "products": products,
    # Their blocks compute as those of small products do: one order suffices.
    "two_grids": products_of_two_grids,
    "grids": other_products_of_several_grids,
}
