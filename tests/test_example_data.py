"""Data sets that MXNet's examples ask ``mx.test_utils`` for."""

from __future__ import annotations

import bz2
import gzip
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest


def test_data_sets_of_examples_come_from_files(mx, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    tools = mx.test_utils
    with pytest.raises(mx.base.MXNetNotImplementedError, match=r"train-labels-idx1-ubyte.gz"):
        tools.get_mnist()
    rng = np.random.RandomState(0)
    images = {part: rng.randint(0, 256, (count, 28, 28), dtype="uint8") for part, count in (("train", 5), ("t10k", 3))}
    for part, values in images.items():
        head = struct.pack(">4i", 0x803, *values.shape)
        Path(f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + values.tobytes()))
        labels = struct.pack(">2i", 0x801, len(values)) + bytes(range(len(values)))
        Path(f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    found = tools.get_mnist()
    assert found["test_label"].tolist() == [0, 1, 2] and found["train_data"].shape == (5, 1, 28, 28)
    np.testing.assert_array_equal(found["train_data"][:, 0], images["train"].astype("float32") / 255)
    Path("t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"\0\0\x08\x03" + bytes(20)))
    with pytest.raises(mx.base.MXNetDataError, match="expected 3 axes of bytes"):
        tools.get_mnist()
    Path("data").mkdir()
    with pytest.raises(mx.base.MXNetNotImplementedError, match=r"cifar10.zip at data"):
        tools.get_cifar10()
    with zipfile.ZipFile("data/cifar10.zip", "w") as archive:
        for name in ("train.rec", "train.lst", "test.rec", "test.lst"):
            archive.writestr(f"cifar/{name}", name)
    tools.get_cifar10()
    assert Path("data/cifar/test.lst").read_text() == "test.lst"
    Path("data/cifar10.zip").unlink()
    tools.get_cifar10()  # the files are there
    Path("data/mnist.zip").write_bytes(b"something else")
    with pytest.raises(mx.base.MXNetDataError, match=r"mnist.zip' is no archive"):
        tools.get_mnist_ubyte()
    Path("data/words.bz2").write_bytes(bz2.compress(b"one two"))
    tools.get_bz2_data("data", "words.txt", "http://example.org/words.bz2", "words.bz2")
    assert Path("data/words.txt").read_text() == "one two"
