"""Images with boxes: names that programs import."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from ..base import MXNetNotImplementedError
from ..ndarray import NDArray
from ._augmenters import _plain
from ._iterator import ImageIter

__all__ = ["CreateDetAugmenter", "DetAugmenter", "ImageDetIter"]


def refuse(name: str, what: str) -> NoReturn:
    """The error for what is not here."""
    raise MXNetNotImplementedError(f"mx.image.{name}: {what} is not part of this build of mxrt")


class DetAugmenter:
    """Changes images and their boxes: subclasses define ``__call__``. The keywords are what
    ``dumps`` writes.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {name: _plain(value) for name, value in kwargs.items()}

    def dumps(self) -> Any:
        """Name and arguments as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: NDArray, label: Any) -> Any:
        raise NotImplementedError("Must override implementation.")


class ImageDetIter(ImageIter):
    """Batches of images and boxes from files; refused when one is made."""

    def __init__(self, batch_size: int, data_shape: Sequence[int], *args: Any, **kwargs: Any) -> None:
        refuse("ImageDetIter", "reading images with boxes")


def CreateDetAugmenter(data_shape: Sequence[int], *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no ready-made augmenters."""
    refuse("CreateDetAugmenter", "augmenting images with boxes")
