"""The stub of the Rust module says what it has."""

from __future__ import annotations

import sys

import pytest

from support import run


# `make check-types`, a part of `make test`, does so for the whole package.
@pytest.mark.slow
def test_the_stub_of_the_rust_module_is_true(mx) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed; make test installs it")
    result = run([sys.executable, "-m", "mypy.stubtest", "mxrt._mxrt"], timeout=180)
    assert result.returncode == 0, result.stdout + result.stderr
