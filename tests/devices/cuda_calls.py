"""Calls for cuda_kernels.py: how they are written, and those of sequences and images."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mxrt as mx

Array = np.ndarray[Any, Any]
# What a call gets beside `mx.nd`, and what it is called.
Call = tuple[str, Callable[..., Any], list[Array]]


def values(*shape: int, dtype: str = "float32", low: float = -2, high: float = 2) -> Array:
    """Numbers that follow from the arguments alone; without two that are alike."""
    seed = zlib.crc32(repr((shape, dtype, low, high)).encode())
    made = np.random.RandomState(seed).uniform(low, high, shape)
    return (np.round(made) if np.dtype(dtype).kind in "iu" else made).astype(dtype)


def of_16_bits(array: Array) -> Array:
    """Numbers of single precision that bfloat16 holds."""
    return (array.view("uint32") & np.uint32(0xFFFF0000)).view("float32")


def named(name: str, *inputs: Array, **attrs: Any) -> Call:
    """A function of mx.nd."""

    def call(*arrays: Any) -> Any:
        space = mx.nd
        for part in name.split(".")[:-1]:
            space = getattr(space, part)
        return getattr(space, name.split(".")[-1])(*arrays, **attrs)

    return f"{name} {attrs}", call, list(inputs)


def resample() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16"):
        x = values(2, 3, 7, 5, dtype=dtype)
        for size, corners in itertools.product(((14, 3), (7, 5), (1, 9)), (True, False)):
            attrs = {"height": size[0], "width": size[1], "align_corners": corners}
            yield named("contrib.BilinearResize2D", x, **attrs)
        for size in ((), (3, 4), (9, 5)):
            yield named("contrib.AdaptiveAvgPooling2D", x, output_size=size)
    yield named("contrib.BilinearResize2D", values(1, 1, 4, 4), values(1, 1, 6, 3), mode="like")


def sampler() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16"):
        image, maps = values(2, 3, 7, 5, dtype=dtype), values(2, 6, dtype=dtype, low=-0.9, high=0.9)
        attrs = {"transform_type": "affine", "target_shape": (4, 6)}
        yield named("BilinearSampler", image, values(2, 2, 4, 3, dtype=dtype, low=-1.3, high=1.3))
        yield named("GridGenerator", maps, **attrs)
        yield named("GridGenerator", values(2, 2, 4, 5, dtype=dtype), transform_type="warp")
        yield named("SpatialTransformer", image, maps, sampler_type="bilinear", **attrs)
    wild = values(1, 2, 3, 3)
    wild[0, 0, 0] = [np.nan, np.inf, -np.inf]
    # The products of shares this far outside are infinite.
    wild[0, :, 1] = [1e20, -1e25, 3e38]
    yield named("BilinearSampler", values(1, 1, 4, 4), wild)


def sequence() -> Iterator[Call]:
    for dtype in ("float32", "float64", "int32", "float16"):
        x = values(5, 4, 3, dtype=dtype, low=-9, high=9)
        for lengths in (np.array([0, 2, 5, 9], "float32"), np.array([1, 5, 4, 3], "int32")):
            for name, attrs in (("SequenceMask", {"value": -1.5}), ("SequenceLast", {}), ("SequenceReverse", {})):
                yield named(name, x, lengths, use_sequence_length=True, **attrs)
                if name != "SequenceReverse":
                    yield named(name, x.swapaxes(0, 1).copy(), lengths, use_sequence_length=True, axis=1, **attrs)
    yield named("SequenceLast", values(5, 4))
    yield named("SequenceReverse", values(5, 4))


def ctc() -> Iterator[Call]:
    lengths = list(itertools.product((False, True), (False, True)))
    for dtype, last in itertools.product(("float32", "float64", "float16"), (False, True)):
        blank = "last" if last else "first"
        # More states than a block has threads, and more symbols than a warp.
        for steps, batch, symbols, width in ((5, 3, 4, 2), (20, 7, 37, 9), (90, 2, 5, 70), (1, 1, 1, 1)):
            data = values(steps, batch, symbols, dtype=dtype, low=-4, high=4)
            label = np.round(values(batch, width, low=0 if last else 1, high=symbols - 1 - last)).clip(0, symbols - 1)
            label[:, 1:2] = label[:, :1]
            for i, (of_data, of_label) in enumerate(lengths):
                ended = label.astype(("float32", "int32", "int64", "float16")[i])
                if not of_label:
                    ended[0, width // 2 :] = -1 if last else 0
                given = [ended]
                given += [np.arange(steps, steps - batch, -1).clip(0).astype("int32")] * of_data
                given += [np.arange(width, width - batch, -1).clip(0).astype("float32")] * of_label
                attrs = {"use_data_lengths": of_data, "use_label_lengths": of_label, "blank_label": blank}
                yield named("CTCLoss", data, *given, **attrs)

    def without_labels(data: Any, label: Any) -> Any:
        with mx.util.np_shape(True):
            return mx.nd.CTCLoss(data, label)

    yield "CTCLoss of no labels", without_labels, [values(3, 2, 4), np.zeros((2, 0), "float32")]
    for odd in (np.nan, np.inf, -np.inf, 1e30):
        data = np.zeros((4, 3, 3), "float32")
        data[0, 0, 1] = data[1, 1] = data[:, 2, 0] = odd
        yield named("CTCLoss", data, np.array([[1, 2], [1, 0], [2, 1]], "float32"))


def recurrent() -> Iterator[Call]:
    gates = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
    kinds = itertools.product((1, 3), (False, True), ("float32", "float64"))
    for mode, (layers, two, dtype) in itertools.product(gates, [*kinds, (3, True, "float16")]):
        for projection in (None, 3) if mode == "lstm" else (None,):
            inputs, size, batch, directions = 4, 5, 2, 1 + two
            hidden, rows = projection or size, 5 * gates[mode]
            each = [inputs] + [hidden * directions] * (layers - 1)
            length = sum(rows * (n + hidden + 2) + (size * projection if projection else 0) for n in each) * directions
            states = [values(layers * directions, batch, n, dtype=dtype) for n in (hidden, size)]
            given = [values(3, batch, inputs, dtype=dtype), values(length, dtype=dtype, low=-0.7, high=0.7)]
            attrs = {"state_size": size, "num_layers": layers, "bidirectional": two, "projection_size": projection}
            for with_states in (False, True):
                called = given + states[: 1 + (mode == "lstm")]
                yield named("RNN", *called, mode=mode, state_outputs=with_states, **attrs)
    given = [values(0, 2, 4), values(4 * 5 * (4 + 5 + 2)), values(1, 2, 5), values(1, 2, 5, low=1)]
    yield named("RNN", *given, mode="lstm", state_size=5, num_layers=1, state_outputs=True)


def detection() -> Iterator[Call]:
    image = values(1, 1, 3, 5)
    yield named("contrib.MultiBoxPrior", image, sizes=(0.5, 0.25), ratios=(1, 2, 0.5))
    yield named("contrib.MultiBoxPrior", image, sizes=(2,), clip=True, steps=(0.3, 0.2), offsets=(0.1, 0.9))
    for dtype, count in itertools.product(("float32", "float64", "float16"), (3, 40, 300)):
        # Scores of sixteenths, so that some are alike.
        probabilities = np.round(values(2, 4, count, low=0, high=1) * 16) / 16
        corners = np.sort(values(1, count, 2, 2, low=0, high=1), axis=2).reshape(1, count, 4)
        given = [a.astype(dtype) for a in (probabilities, values(2, count * 4), corners)]
        for attrs in ({}, {"nms_topk": 7}, {"force_suppress": True, "threshold": 0.5, "clip": False}):
            yield named("contrib.MultiBoxDetection", *given, nms_threshold=0.3, **attrs)
        yield named("contrib.MultiBoxDetection", *given, nms_threshold=-1, threshold=0.9)


def nms() -> Iterator[Call]:
    for dtype, count in itertools.product(("float32", "float64", "float16"), (5, 60, 300)):
        corners = np.sort(values(2, count, 2, 2, low=0, high=1), axis=2).reshape(2, count, 4)
        scores = np.round(values(2, count, 1, low=0, high=1) * 16) / 16
        rows = np.concatenate([np.round(values(2, count, 1, low=-1, high=2)), scores, corners, scores], axis=2)
        given = rows.astype(dtype)
        attrs = {"overlap_thresh": 0.3, "valid_thresh": 0.2, "id_index": 0, "background_id": -1}
        for more in ({}, {"force_suppress": True}, {"topk": 20}, {"topk": 0}, {"in_format": "center"}):
            yield named("contrib.box_nms", given, **{**attrs, **more})
        yield named("contrib.box_nms", given, out_format="center", overlap_thresh=0.5)
        yield named("contrib.box_nms", given, in_format="center", out_format="corner", coord_start=2, score_index=6)


def regions() -> Iterator[Call]:
    found = np.array(
        [[0, 1, 2, 30, 20], [1, -9, 4, 11, 90], [-1, 0, 0, 5, 5], [1, 7, 7, 7.5, 7.5], [0, 3.3, 20, 40, 20.4]]
    )
    for dtype in ("float32", "float64", "float16"):
        given = [values(2, 12, 13, 17, dtype=dtype), found.astype(dtype)]
        for samples, aligned in itertools.product((-1, 2), (False, True)):
            attrs = {"pooled_size": (3, 2), "spatial_scale": 0.4, "sample_ratio": samples, "aligned": aligned}
            yield named("contrib.ROIAlign", *given, position_sensitive=samples > 0, **attrs)
        yield named("ROIPooling", *given, pooled_size=(3, 2), spatial_scale=0.4)
    nowhere = np.array([[0, np.inf, 0, 3, 3], [7, 0, 0, 4, 4]], "float32")
    yield named("ROIPooling", values(2, 3, 5, 5), nowhere[1:], pooled_size=(2, 2), spatial_scale=1)
    yield named("contrib.ROIAlign", values(2, 3, 5, 5), nowhere[:1], pooled_size=(2, 2), spatial_scale=1)


def scatter() -> Iterator[Call]:
    for dtype, index in itertools.product(("float32", "float64", "float16", "int8", "int64"), ("int32", "float32")):
        old, rows = values(7, 3, 5, dtype=dtype, low=-9, high=9), values(4, 3, 5, dtype=dtype, low=0, high=9)
        # The last of two for one row counts.
        at = np.array([5, 0, 5, 2], index)
        yield named("contrib.index_copy", old, at, rows)
        places = np.array([[1, -1, 1, 6], [2, 0, 2, 1]], index)
        yield named("scatter_nd", values(4, 5, dtype=dtype), places, shape=(7, 3, 5))
        yield named("_internal._scatter_set_nd", old, values(4, 5, dtype=dtype), places, shape=(7, 3, 5))
    yield named("scatter_nd", values(1000), values(1, 1000, dtype="int32", low=0, high=600), shape=(700,))
    yield named("scatter_nd", values(0, 5), np.zeros((1, 0), "int32"), shape=(7, 5))
    for dtype in ("int32", "int64", "float32"):
        numbers = values(3, 40, dtype=dtype, low=0, high=6)
        yield named("ravel_multi_index", numbers, shape=(7, 8, 9))
        yield named("unravel_index", values(300, dtype=dtype, low=-20, high=600), shape=(7, 8, 9))
    for attrs in ({}, {"axes": (2, 0)}, {"axes": (-1,)}):
        yield named("contrib.index_array", values(3, 7, 15), **attrs)
    yield named("shape_array", values(3, 1, 4))
    yield named("size_array", values(3, 5))


def counting() -> Iterator[Call]:
    huge = np.array([1.0, 1e300, 2.0])
    for dtype in ("float32", "float64", "float16"):
        odd = values(700, dtype=dtype)
        odd[650] = np.inf
        for given in (values(700, dtype=dtype), odd, values(0, dtype=dtype)):
            yield named("all_finite", given)
        yield named("multi_all_finite", values(40, dtype=dtype), odd, num_arrays=2)
        yield named("multi_all_finite", values(40, dtype=dtype), values(3, 300, dtype=dtype), num_arrays=2)
    yield named("all_finite", huge)
    for dtype in ("float32", "float64", "float16", "int32"):
        x = values(600, dtype=dtype, low=1, high=90)
        other = x.copy()
        other[599] += 1
        for y, attrs in ((x, {}), (other, {}), (other, {"rtol": 2.0})):
            yield named("contrib.allclose", x, y, **attrs)
    nothing = np.array([np.nan, 1], "float32")
    yield named("contrib.allclose", nothing, nothing)
    yield named("contrib.allclose", nothing, nothing, equal_nan=False)
    for dtype in ("float32", "float64", "int32", "int64", "uint8"):
        x = values(2000, dtype=dtype, low=0, high=50)
        yield named("_internal._histogram", x, bin_cnt=7, range=(3, 41))
        yield named("_internal._histogram", x, np.array([2, 9, 10, 40], dtype))
    yield named("_internal._histogram", nothing, bin_cnt=3, range=(1, 1))
    for narrow in (False, True):
        arrays = [values(2, 3, dtype="float16"), values(700), values(5, dtype="int32")]
        yield named("amp_multicast", *arrays, num_outputs=3, cast_narrow=narrow)


SEQUENCES_AND_IMAGES: dict[str, Callable[[], Iterator[Call]]] = {
    "resample": resample,
    "sampler": sampler,
    "sequence": sequence,
    "ctc": ctc,
    "recurrent": recurrent,
    "detection": detection,
    "nms": nms,
    "regions": regions,
    "scatter": scatter,
    "counting": counting,
}
