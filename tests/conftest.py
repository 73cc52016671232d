"""Fixtures, and what the run prints at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import BUILD, MODELS

TABLES: list[str] = []


@pytest.fixture(scope="session")
def mx():
    """The installed mxrt, not the source tree."""
    import mxrt

    assert "python/mxrt" not in str(mxrt.__file__), (
        f"testing the source tree at {mxrt.__file__}, not an installed wheel"
    )
    return mxrt


@pytest.fixture(scope="session")
def resnet18() -> Path:
    """Folder with resnet18_v1-symbol.json, -0000.params and -input.npy, computed once per checkout (47 MB)."""
    folder = BUILD / "zoo"
    if not (folder / "resnet18_v1.complete").exists():
        command = [sys.executable, str(MODELS / "make_zoo.py"), str(folder), "resnet18_v1"]
        made = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert made.returncode == 0, made.stdout + made.stderr
        (folder / "resnet18_v1.complete").touch()
    return folder


@pytest.fixture(scope="session")
def final_table():
    """Call it with text to be printed below the results."""
    return TABLES.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for table in TABLES:
        terminalreporter.section(table.splitlines()[0])
        terminalreporter.write_line("\n".join(table.splitlines()[1:]))
