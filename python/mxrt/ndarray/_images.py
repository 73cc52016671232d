"""Functions of ``mx.nd`` that decode images. ``mx.image`` has what programs call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import MXNetShapeError, MXNetValueError
from .ndarray import NDArray

__all__ = ["_cvimdecode", "_cvimread", "_imdecode", "imdecode"]


def _cvimdecode(buf: Any, flag: int = 1, to_rgb: bool = True, out: NDArray | None = None) -> NDArray:
    """Decodes an image; :func:`mxrt.image.imdecode` describes it."""
    from ..image import imdecode

    return imdecode(buf, flag, to_rgb, out)


def _cvimread(filename: str, flag: int = 1, to_rgb: bool = True, out: NDArray | None = None) -> NDArray:
    """Reads an image; :func:`mxrt.image.imread` describes it."""
    from ..image import imread

    return imread(filename, flag, to_rgb, out)


def _imdecode(
    mean: NDArray | None,
    index: int,
    x0: int,
    y0: int,
    x1: int,
    y1: int,
    n_channels: int,
    size: int,
    str_img: bytes,
    out: NDArray | None = None,
) -> NDArray:
    """Decodes an image; :func:`imdecode` describes it. `size` counts the bytes of the file that are
    used.
    """
    if not 0 <= size <= len(str_img):
        raise MXNetValueError(f"_imdecode: size is {size}, but str_img has {len(str_img)} bytes")
    return imdecode(str_img[: int(size)], (x0, y0, x1, y1), out, index, n_channels, mean)


def imdecode(
    str_img: bytes,
    clip_rect: Sequence[int] = (0, 0, 0, 0),
    out: NDArray | None = None,
    index: int = 0,
    channels: int = 3,
    mean: NDArray | None = None,
) -> NDArray:
    """The pixels of a JPEG or PNG file as planes (channels, height, width), float32, blue first.

    Parameters
    ----------
    clip_rect : the part (x0, y0, x1, y1) of the image; all of it by default
    out : array that the planes are written to; of a batch, number `index`
    channels : 3, or 1 for grey
    mean : planes that are subtracted
    """
    from ..image import imdecode as decode

    if channels not in (1, 3):
        raise MXNetValueError(f"imdecode: channels is {channels}, expected 1 or 3")
    pixels = decode(str_img, flag=int(channels == 3), to_rgb=False)
    x0, y0, x1, y1 = clip_rect
    if y1 != y0:
        if not (0 <= x0 <= x1 <= pixels.shape[1] and 0 <= y0 <= y1 <= pixels.shape[0]):
            raise MXNetShapeError(f"imdecode: clip_rect {tuple(clip_rect)} is no part of an image of {pixels.shape}")
        pixels = pixels[y0:y1, x0:x1]
    planes = pixels.transpose((2, 0, 1)).astype("float32" if mean is None else mean.dtype)
    if mean is not None:
        planes = planes - mean
    if out is None:
        return planes
    target = out[index] if out.ndim == 4 else out
    target[:] = planes.astype(out.dtype)
    return out
