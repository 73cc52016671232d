"""Augmenters: objects that change an image, often by chance.

Random numbers come from Python's ``random`` and numpy's global generator, as in MXNet.
"""

from __future__ import annotations

import json
import random
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import MXNetDeprecationWarning, warn
from ..ndarray import NDArray, array, dot, flip
from ..ndarray import sum as nd_sum
from ._sizes import (
    _get_interp_method,
    center_crop,
    color_normalize,
    imresize,
    like,
    pixels,
    random_crop,
    random_size_crop,
    resize_short,
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
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
]

# Shares of red, green and blue in grey.
_GREY = (0.299, 0.587, 0.114)
_Size = tuple[int, int]


class Described:
    """The common part of augmenters of images and of their boxes: they have arguments and can be
    written as JSON.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {name: _plain(value) for name, value in kwargs.items()}

    def dumps(self) -> Any:
        """Name and arguments as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])


class Augmenter(Described):
    """Changes images: subclasses define ``__call__``. The keywords are what ``dumps`` writes."""

    def __call__(self, src: NDArray) -> Any:
        raise NotImplementedError("Must override implementation.")


def _plain(value: Any) -> Any:
    """An array as lists of numbers."""
    values = value.asnumpy() if isinstance(value, NDArray) else value
    return values.tolist() if isinstance(values, np.ndarray) else values


class SequentialAug(Augmenter):
    """Several augmenters, one after the other."""

    def __init__(self, ts: Sequence[Augmenter]) -> None:
        super().__init__()
        self.ts = ts

    def dumps(self) -> Any:
        """Name and arguments of all."""
        return [type(self).__name__.lower(), [augmenter.dumps() for augmenter in self.ts]]

    def __call__(self, src: NDArray) -> Any:
        for augmenter in self.ts:
            src = augmenter(src)
        return src


class RandomOrderAug(SequentialAug):
    """Several augmenters, in random order."""

    def __call__(self, src: NDArray) -> Any:
        self.ts: list[Any] = shuffled(self.ts)
        return super().__call__(src)


def shuffled(augmenters: Sequence[Any]) -> list[Any]:
    """A list in random order. MXNet shuffles the list of an augmenter again at each call, beginning
    with its last order; here it is replaced, as other threads may be using it.
    """
    order = list(augmenters)
    random.shuffle(order)
    return order


class ResizeAug(Augmenter):
    """Resizes so that the shorter edge is `size`."""

    def __init__(self, size: int, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resizes to `size` (width, height), whatever the form."""

    def __init__(self, size: _Size, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        sizes = (src.shape[0], src.shape[1], self.size[1], self.size[0])
        return imresize(src, *self.size, interp=_get_interp_method(self.interp, sizes))


class RandomCropAug(Augmenter):
    """A random part of `size` (width, height)."""

    def __init__(self, size: _Size, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        return random_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """A random part of random area and form, resized to `size` (width, height)."""

    def __init__(self, size: _Size, area: Any, ratio: tuple[float, float], interp: int = 2, **kwargs: Any) -> None:
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        if "min_area" in kwargs:
            warn("`min_area` is deprecated. Please use `area` instead.", MXNetDeprecationWarning)
            area = kwargs.pop("min_area")
        if kwargs:
            raise AssertionError(f"unexpected keyword arguments for `RandomSizedCropAug`: {', '.join(kwargs)}")
        self.size = size
        self.area = area
        self.ratio = ratio
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(Augmenter):
    """The middle of `size` (width, height)."""

    def __init__(self, size: _Size, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        return center_crop(src, self.size, self.interp)[0]


class BrightnessJitterAug(Augmenter):
    """Multiplies by a random factor that differs from 1 by up to `brightness`. In place."""

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src: NDArray) -> NDArray:
        src *= 1.0 + random.uniform(-self.brightness, self.brightness)
        return src


class ContrastJitterAug(Augmenter):
    """Multiplies the distance to the mean grey by a random factor that differs from 1 by up to
    `contrast`. In place.
    """

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast=contrast)
        self.contrast = contrast
        self.coef: NDArray = array([[_GREY]])

    def __call__(self, src: NDArray) -> NDArray:
        alpha = 1.0 + random.uniform(-self.contrast, self.contrast)
        grey = pixels(src) * self.coef
        mean = (3.0 * (1.0 - alpha) / grey.size) * nd_sum(grey)
        src *= alpha
        src += like(src, mean)
        return src


class SaturationJitterAug(Augmenter):
    """Moves colours from or to grey by a random factor that differs from 1 by up to `saturation`.
    In place.
    """

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation=saturation)
        self.saturation = saturation
        self.coef = array([[_GREY]])

    def __call__(self, src: NDArray) -> NDArray:
        alpha = 1.0 + random.uniform(-self.saturation, self.saturation)
        grey = nd_sum(pixels(src) * self.coef, axis=2, keepdims=True) * (1.0 - alpha)
        src *= alpha
        src += like(src, grey)
        return src


class HueJitterAug(Augmenter):
    """Turns the hue by a random part of a half circle, up to `hue`."""

    def __init__(self, hue: float) -> None:
        super().__init__(hue=hue)
        self.hue = hue
        self.tyiq: Any = np.array([_GREY, [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
        self.ityiq: Any = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])

    def __call__(self, src: NDArray) -> NDArray:
        angle = random.uniform(-self.hue, self.hue) * np.pi
        cos, sin = np.cos(angle), np.sin(angle)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]])
        turned: NDArray = like(src, dot(src, array((self.ityiq @ turn @ self.tyiq).T)))
        return turned


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation, in random order."""

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        augmenters: list[Augmenter] = []
        if brightness > 0:
            augmenters.append(BrightnessJitterAug(brightness))
        if contrast > 0:
            augmenters.append(ContrastJitterAug(contrast))
        if saturation > 0:
            augmenters.append(SaturationJitterAug(saturation))
        super().__init__(augmenters)


class LightingAug(Augmenter):
    """Adds random multiples of the main directions of colours. In place."""

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any) -> None:
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd = alphastd
        self.eigval = eigval
        self.eigvec = eigvec

    def __call__(self, src: NDArray) -> NDArray:
        alpha = np.random.normal(0, self.alphastd, size=(3,))
        src += like(src, array(np.dot(self.eigvec * alpha, self.eigval)))
        return src


class ColorNormalizeAug(Augmenter):
    """Subtracts `mean` and divides by `std`. In place."""

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean=mean, std=std)
        self.mean: NDArray | None = mean if mean is None or isinstance(mean, NDArray) else array(mean)
        self.std: NDArray | None = std if std is None or isinstance(std, NDArray) else array(std)

    def __call__(self, src: NDArray) -> NDArray:
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(Augmenter):
    """Makes colours grey with the probability `p`; there are still three channels."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p
        self.mat: NDArray = array([[0.21] * 3, [0.72] * 3, [0.07] * 3])

    def __call__(self, src: NDArray) -> NDArray:
        return like(src, dot(src, self.mat)) if random.random() < self.p else src


class HorizontalFlipAug(Augmenter):
    """Mirrors left and right with the probability `p`."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        return like(src, flip(src, axis=1)) if random.random() < self.p else src


class CastAug(Augmenter):
    """Changes the element type."""

    def __init__(self, typ: str = "float32") -> None:
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: NDArray) -> NDArray:
        return src.astype(self.typ)


# Means and standard deviations of the channels of ImageNet, from 0 to 255.
MEAN = (123.68, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)
# Main directions of the colours of ImageNet and their deviations.
EIGVAL = np.array([55.46, 4.794, 1.148])
EIGVEC = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


def CreateAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
) -> list[Augmenter]:
    """The usual augmenters for images of `data_shape` (channels, height, width).

    Parameters
    ----------
    resize : length of the shorter edge at the beginning; 0 leaves it
    rand_crop, rand_resize : cut at a random place, and of random size; otherwise in the middle
    rand_mirror : mirror images with the probability one half
    mean, std : of each channel; True stands for those of ImageNet
    brightness, contrast, saturation, hue, pca_noise, rand_gray : how much each is changed by chance
    inter_method : how pixels are made; see :func:`imresize`, 9 for what fits, 10 for a random one
    """
    augmenters: list[Augmenter] = []
    if resize > 0:
        augmenters.append(ResizeAug(resize, inter_method))
    size = (data_shape[2], data_shape[1])
    if rand_resize:
        if not rand_crop:
            raise AssertionError("rand_resize needs rand_crop=True")
        augmenters.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    elif rand_crop:
        augmenters.append(RandomCropAug(size, inter_method))
    else:
        augmenters.append(CenterCropAug(size, inter_method))
    if rand_mirror:
        augmenters.append(HorizontalFlipAug(0.5))
    augmenters.append(CastAug())
    return augmenters + color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)


def color_augmenters(
    brightness: float,
    contrast: float,
    saturation: float,
    hue: float,
    pca_noise: float,
    rand_gray: float,
    mean: Any,
    std: Any,
) -> list[Augmenter]:
    """Augmenters that change colours, for floating-point images, out of the usual ones."""
    augmenters: list[Augmenter] = []
    if brightness or contrast or saturation:
        augmenters.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        augmenters.append(HueJitterAug(hue))
    if pca_noise > 0:
        augmenters.append(LightingAug(pca_noise, EIGVAL, EIGVEC))
    if rand_gray > 0:
        augmenters.append(RandomGrayAug(rand_gray))
    mean = _channel_values(mean, MEAN, "mean")
    std = _channel_values(std, STD, "std")
    if mean is not None or std is not None:
        augmenters.append(ColorNormalizeAug(mean, std))
    return augmenters


def _channel_values(given: Any, usual: tuple[float, ...], name: str) -> Any:
    if given is True:
        return array(usual)
    if given is not None and not (isinstance(given, (np.ndarray, NDArray)) and given.shape[0] in (1, 3)):
        raise AssertionError(f"{name} must be an array of 1 or 3 numbers, or True, not {given!r}")
    return given
