"""Iterators over files of images, digits and LibSVM rows, against what MXNet 1.9.1 gave."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from iterator_cases import CASES, batches
from support import ROOT, run_python

RECORDED = dict(np.load(ROOT / "tests" / "recorded" / "iterators.npz"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The files that were recorded."""
    made = tmp_path_factory.mktemp("recorded")
    for name, content in RECORDED.items():
        if name.startswith("file_"):
            (made / name.removeprefix("file_")).write_bytes(content.tobytes())
    return made


@pytest.fixture
def here(folder: Path, monkeypatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def wanted(name: str) -> dict[str, np.ndarray]:
    return {key: RECORDED[f"{name}_{key}"] for key in ("data", "label", "pad", "count", "shapes")}


@pytest.mark.parametrize(("name", "kind", "arguments"), CASES, ids=[case[0] for case in CASES])
def test_batches_are_those_of_mxnet(mx, here: Path, name: str, kind: str, arguments: dict) -> None:
    found, want = batches(mx, kind, arguments), wanted(name)
    assert str(found["shapes"]) == str(want["shapes"])
    assert found["count"].tolist() == want["count"].tolist()
    data, label = want["data"].astype(np.float64), want["label"]
    made = found["data"].astype(np.float64)
    assert found["data"].dtype == want["data"].dtype and made.shape == data.shape
    if name == "short":
        # MXNet loses the pad of a short batch, whose other rows are left to chance.
        assert found["pad"].tolist() == [0, 0, 1] * 2
        made, data = (np.delete(array.reshape(-1, *array.shape[2:]), [5, 11], axis=0) for array in (made, data))
        label = np.delete(label.ravel(), [5, 11])
        found["label"] = np.delete(found["label"].ravel(), [5, 11])
    else:
        assert found["pad"].tolist() == want["pad"].tolist()
    assert found["label"].tolist() == label.tolist()
    if kind == "ImageDetRecordIter":
        # What an image leaves free is left to chance in MXNet.
        for image in np.ndindex(made.shape[:2]):
            rows, columns = label[image][1:3].astype(int)
            made[image][:, rows:], made[image][:, :, columns:] = 0, 0
            data[image][:, rows:], data[image][:, :, columns:] = 0, 0
    if name == "crop_size":
        # MXNet resizes the crop of an image that has the final size already over the image itself.
        made, data = (np.delete(array, 2, axis=1) for array in (made, data))
    # Ways to interpolate that read more than two neighbours, and JPEG, differ a little.
    most = {"jpeg": 4, "resize_2": 1, "resize_9": 1, "rotate_area": 1}.get(name, 0)
    assert np.abs(made - data).max() <= most
    assert np.abs(made - data).mean() <= 0.1 * most


@pytest.mark.parametrize("threads", [1, 3])
def test_orders_and_changes_by_chance_follow_from_seeds_and_not_from_threads(mx, here: Path, threads: int) -> None:
    def epochs(seed: int, threads: int = threads, **more) -> list[list[tuple[float, bytes]]]:
        iterator = mx.io.ImageRecordIter(
            path_imgrec="png.rec", data_shape=(3, 8, 8), batch_size=1, shuffle=True, seed=seed, rand_crop=True,
            rand_mirror=True, brightness=0.4, random_h=20, pca_noise=3.0, preprocess_threads=threads, **more
        )  # fmt: skip
        found = []
        for _ in range(3):
            found.append([(b.label[0].asscalar(), b.data[0].asnumpy().tobytes()) for b in iterator])
            iterator.reset()
        return found

    first = epochs(5)
    assert first == epochs(5, threads=2) == epochs(5, path_imgidx="png.idx", prefetch_buffer=1)
    assert all(sorted(label for label, _ in epoch) == [0, 1.5, 3, 4.5, 6] for epoch in first)
    orders = [[label for label, _ in epoch] for epoch in first]
    assert orders[0] != orders[1] or orders[1] != orders[2]
    assert first != epochs(6)
    assert [[label for label, _ in e] for e in epochs(5, seed_aug=9)] == orders
    assert epochs(5, seed_aug=9) != first


def damaged(folder: Path, tmp_path: Path, mx, wrong: dict[int, bytes]) -> str:
    """A file of ten images, some of which are other bytes."""
    source = mx.recordio.MXIndexedRecordIO(str(folder / "png.idx"), str(folder / "png.rec"), "r")
    path = str(tmp_path / "damaged.rec")
    writer = mx.recordio.MXRecordIO(path, "w")
    for i in range(10):
        _, image = mx.recordio.unpack(source.read_idx(i % 5))
        writer.write(mx.recordio.pack(mx.recordio.IRHeader(0, float(i), i, 0), wrong.get(i, image)))
    writer.close()
    return path


@pytest.mark.parametrize("kind", ["ImageRecordIter", "ImageRecordIter_v1"])
def test_a_mean_image_is_made_where_there_is_none(mx, here: Path, tmp_path: Path, kind: str) -> None:
    arguments = {"path_imgrec": "png.rec", "data_shape": (3, 16, 16), "scale": 0.5, "mean_r": 3, "std_g": 2}
    plain = getattr(mx.io, kind)(batch_size=5, **arguments).next().data[0].asnumpy()
    path = tmp_path / "mean.bin"
    # Batches that the five images do not fill; the mean is of what MXNet subtracts it from later.
    mean_of = getattr(mx.io, kind)(batch_size=2, mean_img=str(path), **arguments)
    saved = mx.nd.load(str(path))
    assert list(saved) == ["mean_img"]
    mean = saved["mean_img"].asnumpy()
    np.testing.assert_allclose(mean, plain.mean(axis=0), rtol=1e-6)
    first = mean_of.next().data[0].asnumpy()
    deviations = np.array([1, 2, 1], np.float32)[:, None, None]
    unscaled = plain[:2] * deviations / 0.5 + np.array([3, 0, 0], np.float32)[:, None, None]
    np.testing.assert_allclose(first, (unscaled - mean) / deviations * 0.5, rtol=1e-5, atol=1e-4)
    path.write_bytes(b"damaged")
    with pytest.raises(mx.base.MXNetError, match=r"mean\.bin"):
        getattr(mx.io, kind)(batch_size=2, mean_img=str(path), **arguments)


def test_a_mean_image_that_cannot_be_made_is_an_error(mx, here: Path, tmp_path: Path) -> None:
    arguments = {"data_shape": (3, 16, 16), "batch_size": 2}
    (tmp_path / "none.rec").write_bytes(b"")
    with pytest.raises(mx.base.MXNetError, match=r"mean\.bin.*no image"):
        mx.io.ImageRecordIter(path_imgrec=str(tmp_path / "none.rec"), mean_img=tmp_path / "mean.bin", **arguments)
    with pytest.raises(mx.base.MXNetError, match="absent"):
        mx.io.ImageRecordIter(path_imgrec="png.rec", mean_img=tmp_path / "absent" / "mean.bin", **arguments)
    with pytest.raises(mx.base.MXNetError, match="mean_img"):
        mx.io.MNISTIter(image="images", label="digits", mean_img="mean.bin")
    assert not Path("mean.bin").exists()


def test_parameters_without_effect_in_mxnet_have_none(mx, here: Path) -> None:
    images = {"path_imgrec": "png.rec", "data_shape": (3, 16, 16), "batch_size": 2}
    plain = mx.io.ImageRecordIter(**images).next().data[0].asnumpy()
    assert (mx.io.ImageRecordIter(and_mirror=True, **images).next().data[0].asnumpy() == plain).all()
    for name in ("data_shape", "input_shape"):
        digits = mx.io.MNISTIter(image="images", label="digits", batch_size=2, **{name: (1, 28, 28)})
        assert len(digits.next().data) == 1
    assert "input_shape" in mx.io.MNISTIter.__doc__
    with pytest.raises(mx.base.MXNetError, match="rand_miror"):
        mx.io.ImageRecordIter(rand_miror=True, **images)


def test_small_integers_are_mirrored_as_in_mxnet(mx, here: Path) -> None:
    images = {"path_imgrec": "png.rec", "data_shape": (3, 16, 16), "batch_size": 2}
    plain = mx.io.ImageRecordUInt8Iter(**images).next().data[0].asnumpy()
    mirrored = mx.io.ImageRecordUInt8Iter(mirror=True, mean_r=9, **images).next().data[0]
    assert mirrored.dtype == np.uint8 and (mirrored.asnumpy() == plain[..., ::-1]).all()
    less = mx.io.ImageRecordInt8Iter(mean_r=100, scale=0.5, **images).next().data[0]
    wanted = plain.astype(int)
    wanted[:, 0] -= 100
    assert less.dtype == np.int8 and (less.asnumpy() == wanted.clip(-128, 127)).all()


def test_a_damaged_image_is_raised_behind_the_batches_before_it(mx, folder: Path, tmp_path: Path) -> None:
    path = damaged(folder, tmp_path, mx, {5: b"\xff\xd8 no picture"})
    iterator = mx.io.ImageRecordIter(path_imgrec=path, data_shape=(3, 16, 16), batch_size=2, preprocess_threads=3)
    for _ in range(2):
        assert [next(iterator).label[0].asnumpy().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        for _ in range(2):
            with pytest.raises(mx.base.MXNetError, match=r"damaged\.rec: record at byte \d+: .*JPEG"):
                next(iterator)
        iterator.reset()


@pytest.mark.parametrize("callback", [False, True])
def test_damaged_images_are_left_out_and_counted(mx, folder: Path, tmp_path: Path, callback: bool) -> None:
    path = damaged(folder, tmp_path, mx, {0: b"", 5: b"GIF89a", 9: b"\x89PNG"})
    errors: list[Exception] = []
    iterator = mx.io.ImageRecordIter(
        path_imgrec=path, data_shape=(3, 16, 16), batch_size=2, on_error=errors.append if callback else "skip"
    )
    assert [b.label[0].asnumpy().tolist() for b in iterator] == [[1, 2], [3, 4], [6, 7], [8, 1]]
    assert iterator.skipped == 4  # the first one twice: the last batch is filled up from the beginning
    if callback:
        assert len(errors) == 4 and all(isinstance(error, mx.base.MXNetError) for error in errors)
        assert "neither JPEG nor PNG" in str(errors[1]) and "record at byte" in str(errors[1])

    def refuse(error: Exception) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        list(mx.io.ImageRecordIter(path_imgrec=path, data_shape=(3, 16, 16), batch_size=2, on_error=refuse))


def test_damaged_rows_are_left_out_with_their_labels(mx, tmp_path: Path) -> None:
    data, labels = tmp_path / "d.csv", tmp_path / "l.csv"
    data.write_text("1\nx\n3\n4,4\n5\n6\n")
    labels.write_text("1\n2\n3\n4\nno\n6\n")
    iterator = mx.io.CSVIter(str(data), (1,), str(labels), batch_size=3, on_error="skip")
    batch = next(iterator)
    assert batch.data[0].asnumpy().ravel().tolist() == batch.label[0].asnumpy().tolist() == [1, 3, 6]
    assert iterator.skipped == 3


def test_files_that_cannot_be_are_named_with_place_and_reason(mx, folder: Path, tmp_path: Path) -> None:
    def refused(words: str, **arguments) -> None:
        with pytest.raises(mx.base.MXNetError, match=words):
            list(mx.io.ImageRecordIter(**{"data_shape": (3, 16, 16), "batch_size": 2, **arguments}))

    record, content = str(folder / "png.rec"), (folder / "png.rec").read_bytes()
    refused("must specify path_imgrec")
    refused("No such file", path_imgrec=str(tmp_path / "no.rec"))
    refused("Is a directory", path_imgrec=str(tmp_path))
    cut = tmp_path / "cut.rec"
    cut.write_bytes(content[:-6])
    refused(r"cut\.rec: record at byte \d+: the file is truncated", path_imgrec=str(cut))
    bad = tmp_path / "bad.rec"
    bad.write_bytes(b"\x01" + content[1:])
    refused(r"bad\.rec: record at byte 0: Invalid RecordIO File", path_imgrec=str(bad))
    index = tmp_path / "wrong.idx"
    index.write_text("0\t8\n")
    refused(r"record at byte 8: .*the position is that in .*wrong\.idx", path_imgrec=record, path_imgidx=str(index))
    index.write_text("0\n")
    refused(r"wrong\.idx line 1: .*expected a key, a tab and a position", path_imgrec=record, path_imgidx=str(index))
    refused("label_width must be 1 unless", path_imgrec=record, label_width=3)
    refused("3-dimensional label but label_width is set to 2", path_imgrec=str(folder / "labels.rec"), label_width=2)
    refused("Expected 4 channels, got 3", path_imgrec=record, data_shape=(4, 16, 16))
    refused("fail to find imagelist index 0", path_imgrec=str(folder / "jpg.rec"), label_width=2,
            path_imglist=str(folder / "list.lst"))  # fmt: skip
    refused("part_index is 2, but num_parts is 2", path_imgrec=record, num_parts=2, part_index=2)
    refused("inter_method is 7", path_imgrec=record, inter_method=7)
    refused("random_resized_crop conflicts", path_imgrec=record, random_resized_crop=True, rand_crop=True)
    refused("data_shape is .2, 3.; expected .channels, height, width.", path_imgrec=record, data_shape=(2, 3))
    with pytest.raises(mx.base.MXNetError, match=r"(?s)Cannot find argument 'rezise'.*rand_crop"):
        mx.io.ImageRecordIter(path_imgrec=record, data_shape=(3, 4, 4), batch_size=1, rezise=3)


def test_the_first_labels_of_a_list_are_read(mx, tmp_path: Path) -> None:
    """MXNet reads `label_width` labels of a line, and refuses lines with fewer."""
    record = str(tmp_path / "x.rec")
    writer = mx.recordio.MXRecordIO(record, "w")
    for number in range(2):
        header = mx.recordio.IRHeader(0, 9.0, number, 0)
        writer.write(mx.recordio.pack_img(header, np.zeros((4, 4, 3), "uint8"), img_fmt=".png"))
    writer.close()
    labels = tmp_path / "x.lst"
    labels.write_text("0\t5\t6\t7\ta.png\n1\t8\t9\t10\tb.png\n")
    given = {"path_imgrec": record, "path_imglist": str(labels), "data_shape": (3, 4, 4), "batch_size": 2}
    for width, wanted in ((1, [5, 8]), (2, [[5, 6], [8, 9]])):
        (batch,) = mx.io.ImageRecordIter(label_width=width, **given)
        assert batch.label[0].asnumpy().tolist() == wanted
    with pytest.raises(mx.base.MXNetError, match="found 3 labels, but label_width is set to 4"):
        mx.io.ImageRecordIter(label_width=4, **given)


def test_a_file_that_shrinks_while_it_is_read_is_an_error(mx, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "shrinking.rec"
    content = (folder / "png.rec").read_bytes()
    path.write_bytes(content * 400)
    iterator = mx.io.ImageRecordIter(
        path_imgrec=str(path), data_shape=(3, 8, 8), batch_size=1, prefetch_buffer=1, preprocess_threads=1
    )
    next(iterator)
    os.truncate(path, len(content) * 200)
    with pytest.raises(mx.base.MXNetError, match="became shorter"):
        for _ in iterator:
            pass


def test_digits_in_files_that_cannot_be_are_refused(mx, folder: Path, tmp_path: Path) -> None:
    images, digits = (folder / "images").read_bytes(), (folder / "digits").read_bytes()
    path, labels = tmp_path / "images", tmp_path / "digits"

    def refused(words: str, image: bytes = images, label: bytes = digits) -> None:
        path.write_bytes(image)
        labels.write_bytes(label)
        with pytest.raises(mx.base.MXNetError, match=words):
            mx.io.MNISTIter(image=str(path), label=str(labels), batch_size=2)

    refused("images: invalid mnist format: it is packed by gzip", image=b"\x1f\x8b" + images)
    refused("images: invalid mnist format: it begins with", image=digits)
    refused("images: the file is truncated: .* 176 bytes, but there are 175", image=images[:-1])
    refused("digits: it has 7 labels, but .* has 8 images", label=struct.pack(">II", 0x801, 7) + digits[8:])
    refused("images: the file is truncated", image=struct.pack(">IIII", 0x803, 2**32 - 1, 2**32 - 1, 2**32 - 1))
    with pytest.raises(mx.base.MXNetError, match="No such file"):
        mx.io.MNISTIter()


def test_digits_are_shuffled_by_their_seed_and_alike_in_all_epochs(mx, here: Path) -> None:
    def orders(seed: int) -> list[list[int]]:
        iterator = mx.io.MNISTIter(image="images", label="digits", batch_size=8, seed=seed)
        found = []
        for _ in range(2):
            found += [batch.label[0].asnumpy().astype(int).tolist() for batch in iterator]
            iterator.reset()
        return found

    one = orders(1)
    assert one[0] == one[1] and sorted(one[0]) == list(range(8))
    assert orders(1) == one and orders(2) != one


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 2:3 1:4", "the index 1 follows 2; indices have to ascend"),
        ("1 2:3 2:4", "the index 2 follows 2"),
        ("1 -1:4", "the index -1 is negative"),
        ("1 5:4", r"the index 5 is outside of data_shape \(5,\)"),
        ("1 a:4", 'found "a:4", expected index:value'),
        ("1 2:x", 'found "2:x", expected index:value with a number'),
        ("one 2:1", 'found "one", expected a number as the label'),
        ("1 99999999999999999999:1", 'found "99999999999999999999:1", expected index:value'),
    ],
)
def test_rows_that_are_not_libsvm_are_named(mx, tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "rows.svm"
    path.write_text(f"1 0:1\n\n2 1:1 # remark\r\n{line}\n4 0:4")
    iterator = mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(5,), batch_size=1)
    assert [next(iterator).label[0].asscalar() for _ in range(2)] == [1, 2]
    with pytest.raises(mx.base.MXNetError, match=r"rows\.svm line 4: " + words):
        next(iterator)
    skipping = mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(5,), batch_size=1, on_error="skip")
    assert [batch.label[0].asscalar() for batch in skipping] == [1, 2, 4]


def test_lines_of_libsvm_that_are_only_a_comment_are_left_out(mx, tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("# rows\n1 0:1\n  # between\n2 1:1 # remark\n#")
    iterator = mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(2,), batch_size=1)
    assert [batch.label[0].asscalar() for batch in iterator] == [1, 2]


def test_labels_of_a_file_of_their_own_are_sparse(mx, tmp_path: Path) -> None:
    data, label = tmp_path / "rows.svm", tmp_path / "labels.svm"
    data.write_text("0 0:1\n1 1:1\n")
    label.write_text("0 0:1.5 2:2\n0 1:1\n")
    paths = {"data_libsvm": str(data), "label_libsvm": str(label)}
    [batch] = mx.io.LibSVMIter(**paths, data_shape=(2,), label_shape=(3,), batch_size=2)
    assert batch.label[0].stype == "csr" and batch.label[0].asnumpy().tolist() == [[1.5, 0, 2], [0, 1, 0]]
    [batch] = mx.io.LibSVMIter(**paths, data_shape=(2,), label_shape=(3,), batch_size=2, dense=True)
    assert batch.label[0].stype == "default"
    [batch] = mx.io.LibSVMIter(str(data), (2,), batch_size=2)
    assert batch.label[0].stype == "default"


def test_debug_skip_load_repeats_the_first_batch(mx, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("1\n2\n3\n")
    iterator = mx.io.CSVIter(data_csv=str(path), data_shape=(1,), batch_size=1)
    iterator.debug_skip_load()
    assert [next(iterator).data[0].asscalar() for _ in range(5)] == [1] * 5
    iterator.reset()
    assert next(iterator).data[0].asscalar() == 1


def test_parts_of_lines_are_all_lines(mx, tmp_path: Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
        paths[0].write_bytes(end.join(str(i) for i in range(13)).encode() + end.encode())
        paths[1].write_bytes(end.join(str(i) for i in range(13, 40)).encode())
        uri = ";".join(str(path) for path in paths)
        for parts in (1, 2, 3, 7, 100):
            found = []
            for part in range(parts):
                rows = mx.io.CSVIter(uri, (1,), batch_size=1, num_parts=parts, part_index=part)
                found += [int(batch.data[0].asscalar()) for batch in rows]
            assert found == list(range(40)), (end, parts)


def test_a_row_of_a_million_columns(mx, tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["1.5"] * 10**6))
    assert next(mx.io.CSVIter(str(path), (1000, 1000), batch_size=1)).data[0].sum().asscalar() == 1.5e6
    with pytest.raises(mx.base.MXNetError, match="row-length=1000000"):
        next(mx.io.CSVIter(str(path), (999, 1000), batch_size=1))


def test_nothing_is_left_of_iterators_that_were_read_partly(folder: Path) -> None:
    script = """
import gc, os, resource, sys
import mxrt as mx

def round(i):
    it = mx.io.ImageRecordIter(path_imgrec=sys.argv[1], data_shape=(3, 64, 64), batch_size=2, preprocess_threads=2)
    for _ in range(i % 4):
        next(it)
    if i % 3 == 0:
        it.reset()

def state():
    gc.collect()
    mx.nd.waitall()
    pages = int(open("/proc/self/statm").read().split()[1])
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), pages * 4096 / 2**20

for i in range(100):
    round(i)
before = state()
for i in range(1000):
    round(i)
after = state()
assert after[:2] == before[:2], (before, after)
assert after[2] - before[2] < 32, (before, after)
"""
    result = run_python(script, folder / "png.rec", timeout=300)
    assert result.returncode == 0, result.stderr


def test_memory_is_that_of_the_batches_ahead(mx, folder: Path, tmp_path: Path) -> None:
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the largest size of a process cannot be begun anew")
    code = """
        import sys, time
        from pathlib import Path
        import mxrt as mx

        def megabytes(name):
            rows = Path("/proc/self/status").read_text().splitlines()
            return float(next(row for row in rows if row.startswith(name)).split()[1]) / 1024

        def images(batch, queue, workers):
            return mx.io.ImageRecordIter(
                path_imgrec=sys.argv[1], data_shape=(3, 256, 256), resize=256, batch_size=batch,
                prefetch_buffer=queue, preprocess_threads=workers, shuffle=True)

        next(images(1, 1, 1)).data[0].wait_to_read()  # loads the code
        before = megabytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        batches = images(10, 3, 2)
        for _ in range(10):
            for batch in batches:
                batch.data[0].wait_to_read()
                time.sleep(0.01)  # the queue fills
            batches.reset()
        print(megabytes("VmHWM") - before)
    """
    done = run_python(code, damaged(folder, tmp_path, mx, {}), env={"MXRT_CORES": "2"})
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 10 * 3 * 256 * 256 * 4 / (1 << 20) * (3 + 2) * 1.5


def test_programs_end_with_a_live_iterator_and_forks_begin_anew(folder: Path) -> None:
    script = """
import os, sys
import mxrt as mx

it = mx.io.ImageRecordIter(path_imgrec=sys.argv[1], data_shape=(3, 8, 8), batch_size=1, preprocess_threads=2)
first = next(it).label[0].asscalar()
child = os.fork()
if child == 0:
    try:
        next(it)
    except mx.base.MXNetError as error:
        assert "forked" in str(error)
    it.reset()
    assert [b.label[0].asscalar() for b in it] == [0, 1.5, 3, 4.5, 6]
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert first == 0 and next(it).label[0].asscalar() == 1.5
"""
    result = run_python(script, folder / "png.rec", timeout=300)
    assert result.returncode == 0, result.stderr


def test_a_wait_for_a_batch_can_be_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("1\n" * 1_000_000)
    script = """
import os, signal, sys, threading
import mxrt as mx

it = mx.io.CSVIter(sys.argv[1], (1,), batch_size=1_000_000, prefetch_buffer=1)
try:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        next(it)
        it.reset()
except KeyboardInterrupt:
    print("interrupted")
it.reset()
assert next(it).data[0].sum().asscalar() == 1_000_000
"""
    result = run_python(script, path)
    assert (result.returncode, result.stdout) == (0, "interrupted\n"), result.stderr


def test_children_start_threads_while_those_of_the_parent_wait(folder: Path) -> None:
    """The threads of a child get the stacks of the parent's, which do not exist there."""
    script = """
import os, sys, time
import mxrt as mx

def batches(threads):
    options = {"data_shape": (3, 8, 8), "batch_size": 1, "preprocess_threads": threads}
    return mx.io.ImageRecordIter(path_imgrec=sys.argv[1], **options)

def labels(it):
    return [batch.label[0].asscalar() for batch in it]

wanted = [0, 1.5, 3, 4.5, 6]
its = [batches(4) for _ in range(3)]
assert all(labels(it) == wanted for it in its)
time.sleep(0.1)  # all of them wait for a reset
for _ in range(5):
    child = os.fork()
    if child == 0:
        its[0].reset()
        others = [batches(16) for _ in range(3)]
        os._exit(7 if all(labels(it) == wanted for it in [its[0], *others]) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    result = run_python(script, folder / "png.rec", timeout=120)
    assert result.returncode == 0, result.stderr
