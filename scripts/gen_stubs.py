#!/usr/bin/env python3
"""Writes the type stubs of the functions that mx.nd and mx.sym make out of the registry of
operators.

    gen_stubs.py            write them
    gen_stubs.py --check    say whether they are up to date; exit status 1 when not

Needs mxrt to be importable: the stubs describe the operators of that build.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mxrt import _mxrt, ndarray, symbol
from mxrt._functions import PREFIXES, Namespace

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "mxrt"
HEAD = '"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""\n'
SECTIONS = ("", "_internal", *PREFIXES)
KEYWORDS = {"None", "True", "False", "lambda", "in", "is", "not", "and", "or", "def", "class", "from", "import"}


def annotation(type_text: str) -> str:
    """A Python type for a type in the registry's words."""
    if type_text.startswith("{"):
        words = type_text.strip("{}").split(", ")
        return f"Literal[{', '.join(words)}]" if words != [""] else "Any"
    return {
        "int": "int",
        "int or None": "int | None",
        "float": "float",
        "float or None": "float | None",
        "boolean": "bool",
        "boolean or None": "bool | None",
        "Shape(tuple)": "int | Sequence[int | None]",
        "Shape or None": "int | Sequence[int] | None",
        "tuple of <float>": "float | Sequence[float]",
        "string": "str",
    }.get(type_text, "Any")


def function(name: str, operator: _mxrt.Operator, kind: str) -> str:
    """The stub of one function."""
    parameters = []
    if operator.variadic is not None:
        parameters.append(f"*data: {kind}")
    parameters += [f"{n}: {kind} | None = ..." for n in operator.inputs]
    taken = {*operator.inputs, operator.variadic}
    for attr, type_text, _, _ in operator.attrs:
        if attr in taken or not attr.isidentifier() or attr in KEYWORDS:
            continue
        taken.add(attr)
        given = "Any" if attr in operator.dtype_attrs or attr == "ctx" else annotation(type_text)
        parameters.append(f"{attr}: {given} = ...")
    extra = ("out", "name") if kind == "NDArray" else ("name", "attr")
    if operator.variadic is None:
        parameters.append("*")
    parameters += [f"{n}: Any = ..." for n in extra if n not in taken]
    parameters.append("**kwargs: Any")
    if parameters[-2] == "*":
        del parameters[-2]
    returns = kind if operator.single_output or kind == "Symbol" else "Any"
    return f"def {name}({', '.join(parameters)}) -> {returns}: ...\n"


def stub(package: str, section: str, kind: str, by_hand: set[str]) -> str:
    """The stub file of one namespace."""
    space = Namespace("", section, lambda *_: None)
    lines = [
        HEAD + "\n",
        "from collections.abc import Sequence\n",
        "from typing import Any, Literal\n\n",
        f"from ..{package} import {kind}\n\n",
        "# ruff: noqa\n# fmt: off\n\n",
    ]
    names = [n for n in space.names() if n.isidentifier() and n not in KEYWORDS and n not in by_hand]
    exported = "".join(f'    "{n}",\n' for n in names)
    lines.append(f"__all__ = [\n{exported}]\n\n" if names else "__all__: list[str] = []\n")
    for name in names:
        operator = next(o for o in map(_mxrt.get_operator, space.candidates(name)) if o is not None)
        lines.append(function(name, operator, kind))
    return "".join(lines)


def files() -> dict[Path, str]:
    """Path and content of every stub."""
    found = {}
    for module, package, kind in ((ndarray, "ndarray", "NDArray"), (symbol, "symbol", "Symbol")):
        folder = PACKAGE / package / "_signatures"
        found[folder / "__init__.pyi"] = (
            '"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""\n'
        )
        for section in SECTIONS:
            space = getattr(module, section or "op")
            by_hand = set(module.__all__) if section == "" else set(getattr(space, "__all__", ()))
            found[folder / f"{section.strip('_') or 'op'}.pyi"] = stub(package, section, kind, by_hand)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the stubs are up to date")
    check = parser.parse_args().check
    old = []
    for path, text in files().items():
        if path.exists() and path.read_text() == text:
            continue
        old.append(str(path.relative_to(PACKAGE.parent.parent)))
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    if check and old:
        print("not up to date: " + ", ".join(old) + "; run scripts/gen_stubs.py")
        return 1
    print(f"{len(old)} stubs written" if old else "all stubs are up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
