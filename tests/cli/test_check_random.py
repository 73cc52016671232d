"""`mxrt check` of models that draw random numbers, or that random inputs do not suit."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from commands import command
from support import mxrt


def saved(mx, graph: list, prefix: Path) -> str:
    """A model whose only parameter, which it adds to its last output, is 0; its prefix."""
    last = mx.sym.broadcast_add(graph[-1], mx.sym.var("zero"), name="sum")
    mx.sym.Group([*graph[:-1], last]).save(f"{prefix}-symbol.json")
    mx.nd.save(f"{prefix}-0000.params", {"arg:zero": mx.nd.zeros((1,))})
    return str(prefix)


def other_engine(folder: Path, scale: float = 1.0) -> dict[str, str]:
    """An environment whose MXNet draws other numbers, and multiplies by another factor."""
    (folder / "mxnet.py").write_text(
        "import mxrt\nfrom mxrt import *\nfrom mxrt import nd, gluon, random\n__version__ = '1.9.1'\nrandom.seed(7)\n"
        "if True:\n"
        "    imports = gluon.SymbolBlock.imports\n"
        "    def changed(symbol, *rest):\n"
        f'        text = open(symbol).read().replace(\'"scalar": "2.0"\', \'"scalar": "{2 * scale}"\')\n'
        "        open(symbol, 'w').write(text)\n"
        "        return imports(symbol, *rest)\n"
        "    gluon.SymbolBlock.imports = changed\n"
    )
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def drawing(mx):
    """Outputs of a graph with layers before and after one that draws."""
    x = mx.sym.var("data")
    drawn = mx.sym.sample_normal(mx.sym.tanh(x, name="before"), mx.sym.ones_like(x, name="one"), name="draw")
    return [mx.sym.exp(drawn, name="reads"), mx.sym.broadcast_mul(x, x, name="apart") * 2.0]


def test_layers_that_depend_on_random_numbers_are_not_compared(mx, tmp_path: Path) -> None:
    prefix = saved(mx, drawing(mx), tmp_path / "drawing")
    arguments = ("check", prefix, "--shape", "3,4", "--against", "mxnet", sys.executable)
    result = mxrt(*arguments, env=other_engine(tmp_path))
    assert result.returncode == 0, result
    words = "all 5 agree; 2 depend on random numbers, first _sample_normal 'draw', and are not compared"
    assert words in result.stdout


def test_a_layer_that_differs_is_named_where_others_draw(mx, tmp_path: Path) -> None:
    prefix = saved(mx, drawing(mx), tmp_path / "drawing")
    arguments = ("check", prefix, "--shape", "3,4", "--against", "mxnet", sys.executable)
    result = mxrt(*arguments, env=other_engine(tmp_path, scale=3.0))
    assert result.returncode == 1, result
    assert "the first that differs is _mul_scalar" in result.stdout
    assert "2 depend on random numbers" in result.stdout


def test_where_random_numbers_give_nan_the_given_data_decide(mx, capfd, tmp_path: Path) -> None:
    prefix = saved(mx, [mx.sym.log(mx.sym.var("data"), name="log")], tmp_path / "logs")
    done = command(capfd, "check", prefix, "--shape", "5,4")
    assert done.status == 1
    assert "NaN; random numbers may be none that it is made for: --data FILE gives others" in done.out
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    np.savez(good, data=np.full((5, 4), 2.0, "float32"))
    np.savez(bad, data=np.full((5, 4), -2.0, "float32"))
    done = command(capfd, "check", prefix, "--shape", "5,4", "--data", good)
    assert done.status == 0, done
    assert f"answers '{good}': in" in done.out
    done = command(capfd, "check", prefix, "--shape", "5,4", "--data", bad)
    assert done.status == 1 and f"answers '{bad}': sum_output has 20 NaN" in done.out, done
