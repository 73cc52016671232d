"""Blocks that change images, to be given to ``Dataset.transform_first``.

Images have the shape (height, width, channels) and values from 0 to 255 up to :class:`ToTensor`,
and then (channels, height, width) and values from 0 to 1.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base import numeric_types
from ...block import Block
from ...hybrid_block import HybridBlock
from ...nn import HybridSequential, Sequential

__all__ = [
    "Cast",
    "CenterCrop",
    "Compose",
    "CropResize",
    "Normalize",
    "RandomApply",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomCrop",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomHue",
    "RandomLighting",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSaturation",
    "Resize",
    "Rotate",
    "ToTensor",
]

_Size = int | Sequence[int]


def _pair(size: _Size) -> tuple[int, int]:
    """Width and height."""
    if not isinstance(size, Sequence):
        return int(size), int(size)
    width, height = size
    return int(width), int(height)


class Compose(Sequential):
    """Several transforms, one after the other. Neighbours that are hybrid run as one graph."""

    def __init__(self, transforms: Sequence[Any]) -> None:
        super().__init__()
        hybrid: list[HybridBlock] = []
        for transform in transforms:
            if isinstance(transform, HybridBlock):
                hybrid.append(transform)
                continue
            self._join(hybrid)
            hybrid = []
            self.add(transform)
        self._join(hybrid)

    def _join(self, hybrid: list[HybridBlock]) -> None:
        if len(hybrid) == 1:
            self.add(hybrid[0])
        elif hybrid:
            joined = HybridSequential()
            joined.add(*hybrid)
            joined.hybridize()
            self.add(joined)


class Cast(HybridBlock):
    """Changes the element type."""

    def __init__(self, dtype: Any = "float32") -> None:
        super().__init__()
        self._dtype = dtype

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.cast(x, self._dtype)


class ToTensor(HybridBlock):
    """Converts (height, width, channels), 0 to 255, to (channels, height, width), 0 to 1, float32.
    A batch of images has an additional first axis.
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.to_tensor(x)


class Normalize(HybridBlock):
    """Subtracts a mean and divides by a standard deviation: numbers, or one for each channel, which
    is the first axis, or the second of a batch.
    """

    def __init__(self, mean: Any = 0.0, std: Any = 1.0) -> None:
        super().__init__()
        self._mean = mean
        self._std = std

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.normalize(x, self._mean, self._std)


class Rotate(Block):
    """Turns images of shape (channels, height, width), float32, by some degrees, against the clock.

    The shape stays. `zoom_in` enlarges until no border is left, `zoom_out` shrinks until the whole
    image is seen.
    """

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False) -> None:
        super().__init__()
        self._args = (rotation_degrees, zoom_in, zoom_out)

    def forward(self, x: Any) -> Any:
        from .... import image

        _check_float(x)
        return image.imrotate(x, *self._args)


class RandomRotation(Block):
    """Turns images by an angle between two limits, in degrees, with the probability
    `rotate_with_proba`; see :class:`Rotate`.
    """

    def __init__(
        self,
        angle_limits: tuple[float, float],
        zoom_in: bool = False,
        zoom_out: bool = False,
        rotate_with_proba: float = 1.0,
    ) -> None:
        super().__init__()
        lower, upper = angle_limits
        if lower >= upper:
            raise ValueError("`angle_limits` must be an ordered tuple")
        if not 0 <= rotate_with_proba <= 1:
            raise ValueError("Probability of rotating the image should be between 0 and 1")
        self._args = (angle_limits, zoom_in, zoom_out)
        self._rotate_with_proba = rotate_with_proba

    def forward(self, x: Any) -> Any:
        from .... import image

        if np.random.random() > self._rotate_with_proba:
            return x
        _check_float(x)
        return image.random_rotate(x, *self._args)


def _check_float(x: Any) -> None:
    if x.dtype != np.float32:
        raise TypeError("This transformation only supports float32. Consider calling it after ToTensor")


class RandomResizedCrop(Block):
    """A random part of the image, resized to `size` (width, height).

    `scale` bounds its area, as a part of the image's, and `ratio` its width divided by its height.
    """

    def __init__(
        self,
        size: _Size,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        self._args = (_pair(size), scale, ratio, interpolation)

    def forward(self, x: Any) -> Any:
        from .... import image

        return image.random_size_crop(x, *self._args)[0]


class CropResize(HybridBlock):
    """The part of the image from (`x`, `y`) on, resized to `size` (width, height) if given."""

    def __init__(
        self, x: int, y: int, width: int, height: int, size: _Size | None = None, interpolation: int | None = None
    ) -> None:
        super().__init__()
        self._x, self._y, self._width, self._height = x, y, width, height
        self._size = size
        self._interpolation = interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        cut = F.image.crop(x, self._x, self._y, self._width, self._height)
        if not self._size:
            return cut
        return F.image.resize(cut, self._size, False, 1 if self._interpolation is None else self._interpolation)


class RandomCrop(Block):
    """A random part of the image of `size` (width, height), after a border of `pad` pixels: one
    number, or (before, after), or a pair for rows and one for columns.
    """

    def __init__(self, size: _Size, pad: Any = None, pad_value: int = 0, interpolation: int = 1) -> None:
        super().__init__()
        self._args = (_pair(size), interpolation)
        self._pad = _borders(pad)
        self._pad_value = pad_value

    def forward(self, x: Any) -> Any:
        from .... import image

        if self._pad is not None:
            x = image.copyMakeBorder(x, *self._pad, type=0, value=self._pad_value)
        return image.random_crop(x, *self._args)[0]


def _borders(pad: Any) -> tuple[int, int, int, int] | None:
    """Widths of a border: above, below, left, right."""
    if not pad:
        return None
    if not isinstance(pad, Sequence):
        return (int(pad),) * 4
    if isinstance(pad[0], numeric_types):
        before, after = pad
        return before, after, before, after
    (above, below), (left, right) = pad[:2]
    return above, below, left, right


class CenterCrop(Block):
    """The middle of the image, of `size` (width, height); a smaller image is cut to its form and
    resized.
    """

    def __init__(self, size: _Size, interpolation: int = 1) -> None:
        super().__init__()
        self._args = (_pair(size), interpolation)

    def forward(self, x: Any) -> Any:
        from .... import image

        return image.center_crop(x, *self._args)[0]


class Resize(HybridBlock):
    """Resizes images to `size` (width, height). With `keep_ratio`, one number is the length of the
    shorter edge.
    """

    def __init__(self, size: _Size, keep_ratio: bool = False, interpolation: int = 1) -> None:
        super().__init__()
        self._keep = keep_ratio
        self._size = size
        self._interpolation = interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.resize(x, self._size, self._keep, self._interpolation)


class RandomFlipLeftRight(HybridBlock):
    """Mirrors left and right, with the probability one half."""

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_left_right(x)


class RandomFlipTopBottom(HybridBlock):
    """Mirrors top and bottom, with the probability one half."""

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_top_bottom(x)


class RandomBrightness(HybridBlock):
    """Multiplies by a random factor from ``max(0, 1 - brightness)`` to ``1 + brightness``."""

    def __init__(self, brightness: float) -> None:
        super().__init__()
        self._args = (max(0, 1 - brightness), 1 + brightness)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_brightness(x, *self._args)


class RandomContrast(HybridBlock):
    """Moves values towards or away from the mean grey by a random factor from
    ``max(0, 1 - contrast)`` to ``1 + contrast``.
    """

    def __init__(self, contrast: float) -> None:
        super().__init__()
        self._args = (max(0, 1 - contrast), 1 + contrast)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_contrast(x, *self._args)


class RandomSaturation(HybridBlock):
    """Moves colours towards or away from grey by a random factor from ``max(0, 1 - saturation)`` to
    ``1 + saturation``.
    """

    def __init__(self, saturation: float) -> None:
        super().__init__()
        self._args = (max(0, 1 - saturation), 1 + saturation)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_saturation(x, *self._args)


class RandomHue(HybridBlock):
    """Turns the hue by a random factor from ``max(0, 1 - hue)`` to ``1 + hue``."""

    def __init__(self, hue: float) -> None:
        super().__init__()
        self._args = (max(0, 1 - hue), 1 + hue)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_hue(x, *self._args)


class RandomColorJitter(HybridBlock):
    """Brightness, contrast, saturation and hue, each by a random factor, in random order."""

    def __init__(self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0) -> None:
        super().__init__()
        self._args = (brightness, contrast, saturation, hue)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_color_jitter(x, *self._args)


class RandomLighting(HybridBlock):
    """Adds noise along the main colours of ImageNet, with the standard deviation `alpha`."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_lighting(x, self._alpha)


class RandomApply(Sequential):
    """Applies a transform with the probability `p`."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, x: Any) -> Any:
        return x if self.p < random.random() else self.transforms(x)
