"""Images with boxes: augmenters and batches. What MXNet 1.9.1 made is in
tests/recorded/detection.npz.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import detection_cases as cases
from support import in_threads

RECORDED = np.load(cases.RECORDED)


def close(made: dict[str, np.ndarray], names: list[str]) -> None:
    assert sorted(made) == sorted(names)
    for name in names:
        want = RECORDED[name]
        assert made[name].shape == want.shape and made[name].dtype == want.dtype, name
        np.testing.assert_allclose(made[name], want, rtol=1e-5, atol=1e-4, err_msg=name)


def test_augmenters_make_what_mxnet_makes(mx) -> None:
    close(cases.results(mx, cases.pixels()), [name for name in RECORDED if name.endswith(("_image", "_boxes"))])


def test_batches_are_those_of_mxnet(mx, tmp_path: Path) -> None:
    close(cases.batches(mx, tmp_path), [name for name in RECORDED if name.endswith(("_data", "_label", "_pad"))])


def test_augmenters_are_written_as_mxnet_writes_them(mx) -> None:
    made = cases.augmenters(mx.image)
    assert json.loads(made["crop_fixed"].dumps()) == [
        "detrandomcropaug",
        {
            "min_object_covered": 0.0,
            "aspect_ratio_range": [1.0, 1.0],
            "area_range": [0.5, 0.5],
            "min_eject_coverage": 0.3,
            "max_attempts": 50,
        },
    ]
    assert made["borrow"].dumps() == ["detborrowaug", '["horizontalflipaug", {"p": 0.5}]']
    assert made["usual"][3].dumps() == [
        "detrandomselectaug",
        [
            '["detrandompadaug", {"aspect_ratio_range": [0.75, 1.33], "area_range": [1.0, 3.0], '
            '"max_attempts": 50, "pad_val": [127, 127, 127]}]'
        ],
    ]
    usual = mx.image.CreateDetAugmenter((3, 8, 8), mean=True, std=True)
    assert usual[-1].dumps() == [
        "detborrowaug",
        '["colornormalizeaug", {"mean": [123.68, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}]',
    ]


def test_what_augmenters_refuse(mx) -> None:
    det = mx.image.det
    with pytest.raises(TypeError, match="Borrowing from invalid Augmenter"):
        det.DetBorrowAug(det.DetHorizontalFlipAug(1))
    with pytest.raises(ValueError, match="Allow DetAugmenter in list only"):
        det.DetRandomSelectAug([mx.image.CastAug()])
    with pytest.raises(AssertionError, match=r"lists of \[1, 2, 3\] values"):
        det.CreateMultiRandCropAugmenter([0.1, 0.2], area_range=[(0.1, 1), (0.2, 1), (0.3, 1)])
    for make, area in ((det.DetRandomCropAug, (0.5, 0.2)), (det.DetRandomPadAug, (0.5, 1.0))):
        with pytest.warns(UserWarning, match=f"Skip {make.__name__} due to invalid area_range"):
            augmenter = make(area_range=area)
        image = mx.nd.zeros((8, 8, 3), dtype="uint8")
        assert augmenter(image, cases.BOXES)[0] is image
    with pytest.warns(UserWarning, match="invalid aspect_ratio_range"):
        det.DetRandomCropAug(aspect_ratio_range=(0, 1))
    assert det.DetRandomSelectAug([])(image, cases.BOXES)[1] is cases.BOXES


def test_threads_share_augmenters(mx) -> None:
    """A list that a thread shuffles stays whole for the others."""
    order = mx.image.RandomOrderAug([mx.image.CastAug(name) for name in ("float32", "float64", "float16")])
    seen = []

    class Seen(mx.image.DetAugmenter):
        def __call__(self, src, label):
            seen.append(self)
            return src, label

    select = mx.image.DetRandomSelectAug([Seen() for _ in range(4)])
    image = mx.nd.zeros((4, 4, 3), dtype="uint8")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        in_threads(8, lambda _: [(order(image), select(image, cases.BOXES)) for _ in range(100)])
    finally:
        sys.setswitchinterval(interval)
    assert sorted(cast.typ for cast in order.ts) == ["float16", "float32", "float64"]
    assert len(set(map(id, select.aug_list))) == 4 and len(seen) == 800


@pytest.fixture
def rows(tmp_path: Path) -> list[list]:
    return cases.listed(tmp_path)


def test_shapes_of_boxes_follow_the_images(mx, tmp_path: Path, rows: list[list]) -> None:
    def make(count: int):
        return mx.image.ImageDetIter(2, (3, 8, 8), imglist=rows[:count], path_root=str(tmp_path))

    one, all_rows = make(1), make(len(rows))
    assert one.label_shape == (1, 5) and all_rows.label_shape == (2, 5)
    assert one.sync_label_shape(all_rows) is all_rows and one.label_shape == (2, 5)
    assert one.provide_label == [("label", (2, 2, 5))]
    label = next(one).label[0].asnumpy()
    np.testing.assert_allclose(label[0, 0], rows[0][3:8], rtol=1e-6)
    assert (label[0, 1] == -1).all()
    one.reshape((3, 6, 7), (4, 5))
    batch = one.reset() or next(one)
    assert batch.data[0].shape == (2, 3, 6, 7) and batch.label[0].shape == (2, 4, 5)
    for shape, message in (((1, 5), "reduce label count from 4 to 1"), ((4, 6), "inconsistent: 5 vs 6"), ((4,), "2")):
        with pytest.raises(ValueError, match=message):
            one.reshape(label_shape=shape)


def test_records_of_images_with_boxes(mx, tmp_path: Path, rows: list[list]) -> None:
    with mx.recordio.MXRecordIO(str(tmp_path / "x.rec"), "w") as records:
        for number, (*label, name) in enumerate(rows):
            header = mx.recordio.IRHeader(0, label, number, 0)
            records.write(mx.recordio.pack(header, (tmp_path / name).read_bytes()))
    (tmp_path / "x.lst").write_text(
        "".join("\t".join(map(str, [number, *row])) + "\n" for number, row in enumerate(rows))
    )
    keywords = {"batch_size": 2, "data_shape": (3, 8, 8)}
    by_record = list(mx.image.ImageDetIter(path_imgrec=str(tmp_path / "x.rec"), **keywords))
    by_list = list(mx.image.ImageDetIter(path_imglist=str(tmp_path / "x.lst"), path_root=str(tmp_path), **keywords))
    assert len(by_record) == len(by_list) == -(-len(rows) // 2)
    for one, other in zip(by_record, by_list, strict=True):
        assert np.array_equal(one.data[0].asnumpy(), other.data[0].asnumpy())
        assert np.array_equal(one.label[0].asnumpy(), other.label[0].asnumpy())


def test_labels_that_are_wrong_name_their_image(mx, tmp_path: Path, rows: list[list]) -> None:
    def make(*label: float):
        return mx.image.ImageDetIter(1, (3, 8, 8), imglist=[*rows, [*label, "odd.png"]], path_root=str(tmp_path))

    for label, message in (
        ((2, 5, 1), r"Label shape is invalid: \(3,\)"),
        ((2, 5, 0, 0, 0, 1), r"Label shape is invalid: \(6,\)"),
        ((2, 5, 0, 0, 0, 1, 1, 1), "annotation width 5"),
        ((2, 4, 0, 0, 0, 1), "invalid"),
        ((1, 5, 0, 0, 0, 1, 1), "header of 1"),
        ((2, 5, 0, 0.5, 0.5, 0.5, 0.5), "no box has an area"),
        ((2, 6, 0, 0, 0, 1, 1, 7), "each object has 6 numbers, those of images before it 5"),
    ):
        with pytest.raises(mx.base.MXNetDataError, match=rf"odd.png: .*{message}"):
            make(*label)
    iterator = make(2, 5, 0, 0, 0, 1, 1)
    for _ in rows:
        next(iterator)
    with pytest.raises(mx.base.MXNetDataError, match=r"odd.png"):
        next(iterator)
    iterator.reset()
    assert next(iterator).label[0].shape == (1, 2, 5)


def test_images_whose_boxes_are_lost_are_left_out(mx, tmp_path: Path, rows: list[list]) -> None:
    class Lose(mx.image.DetAugmenter):
        calls = 0

        def __call__(self, src, label):
            self.calls += 1
            return mx.image.imresize(src, 8, 8), label if self.calls % 2 else label[:0]

    iterator = mx.image.ImageDetIter(1, (3, 8, 8), imglist=rows, path_root=str(tmp_path), aug_list=[Lose()])
    assert len(list(iterator)) == (len(rows) + 1) // 2


def test_boxes_are_drawn(mx, tmp_path: Path) -> None:
    file = np.load(cases.HERE / "images.npz")["file_png_rgb"].tobytes()
    (tmp_path / "x.png").write_bytes(file)
    row = [2, 5, 0, 0.25, 0.25, 0.75, 0.75, "x.png"]
    size = mx.image.imdecode(file).shape[:2]
    iterator = mx.image.ImageDetIter(1, (3, *size), imglist=[row], path_root=str(tmp_path), mean=True, std=True)
    (drawn,) = iterator.draw_next(color=(255, 0, 10), thickness=1, mean=True, std=True)
    top, left, bottom, right = (
        int(share * extent) for share, extent in zip([0.25] * 2 + [0.75] * 2, size * 2, strict=True)
    )
    assert drawn.dtype == np.uint8 and (drawn[top, left : right + 1] == (10, 0, 255)).all()
    assert (drawn[top : bottom + 1, right] == (10, 0, 255)).all()
    plain = mx.image.imdecode(file, to_rgb=False).asnumpy().astype(int)
    assert abs(drawn[top + 1 : bottom, left + 1 : right] - plain[top + 1 : bottom, left + 1 : right]).max() <= 1
    # As in MXNet, what comes after the end is the next epoch.
    assert len(list(iterator.draw_next())) == 1
