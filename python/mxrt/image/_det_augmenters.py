"""Augmenters of images with boxes: objects that change an image and the boxes of its objects.

Boxes are an array (objects, 5 or more): class, left, top, right and bottom, and what follows them.
The edges are parts of the image's width and height, from 0 to 1. Random numbers come from Python's
``random`` and numpy's global generator, as in MXNet.
"""

from __future__ import annotations

import random
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from ..base import numeric_types, warn
from ..ndarray import NDArray, flip
from ._augmenters import (
    MEAN,
    STD,
    Augmenter,
    CastAug,
    Described,
    ForceResizeAug,
    ResizeAug,
    color_augmenters,
    shuffled,
)
from ._sizes import copyMakeBorder, fixed_crop, like

__all__ = [
    "CreateDetAugmenter",
    "CreateMultiRandCropAugmenter",
    "DetAugmenter",
    "DetBorrowAug",
    "DetHorizontalFlipAug",
    "DetRandomCropAug",
    "DetRandomPadAug",
    "DetRandomSelectAug",
]

_Box = tuple[int, int, int, int]
_Range = tuple[Any, Any]
_Changed = tuple[NDArray, Any]


class DetAugmenter(Described):
    """Changes images and their boxes: subclasses define ``__call__``. The keywords are what
    ``dumps`` writes.
    """

    def __call__(self, src: NDArray, label: Any) -> Any:
        raise NotImplementedError("Must override implementation.")


class DetBorrowAug(DetAugmenter):
    """An augmenter of images alone, which leaves boxes where they are.

    Raises TypeError if `augmenter` is no :class:`Augmenter`.
    """

    def __init__(self, augmenter: Augmenter) -> None:
        if not isinstance(augmenter, Augmenter):
            raise TypeError(f"Borrowing from invalid Augmenter: {augmenter!r} is no mx.image.Augmenter")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> Any:
        """Name of this one, and name and arguments of the other."""
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: NDArray, label: Any) -> _Changed:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters by chance, or none with the probability `skip_prob`.

    Raises ValueError if one of them is no :class:`DetAugmenter`.
    """

    def __init__(self, aug_list: Any, skip_prob: float = 0) -> None:
        super().__init__(skip_prob=skip_prob)
        self.aug_list = list(aug_list) if isinstance(aug_list, (list, tuple)) else [aug_list]
        for augmenter in self.aug_list:
            if not isinstance(augmenter, DetAugmenter):
                raise ValueError(f"Allow DetAugmenter in list only, got {augmenter!r}")
        self.skip_prob = skip_prob if self.aug_list else 1

    def dumps(self) -> Any:
        """Name of this one, and names and arguments of all others."""
        return [type(self).__name__.lower(), [augmenter.dumps() for augmenter in self.aug_list]]

    def __call__(self, src: NDArray, label: Any) -> _Changed:
        if random.random() < self.skip_prob:
            return src, label
        order = shuffled(self.aug_list)
        self.aug_list = order
        changed: _Changed = order[0](src, label)
        return changed


class DetHorizontalFlipAug(DetAugmenter):
    """Mirrors left and right with the probability `p`."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray, label: Any) -> _Changed:
        if random.random() >= self.p:
            return src, label
        mirrored = label.copy()
        mirrored[:, 1], mirrored[:, 3] = 1.0 - label[:, 3], 1.0 - label[:, 1]
        return like(src, flip(src, axis=1)), mirrored


class _Windows:
    """Random windows onto an image: `aspect_ratio_range` bounds width divided by height,
    `area_range` the area as a part of the image's.
    """

    def __init__(self, name: str, aspect_ratio_range: Any, area_range: Any, least_area: float) -> None:
        self.ratios = _range(aspect_ratio_range)
        self.areas = _range(area_range)
        self.enabled = False
        if self.areas[1] <= least_area or self.areas[0] > self.areas[1]:
            warn(f"Skip {name} due to invalid area_range: {area_range}")
        elif self.ratios[0] <= 0 or self.ratios[0] > self.ratios[1]:
            warn(f"Skip {name} due to invalid aspect_ratio_range: {aspect_ratio_range}")
        else:
            self.enabled = True

    def pixels(self, height: int, width: int) -> tuple[float, float]:
        """The least and the largest area, in pixels."""
        return self.areas[0] * height * width, self.areas[1] * height * width

    def heights(self, height: int, width: int) -> tuple[float, int, int]:
        """A random ratio, and the heights that it and the areas allow."""
        ratio = random.uniform(*self.ratios)
        least, most = self.pixels(height, width)
        return ratio, round(sqrt(least / ratio)), round(sqrt(most / ratio))

    def inside(self, height: int, width: int) -> _Box | None:
        """A window (left, top, width, height) inside an image; None if the drawn ratio and the
        areas allow none.
        """
        ratio, high, most = self.heights(height, width)
        if round(most * ratio) > width:  # the largest height whose width fits
            most = int((width + 0.4999999) / ratio)
        high = _height(high, min(most, height))
        least_area, most_area = self.pixels(height, width)
        # Rounding may have left the area out of its bounds.
        if high * round(high * ratio) < least_area:
            high += 1
        if high * round(high * ratio) > most_area:
            high -= 1
        wide = round(high * ratio)
        if not (least_area <= high * wide <= most_area and 0 <= wide <= width and 0 <= high <= height):
            return None
        top = random.randint(0, height - high)
        return random.randint(0, width - wide), top, wide, high

    def around(self, height: int, width: int) -> _Box | None:
        """A window around an image, with the image's place in it (left, top, width, height); None
        if the drawn ratio and the areas give a border of less than two pixels.
        """
        ratio, high, most = self.heights(height, width)
        if round(high * ratio) < width:
            high = int((width + 0.499999) / ratio)
        high = _height(max(high, height), most)
        wide = round(high * ratio)
        if high - height < 2 or wide - width < 2:
            return None
        top = random.randint(0, high - height)
        return random.randint(0, wide - width), top, wide, high


def _height(least: int, most: int) -> int:
    """A random height between these; no number is drawn where there is no choice."""
    return random.randint(least, most) if least < most else most


def _range(value: Any) -> _Range:
    """A range given as two numbers, or as one that is both ends."""
    if isinstance(value, (tuple, list)):
        low, high = value
        return low, high
    if not isinstance(value, numeric_types):
        raise AssertionError(f"expected a number or a range (least, most), got {value!r}")
    return value, value


def _areas(boxes: Any) -> Any:
    """The area of each (left, top, right, bottom)."""
    return np.maximum(0, boxes[:, 2] - boxes[:, 0]) * np.maximum(0, boxes[:, 3] - boxes[:, 1])


class DetRandomCropAug(DetAugmenter):
    """Cuts a random part out of an image that shows enough of its objects.

    Parameters
    ----------
    min_object_covered : the part of each object it touches that it must show more than
    aspect_ratio_range : bounds of its width divided by its height; or one number
    area_range : bounds of its area, as a part of the image's; or one number
    min_eject_coverage : objects of which it shows no more than this part are left out
    max_attempts : how many random parts are tried; then the image stays whole
    """

    def __init__(
        self,
        min_object_covered: float = 0.1,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (0.05, 1.0),
        min_eject_coverage: float = 0.3,
        max_attempts: int = 50,
    ) -> None:
        self._windows = _Windows("DetRandomCropAug", aspect_ratio_range, area_range, 0)
        self.enabled: bool = self._windows.enabled
        self.aspect_ratio_range: _Range = self._windows.ratios
        self.area_range: _Range = self._windows.areas
        self.min_object_covered = min_object_covered
        self.min_eject_coverage = min_eject_coverage
        self.max_attempts = max_attempts
        super().__init__(
            min_object_covered=min_object_covered,
            aspect_ratio_range=self.aspect_ratio_range,
            area_range=self.area_range,
            min_eject_coverage=min_eject_coverage,
            max_attempts=max_attempts,
        )

    def __call__(self, src: NDArray, label: Any) -> _Changed:
        height, width = src.shape[:2]
        for _ in range(self.max_attempts if self.enabled and height and width else 0):
            window = self._windows.inside(height, width)
            if window is None or not self._shows_enough(label, window, height, width):
                continue
            seen = self._seen(label, window, height, width)
            if len(seen):
                return fixed_crop(src, *window), seen
        return src, label

    def _shows_enough(self, label: Any, window: _Box, height: int, width: int) -> bool:
        left, top, wide, high = window
        if wide * high < 2:
            return False
        areas = _areas(label[:, 1:])
        large = areas * width * height > 2
        boxes = label[large, 1:5]
        shown = np.empty_like(boxes)
        shown[:, :2] = np.maximum(boxes[:, :2], (left / width, top / height))
        shown[:, 2:] = np.minimum(boxes[:, 2:], ((left + wide) / width, (top + high) / height))
        shares = _areas(shown) / areas[large]
        shares = shares[shares > 0]
        return bool(shares.size > 0 and shares.min() > self.min_object_covered)

    def _seen(self, label: Any, window: _Box, height: int, width: int) -> Any:
        """The boxes within a window, of objects it shows enough of."""
        left, top, wide, high = window[0] / width, window[1] / height, window[2] / width, window[3] / height
        seen = label.copy()
        seen[:, (1, 3)] -= left
        seen[:, (2, 4)] -= top
        seen[:, (1, 3)] /= wide
        seen[:, (2, 4)] /= high
        seen[:, 1:5] = np.clip(seen[:, 1:5], 0, 1)
        shown = _areas(seen[:, 1:]) * wide * high > self.min_eject_coverage * _areas(label[:, 1:])
        return seen[(seen[:, 3] > seen[:, 1]) & (seen[:, 4] > seen[:, 2]) & shown]


class DetRandomPadAug(DetAugmenter):
    """Puts an image at a random place into a larger one.

    Parameters
    ----------
    aspect_ratio_range : bounds of its width divided by its height; or one number
    area_range : bounds of its area, as a multiple of the image's; or one number
    max_attempts : how many random sizes are tried; then the image stays as it is
    pad_val : the colour around it: a number, or one for each channel
    """

    def __init__(
        self,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (1.0, 3.0),
        max_attempts: int = 50,
        pad_val: Any = (128, 128, 128),
    ) -> None:
        if not isinstance(pad_val, (list, tuple, *numeric_types)):
            raise AssertionError(f"pad_val is a number or a list of them, got {pad_val!r}")
        self._windows = _Windows("DetRandomPadAug", aspect_ratio_range, area_range, 1.0)
        self.enabled = self._windows.enabled
        self.aspect_ratio_range = self._windows.ratios
        self.area_range = self._windows.areas
        self.max_attempts = max_attempts
        self.pad_val = pad_val
        super().__init__(
            aspect_ratio_range=self.aspect_ratio_range,
            area_range=self.area_range,
            max_attempts=max_attempts,
            pad_val=pad_val,
        )

    def __call__(self, src: NDArray, label: Any) -> _Changed:
        height, width, channels = src.shape
        for _ in range(self.max_attempts if self.enabled and height and width else 0):
            window = self._windows.around(height, width)
            if window is None:
                continue
            left, top, wide, high = window
            moved = label.copy()
            moved[:, (1, 3)] = (label[:, (1, 3)] * width + left) / wide
            moved[:, (2, 4)] = (label[:, (2, 4)] * height + top) / high
            colour = self.pad_val if isinstance(self.pad_val, (list, tuple)) else (self.pad_val,) * channels
            below, right = high - top - height, wide - left - width
            return like(src, copyMakeBorder(src, top, below, left, right, values=colour)), moved
        return src, label


def CreateMultiRandCropAugmenter(
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    skip_prob: float = 0,
) -> DetRandomSelectAug:
    """One of several :class:`DetRandomCropAug` by chance, or none with the probability `skip_prob`.

    Each of the other arguments is one value for all, or a list with one for each.
    Raises AssertionError if lists have different lengths.
    """
    given = [min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts]
    lists = [value if isinstance(value, list) else [value] for value in given]
    count = max(len(values) for values in lists)
    if any(len(values) not in (1, count) for values in lists):
        raise AssertionError(f"lists of {sorted({len(values) for values in lists})} values; expected equally many")
    each = [values * count if len(values) == 1 else values for values in lists]
    return DetRandomSelectAug([DetRandomCropAug(*values) for values in zip(*each, strict=True)], skip_prob)


def CreateDetAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: float = 0,
    rand_pad: float = 0,
    rand_gray: float = 0,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    pca_noise: float = 0,
    hue: float = 0,
    inter_method: int = 2,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 3.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    pad_val: Any = (127, 127, 127),
) -> list[DetAugmenter]:
    """The usual augmenters for images with boxes, of `data_shape` (channels, height, width).

    Parameters
    ----------
    resize : length of the shorter edge at the beginning; 0 leaves it
    rand_crop, rand_pad : how probable it is that a part is cut out, and that a border is added
    rand_mirror : mirror images with the probability one half
    mean, std : of each channel; True stands for those of ImageNet
    brightness, contrast, saturation, hue, pca_noise, rand_gray : how much each is changed by chance
    inter_method : how pixels are made; see :func:`imresize`, 9 for what fits, 10 for a random one
    min_object_covered, min_eject_coverage : see :class:`DetRandomCropAug`
    aspect_ratio_range, area_range, max_attempts : of what is cut out, and of what gets a border
    pad_val : the colour of the border; see :class:`DetRandomPadAug`
    """
    augmenters: list[DetAugmenter] = []
    if resize > 0:
        augmenters.append(DetBorrowAug(ResizeAug(resize, inter_method)))
    if rand_crop > 0:
        augmenters.append(
            CreateMultiRandCropAugmenter(
                min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts, 1 - rand_crop
            )
        )
    if rand_mirror > 0:
        augmenters.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        augmenters.append(DetRandomSelectAug([pad], 1 - rand_pad))
    images: list[Augmenter] = [ForceResizeAug((data_shape[2], data_shape[1]), inter_method), CastAug()]
    # In double precision, as `dumps` of MXNet writes them here.
    mean, std = (np.array(usual) if given is True else given for given, usual in ((mean, MEAN), (std, STD)))
    images += color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)
    return augmenters + [DetBorrowAug(augmenter) for augmenter in images]
