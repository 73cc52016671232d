#!/usr/bin/env python3
"""Writes the type stubs of the functions that mx.nd and mx.sym make out of the registry of
operators.

    gen_stubs.py            write them
    gen_stubs.py --check    say whether they are up to date; exit status 1 when not

Needs cargo, and no installed mxrt: the example `schema` of mxrt-ops prints the registry of these
sources. A function has one signature for `mx.nd` and `mx.sym`: it returns what it is given,
arrays or symbols.
"""

from __future__ import annotations

import argparse
import ast
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "mxrt"
FOLDER = PACKAGE / "_signatures"
# Of the workspace, as the tests are built: with other features everything would be built twice.
SCHEMA = ["cargo", "build", "--locked", "--workspace", "--example", "schema", "--message-format=json"]
NAMESPACES = runpy.run_path(str(PACKAGE / "_operators" / "namespaces.py"))
SPACES = ("ndarray", "symbol")
DOC = '"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""\n'
HEAD = f"""{DOC}
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from ..ndarray import NDArray
from ..symbol import Symbol

# ruff: noqa
# fmt: off

T = TypeVar("T", NDArray, Symbol)

"""
KEYWORDS = {"None", "True", "False", "lambda", "in", "is", "not", "and", "or", "def", "class", "from", "import"}


def registry() -> Any:
    """The operators of these sources."""
    built = subprocess.run([*SCHEMA, "--quiet"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    programs = [json.loads(line).get("executable") for line in built.splitlines()]
    [program] = filter(None, programs)
    return json.loads(subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout)


def annotation(type_text: str, default: str | None) -> str:
    """A Python type for a type in the registry's words."""
    if (type_text, default) == ("Shape(tuple)", "None"):
        type_text = "Shape or None"
    if type_text.startswith("{"):
        words = type_text.strip("{}").split(", ")
        return f"Literal[{', '.join(words)}]" if words != [""] else "Any"
    return {
        "int": "int",
        "int (non-negative)": "int",
        "int or None": "int | None",
        "long": "int",
        "long (non-negative)": "int",
        "float": "float",
        "float or None": "float | None",
        "double": "float",
        "double or None": "float | None",
        "boolean": "bool",
        "boolean or None": "bool | None",
        "Shape(tuple)": "int | Sequence[int | None]",
        "Shape or None": "int | Sequence[int] | None",
        "tuple of <long>": "int | Sequence[int]",
        "tuple of <float>": "float | Sequence[float]",
        "tuple of <float> or None": "float | Sequence[float] | None",
        "tuple of <double>": "float | Sequence[float]",
        "string": "str",
    }.get(type_text, "Any")


def function(name: str, operator: dict[str, Any]) -> str:
    """The stub of one function."""
    inputs, count = operator["inputs"], operator["input_count"]
    parameters = [f"{n}: T | None = ..." for n in inputs]
    if count is not None:
        parameters.insert(0, "*data: T")
    taken = {*inputs, count}
    for attr in operator["attrs"]:
        attr_name = attr["name"]
        if attr_name in taken or not is_plain(attr_name):
            continue
        taken.add(attr_name)
        untyped = attr_name in operator["dtype_attrs"] or attr_name == "ctx"
        parameters.append(f"{attr_name}: {'Any' if untyped else annotation(attr['type'], attr['default'])} = ...")
    keyword_only = [f"{n}: Any = ..." for n in ("out", "name", "attr") if n not in taken]
    if count is None and keyword_only:
        parameters.append("*")
    parameters += [*keyword_only, "**kwargs: Any"]
    # Without an input nothing says whether the result is an array or a symbol.
    returns = "T" if operator["single_output"] and (inputs or count is not None) else "Any"
    return f"def {name}({', '.join(parameters)}) -> {returns}: ...\n"


def is_plain(name: str) -> bool:
    """Whether a name can stand in a stub."""
    return name.isidentifier() and name not in KEYWORDS


def by_hand(space: str, section: str) -> set[str]:
    """The names that a module defines itself: those in its ``__all__``."""
    tree = ast.parse((PACKAGE / space / f"{section or '__init__'}.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return set(ast.literal_eval(node.value))
    return set()


def stub(section: str, names: list[str], operators: dict[str, dict[str, Any]]) -> str:
    """A stub file with these functions of a namespace."""
    exported = "".join(f'    "{n}",\n' for n in names)
    lines = [HEAD, f"__all__ = [\n{exported}]\n\n" if names else "__all__: list[str] = []\n"]
    for name in names:
        candidates = NAMESPACES["candidates"](section, name)
        lines.append(function(name, next(operators[c] for c in candidates if c in operators)))
    return "".join(lines)


def files(schema: list[dict[str, Any]]) -> dict[Path, str]:
    """Path and content of every stub: one for each namespace, and one for what only mx.nd or only
    mx.sym takes.
    """
    operators = {name: operator for operator in schema for name in (operator["name"], *operator["aliases"])}
    found = {FOLDER / "__init__.pyi": DOC}
    for section in NAMESPACES["SECTIONS"]:
        names = [n for n in NAMESPACES["names"](section, operators) if is_plain(n)]
        own = {space: by_hand(space, section) for space in SPACES}
        title = section.strip("_") or "op"
        shared = [n for n in names if not any(n in o for o in own.values())]
        found[FOLDER / f"{title}.pyi"] = stub(section, shared, operators)
        for space, other in (SPACES, SPACES[::-1]):
            only = [n for n in names if n in own[other] and n not in own[space]]
            if only:
                found[FOLDER / f"{space}_{title}.pyi"] = stub(section, only, operators)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the stubs are up to date")
    check = parser.parse_args().check
    wanted = files(registry())
    old = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    extra = [path for path in FOLDER.glob("*.pyi") if path not in wanted]
    changed = ", ".join(str(path.relative_to(ROOT)) for path in [*old, *extra])
    if check and changed:
        print(f"not up to date: {changed}; run scripts/gen_stubs.py")
        return 1
    if not check:
        FOLDER.mkdir(exist_ok=True)
        for path in old:
            path.write_text(wanted[path])
        for path in extra:
            path.unlink()
    print(f"written or removed: {changed}" if changed else "all stubs are up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
