"""Files of images: reading, decoding and encoding JPEG and PNG."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import _mxrt
from .._np_mode import made_here
from ..base import MXNetTypeError, MXNetValueError
from ..ndarray import NDArray

__all__ = ["encode", "imdecode", "imread"]


def imdecode(buf: Any, flag: int = 1, to_rgb: bool | int = True, out: NDArray | None = None) -> NDArray:
    """The pixels of a JPEG or PNG file as an array (height, width, channels), uint8.

    Parameters
    ----------
    buf : the content of the file: bytes, or an array of uint8
    flag : 1 for three channels, 0 for one
    to_rgb : whether red is the first channel, otherwise blue
    out : array of this shape that the pixels are written to

    MXNetDataError if it is no such file, or damaged or truncated.
    """
    if isinstance(buf, NDArray):
        buf = buf.asnumpy()
    if isinstance(buf, np.ndarray):
        if buf.dtype != np.uint8:
            raise MXNetTypeError(f"imdecode: Input needs to be uint8 buffer, got {buf.dtype}")
        buf = buf.tobytes()
    elif not isinstance(buf, (bytes, bytearray, memoryview)):
        raise MXNetValueError(
            f"imdecode: buf is of type {type(buf).__name__}; expected the content of the file, as bytes or an array of "
            "uint8. imread takes the name of a file"
        )
    if flag < 0:
        raise MXNetValueError(f"imdecode: flag is {flag}; expected 0 for grey or 1 for colour")
    channels = "grey" if flag == 0 else "rgb" if to_rgb else "bgr"
    decoded: NDArray = _mxrt.decode_image(bytes(buf), channels)
    if out is None:
        return made_here(decoded)
    decoded.copyto(out)
    return out


def imread(filename: Any, flag: int = 1, to_rgb: bool | int = True, out: NDArray | None = None) -> NDArray:
    """The pixels of a JPEG or PNG file on disk; see :func:`imdecode`.

    MXNetDataError, with the name of the file, if it cannot be read.
    """
    name = os.fspath(filename)
    content = _mxrt.read_file(name)
    try:
        return imdecode(content, flag, to_rgb, out)
    except MXNetValueError:
        raise
    except Exception as error:
        if not hasattr(error, "message"):
            raise
        raise type(error)(f"imread '{name}': {error}") from None


def encode(image: Any, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """The file of an image of shape (height, width) or (height, width, channels), uint8, red first.

    `quality` is from 1 to 100 for ``.jpg``, and from 0 to 9, the compression, for ``.png``.
    """
    values = image.asnumpy() if isinstance(image, NDArray) else np.asarray(image)
    if values.dtype != np.uint8 or values.ndim not in (2, 3):
        raise MXNetTypeError(
            f"an image to be encoded has shape {values.shape} and dtype {values.dtype}; expected (height, width) or "
            "(height, width, channels), uint8"
        )
    formats = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}
    if img_fmt.lower() not in formats:
        raise MXNetValueError(f"img_fmt is '{img_fmt}', expected .jpg or .png")
    kind = formats[img_fmt.lower()]
    level = max(0, min(int(quality), 100 if kind == "jpeg" else 9))
    height, width, channels = values.shape if values.ndim == 3 else (*values.shape, 1)
    return _mxrt.encode_image((height, width, channels), values.tobytes(), kind, level)
