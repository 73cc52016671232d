"""Images that become inputs, as `preprocess` of `mxrt serve` makes them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _mxrt
from ..base import MXNetDataError, MXNetError
from ._errors import ModelError, UsageError
from ._model import note

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = [
    "MOST_PIXELS",
    "Preprocess",
    "add_preprocess_arguments",
    "input_of_image",
    "is_image",
    "no_image",
    "other_image",
    "preprocess_of",
]

MOST_PIXELS = 1 << 26
"""Pixels of an image, in its file and when it has been resized, unless `--max-pixels` says else."""

_ENDING = "preprocess.json"
# How images begin that are neither JPEG nor PNG.
_OTHER_IMAGES = (
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"\0\0\1\0", "ICO"),
    (b"\0\0\0\x0cJXL ", "JPEG XL"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\0\0\0\x0cjP  ", "JPEG 2000"),
)


@dataclass(frozen=True)
class Preprocess:
    """The way from an image to an input.

    `size` is rows and columns of the input, cut out of the middle; `resize` the pixels of the
    shorter side before that (None: the image is resized to `size` itself). Values, from 0 to 255,
    are multiplied by `scale`, `mean` is subtracted from each channel, and each is divided by `std`.
    """

    size: tuple[int, int] = (224, 224)
    resize: int | None = None
    grey: bool = False
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    layout: str = "NCHW"


_IMAGENET = Preprocess(resize=256, scale=1 / 255, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
NAMED = {"imagenet": _IMAGENET, "raw": Preprocess(resize=256)}
"""Ways that many models were trained with: GluonCV's, and pixels as they are."""


def add_preprocess_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that say what is done with images."""
    parser.add_argument(
        "--preprocess",
        metavar="NAME|FILE",
        help="what is done with images: imagenet (as GluonCV), raw (unchanged pixels), or a JSON file with size, "
        "resize, grey, scale, mean, std and layout, as in mxrt serve (otherwise the preprocess.json next to the model)",
    )
    parser.add_argument("--size", metavar="H,W", help="rows and columns that are cut out of the middle")
    parser.add_argument("--resize", metavar="PIXELS", help="pixels of the shorter side before that; off: none")
    parser.add_argument("--grey", action="store_true", help="one channel, not three with red first")
    parser.add_argument("--scale", metavar="FACTOR", help="factor of the values, which are from 0 to 255")
    parser.add_argument("--mean", metavar="R,G,B", help="subtracted from each channel then")
    parser.add_argument("--std", metavar="R,G,B", help="each channel is divided by it then")
    parser.add_argument("--layout", choices=("NCHW", "NHWC"), help="where the channels are")
    parser.add_argument(
        "--max-pixels", type=int, default=MOST_PIXELS, metavar="N", help=f"largest image (default {MOST_PIXELS})"
    )


def preprocess_of(args: argparse.Namespace, folder: Path, shape: Sequence[int] | None) -> tuple[Preprocess, str | None]:
    """Chooses what is done with images for an input, with a sentence where it is a guess."""
    remark = None
    said = args.preprocess
    if said in NAMED:
        chosen = NAMED[said]
    elif said is not None:
        path = Path(said)
        if not path.is_file():
            raise UsageError(
                f"--preprocess '{said}': there is no such file; expected {', '.join(NAMED)} or a JSON file"
            )
        chosen = _of_json(note(path.parent, path.name), str(path))
    elif (content := note(folder, _ENDING)) is not None:
        chosen = _of_json(content, str(folder / _ENDING))
    else:
        chosen = _IMAGENET
        if args.scale is None and args.mean is None and args.std is None:
            remark = (
                "nothing says what is done with images: as for models of GluonCV (--preprocess imagenet); "
                "--preprocess raw is for models that take pixels as they are"
            )
    changes = _options(args)
    if shape is not None and len(shape) == 4:
        chosen = _fitted(chosen, shape, "size" in changes or (said is not None and said not in NAMED), changes)
    chosen = replace(chosen, **changes)
    if args.max_pixels < 1:
        raise UsageError(f"--max-pixels is {args.max_pixels}; expected a positive number")
    try:
        return (_checked(chosen, "the options"), remark)
    except ModelError as error:
        raise UsageError(error.args[0]) from None


def _fitted(chosen: Preprocess, shape: Sequence[int], said: bool, changes: Mapping[str, Any]) -> Preprocess:
    """Changes sizes and channels to those of an input."""
    layout = changes.get("layout", "NHWC" if shape[3] in (1, 3) and shape[1] not in (1, 3) else chosen.layout)
    rows, columns, channels = shape[1:] if layout == "NHWC" else (shape[2], shape[3], shape[1])
    grey = channels == 1
    chosen = replace(chosen, layout=layout, grey=grey)
    if grey and len(chosen.mean) == 3:
        chosen = replace(chosen, mean=(float(np.mean(chosen.mean)),), std=(float(np.mean(chosen.std)),))
    if said or (rows, columns) == chosen.size:
        return chosen
    resize = None if chosen.resize is None else round(chosen.resize * min(rows, columns) / min(chosen.size))
    return replace(chosen, size=(rows, columns), resize=resize)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if args.size is not None:
        size = _numbers(args.size, "--size", int, 2)
        found["size"] = tuple(size) if len(size) == 2 else (size[0], size[0])
        if args.resize is None:
            found["resize"] = None
    if args.resize is not None:
        found["resize"] = None if args.resize == "off" else _numbers(args.resize, "--resize", int, 1)[0]
    if args.grey:
        found["grey"] = True
    if args.scale is not None:
        found["scale"] = _numbers(args.scale, "--scale", float, 1)[0]
    for name in ("mean", "std"):
        if (text := getattr(args, name)) is not None:
            found[name] = tuple(_numbers(text, f"--{name}", float, 3))
    if args.layout is not None:
        found["layout"] = args.layout
    return found


def _numbers(text: str, option: str, kind: Any, most: int) -> list[Any]:
    """The numbers of an option, at most some."""
    whole = "whole " if kind is int else ""
    expected = f"one {whole}number" if most == 1 else f"at most {most} {whole}numbers with commas"
    try:
        found = [kind(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not 1 <= len(found) <= most:
        raise UsageError(f"{option} is '{text[:60]}'; expected {expected}")
    return found


def _of_json(content: Any, where: str) -> Preprocess:
    known = [field.name for field in fields(Preprocess)]
    if not isinstance(content, dict):
        raise ModelError(f"'{where}' holds no JSON object; expected one with some of {', '.join(known)}")
    unknown = [name for name in content if name not in known]
    if unknown:
        raise ModelError(f"'{where}' says '{unknown[0]}', which is not known; expected some of {', '.join(known)}")
    made: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    for name in ("mean", "std"):
        if _is_number(made.get(name)):
            made[name] = (made[name],)
    if type(made.get("size")) is int:
        made["size"] = (made["size"], made["size"])
    return _checked(Preprocess(**made), f"'{where}'")


def _is_number(value: object) -> bool:
    """Whether a value is a number that float32 holds."""
    if type(value) not in (int, float):
        return False
    try:
        return abs(float(value)) <= float(np.finfo("float32").max)  # type: ignore[arg-type]
    except OverflowError:
        return False


def _checked(value: Preprocess, where: str) -> Preprocess:
    """The way, which `where` says. ModelError where one of its values cannot be used."""

    def whole(number: object) -> bool:
        return type(number) is int and 0 < number <= 1 << 16

    def numbers(values: object) -> bool:
        return isinstance(values, tuple) and len(values) in (1, 3) and all(map(_is_number, values))

    def two_extents(values: object) -> bool:
        return isinstance(values, tuple) and len(values) == 2 and all(map(whole, values))

    extent = "from 1 to 65536"
    wrong = (
        ("size", f"two whole numbers {extent}") if not two_extents(value.size)
        else ("resize", f"a whole number {extent}") if not (value.resize is None or whole(value.resize))
        else ("grey", "true or false") if not isinstance(value.grey, bool)
        else ("scale", "a number that float32 holds") if not _is_number(value.scale)
        else ("mean", "one number, or one for each of three channels") if not numbers(value.mean)
        else ("std", "one number, or one for each of three channels, none of them 0")
        if not numbers(value.std) or 0 in np.asarray(value.std, "float32")
        else ("layout", "NCHW or NHWC") if value.layout not in ("NCHW", "NHWC")
        else ("mean", "one number, as images are grey") if value.grey and len(value.mean) != 1
        else ("std", "one number, as images are grey") if value.grey and len(value.std) != 1
        else None
    )  # fmt: skip
    if wrong:
        name, wanted = wrong
        got = getattr(value, name)
        shown = ", ".join(map(_shown, got)) if isinstance(got, tuple) else _shown(got)
        raise ModelError(f"{where}: {name} is {shown}; expected {wanted}")
    return value


def _shown(value: object) -> str:
    """The beginning of a value as JSON has it; Python does not print the longest numbers."""
    if type(value) is int and abs(value) >= 1 << 64:
        return "a number of more than 19 digits"
    text = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def is_image(head: bytes) -> bool:
    """Whether a file begins as a JPEG or PNG does."""
    return head.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"))


def other_image(head: bytes) -> str | None:
    """The format of an image that is neither JPEG nor PNG; None for what is no such image."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WebP"
    if head[4:8] == b"ftyp" and head[8:12] in (b"avif", b"avis", b"heic", b"heix", b"mif1"):
        return "AVIF or HEIC"
    return next((form for begin, form in _OTHER_IMAGES if head.startswith(begin)), None)


def no_image(head: bytes, name: str) -> ModelError:
    """The error for a file that is neither JPEG nor PNG, by how it begins."""
    expected = "expected a JPEG or PNG file"
    if (form := other_image(head)) is not None:
        return ModelError(f"'{name}' is a {form} image; {expected}: convert it")
    if not head:
        return ModelError(f"'{name}' is empty; {expected}: copy or download it again")
    if (advice := _mxrt.recognise(head)) is not None:
        return ModelError(f"'{name}' is no image. {advice}")
    text = head[:32].decode("utf-8", "ignore")
    kind = "text, which" if text and all(sign.isprintable() or sign.isspace() for sign in text) else "no image: it"
    return ModelError(f"'{name}' is {kind} begins with {head[:8]!r}; {expected}")


def input_of_image(content: bytes, name: str, preprocess: Preprocess, most_pixels: int) -> np.ndarray[Any, Any]:
    """The values of an input of one row. ModelError, with the name of the file, where the image
    cannot be used.
    """
    from .. import image

    if not is_image(content):
        raise no_image(content[:64], name)
    try:
        # What the decoder reads: a file may have several sizes, or bytes that mean nothing.
        _refuse_large(_mxrt.image_size(content), name, most_pixels, "has")
        pixels = image.imdecode(content, 0 if preprocess.grey else 1)
    except MXNetDataError as error:
        raise ModelError(f"'{name}' is a damaged image: {error}; copy or download it again") from None
    try:
        height, width, _ = pixels.shape
        made = _cut(pixels, height, width, preprocess, name, most_pixels).asnumpy()
    except MXNetError as error:
        raise ModelError(f"'{name}': {error}") from None
    last = preprocess.layout == "NHWC"
    channels = (-1,) if last else (-1, 1, 1)
    values = np.ascontiguousarray(made if last else made.transpose(2, 0, 1)).astype("float32")
    values *= np.float32(preprocess.scale)
    values -= np.asarray(preprocess.mean, "float32").reshape(channels)
    values /= np.asarray(preprocess.std, "float32").reshape(channels)
    return values[None]


def _cut(pixels: NDArray, height: int, width: int, preprocess: Preprocess, name: str, most_pixels: int) -> NDArray:
    """The image resized, and its middle."""
    from .. import image

    rows, columns = preprocess.size
    high, wide = rows, columns
    if preprocess.resize is not None:
        least = max(min(height, width), 1)
        high = max((height * preprocess.resize + least // 2) // least, rows)
        wide = max((width * preprocess.resize + least // 2) // least, columns)
    _refuse_large((high, wide), name, most_pixels, "resized would have")
    if (high, wide) != (height, width):
        pixels = image.imresize(pixels, wide, high, interp=1)
    top, left = (high - rows) // 2, (wide - columns) // 2
    return pixels if (high, wide) == (rows, columns) else pixels[top : top + rows, left : left + columns]


def _refuse_large(size: tuple[int, int], name: str, most: int, what: str) -> None:
    if size[0] * size[1] > most:
        raise ModelError(f"'{name}' {what} {size[0]} x {size[1]} pixels, more than {most}: --max-pixels allows more")


def as_json(value: Preprocess) -> str:
    """The text of a preprocess.json."""
    return json.dumps(vars(value), indent=2)
