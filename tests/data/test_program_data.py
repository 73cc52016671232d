"""Data of programs: records with one label for all, and data sets whose class makes its files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest


def records(mx, tmp_path: Path, labels: list[object]) -> dict[str, str]:
    names = {"path_imgrec": str(tmp_path / "x.rec"), "path_imgidx": str(tmp_path / "x.idx")}
    with mx.recordio.MXIndexedRecordIO(names["path_imgidx"], names["path_imgrec"], "w") as writer:
        for i, label in enumerate(labels):
            image = np.full((4, 4, 3), i, dtype="uint8")
            writer.write_idx(i, mx.recordio.pack_img((0, label, i, 0), image, 3, ".png"))
    return names


def test_a_single_label_stands_for_all(mx, tmp_path: Path) -> None:
    found = mx.image.ImageIter(2, (3, 4, 4), label_width=2, **records(mx, tmp_path, [0, 1]))
    assert found.next().label[0].asnumpy().tolist() == [[0, 0], [1, 1]]
    mixed = mx.image.ImageIter(2, (3, 4, 4), label_width=2, **records(mx, tmp_path, [[3.0, 4.0], 1]))
    assert mixed.next().label[0].asnumpy().tolist() == [[3, 4], [1, 1]]
    wrong = mx.image.ImageIter(1, (3, 4, 4), label_width=2, **records(mx, tmp_path, [[1.0, 2.0, 3.0]]))
    with pytest.raises(mx.MXNetError, match="it has 3 labels, label_width is 2"):
        wrong.next()


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_has_images(mx, tmp_path: Path, size: int) -> None:
    with pytest.raises(ValueError, match=f"batch_size is {size}; give a positive number"):
        mx.image.ImageIter(size, (3, 4, 4), **records(mx, tmp_path, [0]))


def test_images_that_a_class_refuses_are_left_out(mx, tmp_path: Path) -> None:
    class Odd(mx.image.ImageIter):
        def check_valid_image(self, data) -> None:
            super().check_valid_image(data)
            if data.asnumpy().flat[0] % 2 == 0:
                raise RuntimeError("even")

    found = Odd(2, (3, 4, 4), **records(mx, tmp_path, [0, 1, 2, 3]))
    assert found.next().label[0].asnumpy().tolist() == [1, 3]

    class Boxes(mx.image.ImageDetIter):
        def check_valid_image(self, data) -> None:
            super().check_valid_image(data)
            if data[0].asnumpy().flat[0] < 2:
                raise RuntimeError("too small")

    labels = [[2.0, 5.0, i, 0.1, 0.1, 0.9, 0.9] for i in range(3)]
    found = Boxes(1, (3, 4, 4), aug_list=[], **records(mx, tmp_path, labels))
    assert found.next().label[0].asnumpy()[0, 0, 0] == 2


def test_a_data_set_of_a_program_finds_its_folder(mx, tmp_path: Path) -> None:
    class Own(mx.gluon.data.dataset._DownloadedDataset):
        def _get_data(self) -> None:
            with open(os.path.join(self._root, "labels"), "w") as file:
                file.write("7")
            self._data, self._label = [0], [7]

    root = tmp_path / "a" / "b"
    for _ in range(2):
        assert Own(str(root), None)[0] == (0, 7)
    assert (root / "labels").read_text() == "7"
    with pytest.raises(FileNotFoundError):
        mx.gluon.data.vision.MNIST(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("handle", "alone", "batch", "after"),
    [
        ("pad", "01e01e0", ([0, 1, 0], 1), "eee"),
        ("roll_over", "01e01e0", None, "01e"),
        ("discard", "01eeeee", None, "eee"),
    ],
)
def test_the_next_sample_is_the_one_of_mxnet(
    mx, tmp_path: Path, indexed: bool, handle: str, alone: str, batch: tuple | None, after: str
) -> None:
    files = records(mx, tmp_path, [0.0, 1.0])
    if not indexed:
        del files["path_imgidx"]
    iterator = mx.image.ImageIter(3, (3, 4, 4), last_batch_handle=handle, **files)

    def read(count: int) -> str:
        """Labels of the next samples, and an e where the end is met."""
        seen = ""
        for _ in range(count):
            try:
                seen += str(int(iterator.next_sample()[0]))
            except StopIteration:
                seen += "e"
        return seen

    assert read(7) == alone
    iterator.hard_reset()
    found = next(iterator, None)
    assert (found and (found.label[0].asnumpy().tolist(), found.pad)) == batch
    assert read(3) == after
    iterator.reset()
    assert read(3) == "01e"
