"""`mxrt bench MODEL IMAGE...`: calls that read and decode images before they answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from commands import command, picture, refused
from support import DIGITS, MODELS

MODEL = str(DIGITS / "digits_cnn")
QUICK = ("--shape", "1,1,8,8", "--seconds", "0.2", "--callers", "2")
PIXELS = ("--scale", "0.00392157", "--mean", "0", "--std", "1")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with three images and a text that is none of them."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        picture(folder / f"{number}.png", np.full((8, 8), 60 * number, "uint8"))
    (folder / "notes.txt").write_text("3 images")
    return folder


def test_calls_read_and_decode_all_images_in_turn(mx, monkeypatch, images: Path) -> None:
    from mxrt.bench import images as module

    seen: list[tuple[str, float]] = []

    def called(model, arrays, name):
        seen.append((Path(name).name, round(float(arrays["data"].mean()), 3)))

    monkeypatch.setattr(module, "called", called)
    made = _images(mx, images)
    ask = made.callers(mx.gluon.SymbolBlock.imports(f"{MODEL}-symbol.json", ["data"], f"{MODEL}-0000.params"))(1)
    for _ in range(4):
        ask()
    # The pixels of each file times --scale, from the file whose number the caller has.
    assert seen == [("1.png", 0.235), ("2.png", 0.471), ("0.png", 0.0), ("1.png", 0.235)]


def _images(mx, folder: Path):
    """The images of a command line for the model of digits."""
    import argparse

    from mxrt.bench import add_arguments
    from mxrt.bench.images import Images
    from mxrt.cli._model import find

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args([MODEL, str(folder), *PIXELS])
    return Images(args, find(MODEL), mx.sym.load(f"{MODEL}-symbol.json"), {"data": (1, 1, 8, 8)})


def test_the_report_says_what_each_call_does(mx, capfd, images: Path) -> None:
    done = command(capfd, "bench", MODEL, images, *QUICK)
    assert done.status == 0, done.err
    assert "each call reads, decodes and answers one of 3 images" in done.out
    assert "images/s" in done.out
    report = command(capfd, "bench", MODEL, images, *QUICK, "--json").json
    assert report["images"]["count"] == 3 and report["images"]["preprocess"]["size"] == [8, 8]
    assert report["runs"][0]["requests"] > 0
    assert command(capfd, "bench", MODEL, *QUICK, "--json").json["images"] is None


def test_each_counted_request_has_decoded_an_image(mx, capfd, monkeypatch, images: Path) -> None:
    from mxrt.bench import images as module

    decoded: list[str] = []
    decode = module.input_of_image

    def counting(content, name, *rest):
        decoded.append(name)
        return decode(content, name, *rest)

    monkeypatch.setattr(module, "input_of_image", counting)
    (run,) = command(capfd, "bench", MODEL, images, *QUICK, "--json").json["runs"]
    assert 0 < run["requests"] <= len(decoded)
    assert {Path(name).name for name in decoded} == {"0.png", "1.png", "2.png"}


def test_a_measurement_with_images_is_not_compared_with_one_without(mx, capfd, tmp_path: Path, images: Path) -> None:
    saved = tmp_path / "saved.json"
    assert command(capfd, "bench", MODEL, images, *QUICK, "--save", saved).status == 0
    done = command(capfd, "bench", MODEL, *QUICK, "--compare", saved)
    refused(done, 2, "has 3 images, and this command random numbers")


def test_what_bench_cannot_do_with_images_is_said(mx, capfd, tmp_path: Path, images: Path) -> None:
    refused(command(capfd, "bench", MODEL, images, "--shape", "2,1,8,8"), 2, "one image, and --shape asks for 2 rows")
    refused(command(capfd, "bench", MODEL, images, *QUICK, "--peers"), 2, "decoded by mxrt, not by peers")
    refused(command(capfd, "bench", MODEL, "random", *QUICK), 2, "'random' is no file")
    refused(command(capfd, "bench", MODEL, images / "notes.txt", *QUICK), 1, "notes.txt", "JPEG or PNG")
    refused(command(capfd, "bench", MODEL, tmp_path / "none", *QUICK), 2, "there is no file", "none")
    two = str(MODELS / "wide_deep" / "wide_deep")
    shapes = ("--shape", "data0=1,4", "--shape", "data1=1,4")
    refused(command(capfd, "bench", two, images, *shapes), 2, "images are for models with one input")
    damaged = images / "2.png"
    damaged.write_bytes(damaged.read_bytes()[:40])
    refused(command(capfd, "bench", MODEL, images, *QUICK, *PIXELS), 1, "2.png", "damaged", "copy or download it again")
