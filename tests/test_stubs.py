"""Type stubs: they say what the module has, and are up to date."""

from __future__ import annotations

import sys

import pytest

from support import ROOT, run


def test_the_stub_of_the_rust_module_is_true(mx) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed; make test installs it")
    result = run([sys.executable, "-m", "mypy.stubtest", "mxrt._mxrt"], timeout=180)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_stubs_of_operators_are_up_to_date(mx) -> None:
    result = run([sys.executable, str(ROOT / "scripts" / "gen_stubs.py"), "--check"], timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
