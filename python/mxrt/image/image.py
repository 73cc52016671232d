"""Images as arrays of shape (height, width, channels)."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..base import MXNetNotImplementedError
from ..io import DataIter
from ..ndarray import NDArray

__all__ = [
    "Augmenter",
    "CreateAugmenter",
    "ImageIter",
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "fixed_crop",
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

_Crop = tuple[int, int, int, int]


def refuse(name: str, what: str) -> NoReturn:
    """The error for what needs decoding, resizing or turning of images."""
    raise MXNetNotImplementedError(
        f"mx.image.{name}: {what} is not part of this build of mxrt; do it with Pillow or OpenCV, and make an array of "
        "the result with mx.nd.array"
    )


# ---- refused -------------------------------------------------------------------------------------


def imread(filename: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: files of images are not decoded."""
    refuse("imread", "decoding images")


def imdecode(buf: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: images are not decoded."""
    refuse("imdecode", "decoding images")


def imresize(src: NDArray, w: int, h: int, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: images are not resized."""
    refuse("imresize", "resizing images")


def resize_short(src: NDArray, size: int, interp: int = 2) -> NoReturn:
    """Refused: images are not resized."""
    refuse("resize_short", "resizing images")


def copyMakeBorder(src: NDArray, top: int, bot: int, left: int, right: int, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: images get no borders; ``mx.nd.pad`` gives arrays some."""
    refuse("copyMakeBorder", "giving images borders")


def random_size_crop(
    src: NDArray, size: tuple[int, int], area: Any, ratio: Any, interp: int = 2, **kwargs: Any
) -> NoReturn:
    """Refused: images are not resized."""
    refuse("random_size_crop", "resizing images")


def imrotate(src: NDArray, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> NoReturn:
    """Refused: images are not turned."""
    refuse("imrotate", "turning images")


def random_rotate(src: NDArray, angle_limits: Any, zoom_in: bool = False, zoom_out: bool = False) -> NoReturn:
    """Refused: images are not turned."""
    refuse("random_rotate", "turning images")


def CreateAugmenter(data_shape: Sequence[int], *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no ready-made augmenters."""
    refuse("CreateAugmenter", "augmenting images")


class ImageIter(DataIter):
    """Batches of images from files; refused when one is made."""

    def __init__(self, batch_size: int, data_shape: Sequence[int], *args: Any, **kwargs: Any) -> None:
        refuse("ImageIter", "reading images from files")


# ---- cutting and normalising ---------------------------------------------------------------------


class Augmenter:
    """Changes images: subclasses define ``__call__``. The keywords are what ``dumps`` writes."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {name: _plain(value) for name, value in kwargs.items()}

    def dumps(self) -> str:
        """Name and arguments as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: NDArray) -> Any:
        raise NotImplementedError("Must override implementation.")


def _plain(value: Any) -> Any:
    """An array as lists of numbers."""
    array = value.asnumpy() if isinstance(value, NDArray) else value
    return array.tolist() if isinstance(array, np.ndarray) else array


def scale_down(src_size: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """The size, as (width, height), of a cut that keeps its form but fits into an image of size
    `src_size`.
    """
    width, height = size
    most_wide, most_high = src_size
    if most_high < height:
        width, height = float(width * most_high) / height, most_high  # type: ignore[assignment]
    if most_wide < width:
        width, height = most_wide, float(height * most_wide) / width  # type: ignore[assignment]
    return int(width), int(height)


def _get_interp_method(interp: int, sizes: tuple[int, ...] = ()) -> int:
    """The number of a way to interpolate: 9 chooses by old and new height and width, 10 by
    chance.
    """
    if interp == 10:
        return random.randint(0, 4)
    if interp != 9:
        if interp not in range(5):
            raise ValueError(f"Unknown interp method {interp}")
        return interp
    if not sizes:
        return 2
    old_height, old_width, height, width = sizes
    if height > old_height and width > old_width:
        return 2
    return 3 if height < old_height and width < old_width else 1


def fixed_crop(
    src: NDArray, x0: int, y0: int, w: int, h: int, size: tuple[int, int] | None = None, interp: int = 2
) -> NDArray:
    """The part of an image that begins at (`x0`, `y0`); refused where it would have to be resized
    to `size`.
    """
    cut = src[y0 : y0 + h, x0 : x0 + w]
    if size is not None and (w, h) != tuple(size):
        imresize(cut, *size, interp=_get_interp_method(interp, (h, w, size[1], size[0])))
    return cut


def random_crop(src: NDArray, size: tuple[int, int], interp: int = 2) -> tuple[NDArray, _Crop]:
    """A part of an image of this (width, height), at a random place, and where it is."""
    height, width = src.shape[:2]
    wide, high = scale_down((width, height), size)
    x0, y0 = random.randint(0, width - wide), random.randint(0, height - high)
    return fixed_crop(src, x0, y0, wide, high, size, interp), (x0, y0, wide, high)


def center_crop(src: NDArray, size: tuple[int, int], interp: int = 2) -> tuple[NDArray, _Crop]:
    """The middle of an image, of this (width, height), and where it is."""
    height, width = src.shape[:2]
    wide, high = scale_down((width, height), size)
    x0, y0 = (width - wide) // 2, (height - high) // 2
    return fixed_crop(src, x0, y0, wide, high, size, interp), (x0, y0, wide, high)


def color_normalize(src: NDArray, mean: Any, std: Any = None) -> NDArray:
    """An image minus `mean`, divided by `std`: numbers, or arrays with a number for each channel.
    In place.
    """
    if mean is not None:
        src -= mean
    if std is not None:
        src /= std
    return src
