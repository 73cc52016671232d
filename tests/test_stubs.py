"""Type stubs: they say what the module and its operators have."""

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


PROGRAM = """
import mxrt as mx

reveal_type(mx.nd.relu(mx.nd.ones((2,))))
reveal_type(mx.sym.relu(mx.sym.var("x")))
reveal_type(mx.nd.concat(mx.nd.ones((2,)), mx.nd.ones((2,)), dim=0))
mx.nd.clip(mx.nd.ones((2,)), a_min="low", a_max=1.0)
"""


def test_operators_return_what_they_are_given_and_check_their_attributes(mx, tmp_path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed; make test installs it")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    result = run([sys.executable, "-m", "mypy", "--config-file=", str(program)], timeout=180)
    types = [line.split("note: ")[1] for line in result.stdout.splitlines() if "note: " in line]
    array, symbol = '"mxrt.ndarray.ndarray.NDArray"', '"mxrt.symbol.symbol.Symbol"'
    assert types == [f"Revealed type is {t}" for t in (array, symbol, array)], result.stdout
    assert 'Argument "a_min" to "clip" has incompatible type "str"' in result.stdout
