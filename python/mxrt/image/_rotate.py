"""Images turned."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from ..ndarray import BilinearSampler, NDArray, array

__all__ = ["imrotate", "random_rotate"]


def imrotate(src: NDArray, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """An image of shape (channels, height, width), or a batch, float32, turned against the clock.

    The shape stays, and what comes from outside the image is 0.

    Parameters
    ----------
    rotation_degrees : the angle, or for a batch an array with one for each image
    zoom_in : enlarges until no border is left
    zoom_out : shrinks until all of the image is seen
    """
    if zoom_in and zoom_out:
        raise ValueError("`zoom_in` and `zoom_out` cannot be both True")
    if src.dtype != np.float32:
        raise TypeError("Only `float32` images are supported by this function")
    if src.as_nd_ndarray() is not src:
        made: NDArray = imrotate(src.as_nd_ndarray(), rotation_degrees, zoom_in, zoom_out).as_np_ndarray()
        return made
    one = src.ndim == 3
    if one and not isinstance(rotation_degrees, Number):
        raise TypeError("When a single image is passed the rotation angle is required to be a scalar.")
    if not one and src.ndim != 4:
        raise ValueError("Only 3D and 4D are supported by this function")
    batch = src.expand_dims(axis=0) if one else src
    if isinstance(rotation_degrees, Number):
        degrees = np.full(len(batch), rotation_degrees, dtype=np.float32)
    else:
        degrees = rotation_degrees.asnumpy() if isinstance(rotation_degrees, NDArray) else np.asarray(rotation_degrees)
    if len(batch) != len(degrees):
        raise ValueError("The number of images must be equal to the number of rotation angles")
    grid = array(_grid(batch.shape[2], batch.shape[3], degrees, zoom_in, zoom_out), ctx=src.context)
    turned: NDArray = BilinearSampler(batch, grid)
    return turned[0] if one else turned


def _grid(height: int, width: int, degrees: Any, zoom_in: bool, zoom_out: bool) -> Any:
    """The position of each pixel of the output: (images, 2, height, width), from -1 to 1."""
    angle = (np.pi * degrees.astype(np.float32) / 180).reshape(-1, 1, 1)
    # Half of what the centers of the outermost pixels are apart; 1 for a single pixel.
    half_height, half_width = (height - 1) / 2 or 1.0, (width - 1) / 2 or 1.0
    y = np.arange(height, dtype=np.float32).reshape(1, height, 1) - np.float32((height - 1) / 2)
    x = np.arange(width, dtype=np.float32).reshape(1, 1, width) - np.float32((width - 1) / 2)
    cos, sin = np.cos(angle), np.sin(angle)
    grid = np.stack([(x * cos - y * sin) / half_width, (x * sin + y * cos) / half_height], axis=1)
    if zoom_in or zoom_out:
        grid *= _zoom(height, width, np.abs(angle), zoom_out).reshape(-1, 1, 1, 1)
    return grid.astype(np.float32)


def _zoom(height: int, width: int, angle: Any, zoom_out: bool) -> Any:
    """How much larger or smaller the image becomes, by how far its turned corners reach."""
    radius, corner = np.hypot(height, width), np.arctan2(height, width)
    reach_x = np.maximum(np.abs(np.cos(corner + angle)), np.abs(np.cos(corner - angle))) * radius
    reach_y = np.maximum(np.abs(np.sin(corner + angle)), np.abs(np.sin(corner - angle))) * radius
    if zoom_out:
        return np.maximum(reach_x / width, reach_y / height)
    return np.minimum(width / reach_x, height / reach_y)


def random_rotate(src: NDArray, angle_limits: Any, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """An image, or each one of a batch, turned by a random angle between two limits; see
    :func:`imrotate`.
    """
    low, high = angle_limits
    if src.ndim == 3:
        return imrotate(src, np.random.uniform(low, high), zoom_in, zoom_out)
    return imrotate(src, array(np.random.uniform(low, high, size=src.shape[0])), zoom_in, zoom_out)
