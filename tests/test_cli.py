"""The `mxrt` command."""

from __future__ import annotations

import re
import sys

import pytest

from support import mxrt, run


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
