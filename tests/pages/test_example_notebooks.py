"""The notebooks among the examples: their cells run, in order, and show what a notebook shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import ROOT, run_python

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
#: Runs cells as a notebook does: the value of a last expression is shown, and cells may await.
RUNNER = """
import ast, asyncio, json, sys

async def run(cells):
    place = {"__name__": "__main__"}
    for cell in cells:
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        for part, mode in ((tree, "exec"), (last and ast.Expression(last.value), "eval")):
            if part is None:
                continue
            value = eval(compile(part, "<cell>", mode, flags), place)
            value = await value if asyncio.iscoroutine(value) else value
            if mode == "eval" and value is not None:
                shown = getattr(value, "_repr_html_", None)
                print((shown and shown()) or repr(value))

with open(sys.argv[1]) as file:
    notebook = json.load(file)
asyncio.run(run(["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]))
"""


def test_there_are_notebooks_for_the_first_questions() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {"first-answer", "many-threads", "why-is-it-slow", "migration"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run(mx, path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert all(cell.get("outputs", []) == [] for cell in cells), "notebooks are stored without outputs"
    done = run_python(RUNNER, path)
    assert done.returncode == 0, done.stderr
    assert done.stdout
