"""`mxrt run` and `mxrt check`: answers, and whether they are right."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from commands import command, digits_in, picture, refused, tiny
from support import DIGITS, MODELS, digits, mxrt, run

RAW = ("--size", "8,8", "--scale", "0.00392156862745098", "--mean", "0", "--std", "1")
SHAPE = ("--shape", "1,1,8,8")


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    """The first digits as PNG files."""
    folder = tmp_path / "images"
    folder.mkdir()
    values, _ = digits(6)
    pixels = (values[:, 0] * 255).round().astype("uint8")
    return [picture(folder / f"{number}.png", one) for number, one in enumerate(pixels)]


def best(report: dict) -> list[int]:
    return [row[0]["class"] for one in report["results"] for output in one["outputs"].values() for row in output["top"]]


@pytest.mark.parametrize("form", ["files", "folder", "pattern"])
def test_images_are_labelled_in_order(mx, capfd, tmp_path: Path, images: list[Path], form: str) -> None:
    words = {"files": images, "folder": [images[0].parent], "pattern": [images[0].parent / "*.png"]}[form]
    done = command(capfd, "run", digits_in(tmp_path), *words, *RAW, *SHAPE, "--json")
    assert done.status == 0, done
    assert best(done.json) == digits(6)[1].tolist()
    assert [one["input"] for one in done.json["results"]] == [str(path) for path in images]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_shows_how_many_of_the_images_are_answered(mx, capfd, tmp_path: Path, images, monkeypatch) -> None:
    (images[0].parent / "text.png").write_text("no image")
    monkeypatch.setattr("mxrt._output.progress._PAUSE", 0.0)
    np.savez(tmp_path / "x.npz", data=digits(6)[0])
    drawn = {}
    for word in (images[0].parent, tmp_path / "x.npz"):
        monkeypatch.setattr(sys, "stderr", terminal := Terminal())
        done = command(capfd, "run", digits_in(tmp_path), word, *RAW, *SHAPE)
        assert "class" in done.out
        drawn[word.name] = terminal.getvalue()
    assert "inputs 7/7 " in drawn["images"] and "[" + "#" * 40 + "]" in drawn["images"]
    *_, before, after = drawn["images"].partition("mxrt run: ")[0].split("\r")
    assert before.strip() == after == "", "an error begins a line"
    assert "inputs 1 " in drawn["x.npz"] and "[" not in drawn["x.npz"], "how many calls is not known"


def test_probabilities_are_those_of_the_model_and_labels_have_names(mx, capfd, tmp_path: Path, images) -> None:
    (tmp_path / "synset.txt").write_text("".join(f"digit {number}\n" for number in range(10)))
    done = command(capfd, "run", digits_in(tmp_path), images[1], *RAW, *SHAPE, "--top", "2", "--json")
    (row,) = done.json["results"][0]["outputs"]["digitsnet_dense0_fwd_output"]["top"]
    from support import block_of

    pixels = np.round(digits(2)[0][1:] * 255) / 255
    scores = block_of(mx)(pixels.astype("f4")).asnumpy()[0].astype("f8")
    wanted = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    assert [one["label"] for one in row] == [f"digit {k}" for k in np.argsort(-wanted)[:2]]
    assert row[0]["probability"] == pytest.approx(wanted.max(), rel=1e-4)
    assert "digit " in command(capfd, "run", digits_in(tmp_path), images[1], *RAW, *SHAPE).out


def test_an_image_becomes_the_input_that_the_server_makes_of_it(mx, tmp_path: Path) -> None:
    from mxrt.cli._images import Preprocess, input_of_image

    pixels = np.random.RandomState(2).randint(0, 256, (4, 6, 3)).astype("uint8")
    content = picture(tmp_path / "x.png", pixels).read_bytes()
    way = Preprocess(size=(2, 2), resize=4, scale=0.5, mean=(1.0, 2.0, 3.0), std=(2.0, 4.0, 8.0))
    middle = pixels[1:3, 2:4].astype("f4") * 0.5
    wanted = ((middle - np.array([1, 2, 3])) / np.array([2, 4, 8])).transpose(2, 0, 1)[None]
    np.testing.assert_allclose(input_of_image(content, "x", way, 100), wanted, rtol=1e-6)


def test_a_preprocess_file_next_to_the_model_says_what_is_done(mx, capfd, tmp_path: Path, images) -> None:
    prefix = digits_in(tmp_path)
    (tmp_path / "preprocess.json").write_text(json.dumps({"size": [8, 8], "grey": True, "scale": 1 / 255}))
    done = command(capfd, "run", prefix, *images, "--json", *SHAPE)
    assert (best(done.json), done.err) == (digits(6)[1].tolist(), "")
    for text, words in (('{"sise": 3}', "'sise'"), ("{", "no JSON"), ('{"std": 0}', "std"), ('{"size": -1}', "size")):
        (tmp_path / "preprocess.json").write_text(text)
        done = command(capfd, "run", prefix, images[0], *SHAPE)
        assert done.status in (1, 2) and words in done.err and "preprocess.json" in done.err, done


def test_nobody_says_what_is_done_with_images_is_said_once(mx, capfd, tmp_path: Path, images) -> None:
    done = command(capfd, "run", digits_in(tmp_path), *images, *SHAPE)
    assert done.err.count("--preprocess") == 2 and done.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "rec", "one row", "- npy", "- csv", "- rec"])
def test_arrays_tables_and_records_are_answered_row_by_row(mx, capfd, tmp_path: Path, kind: str, monkeypatch) -> None:
    values, labels = digits(5)
    path = tmp_path / f"x.{kind.split()[-1]}"
    if kind.endswith("npy"):
        np.save(path, values)
    elif kind == "npz":
        np.savez(path, data=values)
    elif kind.endswith("csv"):
        path.write_text("titles\n" + "\n".join(",".join(map(str, row.ravel())) for row in values) + "\n")
    elif kind == "one row":
        path = tmp_path / "x.npy"
        np.save(path, values[0])
        labels = labels[:1]
    else:
        records = mx.recordio.MXRecordIO(str(path), "w")
        for number, one in enumerate(values):
            file = io.BytesIO(picture(tmp_path / "p.png", (one[0] * 255).round().astype("uint8")).read_bytes())
            records.write(mx.recordio.pack(mx.recordio.IRHeader(0, 0.0, number, 0), file.getvalue()))
        records.close()
    word: object = path
    if kind.startswith("-"):
        word = "-"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    done = command(capfd, "run", digits_in(tmp_path), word, *RAW, *SHAPE, "--json")
    assert done.status == 0, done
    assert best(done.json) == labels.tolist()
    if kind.endswith("rec"):
        name = "the standard input" if kind == "- rec" else str(path)
        assert [one["input"] for one in done.json["results"]] == [f"{name}[{number}]" for number in range(5)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello\nworld\n", "is no input: it begins with b'hello\\nwo'; expected a JPEG, PNG, .npy"),
        (b"\x00\x01\x02", "is no input: it begins with b'\\x00\\x01\\x02'"),
        (b"1,2\nred,green\n", "'the standard input', line 2: cell 1 is 'red'; expected numbers with commas"),
        (b"", "the standard input is empty; expected a JPEG, PNG, .npy, .npz, .csv or .rec file: redirect one"),
        ((0xCED7230A).to_bytes(4, "little") + b"\xff" * 7, "the standard input"),
    ],
)
def test_a_standard_input_that_is_no_input_is_said(mx, capfd, tmp_path: Path, content, words: str, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    done = command(capfd, "run", digits_in(tmp_path), "-")  # of a shape that nobody says
    refused(done, 1, words)
    assert tempfile.gettempdir() not in done.err.replace(str(tmp_path), ""), done.err


def test_rows_of_numbers_for_an_input_of_unknown_shape_need_it(mx, capfd, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1,2,3\n")))
    refused(command(capfd, "run", digits_in(tmp_path), "-"), 2, "whose shape is not known: --shape says it")


@pytest.mark.parametrize(("redirected", "words"), [("<&-", "is empty"), ("0>/dev/null", "cannot be read")])
def test_a_standard_input_that_is_closed_is_said(mx, tmp_path: Path, redirected: str, words: str) -> None:
    done = run(["bash", "-c", f"mxrt run {digits_in(tmp_path)} - --shape 1,1,8,8 {redirected}"])
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done
    assert f"mxrt run: the standard input {words}" in done.stderr and "expected a JPEG" in done.stderr, done


def test_all_outputs_are_saved_by_name(mx, capfd, tmp_path: Path) -> None:
    values, _ = digits(200)
    np.save(tmp_path / "x.npy", values)
    out = tmp_path / "out.npz"
    done = command(capfd, "run", digits_in(tmp_path), tmp_path / "x.npy", "-o", out, *SHAPE)
    assert (done.status, done.out) == (0, "")
    from support import block_of

    with np.load(out) as saved:
        np.testing.assert_allclose(
            saved["digitsnet_dense0_fwd_output"], block_of(mx)(values).asnumpy(), rtol=1e-4, atol=1e-4
        )
        assert len(saved["inputs"]) == 200
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".part")] == []


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("text.png", b"hello", "is text, which begins with b'hello'; expected a JPEG or PNG file"),
        ("noise.png", b"\x00\x01\xfe", "is no image: it begins with"),
        ("empty.jpg", b"", "is empty"),
        ("empty.rec", b"", "is empty"),
        ("cut.png", b"\x89PNG\r\n\x1a\n" + bytes(20), "cut.png"),
        ("lfs.jpg", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        ("few.csv", b"1,2,3\n", "has 3 columns; expected 64"),
        ("words.csv", b"1,2\nred,green\n", "columns"),
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b"\n\n", "no rows"),
        ("x.npy", b"\x93NUMPY\x01\x00garbage", "damaged .npy"),
        ("x.npz", b"PK\x03\x04garbage", "damaged .npz"),
        ("x.rec", (0xCED7230A).to_bytes(4, "little") + b"\xff" * 7, "x.rec"),
        ("x.bin", b"\x00\x01\x02", "is no input"),
        ("x.gif", b"GIF89a" + bytes(20), "is a GIF image; expected a JPEG or PNG file"),
        ("x.jpg", b"RIFF\0\0\0\0WEBPVP8 ", "is a WebP image; expected a JPEG or PNG file"),
        ("x.bmp", b"BM\x46\x0e" + bytes(30), "is a BMP image"),
        ("x.tiff", b"II*\0" + bytes(20), "is a TIFF image"),
        ("x.heic", b"\0\0\0\x18ftypheic" + bytes(20), "is a AVIF or HEIC image"),
        ("one.csv", b"1;2;3\n", "line 1, '1;2;3', is taken for titles"),
        # A row with a word is no line of titles, which would be left out in silence.
        ("word.csv", b"1," * 63 + b"n/a\n" + b"1," * 64 + b"\n", "line 1: cell 64 is 'n/a'; expected numbers"),
        ("later.csv", b"1," * 64 + b"\n" + b"1,n/a," + b"1," * 62 + b"\n", "line 2: cell 2 is 'n/a'"),
        ("gap.csv", b"1," * 63 + b"\n", "has 63 columns before an empty cell at its end; expected 64"),
        ("none.npz", b"PK\x05\x06" + bytes(18), "has no array 'data'; it has nothing"),
    ],
)
def test_an_input_that_is_none_is_named_with_what_is_expected(
    mx, capfd, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    done = command(capfd, "run", digits_in(tmp_path), tmp_path / name, *RAW, *SHAPE)
    refused(done, 1, name, words)


def test_a_list_that_begins_with_a_negative_number_is_the_value_of_its_option(mx, capfd, tmp_path: Path) -> None:
    done = command(capfd, "run", digits_in(tmp_path), "random", "--shape", "-1,1,8,8")
    refused(done, 2, "'-1,1,8,8' is no shape; write positive whole numbers")
    refused(command(capfd, "run", digits_in(tmp_path), "random", "-1,1"), 2, "unrecognized arguments: -1,1")


def test_arrays_of_other_names_or_shapes_are_named(mx, capfd, tmp_path: Path) -> None:
    prefix = digits_in(tmp_path)
    np.savez(tmp_path / "x.npz", image=np.zeros((1, 1, 8, 8), "f4"))
    refused(command(capfd, "run", prefix, tmp_path / "x.npz", *SHAPE), 1, "no array 'data'", "it has image")
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 8, 8), "f4"))
    refused(command(capfd, "run", prefix, tmp_path / "x.npy", *SHAPE), 1, "(1, 3, 8, 8)", "expected (rows, 1, 8, 8)")
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    refused(command(capfd, "run", prefix, tmp_path / "x.npy", *SHAPE), 1, "x.npy", "holds an array of object")


def test_a_table_for_a_model_of_unknown_shape_has_the_columns_of_its_first_row(mx, capfd, tmp_path: Path) -> None:
    model = MODELS / "module_mlp"
    (tmp_path / "x.csv").write_text(",".join(["1"] * 64) + "\n1,2\n")
    refused(command(capfd, "run", model, tmp_path / "x.csv"), 1, "line 2 has 2 columns; expected 64, as line 1 has")
    (tmp_path / "x.csv").write_text("\n")
    refused(command(capfd, "run", model, tmp_path / "x.csv"), 1, "no rows; expected lines of numbers with commas")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("place", ["file", "standard input"])
def test_a_table_that_a_spreadsheet_wrote_is_read(
    mx, capfd, tmp_path: Path, encoding: str, place: str, monkeypatch
) -> None:
    values, labels = digits(2)
    content = "\r\n".join(",".join(map(str, row.ravel())) for row in values).encode(encoding)
    (tmp_path / "x.csv").write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    word = "-" if place == "standard input" else tmp_path / "x.csv"
    done = command(capfd, "run", digits_in(tmp_path), word, *SHAPE, "--json")
    assert (done.status, best(done.json)) == (0, labels.tolist())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_labels_and_notes_that_an_editor_wrote_are_read(mx, capfd, tmp_path: Path, images, encoding: str) -> None:
    model = digits_in(tmp_path)
    (tmp_path / "synset.txt").write_text("".join(f"digit {number}\n" for number in range(10)), encoding)
    (tmp_path / "preprocess.json").write_text('{"size": [8, 8], "grey": true, "scale": 0.00392156862745098}', encoding)
    done = command(capfd, "run", model, *images, *SHAPE, "--json")
    assert done.status == 0, done
    assert [one["outputs"]["digitsnet_dense0_fwd_output"]["top"][0][0]["label"] for one in done.json["results"]] == [
        f"digit {number}" for number in digits(6)[1]
    ]
    (tmp_path / "classes.txt").write_text("\n".join(map(str, digits(6)[1])), encoding)
    words = ("--data", images[0].parent, "--labels", tmp_path / "classes.txt", "--out", tmp_path / "made")
    done = command(capfd, "quantize", model, *words, *SHAPE, "--json")
    assert (done.status, done.json["before"]) == (0, 1), done


def test_inputs_that_are_not_there_are_named(mx, capfd, tmp_path: Path) -> None:
    prefix = digits_in(tmp_path)
    refused(command(capfd, "run", prefix, "no.png", *SHAPE), 2, "there is no file 'no.png'")
    refused(command(capfd, "run", prefix, str(tmp_path / "*.jpg"), *SHAPE), 2, "no file matches")
    (tmp_path / "empty").mkdir()
    refused(command(capfd, "run", prefix, tmp_path / "empty", *SHAPE), 2, "has no images")
    refused(command(capfd, "run", prefix, "random", *SHAPE, "--labels", "none.txt"), 2, "none.txt")
    refused(command(capfd, "run", prefix, "random", *SHAPE, "-o", tmp_path / "no" / "o.npz"), 2, "there is no folder")


def test_one_bad_image_among_many_is_named_and_the_others_are_answered(mx, capfd, tmp_path: Path, images) -> None:
    images[2].write_bytes(b"not an image")
    done = command(capfd, "run", digits_in(tmp_path), *images, *RAW, *SHAPE)
    assert done.status == 1
    assert done.err.count("\n") == 1 and "2.png" in done.err
    assert sum(str(path) in done.out for path in images) == 5


@pytest.mark.parametrize("kind", ["x.gif", "few.csv", "cut.rec", "x.bin"])
def test_one_file_of_another_kind_among_many_is_named_and_the_others_are_answered(
    mx, capfd, tmp_path: Path, images, kind: str
) -> None:
    wrong = tmp_path / kind
    record = (0xCED7230A).to_bytes(4, "little") + (100).to_bytes(4, "little") + bytes(8)
    wrong.write_bytes({"x.gif": b"GIF89a", "few.csv": b"1,2\n", "cut.rec": record, "x.bin": b"\0\1"}[kind])
    done = command(capfd, "run", digits_in(tmp_path), images[0], wrong, images[1], *RAW, *SHAPE, "--json")
    assert done.status == 1 and "Traceback" not in done.err
    assert done.err.count("\n") == 1 and kind in done.err
    first, failed, last = done.json["results"]
    assert (first["input"], last["input"]) == (str(images[0]), str(images[1]))
    assert kind in failed["error"] and "outputs" in first and "outputs" in last


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--size", "0,8", "size is 0, 8; expected two whole numbers from 1 to 65536"),
        ("--resize", "100000", "resize is 100000; expected a whole number from 1 to 65536"),
        ("--mean", "1,2", "mean is 1.0, 2.0; expected one number, or one for each of three channels"),
        ("--std", "1,0,1", "std is 1.0, 0.0, 1.0; expected one number, or one for each of three channels, none"),
        ("--scale", "inf", "scale is inf; expected a number"),
    ],
)
def test_an_option_of_images_says_what_it_is_and_what_it_may_be(
    mx, capfd, tmp_path: Path, images, option: str, value: str, words: str
) -> None:
    refused(command(capfd, "run", digits_in(tmp_path), images[0], *SHAPE, option, value), 2, words)


def test_an_input_that_is_not_there_is_said_before_anything_is_computed(mx, capfd, tmp_path: Path, images) -> None:
    done = command(capfd, "run", digits_in(tmp_path), images[0], "no.png", *RAW, *SHAPE)
    refused(done, 2, "there is no file 'no.png'")
    assert done.out == ""


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "CMYK", "16 bits", "1 pixel"])
def test_images_of_every_kind_are_answered(mx, capfd, tmp_path: Path, mode: str) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (9, 7, 3)).astype("uint8")
    path = tmp_path / ("x.jpg" if mode == "CMYK" else "x.png")
    if mode == "16 bits":
        picture(path, (pixels[..., 0].astype("uint16") * 257))
    else:
        picture(path, pixels[:1, :1] if mode == "1 pixel" else pixels, None if mode == "1 pixel" else mode)
    done = command(capfd, "run", digits_in(tmp_path), path, *RAW, *SHAPE)
    assert done.status == 0 and len(done.out.splitlines()) == 6, done


def test_an_image_with_too_many_pixels_is_not_decoded(mx, capfd, tmp_path: Path) -> None:
    path = picture(tmp_path / "x.png", np.zeros((300, 300), "uint8"))
    content = bytearray(path.read_bytes())
    content[16:24] = (20_000).to_bytes(4, "big") * 2
    path.write_bytes(content)
    done = command(capfd, "run", digits_in(tmp_path), path, *RAW, *SHAPE)
    refused(done, 1, "20000 x 20000 pixels", "--max-pixels")
    picture(tmp_path / "thin.jpg", np.zeros((1, 20_000), "uint8"))
    refused(
        command(
            capfd, "run", digits_in(tmp_path), tmp_path / "thin.jpg", "--preprocess", "raw", "--resize", "256", *SHAPE
        ),
        1,
        "resized would have 256 x 5120000 pixels",
    )


def test_labels_that_are_fewer_than_classes_are_refused(mx, capfd, tmp_path: Path, images) -> None:
    labels = tmp_path / "names.txt"
    labels.write_text("zero\none\n")
    done = command(capfd, "run", digits_in(tmp_path), images[0], *RAW, *SHAPE, "--labels", labels)
    refused(done, 1, "has 2 labels, and the model 10 classes")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_is_said_in_a_sentence(mx, tmp_path: Path) -> None:
    prefix = digits_in(tmp_path)
    result = run(["bash", "-c", f"mxrt run {prefix} random --shape 1,1,8,8 > /dev/full; echo $?"])
    assert result.stdout == "1\n"
    assert "cannot be written" in result.stderr and "No space left" in result.stderr, result.stderr
    assert result.stderr.count("\n") == 1


# ---- check ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["digits_cnn", "wide_deep", "ssd_digits", "half_cnn", "transformer", "legacy_mlp"])
def test_the_outputs_that_mxnet_recorded_are_what_check_finds(mx, capfd, name: str) -> None:
    done = command(capfd, "check", MODELS / name, "--golden", MODELS / name / "golden.npz", "--json")
    assert done.status == 0, done
    golden = [one for one in done.json["steps"] if "largest_error" in one]
    assert len(golden) >= 3 and all(one["good"] for one in golden)


def test_an_output_that_differs_from_the_recorded_one_is_named(mx, capfd, tmp_path: Path) -> None:
    with np.load(DIGITS / "golden.npz") as saved:
        wrong = saved["b3.out.0"].copy()
        wrong[2, 7] += 0.25
        np.savez(tmp_path / "wrong.npz", **{"in.data": saved["b3.in.data"], "out.0": wrong})
    done = command(capfd, "check", digits_in(tmp_path), "--golden", tmp_path / "wrong.npz")
    assert done.status == 1
    assert "FAILED" in done.out and "largest error 0.25 at (2, 7)" in done.out


def test_what_run_saved_for_random_numbers_is_checked_again(mx, capfd, tmp_path: Path) -> None:
    prefix = digits_in(tmp_path)
    assert command(capfd, "run", prefix, "random", *SHAPE, "-o", tmp_path / "o.npz").status == 0
    done = command(capfd, "check", prefix, *SHAPE, "--golden", tmp_path / "o.npz")
    assert done.status == 0 and "largest error 0" in done.out


def test_what_run_saved_for_a_file_is_checked_with_that_file(mx, capfd, tmp_path: Path) -> None:
    model, data, out = digits_in(tmp_path), tmp_path / "x.npz", tmp_path / "o.npz"
    np.savez(data, data=digits(3)[0])
    assert command(capfd, "run", model, data, "-o", out).status == 0
    done = command(capfd, "check", model, "--data", data, "--golden", out)
    assert done.status == 0 and "golden: digitsnet_dense0_fwd_output: largest error 0" in done.out, done
    done = command(capfd, "check", model, *SHAPE, "--golden", out)
    refused(done, 2, "o.npz' has outputs and no inputs; give the inputs by --data, an .npz with an array for each of")
    # What is written of random numbers says so.
    assert command(capfd, "run", model, "random", *SHAPE, "-o", out).status == 0
    done = command(capfd, "check", model, *SHAPE, "--data", data, "--golden", out)
    assert done.status == 0 and "largest error 0" in done.out, done


def test_the_names_that_run_saved_are_not_taken_for_an_input_of_that_name(mx, capfd, tmp_path: Path) -> None:
    mx.sym.exp(mx.sym.var("inputs"), name="e").save(str(tmp_path / "m-symbol.json"))
    mx.nd.save(str(tmp_path / "m-0000.params"), {})
    np.savez(tmp_path / "x.npz", inputs=np.ones((2, 3), "f4"))
    model, out = tmp_path / "m", tmp_path / "o.npz"
    assert command(capfd, "run", model, tmp_path / "x.npz", "--shape", "2,3", "-o", out).status == 0
    done = command(capfd, "check", model, "--shape", "2,3", "--data", tmp_path / "x.npz", "--golden", out)
    assert done.status == 0 and "e_output: largest error 0" in done.out, done


@pytest.mark.parametrize("option", ["--atol=nan", "--atol=-1", "--rtol=inf", "--rtol=-0.5"])
def test_an_error_that_is_allowed_is_a_number_that_is_not_negative(mx, capfd, tmp_path: Path, option: str) -> None:
    done = command(capfd, "check", digits_in(tmp_path), *SHAPE, option)
    refused(done, 2, f"{option.replace('=', ' is ')}; expected a finite number that is not negative")
    assert done.out == "", "nothing ran"


def test_no_error_may_be_allowed(mx, capfd, tmp_path: Path) -> None:
    model = digits_in(tmp_path)
    golden = ("--golden", DIGITS / "golden.npz", "--atol", "0", "--rtol", "0")
    done = command(capfd, "check", model, *golden)
    assert done.status == 1 and "more than is allowed" in done.out and done.err == "", done


def test_a_model_that_answers_with_nan_does_not_pass(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    values = mx.nd.load(f"{prefix}-0000.params")
    mx.nd.save(f"{prefix}-0000.params", {**values, "arg:db": values["arg:db"] * np.nan})
    done = command(capfd, "check", prefix, "--shape", "2,2,4,4")
    assert done.status == 1 and "dense_output has 8 NaN" in done.out


@pytest.fixture
def other_engine(tmp_path: Path) -> dict[str, str]:
    """An environment in which `import mxnet` finds mxrt with a wrong LeakyReLU."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mxnet.py").write_text(
        "import json\nimport mxrt as mx\nfrom mxrt import nd\n__version__ = '1.9.1'\n"
        "class gluon:\n"
        "    class SymbolBlock:\n"
        "        @staticmethod\n"
        "        def imports(symbol, names, params):\n"
        '            text = open(symbol).read().replace(\'"act_type": "relu"\', \'"act_type": "tanh"\')\n'
        "            open(symbol, 'w').write(text)\n"
        "            return mx.gluon.SymbolBlock.imports(symbol, names, params)\n"
    )
    path = os.pathsep.join([str(tmp_path / "other"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


def test_the_first_layer_that_differs_from_another_engine_is_named(mx, tmp_path: Path, other_engine) -> None:
    prefix = tiny(tmp_path)
    arguments = ("check", str(prefix), "--shape", "2,2,4,4", "--against", "mxnet", sys.executable)
    result = mxrt(*arguments, "--json", env=other_engine)
    assert result.returncode == 1, result.stderr
    step = json.loads(result.stdout)["steps"][-1]
    assert (step["layer"], step["engine"]) == ("relu", "mxnet")
    assert "the first that differs is Activation 'relu'" in step["words"] and "of 5 layers 4 differ" in step["words"]


def test_a_model_agrees_with_the_same_engine_in_every_layer(mx, tmp_path: Path) -> None:
    (tmp_path / "mxnet.py").write_text("from mxrt import *\nfrom mxrt import nd, gluon\n__version__ = '1.9.1'\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    arguments = ("check", str(tiny(tmp_path)), "--shape", "2,2,4,4", "--against", "mxnet", sys.executable)
    result = mxrt(*arguments, env={**os.environ, "PYTHONPATH": path})
    assert result.returncode == 0, result.stderr
    assert "all 5 agree" in result.stdout


def test_a_graph_whose_gradients_a_block_of_mxnet_misses_is_bound_instead(mx, tmp_path: Path) -> None:
    (tmp_path / "mxnet.py").write_text(
        "from mxrt import *\nfrom mxrt import base, gluon, nd, sym\n__version__ = '1.9.1'\n"
        "def refuse(*_): raise base.MXNetError('Operator x is non-differentiable')\n"
        "gluon.SymbolBlock.__call__ = refuse\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    arguments = ("check", str(tiny(tmp_path)), "--shape", "2,2,4,4", "--against", "mxnet", sys.executable)
    result = mxrt(*arguments, env={**os.environ, "PYTHONPATH": path})
    assert (result.returncode, "all 5 agree" in result.stdout) == (0, True), result


def test_another_engine_that_is_not_there_is_said(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    arguments = ("check", prefix, "--shape", "2,2,4,4", "--against")
    done = command(capfd, *arguments, "mxnet", "/no/python")
    refused(done, 2, "there is no such program")
    assert done.out == "", "nothing ran"
    refused(command(capfd, *arguments, "torch", sys.executable), 2, "expected one of mxnet, onnxruntime")
    if importlib.util.find_spec("onnxruntime") is None:
        words = "-m pip install onnxruntime [MX-USAGE]"
        refused(command(capfd, *arguments, "onnxruntime", sys.executable), 2, sys.executable, words)
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    refused(command(capfd, *arguments, "mxnet", bare), 2, "'numpy'", "-m pip install mxnet 'numpy<1.24'")
    refused(command(capfd, "check", prefix, "--golden", "no.npz"), 2, "there is no file 'no.npz' (--golden)")


@pytest.mark.parametrize("option", ["--data", "--golden"])
def test_a_file_of_arrays_that_does_not_fit_is_a_step_that_failed(mx, capfd, tmp_path: Path, option: str) -> None:
    (tmp_path / "few.csv").write_text("1,2,3\n")
    np.savez(tmp_path / "other.npz", picture=np.zeros((2, 2, 4, 4), "f4"))
    arguments = ("check", tiny(tmp_path), "--shape", "2,2,4,4", option)
    for file, words in (("few.csv", "few.csv' is no .npz file; expected one that"), ("other.npz", "other.npz' has ")):
        done = command(capfd, *arguments, tmp_path / file)
        last = done.out.splitlines()[-1]
        assert (done.status, done.err) == (1, "") and last.startswith("FAILED") and words in last, done
        done = command(capfd, *arguments, tmp_path / file, "--json")
        assert (done.status, done.json["good"], done.json["steps"][-1]["good"]) == (1, False, False), done
        assert words in done.json["steps"][-1]["words"]
