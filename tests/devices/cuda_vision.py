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


def proposals() -> Iterator[Call]:
    for anchors, (rows, columns), images in ((2, (3, 4), 1), (4, (9, 11), 2), (12, (10, 10), 1)):
        shape = (images, 2 * anchors, rows, columns)
        # Scores of sixty-fourths, so that some are alike.
        scores, deltas = np.round(values(*shape, low=0, high=1) * 64) / 64, values(images, 4 * anchors, rows, columns)
        sizes = np.array([[rows * 16 - 9, columns * 16, 1], [rows * 16, columns * 16 - 20, 0.5]], "float32")[:images]
        name = "contrib.MultiProposal" if images > 1 else "contrib.Proposal"
        attrs = {"scales": (1, 2, 3, 5)[: min(anchors, 4)], "ratios": (1,) if anchors < 12 else (0.5, 1, 2)}
        for more in (
            {"rpn_post_nms_top_n": 7, "threshold": 0.5},
            {"rpn_pre_nms_top_n": 50, "rpn_post_nms_top_n": 40, "threshold": 0.3, "output_score": True},
            {"rpn_post_nms_top_n": 2000, "threshold": 0.2, "rpn_min_size": 40, "output_score": True},
            {"rpn_pre_nms_top_n": 0, "rpn_post_nms_top_n": 300, "threshold": 0.6, "iou_loss": True},
        ):
            yield named(name, scores, deltas * 0.3, sizes, **attrs, **more)
    scores, deltas = values(1, 2, 3, 3, low=0, high=1), values(1, 4, 3, 3)
    scores[0, 1, 1] = [np.nan, np.inf, -np.inf]
    deltas[0, :, 0] = [[np.nan], [np.inf], [-np.inf], [1e30]]
    attrs = {"scales": (2,), "ratios": (1,), "rpn_post_nms_top_n": 9, "output_score": True}
    for size in ((48, 48, 1), (np.nan, 1e-3, 1), (48, 48, -1)):
        yield named("contrib.Proposal", scores, deltas, np.array([size], "float32"), **attrs)


def multibox_target() -> Iterator[Call]:
    for dtype, count in itertools.product(FLOATS, (5, 60, 400)):
        anchors, boxes = corners(1, count, dtype=dtype), corners(3, 9, dtype=dtype)
        labels = np.concatenate([np.round(values(3, 9, 1, dtype=dtype, low=0, high=4)), boxes, boxes[..., :1]], axis=2)
        # Boxes of anchors, one of them twice; few labels, and none.
        labels[0, :3, 1:5] = anchors[0, [1, 4, 4]]
        labels[1, 4:] = labels[2] = -1
        given = [anchors, labels, values(3, 4, count, dtype=dtype)]
        for attrs in ({}, {"overlap_threshold": 0.2, "variances": (0.3, 0.2, 0.1, 1)}, {"overlap_threshold": 0}):
            yield named("contrib.MultiBoxTarget", *given, **attrs)
        mining = {"negative_mining_ratio": 1.5, "negative_mining_thresh": 2, "ignore_label": -7}
        yield named("contrib.MultiBoxTarget", *given, **mining)
        yield named("contrib.MultiBoxTarget", *given, overlap_threshold=0.9, **{**mining, "negative_mining_ratio": 50})
    # Boxes that overlap nothing, sides of nothing, and what is no number.
    anchors, labels = corners(1, 40), np.full((1, 4, 5), 2, "float32")
    anchors[0, 3], anchors[0, 4] = [0.5, 0.5, 0.5, 0.5], [0.1, 0.1, np.nan, 0.3]
    labels[0, 2:, 1:] = [[0.5, 0.5, 0.5, 0.5], [np.nan, 0, 1, 1]]
    yield named("contrib.MultiBoxTarget", anchors, labels, values(1, 2, 40))


def columns() -> Iterator[Call]:
    cases = (
        ((2, 3, 17), {"kernel": (4,), "stride": (3,), "pad": (2,), "dilate": (2,)}),
        ((2, 3, 11, 9), {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 4), "dilate": (1, 3)}),
        ((2, 2, 5, 6, 7), {"kernel": (2, 3, 2), "stride": (1, 2, 3), "pad": (1, 0, 2), "dilate": (2, 1, 1)}),
        ((1, 1, 3, 3), {"kernel": (3, 3)}),
    )
    for dtype, (shape, attrs) in itertools.product(FLOATS, cases):
        yield named("im2col", values(*shape, dtype=dtype), **attrs)
        of_axis = zip(shape[2:], *(attrs.get(name, (each,) * 3) for name, each in DEFAULTS.items()), strict=False)
        windows = [(size + 2 * pad - dilate * (taps - 1) - 1) // step + 1 for size, taps, step, pad, dilate in of_axis]
        rows, count = shape[1] * int(np.prod(attrs["kernel"])), int(np.prod(windows))
        yield named("col2im", values(shape[0], rows, count, dtype=dtype), output_size=shape[2:], **attrs)


def correlation() -> Iterator[Call]:
    for dtype, multiply in itertools.product(FLOATS, (True, False)):
        pair = [values(2, 20, 9, 11, dtype=dtype), values(2, 20, 9, 11, dtype=dtype, low=-1)]
        attrs = {"kernel_size": 3, "max_displacement": 2, "stride1": 2, "stride2": 2, "pad_size": 4}
        yield named("Correlation", *pair, is_multiply=multiply, **attrs)
        yield named("Correlation", *pair, is_multiply=multiply, max_displacement=3, stride2=2)
        yield named("Correlation", *pair, is_multiply=multiply, kernel_size=1, max_displacement=0, pad_size=1)
        far = values(1, 3, 4, 5, dtype=dtype)
        far[0, 1, 2] = [np.inf, 1, np.nan, 2, -np.inf]
        yield named("Correlation", far, values(1, 3, 4, 5, dtype=dtype), is_multiply=multiply, pad_size=3)


def deformable() -> Iterator[Call]:
    attrs = {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 2), "dilate": (1, 2), "num_filter": 8}
    groups = {"num_group": 2, "num_deformable_group": 3}
    for dtype, more in itertools.product(FLOATS, ({}, groups, {"no_bias": True})):
        count, parts = more.get("num_deformable_group", 1), more.get("num_group", 1)
        rows, columns = 6, 11
        image, offsets = values(2, 6, 11, 9, dtype=dtype), values(2, 12 * count, rows, columns, dtype=dtype, high=3)
        offsets[0, :4, 0] = np.array([np.inf, -np.inf, np.nan, -1])[:, None]
        offsets[1, :2, 3, :4] = [-60, 60, 0, 1]
        mask, weight = values(2, 6 * count, rows, columns, dtype=dtype, low=0), values(8, 6 // parts, 3, 2, dtype=dtype)
        last = [] if "no_bias" in more else [values(8, dtype=dtype)]
        yield named("contrib.DeformableConvolution", image, offsets, weight, *last, **attrs, **more)
        yield named("contrib.ModulatedDeformableConvolution", image, offsets, mask, weight, *last, **attrs, **more)
    # Extents that large tiles multiply.
    given = [values(1, 16, 12, 12), values(1, 18, 12, 12), values(24, 16, 3, 3, low=-0.5, high=0.5), values(24)]
    yield named("contrib.DeformableConvolution", *given, kernel=(3, 3), pad=(1, 1), num_filter=24)


def region_means() -> Iterator[Call]:
    found = np.array(
        [[0, 1, 2, 30, 20], [1, -9, 4, 11, 90], [0, 7, 7, 7.5, 7.5], [1, 60, 60, 90, 90], [0, 3.3, 20, 40, 20.4]]
    )
    turned = np.array(
        [[0, 15, 11, 30, 20, 30], [1, 5, 20, 11, 60, -71.5], [-1, 0, 0, 5, 5, 0], [1, 7, 7, 0.5, 0.5, 200]]
    )
    nowhere = np.array([[0, np.nan, 4, 9, 9], [1, 0, 0, np.inf, 9]])
    for dtype in FLOATS:
        image, rois = values(2, 12, 13, 17, dtype=dtype), np.concatenate([found, nowhere]).astype(dtype)
        sizes = {"spatial_scale": 0.4, "output_dim": 3, "group_size": 2}
        yield named("contrib.PSROIPooling", image, rois, pooled_size=3, **sizes)
        attrs = {**sizes, "pooled_size": 3, "group_size": 0}
        yield named("contrib.PSROIPooling", values(2, 27, 6, 5, dtype=dtype), rois[:3], **attrs)
        for samples, classes in ((1, 1), (3, 3)):
            offsets = values(len(found), 2 * classes, 2, 2, dtype=dtype)
            attrs = {**sizes, "pooled_size": 3, "part_size": 2, "sample_per_part": samples, "trans_std": 0.2}
            yield named("contrib.DeformablePSROIPooling", image, found.astype(dtype), offsets, **attrs)
        attrs = {**sizes, "pooled_size": 2, "sample_per_part": 2, "no_trans": True}
        gone = np.array([[-1, 0, 0, 9, 9]], dtype)
        yield named("contrib.DeformablePSROIPooling", image, np.concatenate([rois, gone]), **attrs)
        for samples in (-1, 2):
            attrs = {"pooled_size": (3, 2), "spatial_scale": 0.4, "sampling_ratio": samples}
            yield named("contrib.RROIAlign", image, turned.astype(dtype), **attrs)
        lost = np.array([[0, np.nan, 3, 4, 4, 10], [1, 3, 3, 4, np.inf, 10], [1, 3, 3, 4, 4, np.nan]], dtype)
        yield named("contrib.RROIAlign", image, lost, pooled_size=(2, 2), spatial_scale=1)


def images() -> Iterator[Call]:
    for dtype in ("float32", "float64", "float16", "uint8", "int32"):
        pixels = values(9, 11, 3, dtype=dtype, low=0, high=255)
        batch = values(2, 9, 11, 3, dtype=dtype, low=0, high=255)
        yield named("image.to_tensor", pixels)
        yield named("image.to_tensor", values(2, 5, 7, 4, dtype=dtype, low=0, high=255))
        planes, one = values(2, 3, 9, 11, dtype=dtype, low=0, high=99), values(1, 9, 11, dtype=dtype, low=0, high=99)
        yield named("image.normalize", planes, mean=(0.5, -3, 7), std=(1.5, 0.4, 2))
        yield named("image.normalize", one, mean=(2,), std=(3,))
        yield named("image.crop", batch, x=2, y=3, width=5, height=4)
        for name in ("flip_left_right", "flip_top_bottom"):
            yield named(f"image.{name}", pixels)
        for kind in range(5):
            attrs = {"top": 12, "bot": 3, "left": 0, "right": 25, "type": kind}
            yield named("_internal._cvcopyMakeBorder", pixels, value=7.5, **attrs)
            yield named("_internal._cvcopyMakeBorder", pixels, values=(3, 1.5), **attrs)
        yield named("_internal._cvcopyMakeBorder", values(1, 1, 2, dtype=dtype), top=2, bot=2, left=3, right=1, type=4)
        for interp, size in itertools.product(range(4), ((22, 31), (11, 9), (4, 3), (7, 20), (1, 1))):
            if interp == 0 or dtype.startswith("float") or (dtype == "uint8" and interp != 2):
                yield named("image.resize", batch, size=size, interp=interp)
    # Means of four pixels.
    for dtype in ("float32", "uint8"):
        yield named("image.resize", values(3, 8, 6, 2, dtype=dtype, low=0, high=255), size=(3, 4), interp=1)


# Attributes of windows where they are not given.
DEFAULTS = {"kernel": 1, "stride": 1, "pad": 0, "dilate": 1}

VISION: dict[str, Callable[[], Iterator[Call]]] = {
    "box_pairs": box_pairs,
    "matching": matching,
    "multibox_target": multibox_target,
    "proposals": proposals,
    "columns": columns,
    "correlation": correlation,
    "deformable": deformable,
    "region_means": region_means,
    "images": images,
}
