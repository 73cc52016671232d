"""docs/operators.md: every operator with a call that is run when the page is written or tested."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
from typing import Any

import numpy as np

from support import CONFORMANCE, ROOT
from test_api_page import line

PAGE = ROOT / "docs" / "operators.md"
TITLES = {
    "": "mx.nd and mx.sym",
    "contrib": "contrib",
    "linalg": "linalg",
    "random": "random",
    "image": "image",
}
HEAD = """# Operators

Written by tests/pages/test_operator_page.py from the registry of operators; do not edit.

`mx.nd` computes an operator at once, `mx.sym` makes a node of a graph. `help(mx.nd.Convolution)`
describes each argument. The examples are calls that MXNet 1.9.1 answered: `f32(2, 3)` stands for an
array of that type and shape, and a test runs each of them. [GPUs](gpu.md) have kernels for a part
of the operators. `mx.nd.sparse` has names for dense arrays only.
"""
SHORT = {"float": "f", "int": "i", "uint": "u"}
#: Names in one namespace that are the same operator as one in another.
TWINS = {"linalg_": "linalg.", "random_": "random."}


@functools.cache
def recorded() -> dict[str, list[dict[str, Any]]]:
    """Recorded calls of each operator, with the family that has their arrays."""
    found: dict[str, list[dict[str, Any]]] = {}
    for folder in sorted((CONFORMANCE / "data").iterdir()):
        if (folder / "cases.json").exists():
            for case in json.loads((folder / "cases.json").read_text()):
                if case["kind"] == "op":
                    found.setdefault(case["op"], []).append({**case, "family": folder.name})
    return found


@functools.cache
def arrays(family: str) -> dict[str, np.ndarray]:
    return dict(np.load(CONFORMANCE / "data" / family / "arrays.npz"))


def written(value: Any) -> Any:
    """An attribute as a program writes it: lists of JSON are tuples."""
    return tuple(map(written, value)) if isinstance(value, list) else value


def typed(dtype: Any, shape: Any) -> str:
    name = np.dtype(dtype).name
    kind = name.rstrip("0123456789")
    return f"{SHORT.get(kind, kind)}{name.removeprefix(kind)}{tuple(shape)}"


class Example:
    """A recorded call."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        parts = [one for entry in case["inputs"] for one in entry.get("list", [entry])]
        self.arrays = [arrays(case["family"])[one["a"]] if "a" in one else one["v"] for one in parts]
        self.keys = [one.get("kw") for one in parts]

    def fits(self) -> bool:
        """Whether a reader understands the call: dense, without empty or huge arrays."""
        entries = [one for entry in self.case["inputs"] for one in entry.get("list", [entry])]
        dense = all(one.get("stype", "default") == "default" for one in entries)
        sizes = [one.size for one in self.arrays if isinstance(one, np.ndarray)]
        return dense and all(0 < size < 5000 for size in sizes) and len(self.arrays) < 12

    def rank(self) -> tuple[int, int, int]:
        """The first is the best example: some numbers, few attributes."""
        sizes = [one.size for one in self.arrays if isinstance(one, np.ndarray)]
        return (int(max(sizes, default=9) < 4), len(self.case["attrs"]), sum(sizes))

    def text(self) -> str:
        words = []
        for key, one in zip(self.keys, self.arrays, strict=True):
            value = typed(one.dtype, one.shape) if isinstance(one, np.ndarray) else repr(written(one))
            words.append(value if key is None else f"{key}={value}")
        words += [f"{key}={written(value)!r}" for key, value in self.case["attrs"].items()]
        return ", ".join(words)

    def run(self, mx: Any, function: Any) -> list[Any]:
        """Results of the call."""
        made = [mx.nd.array(x, dtype=x.dtype) if isinstance(x, np.ndarray) else written(x) for x in self.arrays]
        pairs = list(zip(self.keys, made, strict=True))
        named = {key: one for key, one in pairs if key is not None}
        attrs = {key: written(value) for key, value in self.case["attrs"].items()}
        result = function(*[one for key, one in pairs if key is None], **named, **attrs)
        return result if isinstance(result, list) else [result]


def example(name: str) -> Example | None:
    cases = recorded().get(name, [])
    for old, new in TWINS.items():
        cases = cases or recorded().get(name.replace(old, new, 1), [])
    found = [one for one in map(Example, cases) if one.fits()]
    return min(found, key=Example.rank, default=None)


def first_sentence(function: Any) -> str:
    return (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")


def signature(function: Any) -> str:
    """Arguments, without those that every operator has."""
    words = []
    parameters = inspect.signature(function).parameters
    general = {"kwargs", *({"out", "name"} if {"out", "name"} <= set(parameters) else ())}
    for one in parameters.values():
        if one.name in general or (one.name in ("out", "name") and one.kind == one.KEYWORD_ONLY):
            continue
        star = "*" if one.kind == one.VAR_POSITIONAL else ""
        shown = one.default not in (one.empty, None) and repr(one.default) not in ("<required>", "_Null")
        default = f"{one.default:.6g}" if isinstance(one.default, float) else repr(one.default)
        words.append(f"{star}{one.name}" + (f"={default}" if shown else ""))
    return ", ".join(words)


def entry(mx: Any, space: str, name: str) -> str:
    """An entry of the list: the operator, and a call of it."""
    full = f"{space}.{name}" if space else name
    function = getattr(getattr(mx.nd, space) if space else mx.nd, name)
    shown = example(full)
    text = line(f"* `{name}({signature(function)})`: {first_sentence(function)}") + "\n"
    if shown is not None:
        text += line(f"* `{shown.text()}` gives {results(mx, shown, function)}", "  ") + "\n"
    return text


def results(mx: Any, shown: Example, function: Any) -> str:
    """Types and shapes of what the call gives, which are those that MXNet gave."""
    given = [(one.shape, np.dtype(one.dtype).name) for one in shown.run(mx, function)]
    wanted = [(tuple(one["shape"]), one["dtype"]) for one in shown.case["outputs"]]
    assert given == wanted, (shown.case["id"], given, wanted)
    return ", ".join(f"`{typed(dtype, shape)}`" for shape, dtype in given)


def page(mx: Any) -> str:
    from mxrt._operators.namespaces import names

    text, operators = HEAD, mx._mxrt.operator_names()
    for space, title in TITLES.items():
        text += f"\n## {title}\n\n" + "".join(entry(mx, space, name) for name in names(space, operators))
    return text


def test_the_page_of_operators_is_up_to_date_and_its_examples_run(mx) -> None:
    wanted = page(mx)
    if os.environ.get("MXRT_WRITE"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted, "docs/operators.md is old; MXRT_WRITE=1 lets this test write it"


def test_most_operators_have_an_example(mx) -> None:
    operators = re.findall(r"^\* `(\w+)\([^`]*\)`: (.*)", PAGE.read_text(), re.M)
    examples = re.findall(r"^  \* `", PAGE.read_text(), re.M)
    assert len(operators) > 300 and len(examples) > 0.8 * len(operators)
    assert [name for name, text in operators if not text.strip()] == [], "each says what it computes"
