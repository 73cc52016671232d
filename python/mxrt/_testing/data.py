"""Data sets of MXNet's tests and examples, from files that are there already: nothing is
downloaded.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..base import MXNetDataError

__all__ = ["get_bz2_data", "get_cifar10", "get_mnist", "get_mnist_iterator", "get_mnist_ubyte", "get_zip_data"]

_URL = "http://data.mxnet.io/mxnet/data/"
_MNIST = "http://data.mxnet.io/data/mnist/"


def _file(url: str, directory: str | None = None) -> str:
    from .. import test_utils

    return test_utils.download(url, dirname=directory)


def _unpacked(wanted: Iterable[str], url: str, directory: str) -> None:
    """Unpacks an archive into its own folder, unless all files exist."""
    if not all(os.path.exists(os.path.join(directory, name)) for name in wanted):
        _unpack(url, directory)


def _unpack(url: str, directory: str) -> None:
    path = _file(url, directory)
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(directory)
    except zipfile.BadZipFile as error:
        raise MXNetDataError(f"'{path}' is no archive: {error}. Load {url} again") from error


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Unpacks the archive `data_origin_name` of `url`, which must be in `data_dir`.

    MXNetNotImplementedError, which says where it belongs, if it is not there; MXNetDataError if it
    is no archive.
    """
    _unpack(url if url.endswith(data_origin_name) else f"{url}/{data_origin_name}", data_dir)


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Unpacks the file `data_origin_name` of `url`, which must be in `data_dir`, to `data_name`.

    MXNetNotImplementedError, which says where it belongs, if it is not there.
    """
    target = os.path.join(data_dir, data_name)
    if os.path.exists(target):
        return
    import bz2  # which not every build of Python has

    with bz2.open(_file(url, data_dir)) as packed, open(target, "wb") as written:
        while block := packed.read(1 << 20):
            written.write(block)


def get_mnist_ubyte() -> None:
    """Unpacks ``data/mnist.zip`` into the directory ``data``, unless the four files are there.

    MXNetNotImplementedError if there is neither.
    """
    kinds = ("images-idx3-ubyte", "labels-idx1-ubyte")
    _unpacked([f"{part}-{kind}" for part in ("train", "t10k") for kind in kinds], _URL + "mnist.zip", "data")


def get_cifar10() -> None:
    """Unpacks ``data/cifar10.zip`` into the directory ``data``, unless the files are there.

    MXNetNotImplementedError if there is neither.
    """
    wanted = [f"cifar/{part}.{kind}" for part in ("train", "test") for kind in ("rec", "lst")]
    _unpacked(wanted, _URL + "cifar10.zip", "data")


def get_mnist_iterator(
    batch_size: int, input_shape: Sequence[int], num_parts: int = 1, part_index: int = 0
) -> tuple[Any, Any]:
    """Iterators over the training images of MNIST, shuffled, and over its test images.

    Parameters
    ----------
    batch_size : images of a batch
    input_shape : (1, 28, 28), or (784,) for rows
    num_parts, part_index : one of several equal parts

    The files are those of :func:`get_mnist_ubyte`.
    """
    from ..io import MNISTIter

    get_mnist_ubyte()

    def of(part: str, shuffle: bool) -> Any:
        return MNISTIter(
            image=f"data/{part}-images-idx3-ubyte",
            label=f"data/{part}-labels-idx1-ubyte",
            batch_size=batch_size,
            shuffle=shuffle,
            flat=len(input_shape) != 3,
            num_parts=num_parts,
            part_index=part_index,
        )

    return of("train", True), of("t10k", False)


def get_mnist() -> dict[str, Any]:
    """MNIST from its four files ``*-ubyte.gz`` in the working directory.

    ``train_data`` and ``test_data`` are images of shape (number, 1, 28, 28), float32 from 0 to 1;
    ``train_label`` and ``test_label`` the digits, int8.

    MXNetNotImplementedError if a file is not there, MXNetDataError if it is something else.
    """
    from ..gluon.data.vision.datasets import read_idx

    found = {}
    for name, part in (("train", "train"), ("test", "t10k")):
        labels = read_idx(_file(f"{_MNIST}{part}-labels-idx1-ubyte.gz"), 1, "labels")
        images = read_idx(_file(f"{_MNIST}{part}-images-idx3-ubyte.gz"), 3, "images")
        found[f"{name}_data"] = images[:, np.newaxis].astype(np.float32) / 255
        found[f"{name}_label"] = labels.view(np.int8)
    return found
