"""Images: ``mx.image``. Cutting and normalising are here; decoding and resizing are refused when
they are called.
"""

from . import detection, image
from .detection import CreateDetAugmenter, DetAugmenter, ImageDetIter
from .image import (
    Augmenter,
    CreateAugmenter,
    ImageIter,
    center_crop,
    color_normalize,
    copyMakeBorder,
    fixed_crop,
    imdecode,
    imread,
    imresize,
    imrotate,
    random_crop,
    random_rotate,
    random_size_crop,
    resize_short,
    scale_down,
)

__all__ = [
    "Augmenter",
    "CreateAugmenter",
    "CreateDetAugmenter",
    "DetAugmenter",
    "ImageDetIter",
    "ImageIter",
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "detection",
    "fixed_crop",
    "image",
    "imdecode",
    "imread",
    "imresize",
    "imrotate",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize_short",
    "scale_down",
]
