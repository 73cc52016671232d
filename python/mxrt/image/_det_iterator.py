"""Batches of images with boxes from records, lists or files: :class:`ImageDetIter`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._output.log import debug, info
from ..base import MXNetDataError
from ..ndarray import NDArray, array
from ._augmenters import MEAN, STD
from ._det_augmenters import CreateDetAugmenter, DetAugmenter
from ._drawing import draw_boxes, show
from ._iterator import ImageIter, numbers

__all__ = ["ImageDetIter"]


class ImageDetIter(ImageIter):
    """Batches of images (images, channels, height, width) and boxes (images, objects, 5 or more).

    The labels of an image are a row of numbers: length of its header, numbers for each object, what
    follows in the header, and for each object its class, left, top, right and bottom edge from 0 to
    1, and more if there is more. All images have as many rows as that with the most objects; rows
    without an object are -1. An image whose augmenters leave no box is left out.

    Raises :class:`mxrt.base.MXNetDataError`, with the name of the record or file, if labels have
    another form or an image has no box.

    Parameters
    ----------
    aug_list : augmenters; otherwise those that :func:`CreateDetAugmenter` makes of the other
        keywords
    data_name, label_name : names in ``provide_data`` and ``provide_label``

    The other parameters are those of :class:`ImageIter`.
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Sequence[DetAugmenter] | None = None,
        imglist: list[Any] | None = None,
        data_name: str = "data",
        label_name: str = "label",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            batch_size,
            data_shape,
            path_imgrec=path_imgrec,
            path_imglist=path_imglist,
            path_root=path_root,
            path_imgidx=path_imgidx,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            aug_list=[],
            imglist=imglist,
            data_name=data_name,
            label_name=label_name,
            last_batch_handle=last_batch_handle,
        )
        # The keywords of the usual augmenters; None if there are others.
        self._usual = kwargs if aug_list is None else None
        self.auglist: list[Any] = CreateDetAugmenter(self.data_shape, **kwargs) if aug_list is None else list(aug_list)
        self.label_shape: tuple[int, int] = self._estimate_label_shape()
        self.provide_label: list[tuple[str, tuple[int, ...]]] = [(label_name, (batch_size, *self.label_shape))]

    def _estimate_label_shape(self) -> tuple[int, int]:
        """The largest number of objects of an image, and how many numbers each has."""
        self.reset()
        most, width = 0, 0
        for label in self._all_labels():
            objects, numbers_each = self._parse_label(label).shape
            if width not in (0, numbers_each):
                raise MXNetDataError(
                    f"image {self._place()}: each object has {numbers_each} numbers, those of images before it {width}"
                )
            most, width = max(most, objects), numbers_each
        if not width:
            raise MXNetDataError("ImageDetIter: there is no image")
        self.reset()
        return most, width

    def _all_labels(self) -> Iterator[Any]:
        """The labels of all images, without reading files that hold no labels."""
        while True:
            if self.imglist is not None and self.seq is not None:
                if self.cur >= len(self.seq):
                    return
                self.cur += 1
                yield self.imglist[self.seq[self.cur - 1]][0]
                continue
            try:
                yield self.next_sample()[0]
            except StopIteration:
                return

    def _parse_label(self, label: Any) -> Any:
        """The boxes of an image that have an area; (objects, numbers for each)."""
        raw = numbers(label).ravel()
        if raw.size < 7:
            raise MXNetDataError(
                f"image {self._place()}: Label shape is invalid: ({raw.size},); expected the header's length, the "
                "numbers of an object, and at least 5 numbers of one"
            )
        header, width = int(raw[0]), int(raw[1])
        if header < 2 or width < 5 or header > raw.size or (raw.size - header) % width:
            raise MXNetDataError(
                f"image {self._place()}: Label shape ({raw.size},) inconsistent with annotation width {width} and a "
                f"header of {header}; expected a header of 2 or more, and 5 or more numbers for each object"
            )
        boxes = raw[header:].reshape(-1, width)
        boxes = boxes[(boxes[:, 3] > boxes[:, 1]) & (boxes[:, 4] > boxes[:, 2])]
        if not len(boxes):
            raise MXNetDataError(f"image {self._place()}: Encounter sample with no valid label: no box has an area")
        return boxes

    def _images_to_check(self, image: Any) -> Any:
        return [image]

    def _sample(self) -> tuple[NDArray, Any]:
        while True:
            label, image = self._next_valid()
            data, boxes = self.augmentation_transform(image, self._parse_label(label))
            if self._has_boxes(boxes):
                return self.postprocess_data(data), boxes
            debug("Invalid image, skipping: %s: its augmenters leave no box", self._place())

    def _has_boxes(self, boxes: Any) -> bool:
        if boxes.ndim != 2 or boxes.shape[1] < 5:
            raise MXNetDataError(f"image {self._place()}: boxes have shape {boxes.shape}, expected (1+, 5+)")
        return bool(np.any((boxes[:, 0] >= 0) & (boxes[:, 3] > boxes[:, 1]) & (boxes[:, 4] > boxes[:, 2])))

    def _labels(self, labels: list[Any]) -> NDArray:
        most, width = self.label_shape
        made = np.full((len(labels), most, width), -1, dtype=np.float32)
        for row, boxes in zip(made, labels, strict=True):
            row[: len(boxes)] = boxes
        return array(made)

    def augmentation_transform(self, data: Any, label: Any = None) -> Any:
        """The image and its boxes after all augmenters."""
        for augmenter in self.auglist:
            data, label = augmenter(data, label)
        return data, label

    def reshape(self, data_shape: Sequence[int] | None = None, label_shape: Sequence[int] | None = None) -> None:
        """Changes the shape of images, or of the boxes of an image; more rows are filled with -1.

        Augmenters that were given as `aug_list` do not change.

        Raises ValueError for shapes that :meth:`check_data_shape` and :meth:`check_label_shape`
        refuse.
        """
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape: tuple[int, ...] = tuple(data_shape)
            self.provide_data: list[tuple[str, tuple[int, ...]]] = [
                (self.provide_data[0][0], (self.batch_size, *self.data_shape))
            ]
            if self._usual is not None:
                self.auglist = CreateDetAugmenter(self.data_shape, **self._usual)
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = (label_shape[0], label_shape[1])
            self.provide_label = [(self.provide_label[0][0], (self.batch_size, *self.label_shape))]

    def check_label_shape(self, label_shape: Sequence[int]) -> None:
        """ValueError unless it is (objects, numbers for each) with room for all objects."""
        if len(label_shape) != 2:
            raise ValueError("label_shape should have length 2")
        if label_shape[0] < self.label_shape[0]:
            raise ValueError(
                f"Attempts to reduce label count from {self.label_shape[0]} to {label_shape[0]}, not allowed."
            )
        if label_shape[1] != self.label_shape[1]:
            raise ValueError(f"label_shape object width inconsistent: {self.label_shape[1]} vs {label_shape[1]}.")

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Gives this iterator and `it` the same shape of boxes, the larger one, and returns `it`.

        Raises AssertionError if `it` is none or its objects have another number of numbers.
        """
        if not isinstance(it, ImageDetIter):
            raise AssertionError(f"Synchronize with invalid iterator: {it!r}")
        if self.label_shape[1] != it.label_shape[1]:
            raise AssertionError(f"object width mismatch: {self.label_shape[1]} and {it.label_shape[1]}.")
        shape = max(self.label_shape, it.label_shape)
        if verbose and self.label_shape != it.label_shape:
            info("Resized label_shape to (%d, %d).", *shape)
        for iterator in (self, it):
            iterator.reshape(label_shape=shape)
        return it

    def draw_next(
        self,
        color: Sequence[int] | None = None,
        thickness: int = 2,
        mean: Any = None,
        std: Any = None,
        clip: bool = True,
        waitKey: int | None = None,
        window_name: str = "draw_next",
        id2labels: dict[int, str] | None = None,
    ) -> Iterator[Any]:
        """Each image of the rest of the epoch with its boxes drawn: uint8 (height, width, 3), blue
        first.

        Parameters
        ----------
        color : colour of the boxes, red first; each has a random colour without it
        thickness : pixels of a box's edge
        mean, std : numbers that the augmenters subtracted and divided by; True: those of ImageNet
        clip : whether numbers beyond 0 and 255 become these
        waitKey : milliseconds to show each image in a window; needs OpenCV
        window_name : title of the window
        id2labels : names of classes, drawn next to the boxes; needs OpenCV

        Raises ImportError if OpenCV is needed and not installed.
        """
        scale = np.asarray(STD if std is True else 1.0 if std is None else std, dtype=np.float32)
        shift = np.asarray(MEAN if mean is True else 0.0 if mean is None else mean, dtype=np.float32)
        while True:
            try:
                label, pixels = self._next_valid()
            except StopIteration:
                return
            data, boxes = self.augmentation_transform(pixels, self._parse_label(label))
            image = data.asnumpy() * scale + shift
            if clip:
                image = np.clip(image, 0, 255)
            drawn = np.ascontiguousarray(image[:, :, ::-1].astype(np.uint8))
            draw_boxes(drawn, boxes, None if color is None else color[::-1], thickness, id2labels)
            if waitKey is not None:
                show(drawn, window_name, waitKey)
            yield drawn
