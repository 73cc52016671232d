"""Images cut, resized and normalised."""

from __future__ import annotations

import random
import warnings  # noqa: F401 (a name of MXNet's module)
from typing import Any

import numpy as np

from .._scopes.np_mode import made_here
from ..base import MXNetDeprecationWarning, warn
from ..ndarray import NDArray, _internal

__all__ = [
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "fixed_crop",
    "imresize",
    "random_crop",
    "random_size_crop",
    "resize_short",
    "scale_down",
]

_Crop = tuple[int, int, int, int]
_Size = tuple[int, int]


def imresize(src: NDArray, w: int, h: int, interp: int = 1, out: NDArray | None = None) -> NDArray:
    """An image resized to width `w` and height `h`.

    `interp` says how pixels are made: 0 nearest, 1 bilinear, 2 cubic, 3 mean of the area, 4 Lanczos
    of 8 pixels.
    """
    made: NDArray = _internal._cvimresize(src, w, h, interp, out=out)
    return made_here(made) if out is None else made


def copyMakeBorder(
    src: NDArray,
    top: int,
    bot: int,
    left: int,
    right: int,
    type: int = 0,
    value: float = 0.0,
    values: Any = (),
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """An image with a border.

    `type` says what it shows: 0 the colour `values` (or `value` in each channel), 1 the outermost
    pixel, 2 the mirrored image, 3 the repeated image, 4 the image mirrored at its outermost pixel.
    """
    made: NDArray = _internal._cvcopyMakeBorder(src, top, bot, left, right, type, value, values, out=out)
    return made


def scale_down(src_size: _Size, size: _Size) -> _Size:
    """The size, as (width, height), of a cut that keeps its form but fits into an image of size
    `src_size`.
    """
    width: float
    height: float
    width, height = size
    most_wide, most_high = src_size
    if most_high < height:
        width, height = width * most_high / height, most_high
    if most_wide < width:
        width, height = most_wide, height * most_wide / width
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


def resize_short(src: NDArray, size: int, interp: int = 2) -> NDArray:
    """An image resized so that its shorter edge is `size`."""
    height, width, _ = src.shape
    high, wide = (size * height // width, size) if height > width else (size, size * width // height)
    return imresize(src, wide, high, interp=_get_interp_method(interp, (height, width, high, wide)))


def fixed_crop(src: NDArray, x0: int, y0: int, w: int, h: int, size: _Size | None = None, interp: int = 2) -> NDArray:
    """The part of an image that begins at (`x0`, `y0`), resized to `size` (width, height)."""
    cut = src[y0 : y0 + h, x0 : x0 + w]
    if size is None or (w, h) == tuple(size):
        return cut
    return imresize(cut, *size, interp=_get_interp_method(interp, (h, w, size[1], size[0])))


def random_crop(src: NDArray, size: _Size, interp: int = 2) -> tuple[NDArray, _Crop]:
    """A part of an image of this (width, height), at a random place, and where it is.

    A smaller image is cut to the form of `size` and resized.
    """
    height, width = src.shape[:2]
    wide, high = scale_down((width, height), size)
    x0, y0 = random.randint(0, width - wide), random.randint(0, height - high)
    return fixed_crop(src, x0, y0, wide, high, size, interp), (x0, y0, wide, high)


def center_crop(src: NDArray, size: _Size, interp: int = 2) -> tuple[NDArray, _Crop]:
    """The middle of an image, of this (width, height), and where it is.

    A smaller image is cut to the form of `size` and resized.
    """
    height, width = src.shape[:2]
    wide, high = scale_down((width, height), size)
    x0, y0 = (width - wide) // 2, (height - high) // 2
    return fixed_crop(src, x0, y0, wide, high, size, interp), (x0, y0, wide, high)


def random_size_crop(
    src: NDArray, size: _Size, area: Any, ratio: tuple[float, float], interp: int = 2, **kwargs: Any
) -> tuple[NDArray, _Crop]:
    """A random part of an image, resized to `size` (width, height), and where it is.

    `area` bounds its area, as a part of the image's: (least, most), or the least alone; `ratio` its
    width divided by its height.
    """
    if "min_area" in kwargs:
        warn("`min_area` is deprecated. Please use `area` instead.", MXNetDeprecationWarning)
        area = kwargs.pop("min_area")
    if kwargs:
        raise AssertionError(f"unexpected keyword arguments for `random_size_crop`: {', '.join(kwargs)}")
    height, width = src.shape[:2]
    least, most = area if isinstance(area, (tuple, list)) else (float(area), 1.0)
    for _ in range(10):
        target = random.uniform(least, most) * height * width
        form = np.exp(random.uniform(np.log(ratio[0]), np.log(ratio[1])))
        wide, high = round(np.sqrt(target * form)), round(np.sqrt(target / form))
        if wide <= width and high <= height:
            x0, y0 = random.randint(0, width - wide), random.randint(0, height - high)
            return fixed_crop(src, x0, y0, wide, high, size, interp), (x0, y0, wide, high)
    return center_crop(src, size, interp)


def color_normalize(src: NDArray, mean: Any, std: Any = None) -> NDArray:
    """An image minus `mean`, divided by `std`: numbers, or arrays with a number for each channel.
    In place.
    """
    if mean is not None:
        src -= like(src, mean)
    if std is not None:
        src /= like(src, std)
    return src


def pixels(image: Any) -> Any:
    """An image as an array of ``mx.nd``, which shares the elements of one of ``mx.np``."""
    return image.as_nd_ndarray() if isinstance(image, NDArray) else image


def like(image: Any, value: Any) -> Any:
    """An array of the class of an image; what is no array stays."""
    if not (isinstance(image, NDArray) and isinstance(value, NDArray)):
        return value
    return value.as_nd_ndarray() if pixels(image) is image else value.as_np_ndarray()
