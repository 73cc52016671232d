"""Iterators whose batches were recorded from MXNet 1.9.1: class and arguments."""

from __future__ import annotations

from typing import Any

_PNG = {"path_imgrec": "png.rec", "data_shape": (3, 16, 16)}
_ALL = {**_PNG, "batch_size": 5}
_PAIRS = {**_PNG, "batch_size": 2}
_DET = {"path_imgrec": "det.rec", "data_shape": (3, 16, 18), "batch_size": 2}
_DIGITS = {"image": "images", "label": "digits", "shuffle": False}

#: Name, class, arguments.
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("plain", "ImageRecordIter", _PAIRS),
    ("odd", "ImageRecordIter", {**_PAIRS, "data_shape": (3, 14, 18)}),
    ("short", "ImageRecordIter", {**_PAIRS, "round_batch": False}),
    ("jpeg", "ImageRecordIter", {**_PNG, "path_imgrec": "jpg.rec", "batch_size": 3}),
    ("resize_0", "ImageRecordIter", {**_ALL, "resize": 24, "inter_method": 0}),
    ("resize_1", "ImageRecordIter", {**_ALL, "resize": 24}),
    ("resize_2", "ImageRecordIter", {**_ALL, "resize": 24, "inter_method": 2}),
    ("resize_9", "ImageRecordIter", {**_ALL, "resize": 14, "inter_method": 9}),
    (
        "normal",
        "ImageRecordIter",
        {**_ALL, "mean_r": 1, "mean_g": 2, "mean_b": 3, "std_r": 2, "std_g": 4, "std_b": 8, "scale": 10},
    ),
    ("mirror", "ImageRecordIter", {**_ALL, "mirror": True}),
    ("grey", "ImageRecordIter", {**_ALL, "data_shape": (1, 16, 16), "mean_r": 5}),
    ("alpha", "ImageRecordIter", {"path_imgrec": "rgba.rec", "data_shape": (4, 16, 16), "batch_size": 5, "mean_a": 3}),
    ("pad", "ImageRecordIter", {**_ALL, "pad": 3, "fill_value": 7}),
    ("crop_size", "ImageRecordIter", {**_ALL, "max_crop_size": 9, "min_crop_size": 9}),
    ("uint8", "ImageRecordIter", {**_ALL, "dtype": "uint8"}),
    ("int8", "ImageRecordIter", {**_ALL, "dtype": "int8", "mean_r": 123.4, "mean_g": 100, "mean_b": 20}),
    ("labels", "ImageRecordIter", {**_PNG, "path_imgrec": "labels.rec", "batch_size": 2, "label_width": 3}),
    ("list", "ImageRecordIter", {**_PAIRS, "label_width": 2, "path_imglist": "list.lst"}),
    ("part_0", "ImageRecordIter", {**_PNG, "batch_size": 1, "num_parts": 2, "part_index": 0}),
    ("part_1", "ImageRecordIter", {**_PNG, "batch_size": 1, "num_parts": 2, "part_index": 1}),
    ("index_0", "ImageRecordIter", {**_PNG, "path_imgidx": "png.idx", "batch_size": 1, "num_parts": 2}),
    (
        "index_1",
        "ImageRecordIter",
        {**_PNG, "path_imgidx": "png.idx", "batch_size": 1, "num_parts": 2, "part_index": 1},
    ),
    ("rotate", "ImageRecordIter", {**_ALL, "rotate": 30}),
    ("rotate_area", "ImageRecordIter", {**_ALL, "rotate": 30, "inter_method": 3}),
    ("scale", "ImageRecordIter", {**_ALL, "max_random_scale": 0.8, "min_random_scale": 0.8}),
    ("aspect", "ImageRecordIter", {**_ALL, "max_aspect_ratio": 1.3, "min_aspect_ratio": 1.3}),
    ("resized_crop", "ImageRecordIter", {**_ALL, "random_resized_crop": True}),
    ("v1", "ImageRecordIter_v1", {**_PAIRS, "mean_r": 3, "std_g": 2}),
    ("class_uint8", "ImageRecordUInt8Iter", _PAIRS),
    ("class_uint8_v1", "ImageRecordUInt8Iter_v1", _PAIRS),
    ("class_int8", "ImageRecordInt8Iter", _PAIRS),
    ("detection", "ImageDetRecordIter", _DET),
    ("detection_pad", "ImageDetRecordIter", {**_DET, "label_pad_width": 20, "label_pad_value": -2}),
    ("detection_shrink", "ImageDetRecordIter", {**_DET, "resize_mode": "shrink"}),
    ("detection_fit", "ImageDetRecordIter", {**_DET, "resize_mode": "fit"}),
    (
        "detection_mean",
        "ImageDetRecordIter",
        {**_DET, "mean_r": 3, "std_r": 2, "std_g": 2, "std_b": 4, "scale": 0.5},
    ),
    ("detection_mirror", "ImageDetRecordIter", {**_DET, "rand_mirror_prob": 1.1}),
    ("mnist", "MNISTIter", {**_DIGITS, "batch_size": 3}),
    (
        "mnist_flat",
        "MNISTIter",
        {"image": "images", "label": "digits", "batch_size": 2, "shuffle": False, "flat": True},
    ),
    (
        "mnist_part",
        "MNISTIter",
        {"image": "images", "label": "digits", "batch_size": 1, "shuffle": False, "num_parts": 3, "part_index": 1},
    ),
    ("libsvm", "LibSVMIter", {"data_libsvm": "rows.svm", "data_shape": (5,), "batch_size": 2}),
    (
        "libsvm_labels",
        "LibSVMIter",
        {
            "data_libsvm": "rows.svm",
            "data_shape": (5,),
            "label_libsvm": "labels.svm",
            "label_shape": (3,),
            "batch_size": 2,
        },
    ),
    (
        "libsvm_part",
        "LibSVMIter",
        {"data_libsvm": "rows.svm", "data_shape": (5,), "batch_size": 1, "num_parts": 2, "part_index": 1},
    ),
]


def batches(mx: Any, kind: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The content of two epochs: data, labels, pads and the number of batches of each."""
    import numpy as np

    iterator = getattr(mx.io, kind)(**arguments)
    found: dict[str, list[Any]] = {"data": [], "label": [], "pad": [], "count": []}
    for _ in range(2):
        count = 0
        for batch in iterator:
            for key, array in (("data", batch.data[0]), ("label", batch.label[0])):
                dense = array if array.stype == "default" else array.tostype("default")
                found[key].append(dense.asnumpy())
            found["pad"].append(batch.pad)
            count += 1
        found["count"].append(count)
        iterator.reset()
    shapes = [d[0].shape for d in (iterator.provide_data, iterator.provide_label)]
    described = {"shapes": np.array(repr([tuple(shape) for shape in shapes]))}
    return {**{key: np.array(values) for key, values in found.items()}, **described}
