"""The Makefile in a folder of its own: it needs no folder without spaces, and removes nothing that
it did not make.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longest import RANKS
from support import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")

VENV = "build/stamps/venv"


def test_the_files_of_tests_that_begin_first_are_there() -> None:
    assert [name for name in RANKS if not (ROOT / name).is_file()] == []


def program(path: Path, text: str) -> Path:
    """An executable script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def checkout(folder: Path) -> Path:
    """A copy of the part of the repository that the Makefile's set-up needs, in a folder that need
    not exist.
    """
    sources = [
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "LICENSE-THIRD-PARTY",
        "Cargo.toml",
        "Cargo.lock",
        "crates/py/Cargo.toml",
    ]
    tools = ["Makefile", "scripts/setup.sh", *(f"requirements/{name}.txt" for name in ("build", "test"))]
    for name in sources + tools:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    (folder / "python").mkdir()
    return folder


def without_pip(folder: Path, variables: str = "") -> Path:
    """This interpreter, whose environments have no pip: installing it takes seconds, and nothing
    here uses it.
    """
    text = f"""
    [ "$1 $2" != "-m venv" ] || {{ shift 2; set -- -m venv --without-pip "$@"; }}
    {variables} exec '{sys.executable}' "$@"
    """
    return program(folder / "python", text)


@pytest.fixture
def make(tmp_path: Path):
    """Runs make in a folder; compilers that only tell their version come first in PATH."""
    tools = tmp_path / "tools"
    program(tools / "rustc", "echo 'rustc 9.0.0 (of a test)'")
    for name in ("cargo", "cc"):
        program(tools / name, "exit 0")
    inherited = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHON", "SECONDS"}
    env = {name: value for name, value in os.environ.items() if name not in inherited}
    env["PATH"] = f"{tools}{os.pathsep}{env['PATH']}"

    def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", *map(str, arguments)], cwd=folder, env=env, capture_output=True, text=True, timeout=600
        )

    return run


def everything_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_path_with_spaces_does_not_touch_the_folder_of_its_first_word(make, tmp_path: Path) -> None:
    stranger = tmp_path / "with" / "precious.txt"
    stranger.parent.mkdir()
    stranger.write_text("mine")
    folder = checkout(tmp_path / "with sp $HOME 'quoted'")
    done = make(folder, VENV, f"PYTHON={without_pip(tmp_path / 'quick')}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert stranger.read_text() == "mine"
    assert everything_below(stranger.parent) == ["precious.txt"]
    python = folder / ".venv" / "bin" / "python"
    seen = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True)
    assert Path(seen.stdout.strip()) == folder / ".venv"
    done = make(folder, "clean")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (folder / ".venv").exists()
    assert stranger.read_text() == "mine"


def test_an_environment_that_the_makefile_did_not_make_is_left_alone(make, tmp_path: Path) -> None:
    folder = checkout(tmp_path / "mxrt")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "precious.txt").write_text("mine")
    before = everything_below(folder)
    done = make(folder, VENV)
    assert done.returncode != 0
    assert ".venv is there and was not made by this Makefile" in done.stdout
    assert everything_below(folder) == before
    assert make(folder, "clean").returncode == 0
    assert (folder / ".venv" / "precious.txt").read_text() == "mine"


def test_a_link_to_another_environment_is_left_alone(make, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("mine")
    folder = checkout(tmp_path / "mxrt")
    (folder / ".venv").symlink_to(other)
    assert make(folder, VENV).returncode != 0
    assert make(folder, "clean").returncode == 0
    assert everything_below(other) == ["precious.txt"]


def test_make_clean_from_another_folder_removes_nothing_there(make, tmp_path: Path) -> None:
    folder = checkout(tmp_path / "mxrt")
    stranger = tmp_path / "elsewhere"
    (stranger / "dist").mkdir(parents=True)
    done = make(stranger, "-f", folder / "Makefile", "clean")
    assert done.returncode != 0
    assert "run make in the folder of this Makefile" in done.stderr
    assert (stranger / "dist").is_dir()


def other_python(folder: Path, change: str) -> Path:
    """This interpreter, which says that it is another one."""
    sites = folder / "sites"
    sites.mkdir(parents=True)
    (sites / "sitecustomize.py").write_text(f"import sys\n{change}\n")
    return without_pip(folder, f"PYTHONPATH='{sites}'")


@pytest.mark.parametrize("target", ["demo", "test", "wheel", VENV])
def test_a_python_that_is_too_old_is_refused_before_anything_is_touched(make, tmp_path: Path, target: str) -> None:
    old = other_python(tmp_path / "old", "sys.version_info = (3, 8, 19, 'final', 0); sys.version = '3.8.19 (test)'")
    folder = checkout(tmp_path / "mxrt")
    before = everything_below(folder)
    done = make(folder, target, f"PYTHON={old}")
    assert done.returncode != 0
    assert f"PYTHON={old} cannot be used (3.8.19" in done.stdout, done.stdout + done.stderr
    assert "3.10 or newer" in done.stdout
    assert everything_below(folder) == before


def test_a_python_that_does_not_exist_is_refused(make, tmp_path: Path) -> None:
    done = make(checkout(tmp_path / "mxrt"), "demo", "PYTHON=/no/such/python")
    assert done.returncode != 0
    assert "PYTHON=/no/such/python cannot be used (not an interpreter that runs)" in done.stdout


def test_a_path_with_a_colon_is_refused(make, tmp_path: Path) -> None:
    folder = checkout(tmp_path / "a:b")
    done = make(folder, VENV)
    assert done.returncode != 0
    assert "colon" in done.stdout
    assert not (folder / ".venv").exists()


def test_another_python_makes_the_environment_again_and_none_keeps_it(make, tmp_path: Path) -> None:
    folder = checkout(tmp_path / "mxrt")
    witness = folder / ".venv" / "installed-by-hand"
    stamp = folder / VENV
    assert make(folder, VENV, f"PYTHON={without_pip(tmp_path / 'quick')}").returncode == 0
    made = stamp.stat().st_mtime_ns
    witness.touch()
    for arguments in ([], [f"PYTHON={sys.executable}"]):
        assert make(folder, VENV, *arguments).returncode == 0
        assert witness.exists(), arguments
        assert stamp.stat().st_mtime_ns == made, "nothing that depends on the environment is made again"
    other = other_python(tmp_path / "other", "sys.version = sys.version.replace(sys.version.split()[0], '3.99.1', 1)")
    done = make(folder, VENV, f"PYTHON={other}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not witness.exists()
    assert stamp.stat().st_mtime_ns > made


@pytest.mark.parametrize(
    ("target", "as_usual", "in_six_seconds"),
    [
        ("soak", "MXRT_SOAK_SECONDS=3600", "MXRT_SOAK_SECONDS=6"),
        ("soak-scenarios", "MXRT_SIM_SEEDS=10000", "MXRT_SIM_SEEDS=125"),
        ("soak-devices", "--seeds 100", "--seeds 1"),
        ("random-operators", "MXRT_RANDOM_CASES=100000", "MXRT_RANDOM_CASES=5000"),
        ("soak-exits", "MXRT_EXITS=1000", "MXRT_EXITS=2"),
        ("soak-forks", "MXRT_FORKS=143", "MXRT_FORKS=1"),
        ("soak-callers", "MXRT_MANY_CALLERS_SECONDS=300", "MXRT_MANY_CALLERS_SECONDS=6"),
        ("soak-inputs", "MXRT_STRUCTURED_INPUTS=30000", "MXRT_STRUCTURED_INPUTS=300"),
        ("fuzz", "fuzz.sh 600", "fuzz.sh 6"),
        ("tsan", "sanitize.sh thread", "sanitize.sh thread 6"),
        ("asan", "sanitize.sh address", "sanitize.sh address 6"),
    ],
)
def test_seconds_is_the_one_knob_of_everything_long(
    make, tmp_path: Path, target: str, as_usual: str, in_six_seconds: str
) -> None:
    folder = checkout(tmp_path / "mxrt")
    for arguments, expected in (([], as_usual), (["SECONDS=6"], in_six_seconds)):
        shown = make(folder, "--dry-run", target, *arguments).stdout
        assert re.search(rf"{re.escape(expected)}(?!\d| \d)", shown), f"{expected!r} is not in\n{shown}"


def test_help_lists_each_target_once_in_a_group_and_fits_a_terminal(make) -> None:
    lines = make(ROOT, "help").stdout.splitlines()
    assert [line for line in lines if len(line) > 120] == []
    assert [line for line in lines[1:] if line and line[0] != " "] == ["daily", "release", "measure", "long checks"]
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    explained = re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(explained)


def parts_of_make_test(tmp_path: Path, fails: str = "") -> tuple[subprocess.Popen[str], Path]:
    """Starts what `make test` runs, with a make that notes its targets. The one named fails. The
    target `wheel` ends when the file `go` is there, which the last part before it makes.
    """
    folder = tmp_path / "mxrt"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy2(ROOT / "scripts/test.sh", folder / "scripts/test.sh")
    make = program(
        tmp_path / "make",
        f"""
        echo "$1" >> {tmp_path}/made
        [ "$1" != check-types ] || echo "words of types"
        if [ "$1" = wheel ]; then
            echo "words of the wheel"
            # At once: what stops this may come before the number is written.
            echo $$ > {tmp_path}/number && mv {tmp_path}/number {tmp_path}/pid
            [ "{fails}" = wheel ] || while [ ! -e {tmp_path}/go ]; do sleep 0.01; done
        fi
        [ "$1" != test-scenarios ] || touch {tmp_path}/go
        [ "$1" = lint ] && while [ ! -e {tmp_path}/pid ]; do sleep 0.01; done
        [ "$1" != "{fails}" ]
        """,
    )
    env = {**os.environ, "MAKE": str(make)}
    command = [str(folder / "scripts/test.sh")]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True), folder


def test_make_test_builds_the_wheel_meanwhile_and_says_what_each_part_costs(tmp_path: Path) -> None:
    running, folder = parts_of_make_test(tmp_path)
    said, _ = running.communicate(timeout=60)
    first, second = "lint mutants-check test-rust test-scenarios".split(), "wheel install compile-tests loom".split()
    assert running.returncode == 0
    costs = [*first, *(f"{part}, meanwhile" for part in second), "test-python", "check-types, meanwhile"]
    assert re.findall(r"^ +\d+ s  make (.+)$", said, re.MULTILINE) == costs
    assert said.endswith("make test: all passed\n")
    made = (tmp_path / "made").read_text().split()
    assert [one for one in made if one in first] == first and [one for one in made if one in second] == second
    # The wheel is there before the tests that use it, and nothing waits for it before.
    assert made[0] == "build/stamps/build-tools" and made.index("wheel") < made.index("test-rust")
    assert sorted(made[9:]) == ["check-types", "test-python"]
    assert (folder / "build/wheel.log").read_text() == "words of the wheel\n"
    assert (folder / "build/check-types.log").read_text() == "words of types\n"


@pytest.mark.parametrize("part", ["lint", "test-rust", "wheel", "loom", "test-python", "check-types"])
def test_make_test_ends_at_the_part_that_fails_and_leaves_no_build(tmp_path: Path, part: str) -> None:
    running, _ = parts_of_make_test(tmp_path, part)
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 1
    assert said.endswith(f"make test: make {part} failed\n")
    assert ("words of the wheel" in said) == (part in ("wheel", "loom"))
    assert ("words of types" in said) == (part == "check-types")
    wheel = Path("/proc") / str(int((tmp_path / "pid").read_text()))
    with contextlib.suppress(OSError):  # it is gone
        while wheel.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)  # the signal is under way
