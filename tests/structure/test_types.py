"""Type checkers on programs: the program of README.md is clean, and results have types."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

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


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """A strict type checker for programs that use the installed package. What it finds out about
    the package is kept for the next program.
    """
    folder = tmp_path_factory.mktemp("checked")
    options = [
        "--strict",
        "--no-error-summary",
        "--hide-error-context",
        "--config-file=",
        f"--cache-dir={folder}/cache",
    ]

    def check(program: str) -> subprocess.CompletedProcess[str]:
        (folder / "program.py").write_text(program)
        return run([sys.executable, "-m", "mypy", *options, str(folder / "program.py")], timeout=280)

    return check


@pytest.mark.timeout(300)
def test_the_program_of_the_readme_is_clean_and_results_have_types(checked) -> None:
    [readme] = re.findall(r"```python\n(import mxrt.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    # What an image is, and what is answered, is for the program to say.
    typed = readme.replace("def answer(image):", "def answer(image: list[float]) -> object:")
    said = checked(typed + PROGRAM.replace("import mxrt as mx\n", "")).stdout
    lines = [line for line in said.splitlines() if "program.py" in line]
    assert [line for line in lines if "error" in line] == []
    assert re.findall(r'Revealed type is "([^"]*)"', said) == REVEALED


@pytest.mark.timeout(300)
def test_a_mistyped_option_of_a_call_is_found(checked) -> None:
    program = "import mxrt as mx\n\nnet = mx.gluon.SymbolBlock.imports('m', ['data'], 'p')\nx = mx.nd.ones((1,))\n"
    good = ["net(x, deadline=3)", "net(x, priority=1, cancel_on_drop=True)", "net(data=x)", "net(data=x, deadline=0.5)"]
    bad = ["net(x, dedline=3)", "net(x, deadline='3')", "net(x, priority=0.5)"]
    said = checked(program + "\n".join(good + bad) + "\n").stdout
    found = {int(line) for line in re.findall(r"^\S+program\.py:(\d+): error", said, re.M)}
    first_bad = 5 + len(good)
    assert found == set(range(first_bad, first_bad + len(bad))), said


CLASSIFIER = """
import numpy as np
import mxrt as mx


def classify(images: np.ndarray) -> int:
    net = mx.gluon.SymbolBlock.imports('m-symbol.json', ['data'], 'm-0000.params')
    scores = net(mx.nd.array(images))
    try:
        return int(scores.asnumpy().argmax())
    except mx.base.MXNetError as error:
        print(error)
        return -1
"""


@pytest.mark.timeout(300)
def test_a_strictly_typed_program_passes(checked) -> None:
    done = checked(CLASSIFIER)
    assert done.returncode == 0, done.stdout + done.stderr


OPERATORS = """
import mxrt as mx

reveal_type(mx.nd.relu(mx.nd.ones((2,))))
reveal_type(mx.sym.relu(mx.sym.var("x")))
reveal_type(mx.nd.concat(mx.nd.ones((2,)), mx.nd.ones((2,)), dim=0))
mx.nd.clip(mx.nd.ones((2,)), a_min="low", a_max=1.0)
"""


@pytest.mark.timeout(300)
def test_operators_return_what_they_are_given_and_check_their_attributes(checked) -> None:
    said = checked(OPERATORS).stdout
    assert re.findall(r'Revealed type is "([^"]*)"', said) == [ARRAY, SYMBOL, ARRAY], said
    assert 'Argument "a_min" to "clip" has incompatible type "str"' in said
