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
    for name in ("train", "t10k"):
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
            Path(f"data/{name}-{kind}").write_bytes(gzip.decompress(Path(f"{name}-{kind}.gz").read_bytes()))
    train, test = tools.get_mnist_iterator(2, (784,))
    np.testing.assert_allclose(next(test).data[0].asnumpy(), images["t10k"][:2].reshape(2, 784) / 256, rtol=1e-6)
    assert sorted(label for batch in train for label in batch.label[0].asnumpy().tolist()) == [0, 1, 2, 3]
    assert tools.get_mnist_iterator(1, (1, 28, 28))[0].provide_data[0].shape == (1, 1, 28, 28)
    Path("data/t10k-images-idx3-ubyte").unlink()
    Path("t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"\0\0\x08\x03" + bytes(20)))
    with pytest.raises(mx.base.MXNetDataError, match="its header says"):
        tools.get_mnist()
    Path("data/mnist.zip").write_bytes(b"something else")
    with pytest.raises(mx.base.MXNetDataError, match=r"mnist.zip' is no archive"):
        tools.get_mnist_ubyte()
    Path("data/words.bz2").write_bytes(bz2.compress(b"one two"))
    tools.get_bz2_data("data", "words.txt", "http://example.org/words.bz2", "words.bz2")
    assert Path("data/words.txt").read_text() == "one two"


def test_texts_for_language_models(mx, tmp_path: Path) -> None:
    text = mx.gluon.contrib.data.text
    (tmp_path / "wiki.train.tokens").write_text(" = a title = \n\n the cat sat \n the dog\n", encoding="utf-8")
    train = text.WikiText2(str(tmp_path), seq_len=4)
    assert train.frequencies["the"] == 2 and train.vocabulary.to_tokens([0, 1]) == ["<unk>", "<eos>"]
    # 12 tokens; the last has no token after it.
    assert len(train) == 2
    data, label = train[1]
    assert train.vocabulary.to_tokens(data.asnumpy().tolist()) == ["<eos>", "the", "cat", "sat"]
    assert train.vocabulary.to_tokens(label.asnumpy().tolist()) == ["the", "cat", "sat", "<eos>"]
    assert data.dtype == np.int32
    (tmp_path / "wiki.test.tokens").write_text("the bird sat", encoding="utf-8")
    test = text.WikiText103(str(tmp_path), "test", train.vocabulary, seq_len=3)
    assert test[0][0].asnumpy().tolist() == train.vocabulary.to_indices(["the", "<unk>", "sat"])
    with pytest.raises(mx.base.MXNetDataError, match=r"wiki.valid.tokens', of WikiText2"):
        text.WikiText2(str(tmp_path), "validation")
    with pytest.raises(ValueError, match="expected one of train, validation, test"):
        text.WikiText2(str(tmp_path), "dev")
