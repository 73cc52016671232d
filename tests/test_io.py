"""Batches: NDArrayIter, CSVIter and what they hand out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def batches(iterator) -> list:
    return [(batch.data[0].asnumpy(), batch.label, batch.pad) for batch in iterator]


def test_ndarrayiter_pads_the_last_batch_from_the_beginning(mx) -> None:
    data = np.arange(14, dtype=np.float32).reshape(7, 2)
    iterator = mx.io.NDArrayIter({"data": data}, batch_size=3, last_batch_handle="pad")
    seen = batches(iterator)
    assert [pad for _, _, pad in seen] == [0, 0, 2]
    assert np.array_equal(np.concatenate([d for d, _, _ in seen]), np.concatenate([data, data[:2]]))
    iterator.reset()
    assert len(batches(iterator)) == 3


def test_ndarrayiter_may_discard_the_last_batch_and_carries_labels(mx) -> None:
    data, label = np.zeros((7, 2), np.float32), np.arange(7, dtype=np.float32)
    iterator = mx.io.NDArrayIter(data, label, batch_size=3, last_batch_handle="discard")
    assert [d.name for d in iterator.provide_data] == ["data"]
    assert [d.name for d in iterator.provide_label] == ["softmax_label"]
    assert iterator.provide_data[0].shape == (3, 2)
    assert [batch.label[0].asnumpy().tolist() for batch in iterator] == [[0, 1, 2], [3, 4, 5]]


def test_datadesc_is_a_name_and_a_shape(mx) -> None:
    desc = mx.io.DataDesc("data", (4, 3), "float32")
    name, shape = desc
    assert (name, shape) == ("data", (4, 3))
    assert np.dtype(desc.dtype) == np.float32


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{k},{k + 0.5},{-k},1e{k}\n" for k in range(5)))
    return path


def test_csviter_reads_rows_in_their_shape(mx, csv: Path) -> None:
    iterator = mx.io.CSVIter(data_csv=str(csv), data_shape=(2, 2), batch_size=2)
    seen = batches(iterator)
    want = np.array([[k, k + 0.5, -k, 10.0**k] for k in range(5)], np.float32).reshape(5, 2, 2)
    assert [pad for _, _, pad in seen] == [0, 0, 1]
    assert np.allclose(np.concatenate([d for d, _, _ in seen])[:5], want)


@pytest.mark.parametrize(
    ("content", "shape", "words"),
    [
        ("1,2,3,4\n2,3,4,5\n", (4, 10), ["4", "[4,10]"]),
        ("1,2\n3,4\n5\n", (2,), ["3"]),
        ("1,2\n3,four\n", (2,), ["four", "2"]),
    ],
    ids=["rows of another size", "one short row", "a word"],
)
def test_csviter_names_the_row_that_is_wrong(mx, tmp_path: Path, content: str, shape, words: list[str]) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(content)
    with pytest.raises(mx.base.MXNetError) as caught:
        for batch in mx.io.CSVIter(data_csv=str(path), data_shape=shape, batch_size=1):
            batch.data[0].asnumpy()
    for word in ["wrong.csv", *words]:
        assert word in str(caught.value)


def test_csviter_names_a_missing_file(mx, tmp_path: Path) -> None:
    with pytest.raises(mx.base.MXNetError, match=r"nowhere\.csv"):
        for _ in mx.io.CSVIter(data_csv=str(tmp_path / "nowhere.csv"), data_shape=(2,), batch_size=1):
            pass
