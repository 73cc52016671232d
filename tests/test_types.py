"""Type checkers on programs: the program of README.md is clean, and results have types."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from support import ROOT, run

pytest.importorskip("mypy")

PROGRAM = """
import asyncio
from typing import Any

import numpy as np
import mxrt as mx

net = mx.gluon.SymbolBlock.imports("model-symbol.json", ["data"], "model-0000.params")
x = mx.nd.ones((1, 2))

async def served(image: np.ndarray[Any, Any]) -> None:
    reveal_type(await net(image))

reveal_type(net(x))
reveal_type(net(data=x).asnumpy())
reveal_type(net(mx.sym.var("data")))
reveal_type(mx.nd.Convolution(x, x, kernel=(3, 3), num_filter=1))
reveal_type(mx.nd.linalg.gemm2(x, x))
reveal_type(mx.sym.relu(mx.sym.var("x")))
reveal_type((x + 1).asnumpy())
print(mx.nd.random.uniform(0, 1, (2,)), mx.nd.contrib.box_nms(x), mx.sym.contrib.box_nms(mx.sym.var("x")))
print(asyncio.run(served(np.ones(3))), mx.cpu(0), mx.base.MXNetError, mx.nd.array([1]).shape)
"""

ARRAY, SYMBOL, NUMPY = "mxrt.ndarray.ndarray.NDArray", "mxrt.symbol.symbol.Symbol", "numpy.ndarray[Any, Any]"
REVEALED = [ARRAY, ARRAY, NUMPY, SYMBOL, ARRAY, ARRAY, SYMBOL, NUMPY]


def checked(folder: Path, program: str) -> str:
    """The output of a strict type checker for a program that uses the installed package."""
    (folder / "program.py").write_text(program)
    options = [
        "--strict",
        "--no-error-summary",
        "--hide-error-context",
        "--config-file=",
        f"--cache-dir={folder}/cache",
    ]
    return run([sys.executable, "-m", "mypy", *options, str(folder / "program.py")], timeout=280).stdout


@pytest.mark.timeout(300)
def test_the_program_of_the_readme_is_clean_and_results_have_types(tmp_path: Path) -> None:
    [readme] = re.findall(r"```python\n(import mxrt.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    # What an image is, and what is answered, is for the program to say.
    typed = readme.replace("def answer(image):", "def answer(image: list[float]) -> object:")
    said = checked(tmp_path, typed + PROGRAM.replace("import mxrt as mx\n", ""))
    lines = [line for line in said.splitlines() if "program.py" in line]
    assert [line for line in lines if "error" in line] == []
    assert re.findall(r'Revealed type is "([^"]*)"', said) == REVEALED


@pytest.mark.timeout(300)
def test_a_mistyped_option_of_a_call_is_found(tmp_path: Path) -> None:
    program = "import mxrt as mx\n\nnet = mx.gluon.SymbolBlock.imports('m', ['data'], 'p')\nx = mx.nd.ones((1,))\n"
    good = ["net(x, deadline=3)", "net(x, priority=1, cancel_on_drop=True)", "net(data=x)", "net(data=x, deadline=0.5)"]
    bad = ["net(x, dedline=3)", "net(x, deadline='3')", "net(x, priority=0.5)"]
    said = checked(tmp_path, program + "\n".join(good + bad) + "\n")
    found = {int(line) for line in re.findall(r"^\S+program\.py:(\d+): error", said, re.M)}
    first_bad = 5 + len(good)
    assert found == set(range(first_bad, first_bad + len(bad))), said
