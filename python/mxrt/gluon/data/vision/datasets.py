"""Data sets of images in files. Nothing is downloaded."""

from __future__ import annotations

import gzip
import os
import tarfile
import warnings  # noqa: F401 (a name of MXNet's module)
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._scopes.np_mode import is_np_array, made_here
from ....base import MXNetDataError, MXNetFileNotFoundError, data_dir, warn
from ....ndarray import NDArray, array
from ..dataset import Dataset, RecordFileDataset, _DownloadedDataset

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "FashionMNIST",
    "ImageFolderDataset",
    "ImageListDataset",
    "ImageRecordDataset",
]

_Transform = Callable[..., Any] | None


def _missing(path: str, what: str) -> MXNetFileNotFoundError:
    return MXNetFileNotFoundError(
        f"there is no file '{os.path.abspath(path)}'. It should be {what}. mxrt downloads nothing: put the file there"
    )


def _labels(values: np.ndarray[Any, Any]) -> Any:
    """Labels as int32: an array of NumPy, under the numpy interface one of ``mx.np``."""
    labels = values.astype(np.int32)
    return made_here(array(labels, dtype=labels.dtype)) if is_np_array() else labels


def read_idx(path: str, axes: int, what: str) -> np.ndarray[Any, Any]:
    """The array of uint8 in an IDX file, which may be compressed."""
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            content = file.read()
    except (EOFError, OSError, zlib.error) as error:
        raise MXNetDataError(f"'{path}' cannot be read: {error}") from error
    head = np.frombuffer(content[: 4 * (axes + 1)].ljust(4 * (axes + 1), b"\0"), dtype=">u4")
    shape = tuple(int(size) for size in head[1:])
    if head[0] != 0x800 + axes:
        raise MXNetDataError(
            f"'{path}' is no IDX file of {what}: it begins with {head[0]:#x}, expected {0x800 + axes:#x}"
        )
    values = np.frombuffer(content, dtype=np.uint8, offset=min(len(content), 4 * (axes + 1)))
    if values.size != int(np.prod(shape, dtype=object)):
        raise MXNetDataError(f"'{path}' has {values.size} bytes of {what}, but its header says {shape}")
    return values.reshape(shape)


class MNIST(_DownloadedDataset):
    """Handwritten digits: images of shape (28, 28, 1), uint8, and their labels, int32.

    The directory `root` has the four files ``train-images-idx3-ubyte.gz``,
    ``train-labels-idx1-ubyte.gz``, ``t10k-images-idx3-ubyte.gz`` and ``t10k-labels-idx1-ubyte.gz``,
    or the same without ``.gz``.
    """

    _NAME = "MNIST"

    def __init__(self, root: str | None = None, train: bool = True, transform: _Transform = None) -> None:
        self._train = train
        super().__init__(os.path.join(data_dir(), "datasets", "mnist") if root is None else root, transform)

    def _get_data(self) -> None:
        part = "train" if self._train else "t10k"
        labels = self._read(f"{part}-labels-idx1-ubyte", 1, "labels")
        images = self._read(f"{part}-images-idx3-ubyte", 3, "images")
        if images.shape != (len(labels), 28, 28):
            raise MXNetDataError(
                f"{self._NAME} in '{self._root}': images have shape {images.shape}, expected ({len(labels)}, 28, 28) "
                "for that many labels"
            )
        self._data = made_here(array(images[..., None], dtype=np.uint8))
        self._label = _labels(labels)

    def _read(self, name: str, axes: int, what: str) -> np.ndarray[Any, Any]:
        """The array in an IDX file, which may be compressed."""
        path = os.path.join(self._root, name)
        if not os.path.exists(path):
            path += ".gz"
        if not os.path.exists(path):
            raise _missing(path, f"the file of {self._NAME}'s {'training' if self._train else 'test'} {what}")
        return read_idx(path, axes, what)


class FashionMNIST(MNIST):
    """Images of clothes, in files named and made like those of :class:`MNIST`."""

    _NAME = "Fashion-MNIST"

    def __init__(self, root: str | None = None, train: bool = True, transform: _Transform = None) -> None:
        root = os.path.join(data_dir(), "datasets", "fashion-mnist") if root is None else root
        super().__init__(root, train, transform)


class CIFAR10(_DownloadedDataset):
    """Small photographs: images of shape (32, 32, 3), uint8, and their labels, int32.

    The directory `root` has the files ``data_batch_1.bin`` to ``data_batch_5.bin`` and
    ``test_batch.bin``, or the archive ``cifar-10-binary.tar.gz`` with them.
    """

    _ARCHIVE = "cifar-10-binary.tar.gz"
    _TRAIN = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
    _TEST = ("test_batch.bin",)
    # Bytes of labels in front of each image, and which of them is read.
    _labels, _label_at = 1, 0

    def __init__(self, root: str | None = None, train: bool = True, transform: _Transform = None) -> None:
        self._train = train
        super().__init__(os.path.join(data_dir(), "datasets", "cifar10") if root is None else root, transform)

    def _get_data(self) -> None:
        files = self._TRAIN if self._train else self._TEST
        samples = np.concatenate([self._samples(name) for name in files])
        images = samples[:, self._labels :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self._data = made_here(array(np.ascontiguousarray(images), dtype=np.uint8))
        self._label = _labels(samples[:, self._label_at])

    def _samples(self, name: str) -> np.ndarray[Any, Any]:
        content, path = self._content(name)
        size = self._labels + 3072
        if not content or len(content) % size:
            raise MXNetDataError(f"'{path}' has {len(content)} bytes, expected a multiple of {size}")
        return np.frombuffer(content, dtype=np.uint8).reshape(-1, size)

    def _content(self, name: str) -> tuple[bytes, str]:
        path = os.path.join(self._root, name)
        if os.path.exists(path):
            with open(path, "rb") as file:
                return file.read(), path
        archive = os.path.join(self._root, self._ARCHIVE)
        if not os.path.exists(archive):
            raise _missing(path, f"a file of {type(self).__name__}'s binary version, or be in the archive '{archive}'")
        try:
            with tarfile.open(archive) as tar:
                for member in tar:
                    found = tar.extractfile(member) if os.path.basename(member.name) == name else None
                    if found is not None:
                        return found.read(), f"{archive}:{member.name}"
        except (EOFError, OSError, tarfile.TarError, zlib.error) as error:
            raise MXNetDataError(f"'{archive}' cannot be read: {error}") from error
        raise MXNetDataError(f"the archive '{archive}' has no file '{name}'")


class CIFAR100(CIFAR10):
    """The data set CIFAR-100, in the form of :class:`CIFAR10`, with 20 coarse or 100 fine classes.

    The directory `root` has the files ``train.bin`` and ``test.bin``, or the archive
    ``cifar-100-binary.tar.gz`` with them.
    """

    _ARCHIVE = "cifar-100-binary.tar.gz"
    _TRAIN = ("train.bin",)
    _TEST = ("test.bin",)
    _labels = 2

    def __init__(
        self, root: str | None = None, fine_label: bool = False, train: bool = True, transform: _Transform = None
    ) -> None:
        self._label_at = int(fine_label)
        super().__init__(os.path.join(data_dir(), "datasets", "cifar100") if root is None else root, train, transform)


class ImageRecordDataset(RecordFileDataset):
    """Images and labels in a ``.rec`` file, with an ``.idx`` file of the same name.

    `flag` 1 decodes to three channels, red first, and 0 to one.
    """

    def __init__(self, filename: str, flag: int = 1, transform: _Transform = None) -> None:
        super().__init__(filename)
        self._flag = flag
        self._transform = transform

    def __getitem__(self, idx: Any) -> Any:
        from .... import image, recordio

        header, content = recordio.unpack(super().__getitem__(idx))
        decoded: NDArray = image.imdecode(content, self._flag)
        return (decoded, header.label) if self._transform is None else self._transform(decoded, header.label)


class ImageFolderDataset(Dataset):
    """Image files in one directory for each class: ``root/cat/1.jpg``, ``root/dog/2.png``.

    `flag` 1 decodes to three channels, red first, and 0 to one.

    Attributes
    ----------
    synsets : names of the classes, in the order of their labels
    items : file name and label of each image
    """

    def __init__(self, root: str, flag: int = 1, transform: _Transform = None) -> None:
        self._root = os.path.expanduser(root)
        self._flag = flag
        self._transform = transform
        self._exts = [".jpg", ".jpeg", ".png"]
        self.synsets: list[str] = []
        self.items: list[tuple[str, Any]] = []
        self._list_images(self._root)

    def _list_images(self, root: str) -> None:
        if not os.path.isdir(root):
            raise MXNetFileNotFoundError(
                f"ImageFolderDataset: there is no directory '{os.path.abspath(root)}'. It should have one directory of "
                "images for each class"
            )
        for folder in sorted(os.listdir(root)):
            path = os.path.join(root, folder)
            if not os.path.isdir(path):
                warn(f"Ignoring {path}, which is not a directory.")
                continue
            label = len(self.synsets)
            self.synsets.append(folder)
            for filename in sorted(os.listdir(path)):
                filename = os.path.join(path, filename)
                ext = os.path.splitext(filename)[1]
                if ext.lower() in self._exts:
                    self.items.append((filename, label))
                else:
                    warn(f"Ignoring {filename} of type {ext}. Only support {', '.join(self._exts)}")

    def __getitem__(self, idx: Any) -> Any:
        from .... import image

        filename, label = self.items[idx]
        decoded: NDArray = image.imread(filename, self._flag)
        return (decoded, label) if self._transform is None else self._transform(decoded, label)

    def __len__(self) -> int:
        return len(self.items)


class ImageListDataset(Dataset):
    """Image files of a list.

    Parameters
    ----------
    root : directory that the names of files are relative to
    imglist : a ``.lst`` file with lines ``index<tab>label...<tab>file``, or a list of
        ``(label, file)`` or ``[label, ..., file]``
    flag : 1 decodes to three channels, red first, and 0 to one
    """

    def __init__(self, root: str = ".", imglist: str | Sequence[Any] | None = None, flag: int = 1) -> None:
        self._root = os.path.expanduser(root)
        self._flag = flag
        if imglist is None:
            raise MXNetDataError("ImageListDataset: imglist is missing; give a .lst file or a list of (label, file)")
        if isinstance(imglist, str):
            lines = self._lines(os.path.join(self._root, os.path.expanduser(imglist)))
        else:
            lines = [(row[-1], row[0] if len(row) == 2 else row[:-1]) for row in imglist]
        self.items: list[tuple[str, Any]] = [
            (os.path.join(self._root, name), self._label(label)) for name, label in lines
        ]

    @staticmethod
    def _label(label: Any) -> Any:
        values = np.asarray(label, dtype=np.float32)
        return float(values.reshape(-1)[0]) if values.size == 1 else values

    @staticmethod
    def _lines(path: str) -> list[tuple[str, Any]]:
        if not os.path.exists(path):
            raise _missing(path, "a list of images: index, labels and file name, divided by tabs")
        found = []
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                fields = line.strip().split("\t")
                if fields == [""]:
                    continue
                try:
                    _, *labels, name = fields
                    found.append((name, [float(label) for label in labels]))
                    if not labels:
                        raise ValueError
                except ValueError:
                    raise MXNetDataError(
                        f"{path}, line {number}: {line.strip()!r}; expected an index, one or more labels and a file "
                        "name, divided by tabs"
                    ) from None
        return found

    def __getitem__(self, idx: Any) -> Any:
        from .... import image

        filename, label = self.items[idx]
        return image.imread(filename, self._flag), label

    def __len__(self) -> int:
        return len(self.items)
