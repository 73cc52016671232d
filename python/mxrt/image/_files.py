"""Files of images: reading, decoding and encoding JPEG and PNG."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import _mxrt
from .._scopes.np_mode import made_here
from ..base import MXNetTypeError, MXNetValueError
from ..ndarray import NDArray

__all__ = ["decode_for_opencv", "encode", "imdecode", "imread"]

# Element types that OpenCV rounds to uint8. A PNG of uint16 would have 16 bits.
_ROUNDED = ("int8", "int16", "int32", "float16", "float32", "float64")


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


def _as_stored(content: bytes) -> tuple[bytes, bool]:
    """A JPEG or PNG file without what says how to turn the image, and whether its pixels are grey,
    without alpha.
    """
    if content[:2] != b"\xff\xd8":
        return content, content[:8] == b"\x89PNG\r\n\x1a\n" and content[25:26] == b"\x00"
    kept, at = [content[:2]], 2
    while at + 9 < len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF or 0xD0 <= marker <= 0xD7:
            at += 1 if marker == 0xFF else 2
            continue
        end = at + 2 + int.from_bytes(content[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return b"".join([*kept, content[at:]]), content[at + 9] == 1
        if marker != 0xE1:
            kept.append(content[at:end])
        at = end
    return content, False


def decode_for_opencv(content: bytes, flag: int) -> np.ndarray[Any, Any]:
    """The pixels of a file as OpenCV has them, blue first: `flag` is 1 for colour, 0 for grey, and
    negative for what the file has, not turned.
    """
    grey = flag == 0
    if flag < 0:
        content, grey = _as_stored(content)
    image: np.ndarray[Any, Any] = imdecode(content, 0 if grey else 1, to_rgb=False).asnumpy()
    return image[..., 0] if grey else image


def encode(image: Any, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """The file of an image of shape (height, width) or (height, width, channels), red first.

    Numbers of other types than uint8 are rounded, and those out of range become 0 or 255.
    `quality` is from 1 to 100 for ``.jpg``, and from 0 to 9, the compression, for ``.png``.
    """
    values = image.asnumpy() if isinstance(image, NDArray) else np.asarray(image)
    rounded = (*_ROUNDED, "uint16") if img_fmt.lower() in (".jpg", ".jpeg") else _ROUNDED
    if values.dtype.name in rounded:
        values = np.nan_to_num(np.clip(np.rint(values), 0, 255)).astype(np.uint8)
    if values.dtype != np.uint8 or values.ndim not in (2, 3):
        raise MXNetTypeError(
            f"an image to be encoded has shape {values.shape} and dtype {values.dtype}; expected (height, width) or "
            f"(height, width, channels) and uint8, or a type that is rounded to it: {', '.join(rounded)}"
        )
    formats = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}
    if img_fmt.lower() not in formats:
        raise MXNetValueError(f"img_fmt is '{img_fmt}', expected .jpg or .png")
    kind = formats[img_fmt.lower()]
    level = max(0, min(int(quality), 100 if kind == "jpeg" else 9))
    height, width, channels = values.shape if values.ndim == 3 else (*values.shape, 1)
    return _mxrt.encode_image((height, width, channels), values.tobytes(), kind, level)
