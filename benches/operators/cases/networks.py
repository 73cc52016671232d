"""Layers of networks: convolutions, normalisation, activation over axes, attention, vision."""

from __future__ import annotations

import numpy as np

from .table import Array, add, given, image, integers, picture, sequence, square, uniform

# ---- layers ----


def _features(n: int) -> tuple[int, int]:
    width = 64 if n <= 1 << 10 else 512
    return n // width, width


add("FullyConnected", lambda n: given(uniform(_features(n)), *_dense(n), num_hidden=_features(n)[1]), most=1 << 20)


def _dense(n: int) -> tuple[Array, Array]:
    width = _features(n)[1]
    return uniform((width, width), -0.1, 0.1), uniform(width)


def _convolved(n: int, kernel: int, groups: int = 1) -> tuple[Array, Array, Array]:
    channels = image(n)[1]
    return uniform(image(n)), uniform((channels, channels // groups, kernel, kernel), -0.1, 0.1), uniform(channels)


def _window(n: int, kernel: int, **more: object) -> dict[str, object]:
    return {"kernel": (kernel, kernel), "pad": (kernel // 2,) * 2, "num_filter": image(n)[1], **more}


_LAYERS = 1 << 22
add("Convolution", lambda n: given(*_convolved(n, 3), **_window(n, 3)), most=_LAYERS)
add("Convolution:1x1", lambda n: given(*_convolved(n, 1), **_window(n, 1)), most=_LAYERS)
add("Convolution:depthwise", lambda n: given(*_convolved(n, 3, image(n)[1]), **_window(n, 3, num_group=image(n)[1])))
add("Convolution_v1", lambda n: given(*_convolved(n, 3), **_window(n, 3)), most=1 << 20)
add("Deconvolution", lambda n: given(*_convolved(n, 3)[:2], **_window(n, 3, stride=(2, 2))), most=1 << 20)
_POOL = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}
add("Pooling", lambda n: given(uniform(image(n)), pool_type="max", **_POOL))
add("Pooling:avg", lambda n: given(uniform(image(n)), pool_type="avg", **_POOL))
add("Pooling:global", lambda n: given(uniform(image(n)), pool_type="avg", global_pool=True, kernel=(1, 1)))
add("Pooling_v1", lambda n: given(uniform(image(n)), pool_type="max", **_POOL))
add("_contrib_AdaptiveAvgPooling2D", lambda n: given(uniform(image(n)), output_size=2))
add("im2col", lambda n: given(uniform(image(max(n // 16, 1 << 10))), kernel=(3, 3)))
_COLUMNS = {"kernel": (2, 2), "stride": (2, 2)}
add("col2im", lambda n: given(uniform((1, n // 256, 256)), output_size=(32, 32), **_COLUMNS))
add("UpSampling", lambda n: given(uniform(image(n // 4)), scale=2, sample_type="nearest", num_args=1))
add("_contrib_BilinearResize2D", lambda n: given(uniform(image(n // 4)), height=image(n)[2], width=image(n)[2]))

# ---- normalisation ----


def _channels(n: int, count: int) -> list[Array]:
    return [uniform(image(n)[1], 0.5, 1.5) for _ in range(count)]


add("BatchNorm BatchNorm_v1 _contrib_BatchNormWithReLU", lambda n: given(uniform(image(n)), *_channels(n, 4)))
add("_contrib_SyncBatchNorm", lambda n: given(uniform(image(n)), *_channels(n, 4), key="bn0", ndev=1))
add("InstanceNorm", lambda n: given(uniform(image(n)), *_channels(n, 2)))
add("GroupNorm", lambda n: given(uniform(image(n)), uniform(2, 0.5, 1), uniform(2), num_groups=2))
add("LayerNorm", lambda n: given(uniform(_features(n)), uniform(_features(n)[1]), uniform(_features(n)[1])))
add("L2Normalization", lambda n: given(uniform(_features(n))))
add("L2Normalization:channel", lambda n: given(uniform(image(n)), mode="channel"))
add("LRN", lambda n: given(uniform(image(n)), nsize=3), most=_LAYERS)

# ---- over classes ----

_CLASSES = "softmax log_softmax softmin SoftmaxActivation"
add(_CLASSES, lambda n: given(uniform(_features(n))))
add("softmax:channel log_softmax:channel", lambda n: given(uniform(image(n)), axis=1))
_LOSSES = "SoftmaxOutput SVMOutput softmax_cross_entropy"
add(_LOSSES, lambda n: given(uniform(_features(n)), integers(_features(n)[0], _features(n)[1])))
add("CTCLoss", lambda n: given(uniform((16, n // 1024, 64)), 1 + integers((n // 1024, 8), 60)), most=1 << 20)

# ---- sequences ----

_HEADS = {"heads": 4}


def _attention(n: int, width: int) -> tuple[int, int, int]:
    steps = 8 if n <= 1 << 12 else 128
    return steps, max(1, n // (steps * 64 * width)), 64 * width


def _scores(n: int) -> tuple[int, int, int]:
    steps, batch, _ = _attention(n, 3)
    return batch * 4, steps, steps


_MOST_SEQUENCE = 1 << 22
_QK, _VALATT = "_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_selfatt_valatt"
add(_QK, lambda n: given(uniform(_attention(n, 3)), **_HEADS), most=_MOST_SEQUENCE)
add(_VALATT, lambda n: given(uniform(_attention(n, 3)), uniform(_scores(n)), **_HEADS), most=_MOST_SEQUENCE)
add(
    "_contrib_interleaved_matmul_encdec_qk",
    lambda n: given(uniform((*_attention(n, 3)[:2], 64)), uniform((*_attention(n, 3)[:2], 128)), **_HEADS),
    most=_MOST_SEQUENCE,
)
add(
    "_contrib_interleaved_matmul_encdec_valatt",
    lambda n: given(uniform((*_attention(n, 3)[:2], 128)), uniform(_scores(n)), **_HEADS),
    most=_MOST_SEQUENCE,
)


def _recurrent(n: int, gates: int) -> list[Array]:
    shape = sequence(n)
    width = shape[2]
    weights = uniform(gates * width * (2 * width + 2), -0.05, 0.05)
    states = [uniform((1, shape[1], width)) for _ in range(2 if gates == 4 else 1)]
    return [uniform(shape), weights, *states]


def _layer(n: int, mode: str) -> dict[str, object]:
    return {"mode": mode, "state_size": sequence(n)[2], "num_layers": 1}


for _mode, _gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1)):
    add(f"RNN:{_mode}", lambda n, m=_mode, g=_gates: given(*_recurrent(n, g), **_layer(n, m)), most=1 << 19)

# ---- images ----


def _photo(n: int) -> Array:
    return integers(picture(n), 256, "uint8")


add("_image_to_tensor _image_flip_left_right _image_flip_top_bottom", lambda n: given(_photo(n)))
add("_image_normalize", lambda n: given(uniform((3, *picture(n)[:2])), mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4)))
add("_image_crop", lambda n: given(_photo(n), x=1, y=1, width=picture(n)[1] // 2, height=picture(n)[0] // 2))
add("_image_resize", lambda n: given(_photo(n), size=(picture(n)[1] // 2, picture(n)[0] // 2), interp=1))
add("_cvimresize", lambda n: given(_photo(n), w=picture(n)[1] // 2, h=picture(n)[0] // 2, interp=1))
add("_cvcopyMakeBorder", lambda n: given(_photo(n), top=2, bot=2, left=2, right=2, type=0, value=7.0))
add("_image_adjust_lighting", lambda n: given(uniform(picture(n)), alpha=(0.1, -0.2, 0.05)))
add("_image_random_lighting", lambda n: given(uniform(picture(n)), alpha_std=0.1))
add("_image_random_flip_left_right _image_random_flip_top_bottom", lambda n: given(uniform(picture(n))))
_FACTORS = "_image_random_brightness _image_random_contrast _image_random_saturation"
add(_FACTORS, lambda n: given(uniform(picture(n)), min_factor=0.5, max_factor=1.5))
add("_image_random_hue", lambda n: given(uniform(picture(n), 0, 255), min_factor=0.5, max_factor=1.5))
_JITTER = {"brightness": 0.1, "contrast": 0.1, "saturation": 0.1, "hue": 0.1}
add("_image_random_color_jitter", lambda n: given(uniform(picture(n), 0, 255), **_JITTER))

# ---- grids and regions ----


def _affine(n: int) -> Array:
    return np.tile(np.array([0.9, 0.1, 0, -0.1, 0.9, 0], "float32"), (image(n)[0], 1))


def _grid(n: int) -> Array:
    batch, _, height, width = image(n)
    return uniform((batch, 2, height, width), -1, 1)


_SAMPLED = 1 << 22
add("BilinearSampler", lambda n: given(uniform(image(n)), _grid(n)), most=_SAMPLED)
_TRANSFORM = {"transform_type": "affine"}
add(
    "GridGenerator",
    lambda n: given(uniform((max(1, n // 8192), 6)), target_shape=square(min(n // 2, 4096)), **_TRANSFORM),
)
add(
    "SpatialTransformer",
    lambda n: given(uniform(image(n)), _affine(n), target_shape=image(n)[2:], sampler_type="bilinear", **_TRANSFORM),
    most=_SAMPLED,
)


def _regions(n: int, batch: int = 1) -> Array:
    """Boxes in an image: its number in the batch, then corners."""
    side = image(n)[2]
    count = 8 if n <= 1 << 10 else 64
    corner = uniform((count, 2), 0, side / 2)
    return np.concatenate([np.zeros((count, 1), "float32"), corner, corner + side / 2 - 1], axis=1).astype("float32")


_POOLED = {"pooled_size": (7, 7), "spatial_scale": 1.0}
add("ROIPooling", lambda n: given(uniform(image(n)), _regions(n), **_POOLED), most=1 << 20)
add("_contrib_ROIAlign", lambda n: given(uniform(image(n)), _regions(n), sample_ratio=2, **_POOLED), most=1 << 20)
add("_contrib_RROIAlign", lambda n: given(uniform(image(n)), _turned(n), sampling_ratio=2, **_POOLED), most=1 << 20)


def _turned(n: int) -> Array:
    boxes = _regions(n)
    return np.concatenate([boxes, np.full((len(boxes), 1), 30, "float32")], axis=1)


def _parts(n: int) -> Array:
    side = image(n)[2]
    return uniform((1, max(4, image(n)[1] // 4 * 4), side, side))


_PART = {"spatial_scale": 1.0, "group_size": 2, "pooled_size": 2}
add(
    "_contrib_PSROIPooling",
    lambda n: given(_parts(n), _regions(n), output_dim=_parts(n).shape[1] // 4, **_PART),
    most=1 << 18,
)
add(
    "_contrib_DeformablePSROIPooling",
    lambda n: given(
        _parts(n), _regions(n), output_dim=_parts(n).shape[1] // 4, no_trans=True, sample_per_part=2, **_PART
    ),
    most=1 << 18,
)
_CORRELATED = {"kernel_size": 1, "max_displacement": 1, "pad_size": 1, "stride1": 1, "stride2": 1}
add("Correlation", lambda n: given(uniform(image(n)), uniform(image(n)), **_CORRELATED), most=1 << 20)


def _deformed(n: int, mask: bool) -> list[Array]:
    batch, _, height, width = image(n)
    data, weight, bias = _convolved(n, 3)
    masks = [uniform((batch, 9, height, width), 0, 1)] if mask else []
    return [data, uniform((batch, 18, height, width), -1, 1), *masks, weight, bias]


add("_contrib_DeformableConvolution", lambda n: given(*_deformed(n, False), **_window(n, 3)), most=1 << 20)
add("_contrib_ModulatedDeformableConvolution", lambda n: given(*_deformed(n, True), **_window(n, 3)), most=1 << 20)

# ---- boxes; `n` counts their numbers, so that pairs are no more than 4,096 squared ----


def _boxes(count: int, size: float = 1.0) -> Array:
    corner = uniform((count, 2), 0, size * 0.9)
    return np.concatenate([corner, corner + size / 10], axis=1)


def _scored(count: int) -> Array:
    head = np.stack([integers(count, 20), uniform(count, 0, 1)], axis=1)
    return np.concatenate([head, _boxes(count, 500)], axis=1)[None].astype("float32")


_NMS = {"overlap_thresh": 0.45, "valid_thresh": 0.01, "topk": 400, "coord_start": 2, "score_index": 1, "id_index": 0}
add("_contrib_box_nms", lambda n: given(_scored(n // 6), **_NMS), most=1 << 18)
add("_contrib_box_iou", lambda n: given(_boxes(square(n)[0]), _boxes(square(n)[1]), format="corner"), most=1 << 22)
add(
    "_contrib_box_decode", lambda n: given(uniform((1, n // 4, 4)), _boxes(n // 4)[None], format="corner"), most=1 << 22
)
add("_contrib_box_encode", lambda n: given(*_encoded(n // 4)), most=1 << 22)
add("_contrib_bipartite_matching", lambda n: given(uniform(square(n), 0, 1), threshold=0.5), most=1 << 16)


def _encoded(count: int) -> list[Array]:
    objects, four = 64, np.full(4, 0.1, "float32")
    matches = integers((1, count), objects)
    return [np.ones((1, count), "float32"), matches, _boxes(count)[None], _boxes(objects)[None], four, four]


add("_contrib_MultiBoxPrior", lambda n: given(uniform(image(n)), sizes=(0.5, 0.25), ratios=(1.0, 2.0)))


def _detections(n: int) -> list[Array]:
    count = max(16, n // 25)
    scores = uniform((1, 21, count), 0, 1)
    return [scores / scores.sum(axis=1, keepdims=True), uniform((1, 4 * count), -0.1, 0.1), _boxes(count)[None]]


def _targets(n: int) -> list[Array]:
    count = max(16, n // 25)
    labels = np.concatenate([integers((8, 1), 20), _boxes(8)], axis=1)[None].astype("float32")
    return [_boxes(count)[None], labels, uniform((1, 21, count))]


add("_contrib_MultiBoxDetection", lambda n: given(*_detections(n), nms_topk=400), most=1 << 18)
add("_contrib_MultiBoxTarget", lambda n: given(*_targets(n)), most=1 << 18)


def _proposed(n: int) -> list[Array]:
    side = 8 if n <= 1 << 10 else 64
    information = np.array([[side * 16, side * 16, 1.0]], "float32")
    return [uniform((1, 24, side, side), 0, 1), uniform((1, 48, side, side), -0.2, 0.2), information]


_KEPT = {"rpn_pre_nms_top_n": 600, "rpn_post_nms_top_n": 100}
add("_contrib_Proposal _contrib_MultiProposal", lambda n: given(*_proposed(n), **_KEPT), most=1 << 18)
