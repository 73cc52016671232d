"""The `mxrt` command."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from support import DIGITS, run


def mxrt(*arguments: str, timeout: float = 60):
    command = shutil.which("mxrt", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert command, "the wheel installed no `mxrt` command"
    return run([command, *arguments], timeout)


def test_version(mx) -> None:
    result = mxrt("--version")
    assert (result.returncode, result.stdout) == (0, f"mxrt {mx.__version__}\n")


def test_the_module_can_be_run_in_place_of_the_command(mx) -> None:
    result = run([sys.executable, "-m", "mxrt", "--version"])
    assert (result.returncode, result.stdout) == (0, f"mxrt {mx.__version__}\n")


def test_info_says_what_a_report_needs(mx) -> None:
    result = mxrt("info")
    assert result.returncode == 0, result.stderr
    for word in (mx.__version__, "Python", "numpy", "processor", "cores", "engine"):
        assert word in result.stdout


def test_no_command_gives_help_and_an_unknown_one_names_the_known(mx) -> None:
    result = mxrt()
    assert result.returncode == 2
    assert "demo" in result.stdout
    result = mxrt("dmeo")
    assert result.returncode == 2
    assert "dmeo" in result.stderr
    assert "demo" in result.stderr


@pytest.mark.timeout(200)
def test_the_demo_passes_and_shows_its_three_parts(mx) -> None:
    result = mxrt("demo", "--quick", timeout=180)
    assert result.returncode == 0, result.stdout + result.stderr
    out = result.stdout
    assert result.stderr == ""
    assert "\x1b" not in out, "colours in a file"
    assert "FAIL" not in out
    assert "accuracy 0.9889, with MXNet 1.9.1 0.9889" in out
    rows = re.findall(r"^ +(\d+) +(\d+) +[\d.]+ +[\d.]+ +[\d.]+ +\d+ +yes$", out, re.M)
    assert [int(callers) for callers, _ in rows] == [1, 2, 8, 64, 96]
    assert int(rows[-1][1]) == 96
    assert "49 answers" in out
    assert "1 error" in out
    assert len(re.findall(r"^ +mxrt\.\S*Error\S*: ", out, re.M)) == 3, "three failures are shown as the user sees them"


def test_bench_measures_a_model_and_reports_it_as_data(mx) -> None:
    model = str(DIGITS / "digits_cnn")
    result = mxrt("bench", model, "--shape", "2,1,8,8", "--callers", "1,3", "--seconds", "0.5", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["inputs"] == {"data": [2, 1, 8, 8]}
    assert [one["callers"] for one in report["runs"]] == [1, 3]
    for one in report["runs"]:
        assert 0 < one["p50_ms"] <= one["p99_ms"] <= one["max_ms"]
        # A caller has one request under way at a time, of two images each.
        assert one["images_per_second"] * one["p50_ms"] / 1e3 <= 2 * one["callers"] * 1.5
    assert report["memory"]["constant_bytes"] > 0
    assert any("convolution" in line for line in report["plan"])


def test_bench_prints_tables_and_says_when_it_cannot_draw(mx, tmp_path: Path) -> None:
    arguments = ("bench", str(DIGITS / "digits_cnn-symbol.json"), "--shape", "data=1,1,8,8", "--seconds", "0.2")
    picture = tmp_path / "callers.svg"
    result = mxrt(*arguments, "--callers", "1", "--plot", str(picture))
    assert result.returncode == 0, result.stderr
    for word in ("images/s", "p99 ms", "measured", "packed"):
        assert word in result.stdout
    assert picture.exists() or "matplotlib is not installed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("no/such/model",), "there is no file"),
        ((str(DIGITS / "digits_cnn"),), "--shape data="),
        ((str(DIGITS / "digits_cnn"), "--shape", "photo=1,1,8,8"), "no input 'photo'"),
        ((str(DIGITS / "digits_cnn"), "--shape", "1,1,eight"), "is no shape"),
        ((str(DIGITS / "digits_cnn"), "--shape", "1,1,8,8", "--callers", "0"), "--callers is '0'"),
    ],
)
def test_bench_says_what_is_missing(mx, arguments: tuple[str, ...], expected: str) -> None:
    result = mxrt("bench", *arguments)
    assert result.returncode == 2
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
