"""Files of numpy, of images and of indexes that are damaged: each is one sentence that names the
file.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from commands import command, digits_in, picture, refused
from support import digits

RAW = ("--size", "8,8", "--scale", "0.00392156862745098", "--mean", "0", "--std", "1")
SHAPE = ("--shape", "1,1,8,8")
OUTPUT = "digitsnet_dense0_fwd_output"


def npy(header: str, body: bytes = b"") -> bytes:
    """An .npy file with this header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def header(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


DAMAGED_NPY = {
    "not closed": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2"),
    "a truth value as an extent": npy(header("(True, 1, 8, 8)"), bytes(256)),
    "a negative extent": npy(header("(-1, 1, 8, 8)")),
    "no element type": npy(header("(3, 1, 8, 8)", "',,'")),
    "a list as element type": npy(header("(3, 1, 8, 8)", "['a']")),
    "a record without a field": npy(header("(3, 1, 8, 8)", "{'names': ['a'], 'formats': [1]}")),
    "deep": npy("(" * 3000 + ")" * 3000),
    "truncated": npy(header("(3, 1, 8, 8)"), bytes(25)),
    "huge": npy(header("(1000000000000, 1, 8, 8)")),
    "larger than any file": npy(header("(4000000000000000, 1, 8, 8)")),
    "short": b"\x93NUMPY\x01",
    "of an unknown version": b"\x93NUMPY\x09\x00" + bytes(40),
    "texts": npy(header("(3, 1, 8, 8)", "'<U0'")),
}


def patched(content: bytes, local: int, central: int, value: bytes) -> bytes:
    """A zip file with other bytes in the headers of its entries."""
    changed = bytearray(content)
    for mark, at in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        begin = changed.find(mark)
        while begin >= 0:
            changed[begin + at : begin + at + len(value)] = value
            begin = changed.find(mark, begin + 4)
    return bytes(changed)


def npz(compressed: bool = False, **arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def damaged_npz() -> dict[str, bytes]:
    values, labels = digits(3)
    plain = npz(data=values, label=labels, **{OUTPUT: np.zeros((3, 10), "f4")})
    noise = np.random.RandomState(0).rand(64, 1, 8, 8).astype("f4")
    packed = bytearray(npz(compressed=True, data=noise, label=np.zeros(64), **{OUTPUT: np.zeros((64, 10), "f4")}))
    packed[300:1500] = bytes(one ^ 0x55 for one in packed[300:1500])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("data", "label", OUTPUT):
            archive.writestr(f"{name}.npy", DAMAGED_NPY["not closed"])
    twice = npz(data=values, datb=values + 1, label=labels, **{OUTPUT: np.zeros((3, 10), "f4")})
    return {
        "packed": bytes(packed),
        "encrypted": patched(plain, 6, 8, b"\x01"),
        "packed in an unknown way": patched(plain, 8, 10, struct.pack("<H", 97)),
        "without its list": plain.replace(b"PK\x01\x02", b"XXXX", 1),
        "truncated": plain[: len(plain) // 2],
        "damaged arrays": file.getvalue(),
        "two of a name": twice.replace(b"datb.npy", b"data.npy"),
    }


def one_sentence(done, *words: str) -> None:
    """Checks that a command failed, named the file, and said not much more."""
    said = done.out + done.err
    assert done.status == 1 and "Traceback" not in said, done
    assert len(said) < 1200, said
    for word in words:
        assert word in said, said


@pytest.mark.parametrize("kind", DAMAGED_NPY)
def test_a_damaged_npy_is_named_by_each_command(mx, capfd, tmp_path: Path, kind: str) -> None:
    prefix, file = digits_in(tmp_path), tmp_path / "x.npy"
    file.write_bytes(DAMAGED_NPY[kind])
    refused(command(capfd, "run", prefix, file, *SHAPE), 1, "x.npy")
    one_sentence(command(capfd, "quantize", prefix, "--data", file, "-o", tmp_path / "q", *SHAPE), "x.npy")
    np.save(tmp_path / "good.npy", digits(3)[0])
    words = ("quantize", prefix, "--data", tmp_path / "good.npy", "--labels", file, "-o", tmp_path / "q", *SHAPE)
    one_sentence(command(capfd, *words), "x.npy")


@pytest.mark.parametrize("kind", ["truncated", "huge", "larger than any file"])
def test_an_array_that_a_file_is_too_short_for_is_truncated(mx, capfd, tmp_path: Path, kind: str) -> None:
    (tmp_path / "x.npy").write_bytes(DAMAGED_NPY[kind])
    done = command(capfd, "run", digits_in(tmp_path), tmp_path / "x.npy", *SHAPE)
    refused(done, 1, "x.npy' is a truncated .npy file", "bytes, and")


@pytest.mark.parametrize("kind", damaged_npz())
def test_a_damaged_npz_is_named_by_each_command(mx, capfd, tmp_path: Path, kind: str) -> None:
    prefix, file = digits_in(tmp_path), tmp_path / "x.npz"
    file.write_bytes(damaged_npz()[kind])
    np.savez(tmp_path / "good.npz", data=digits(3)[0])
    labels = ("quantize", prefix, "--data", tmp_path / "good.npz", "--labels", file, "-o", tmp_path / "q")
    for words in (
        ("run", prefix, file),
        ("check", prefix, "--data", file),
        ("check", prefix, "--golden", file),
        ("convert", prefix, tmp_path / "copy", "--data", file),
        ("quantize", prefix, "--data", file, "-o", tmp_path / "q"),
        *([labels] if kind != "packed" else []),  # its labels are whole
    ):
        one_sentence(command(capfd, *words, *SHAPE), "x.npz")
    assert not list(tmp_path.glob("copy*")) + list(tmp_path.glob("q*"))


def test_an_npz_of_labels_without_the_array_is_not_read_as_text(mx, capfd, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", data=digits(3)[0])
    words = ("quantize", digits_in(tmp_path), "--data", tmp_path / "x.npz", "--labels", tmp_path / "x.npz")
    refused(command(capfd, *words, *SHAPE, "-o", tmp_path / "q"), 1, "x.npz' has no array 'label'; it has data")


@pytest.mark.parametrize("shape", [(), (0, 1, 8, 8)])
def test_an_array_without_axes_or_rows_is_no_input(mx, capfd, tmp_path: Path, shape) -> None:
    prefix, file = digits_in(tmp_path), tmp_path / "x.npz"
    outputs = {OUTPUT: np.zeros((*shape[:1], 10), "f4"), "label": np.zeros(0)}
    np.savez(file, data=np.zeros(shape, "f4"), **outputs)
    words = "has no rows" if shape else "array without axes for the input 'data'; expected (rows, 1, 8, 8)"
    for arguments in (
        ("check", prefix, "--data", file),
        ("check", prefix, "--golden", file),
        ("convert", prefix, tmp_path / "copy", "--data", file),
    ):
        one_sentence(command(capfd, *arguments, *SHAPE), words)
    assert command(capfd, "run", prefix, file, *SHAPE).status == 1


@pytest.mark.parametrize("epoch", ["-1", str(1 << 70)])
def test_an_epoch_that_no_file_can_have_is_refused_by_each_command(mx, capfd, tmp_path: Path, epoch: str) -> None:
    prefix = digits_in(tmp_path)
    for words in (
        ("run", prefix, "random"),
        ("check", prefix),
        ("inspect", prefix),
        ("convert", prefix, tmp_path / "copy"),
        ("bench", prefix),
    ):
        refused(command(capfd, *words, "--epoch", epoch, *SHAPE), 2, f"--epoch is {epoch}; expected the number")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"size": null}', "size is null; expected two whole numbers"),
        ('{"size": 224.5}', "size is 224.5; expected two whole numbers"),
        ('{"size": true}', "size is true; expected two whole numbers"),
        (f'{{"scale": 1{"0" * 400}}}', "scale is a number of more than 19 digits; expected a number"),
        (f'{{"mean": 1{"0" * 43}}}', "mean is a number of more than 19 digits; expected one number"),
        ('{"scale": true}', "scale is true; expected a number"),
        ('{"scale": 1e300}', "scale is 1e+300; expected a number"),
        ('{"std": true}', "std is true; expected one number"),
        ('{"std": [1, null, 1]}', "std is 1, null, 1; expected one number"),
        ('{"mean": "1"}', "mean is 1; expected one number"),
        ('{"layout": [1]}', "layout is 1; expected NCHW or NHWC"),
        ('{"sise": 3}', "'sise'"),
    ],
)
def test_a_way_for_images_that_is_none_is_wrong_data(mx, capfd, tmp_path: Path, content: str, words: str) -> None:
    prefix = digits_in(tmp_path)
    image = picture(tmp_path / "x.png", np.zeros((8, 8), "uint8"))
    file = tmp_path / "way.json"
    file.write_text(content)
    refused(command(capfd, "run", prefix, image, "--preprocess", file, *SHAPE), 1, "way.json'", words)
    file.rename(tmp_path / "preprocess.json")
    refused(command(capfd, "run", prefix, image, *SHAPE), 1, "preprocess.json'", words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--size", "8,8,8"), "--size is '8,8,8'; expected at most 2 whole numbers"),
        (("--resize", "1,2"), "--resize is '1,2'; expected one whole number"),
        (("--scale", "1,2"), "--scale is '1,2'; expected one number"),
        (("--mean", "1,2,3,4"), "--mean is '1,2,3,4'; expected at most 3 numbers"),
        (("--scale", "inf"), "scale is inf; expected a number"),
        (("--max-pixels", "-5"), "--max-pixels is -5; expected a positive number"),
    ],
)
def test_numbers_of_images_that_are_too_many_or_none_are_refused(mx, capfd, tmp_path: Path, options, words) -> None:
    image = picture(tmp_path / "x.png", np.zeros((8, 8), "uint8"))
    refused(command(capfd, "run", digits_in(tmp_path), image, *options, *SHAPE), 2, words)


def test_bytes_that_mean_nothing_hide_no_size(mx, capfd, tmp_path: Path) -> None:
    path = picture(tmp_path / "x.jpg", np.zeros((300, 300), "uint8"))
    content = path.read_bytes()
    table = content.index(b"\xff\xdb")
    path.write_bytes(content[:table] + b"\0" + content[table:])
    done = command(capfd, "run", digits_in(tmp_path), path, *RAW, *SHAPE, "--max-pixels", "10000")
    refused(done, 1, "x.jpg' has 300 x 300 pixels, more than 10000")


def test_an_input_without_a_name_is_said_to_be_empty(mx, capfd, tmp_path: Path) -> None:
    prefix = digits_in(tmp_path)
    refused(command(capfd, "run", prefix, "", *SHAPE), 2, "an INPUT is empty; expected the name of a file")
    refused(command(capfd, "quantize", prefix, "--data", "", "-o", tmp_path / "q", *SHAPE), 2, "an INPUT is empty")


def test_numbers_that_are_random_are_no_samples(mx, capfd, tmp_path: Path) -> None:
    words = ("quantize", digits_in(tmp_path), "--data", "random", "--budget", "none", "-o", tmp_path / "q", *SHAPE)
    done = command(capfd, *words)
    assert done.status == 0 and "random numbers do not have the ranges of samples" in done.err, done


def test_a_damaged_image_is_to_be_copied_again(mx, capfd, tmp_path: Path) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (20, 20)).astype("uint8")
    path = picture(tmp_path / "x.png", pixels)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    done = command(capfd, "run", digits_in(tmp_path), path, *RAW, *SHAPE)
    refused(done, 1, "x.png' is a damaged image", "copy or download it again")
    assert "expected a JPEG" not in done.err


@pytest.mark.parametrize("position", ["-5", str(1 << 64)])
def test_a_position_that_no_file_has_names_the_index(mx, tmp_path: Path, position: str) -> None:
    records = mx.recordio.MXRecordIO(str(tmp_path / "x.rec"), "w")
    records.write(b"hello")
    records.close()
    (tmp_path / "x.idx").write_text(f"0\t{position}\n")
    words = r"x\.idx, line 1: found .*expected a key, a tab and a position"
    with pytest.raises(mx.base.MXNetDataError, match=words):
        mx.recordio.MXIndexedRecordIO(str(tmp_path / "x.idx"), str(tmp_path / "x.rec"), "r")
    with pytest.raises(mx.base.MXNetDataError, match=words):
        mx.gluon.data.RecordFileDataset(str(tmp_path / "x.rec"))


def test_more_callers_than_a_machine_has_threads_for_are_refused(mx, capfd, tmp_path: Path, monkeypatch) -> None:
    prefix = digits_in(tmp_path)
    done = command(capfd, "bench", prefix, *SHAPE, "--callers", "1,100000")
    refused(done, 2, "--callers is '1,100000'; expected whole numbers from 1 to 4096")
    import threading

    start = threading.Thread.start

    def few(thread: threading.Thread) -> None:
        if threading.active_count() > 20:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", few)
    done = command(capfd, "bench", prefix, *SHAPE, "--callers", "64", "--seconds", "0.1")
    refused(done, 1, "this machine allowed", "or take fewer callers")


def test_a_record_that_is_none_names_its_file_and_number(mx, capfd, tmp_path: Path) -> None:
    prefix = digits_in(tmp_path)
    image = picture(tmp_path / "x.png", np.zeros((8, 8), "uint8")).read_bytes()
    good = mx.recordio.pack(mx.recordio.IRHeader(0, 0.0, 0, 0), image)
    for bad in (b"abcd", struct.pack("<IfQQ", 1_000_000, 0, 0, 0) + b"abcd"):
        records = mx.recordio.MXRecordIO(str(tmp_path / "x.rec"), "w")
        records.write(good)
        records.write(bad)
        records.close()
        done = command(capfd, "run", prefix, tmp_path / "x.rec", *RAW, *SHAPE, "--json")
        refused(done, 1, "x.rec[1]'")
        assert [one["input"] for one in json.loads(done.out)["results"]][:1] == [f"{tmp_path / 'x.rec'}[0]"]


def test_a_pointer_of_git_lfs_is_called_that_whatever_it_stands_for(mx, capfd, tmp_path: Path) -> None:
    model = digits_in(tmp_path)
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    for name in ("one.npz", "one.jpg"):
        (tmp_path / name).write_bytes(pointer)
    arrays, image = tmp_path / "one.npz", tmp_path / "one.jpg"
    for words in (
        ("run", model, arrays),
        ("run", model, image),
        ("bench", model, image),
        ("convert", model, "copy", "--data", arrays),
    ):
        refused(command(capfd, *words, *SHAPE), 1, "one.", "pointer of Git LFS", "git lfs pull")
    for option in ("--data", "--golden"):
        done = command(capfd, "check", model, *SHAPE, option, arrays)
        assert done.status == 1 and "one.npz' is no .npz file. It is a pointer of Git LFS" in done.out, done


def test_an_empty_symbol_file_is_called_that(mx, capfd, tmp_path: Path) -> None:
    model = digits_in(tmp_path)
    (tmp_path / "digits_cnn-symbol.json").write_bytes(b"")
    refused(command(capfd, "inspect", model), 1, "digits_cnn-symbol.json' is empty", "copy or download it again")
    done = command(capfd, "check", model, *SHAPE)
    assert done.status == 1 and "digits_cnn-symbol.json' is empty" in done.out, done


def test_what_bench_says_of_an_image_that_is_none_is_one_sentence(mx, capfd, tmp_path: Path) -> None:
    good = picture(tmp_path / "good.png", np.zeros((8, 8), "uint8"))
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:50])
    done = command(capfd, "bench", digits_in(tmp_path), tmp_path / "cut.png", *SHAPE)
    refused(done, 1, "cut.png' is a damaged image", "copy or download it again")
