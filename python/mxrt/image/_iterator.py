"""Batches of images from records, lists or files: :class:`ImageIter`."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._output.log import debug
from .._scopes.np_mode import made_here
from ..base import MXNetDataError, MXNetError, MXNetValueError, numeric_types
from ..io import DataBatch, DataIter
from ..ndarray import NDArray, array, transpose
from ._augmenters import Augmenter, CreateAugmenter
from ._files import imdecode
from ._sizes import like

__all__ = ["ImageIter"]


class ImageIter(DataIter):
    """Batches (images, channels, height, width) of images that are decoded and augmented here.

    A failure names the record or file, and is raised by the ``next`` that would have returned that
    batch.

    Parameters
    ----------
    batch_size : images of a batch
    data_shape : channels, height and width
    label_width : labels of an image
    path_imgrec : file of records; with `path_imgidx`, its index, for `shuffle` and parts
    path_imglist : file with lines of index, labels and file name, divided by tabs
    imglist : instead of that, a list of ``[label..., file name]``
    path_root : directory of the files
    shuffle : a new order in each epoch, by Python's ``random``
    part_index, num_parts : reads one of several equal parts
    aug_list : augmenters; otherwise those that :func:`CreateAugmenter` makes of the other keywords
    data_name, label_name : names in ``provide_data`` and ``provide_label``
    dtype : element type of the labels of lists
    last_batch_handle : when the last batch is short, ``pad`` completes it from the beginning,
        ``discard`` leaves it out, ``roll_over`` begins the next epoch with it; ``pad`` of a batch
        counts what completes it
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
        label_width: int = 1,
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Sequence[Augmenter] | None = None,
        imglist: list[Any] | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size)
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise AssertionError("ImageIter: one of path_imgrec, path_imglist and imglist is needed")
        if batch_size < 1:
            raise MXNetValueError(f"ImageIter: batch_size is {batch_size}; give a positive number of images")
        if dtype not in ("int32", "float32", "int64", "float64"):
            raise AssertionError(f"{dtype} label not supported")
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ValueError(f"last_batch_handle is '{last_batch_handle}'; expected pad, discard or roll_over")
        self.check_data_shape(data_shape)
        self.data_shape: tuple[int, ...] = tuple(data_shape)
        self.label_width = label_width
        self.shuffle = shuffle
        self.path_root = path_root
        self.last_batch_handle = last_batch_handle
        self.provide_data: list[tuple[str, tuple[int, ...]]] = [(data_name, (batch_size, *self.data_shape))]
        self.provide_label: list[tuple[str, tuple[int, ...]]]
        self.provide_label = [(label_name, (batch_size, label_width) if label_width > 1 else (batch_size,))]
        self.imgrec: Any = _records(path_imgrec, path_imgidx)
        self.imglist: dict[Any, tuple[NDArray, str]] | None = _listed(path_imglist, imglist, dtype)
        self.seq: list[Any] | None = self._order(path_imgidx, part_index, num_parts)
        self.num_image: int | None = None if self.seq is None else len(self.seq)
        self.auglist: list[Any] = CreateAugmenter(self.data_shape, **kwargs) if aug_list is None else list(aug_list)
        self.cur: int = 0
        # Samples of the next batch that are read already, and how many of them the last epoch left.
        self._left_over: list[tuple[NDArray, Any]] = []
        self._rolled_over = 0
        self._ended = False
        self.reset()

    def _order(self, path_imgidx: str | None, part_index: int, num_parts: int) -> list[Any] | None:
        """The keys of the samples; None where records are read one after the other."""
        if self.imgrec is None:
            order = list(self.imglist or {})
        elif path_imgidx:
            order = list(self.imgrec.keys)
        elif self.shuffle or num_parts > 1:
            raise AssertionError("ImageIter: shuffle and num_parts need the index of the records, path_imgidx")
        else:
            return None
        if not 0 <= part_index < num_parts:
            raise AssertionError(f"ImageIter: part_index is {part_index}, expected 0 to {num_parts - 1}")
        each = len(order) // num_parts
        return order if num_parts == 1 else order[part_index * each : (part_index + 1) * each]

    def reset(self) -> None:
        """Begins again; with ``roll_over``, with what the last batch left."""
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        if self.imgrec is not None:
            self.imgrec.reset()
        self.cur = 0
        self._ended = False

    def hard_reset(self) -> None:
        """Begins again, without what the last batch left."""
        self._left_over, self._rolled_over = [], 0
        self.reset()

    def next_sample(self) -> tuple[Any, bytes]:
        """Label and file of the next image; StopIteration at the end, after which it begins again
        unless short batches are left out or filled up.
        """
        if self._ended:
            raise StopIteration
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                self._at_end()
                raise StopIteration
            self.cur += 1
            return self._unpacked(record)
        if self.cur >= len(self.seq):
            self._at_end()
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            assert self.imglist is not None
            label, name = self.imglist[key]
            return label, self.read_image(name)
        label, content = self._unpacked(self.imgrec.read_idx(key))
        return (label, content) if self.imglist is None else (self.imglist[key][0], content)

    @staticmethod
    def _unpacked(record: Any) -> tuple[Any, bytes]:
        from ..recordio import unpack

        header, content = unpack(record)
        return header.label, content

    def _place(self) -> str:
        """The image that was read last."""
        if self.seq is None:
            return f"index: {self.cur - 1}"
        key = self.seq[self.cur - 1]
        return f"filename: {self.imglist[key][1]}" if self.imglist is not None else f"index: {key}"

    def _next_valid(self) -> tuple[Any, Any]:
        """Label and pixels of the next image that ``check_valid_image`` of a subclass lets pass."""
        while True:
            label, content = self.next_sample()
            image = self.imdecode(content)
            if type(self).check_valid_image is ImageIter.check_valid_image:
                return label, image
            try:
                self.check_valid_image(self._images_to_check(image))
            except RuntimeError as error:
                debug("Invalid image, skipping: %s: %s", self._place(), error)
                continue
            return label, image

    def _images_to_check(self, image: Any) -> Any:
        return image

    def _sample(self) -> tuple[NDArray, Any]:
        label, image = self._next_valid()
        data = self.augmentation_transform(image)
        if self.label_width > 1 and np.size(numbers(label)) not in (1, self.label_width):
            raise MXNetDataError(
                f"image {self._place()}: it has {np.size(numbers(label))} labels, label_width is {self.label_width}"
            )
        return self.postprocess_data(data), label

    def next(self) -> DataBatch:
        """The next batch; StopIteration at the end."""
        if self._ended:
            raise StopIteration
        samples, self._left_over = self._left_over, []
        # A failure leaves what was read before it for the next call.
        try:
            self._fill(samples)
        except Exception:
            self._left_over = samples
            raise
        missing = self.batch_size - len(samples)
        if missing:
            if self.last_batch_handle == "discard":
                self._ended = True
                raise StopIteration
            if not samples:
                raise StopIteration
            if self.last_batch_handle == "roll_over":
                self._left_over, self._rolled_over = samples, len(samples)
                raise StopIteration
            self._fill(samples)
            self._ended = True
            while len(samples) < self.batch_size:  # fewer images than a batch has
                samples.append(samples[len(samples) % max(1, self.batch_size - missing)])
        data = np.stack([sample.asnumpy() for sample, _ in samples]).astype(np.float32, copy=False)
        # As in MXNet, images that fill up those of the last epoch count as padding, too.
        pad = self.batch_size - self._rolled_over if self._rolled_over else missing
        self._rolled_over = 0
        return DataBatch([made_here(array(data))], [made_here(self._labels([label for _, label in samples]))], pad=pad)

    def _labels(self, labels: list[Any]) -> NDArray:
        """The labels of a batch as one array."""
        flat = [np.reshape(numbers(label), -1)[: self.label_width] for label in labels]
        # A single label stands for all.
        rows = np.stack([np.broadcast_to(one, (self.label_width,)) for one in flat])
        return array(rows if self.label_width > 1 else rows[:, 0])

    def _fill(self, samples: list[tuple[NDArray, Any]]) -> None:
        while len(samples) < self.batch_size:
            try:
                samples.append(self._sample())
            except StopIteration:
                return

    def _at_end(self) -> None:
        """Begins again without `reset`, as MXNet does unless short batches are left out."""
        if self.last_batch_handle == "discard":
            return
        self.cur = 0
        if self.imgrec is not None:
            self.imgrec.reset()

    def check_data_shape(self, data_shape: Sequence[int]) -> None:
        """ValueError unless it is (3, height, width)."""
        if len(data_shape) != 3:
            raise ValueError("data_shape should have length 3, with dimensions CxHxW")
        if data_shape[0] != 3:
            raise ValueError("This iterator expects inputs to have 3 channels.")

    def check_valid_image(self, data: Any) -> None:
        """RuntimeError if there is no image."""
        if len(data[0].shape) == 0:
            raise RuntimeError("Data shape is wrong")

    def imdecode(self, s: bytes) -> NDArray:
        """The pixels of a file; the error names the record or file."""
        try:
            return imdecode(s)
        except MXNetError as error:
            raise MXNetDataError(f"Broken image {self._place()}, {error}") from None

    def read_image(self, fname: str) -> bytes:
        """The content of a file below `path_root`."""
        from .. import _mxrt

        return _mxrt.read_file(os.path.join(self.path_root or "", fname))

    def augmentation_transform(self, data: Any) -> Any:
        """The image after all augmenters."""
        for augmenter in self.auglist:
            data = augmenter(data)
        return data

    def postprocess_data(self, datum: Any) -> Any:
        """The image as (channels, height, width)."""
        return like(datum, transpose(datum, axes=(2, 0, 1)))


def numbers(label: Any) -> Any:
    """A label as an array of numpy."""
    return label.asnumpy() if isinstance(label, NDArray) else np.asarray(label, dtype=np.float32)


def _records(path: str | None, index: str | None) -> Any:
    from ..recordio import MXIndexedRecordIO, MXRecordIO

    if not path:
        return None
    return MXIndexedRecordIO(index, path, "r") if index else MXRecordIO(path, "r")


def _listed(path: str | None, given: list[Any] | None, dtype: str) -> dict[Any, tuple[NDArray, str]] | None:
    """Labels and file name of each key."""
    if path:
        return _read_list(path, dtype)
    if given is None:
        return None
    found: dict[Any, tuple[NDArray, str]] = {}
    for number, row in enumerate(given, 1):
        label = row[:-1] if len(row) > 2 else [row[0]] if isinstance(row[0], numeric_types) else row[0]
        found[str(number)] = made_here(array(label, dtype=dtype)), row[-1]
    return found


def _read_list(path: str, dtype: str) -> dict[Any, tuple[NDArray, str]]:
    from .. import _mxrt

    found: dict[Any, tuple[NDArray, str]] = {}
    for number, line in enumerate(_mxrt.read_file(path).decode().splitlines(), 1):
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        try:
            key, *labels, name = fields
            found[int(key)] = made_here(array([float(label) for label in labels], dtype=dtype)), name
        except ValueError:
            raise MXNetDataError(
                f"{path}, line {number}: found {line!r}, expected an index, labels and a file name, divided by tabs"
            ) from None
    return found
