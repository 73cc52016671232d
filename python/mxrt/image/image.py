"""Images as arrays of shape (height, width, channels): all of ``mx.image`` but detection."""

from __future__ import annotations

from ..util import is_np_array
from ._augmenters import (
    Augmenter,
    BrightnessJitterAug,
    CastAug,
    CenterCropAug,
    ColorJitterAug,
    ColorNormalizeAug,
    ContrastJitterAug,
    CreateAugmenter,
    ForceResizeAug,
    HorizontalFlipAug,
    HueJitterAug,
    LightingAug,
    RandomCropAug,
    RandomGrayAug,
    RandomOrderAug,
    RandomSizedCropAug,
    ResizeAug,
    SaturationJitterAug,
    SequentialAug,
)
from ._files import imdecode, imread
from ._iterator import ImageIter
from ._rotate import imrotate, random_rotate
from ._sizes import (
    _get_interp_method,  # noqa: F401 - other packages import it
    center_crop,
    color_normalize,
    copyMakeBorder,
    fixed_crop,
    imresize,
    random_crop,
    random_size_crop,
    resize_short,
    scale_down,
)

__all__ = [
    "Augmenter",
    "BrightnessJitterAug",
    "CastAug",
    "CenterCropAug",
    "ColorJitterAug",
    "ColorNormalizeAug",
    "ContrastJitterAug",
    "CreateAugmenter",
    "ForceResizeAug",
    "HorizontalFlipAug",
    "HueJitterAug",
    "ImageIter",
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "imrotate",
    "is_np_array",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize_short",
    "scale_down",
]
