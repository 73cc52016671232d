"""The command `mxrt im2rec`, against files that MXNet's tool wrote."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest

from commands import command
from support import ROOT, mxrt

RECORDED = dict(np.load(ROOT / "tests" / "recorded" / "im2rec.npz"))


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """The folder of images that were recorded."""
    for name, content in RECORDED.items():
        if name.startswith("images/"):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.tobytes())
    return tmp_path / "images"


def written(folder: Path, name: str) -> bool:
    return (folder / name).read_bytes() == RECORDED["out/" + name].tobytes()


def test_lists_and_records_are_those_of_mxnet_byte_by_byte(images: Path, tmp_path: Path) -> None:
    run = [
        ("plain", ["--list", "--no-shuffle"]),
        ("deep", ["--list", "--recursive"]),
        ("part", ["--list", "--recursive", "--chunks", "2", "--train-ratio", "0.5", "--test-ratio", "0.25"]),
    ]
    for name, options in run:
        result = mxrt("im2rec", str(tmp_path / name), str(images), *options)
        assert result.returncode == 0, result.stderr
    lists = [name.removeprefix("out/") for name in RECORDED if name.endswith(".lst")]
    assert len(lists) > 6 and all(written(tmp_path, name) for name in lists if name != "several.lst")
    (tmp_path / "several.lst").write_bytes(RECORDED["out/several.lst"].tobytes())
    for name, options in [("deep", ["--num-thread", "3"]), ("several", ["--pack-label"])]:
        result = mxrt("im2rec", str(tmp_path / name), str(images), "--pass-through", *options)
        assert result.returncode == 0, result.stderr
        assert written(tmp_path, name + ".rec") and written(tmp_path, name + ".idx")


def test_images_are_cropped_resized_and_encoded(mx, images: Path, tmp_path: Path) -> None:
    (tmp_path / "deep.lst").write_bytes(RECORDED["out/deep.lst"].tobytes())
    arguments = ["--resize", "8", "--center-crop", "--encoding", ".png", "--quality", "3", "--num-thread", "2"]
    result = mxrt("im2rec", str(tmp_path / "deep"), str(images), *arguments)
    assert result.returncode == 0, result.stderr
    (tmp_path / "theirs.rec").write_bytes(RECORDED["out/small.rec"].tobytes())
    ours, theirs = (mx.recordio.MXRecordIO(str(tmp_path / name), "r") for name in ("deep.rec", "theirs.rec"))
    count = 0
    while (record := ours.read()) is not None:
        (header, image), (want, wanted) = mx.recordio.unpack_img(record), mx.recordio.unpack_img(theirs.read())
        assert (header.id, header.label) == (want.id, want.label) and image.shape == wanted.shape == (8, 8, 3)
        # Some of the images are JPEG, whose pixels differ a little.
        assert np.abs(image.astype(int) - wanted).max() <= 4
        count += 1
    assert count == len((tmp_path / "deep.lst").read_text().splitlines()) and theirs.read() is None


def test_what_cannot_be_packed_is_named_and_left_out(mx, images: Path, tmp_path: Path) -> None:
    (images / "broken.png").write_bytes(b"no image")
    (tmp_path / "l.lst").write_text("0\t1\tbroken.png\n1\t2\ta.png\nx\ty\n2\t3\tmissing.jpg\n")
    result = mxrt("im2rec", str(tmp_path / "l"), str(images))
    assert result.returncode == 1
    assert "l.rec: 1 images, 3 left out" in result.stdout
    for words in ("broken.png: ", "l.lst line 3: found 'x\\ty', expected a number", "missing.jpg: "):
        assert words in result.stderr
    assert mx.recordio.MXIndexedRecordIO(str(tmp_path / "l.idx"), str(tmp_path / "l.rec"), "r").keys == [1]
    (tmp_path / "d.lst").write_text("0\t1\ta.png\n")
    (tmp_path / "d.rec").mkdir()
    for arguments, words in [
        ([str(tmp_path / "d"), str(images)], "d.rec' is a folder; expected the name of a file"),
        ([str(tmp_path / "nolist"), str(images)], "there is no list whose name begins with"),
        ([str(tmp_path / "x"), str(tmp_path / "nowhere"), "--list"], "nowhere' is no folder"),
        ([str(tmp_path / "x"), str(images), "--list", "--chunks", "0"], "--chunks is 0"),
        ([str(tmp_path / "x"), str(images), "--list", "--train-ratio", "7"], "--train-ratio is 7"),
        ([str(tmp_path / "x"), str(images), "--list", "--test-ratio", "nan"], "--test-ratio is nan"),
        (
            [str(tmp_path / "x"), str(images), "--list", "--train-ratio", "0.7", "--test-ratio", "0.6"],
            "are more than 1 together",
        ),
        ([str(tmp_path / "l"), str(tmp_path / "nowhere")], "nowhere' is no folder"),
        ([str(tmp_path / "l"), str(images), "--resize", "-3"], "--resize is -3"),
        ([str(tmp_path / "l"), str(images), "--quality", "999"], "--quality is 999; expected 1 to 100"),
        ([str(tmp_path / "l"), str(images), "--quality", "50", "--encoding", ".png"], "expected 0 to 9 for .png"),
        ([str(tmp_path / "l"), str(images), "--num-thread", "0"], "--num-thread is 0"),
        ([str(tmp_path / "no" / "x"), str(images)], "is no folder; expected that of the list"),
    ]:
        result = mxrt("im2rec", *arguments)
        assert result.returncode == 2 and words in result.stderr, result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_records_stay_where_no_image_can_be_read(mx, capfd, images: Path, tmp_path: Path, options) -> None:
    (tmp_path / "l.lst").write_text("0\t1\ta.png\n")
    assert command(capfd, "im2rec", tmp_path / "l", images).status == 0
    before = {one.name: one.read_bytes() for one in tmp_path.glob("l.*")}
    (tmp_path / "empty").mkdir()
    done = command(capfd, "im2rec", tmp_path / "l", tmp_path / "empty", *options)
    last = done.err.splitlines()[-1]
    assert (done.status, "wrote" in done.out) == (1, False), done
    assert f"none of the images of '{tmp_path / 'l.lst'}' could be read from '{tmp_path / 'empty'}'" in last
    assert "l.rec' was not written" in last
    assert {one.name: one.read_bytes() for one in tmp_path.glob("*l.*")} == before
    if options:
        (record,) = done.json["records"]
        assert (record["images"], len(record["left_out"])) == (0, 1)


def test_names_of_images_may_be_in_another_encoding(mx, capfd, images: Path, tmp_path: Path) -> None:
    (images / "a.png").rename(images / os.fsdecode(b"\xe4.png"))
    (tmp_path / "l.lst").write_bytes(b"0\t1\t\xe4.png\n1\t1\t\xf6.png\n")
    done = command(capfd, "im2rec", tmp_path / "l", images)
    assert (done.status, done.out) == (1, f"wrote {tmp_path / 'l.rec'}: 1 images, 1 left out\n"), done


def test_a_full_disk_is_an_error(mx, images: Path, tmp_path: Path) -> None:
    (tmp_path / "l.lst").write_text("".join(f"{i}\t1\ta.png\n" for i in range(400)))
    (tmp_path / "l.rec").symlink_to("/dev/full")
    result = mxrt("im2rec", str(tmp_path / "l"), str(images), "--pass-through")
    assert result.returncode == 1 and "No space left on device" in result.stderr, result.stderr
    assert f"'{tmp_path / 'l.rec'}'" in result.stderr and "nothing was saved" in result.stderr, result.stderr
    assert "Traceback" not in result.stderr


def test_records_are_written_where_a_link_leads(mx, images: Path, tmp_path: Path) -> None:
    (tmp_path / "l.lst").write_text("0\t1\ta.png\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "l.rec").symlink_to(tmp_path / "elsewhere" / "big.rec")
    for _ in range(2):
        assert mxrt("im2rec", str(tmp_path / "l"), str(images), "--pass-through").returncode == 0
        assert (tmp_path / "l.rec").is_symlink()
        assert (tmp_path / "elsewhere" / "big.rec").stat().st_size > 0
    assert [one.name for one in (tmp_path / "elsewhere").iterdir()] == ["big.rec"]


def test_a_bar_is_drawn_on_a_terminal_alone(mx) -> None:
    from mxrt._output.progress import Progress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, file, hidden = Terminal(), io.StringIO(), Terminal()
    for out, shown in ((terminal, True), (file, True), (hidden, False)):
        with Progress("images", 4, shown=shown, out=out) as progress:
            progress.step()
            progress._drawn -= 1
            progress.step(3)
    assert "\rimages 4/4" in terminal.getvalue() and "[" + "#" * 40 + "]" in terminal.getvalue()
    assert file.getvalue() == hidden.getvalue() == ""
