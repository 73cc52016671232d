#!/usr/bin/env python3
"""Finds the names of MXNet that packages built on it use, by static analysis of their sources.

    python scripts/surface_of_packages.py FOLDER...

Each FOLDER holds the unpacked sources of one package, under its name. Run it with a Python that has
MXNet 1.9.1: it writes tests/recorded/packages.json. That has the names that the packages reach from
modules (``mx.nd.array``, ``from mxnet.gluon import nn``) and their kinds, and the attributes of
objects of MXNet whose names the packages touch anywhere.
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPACES = ("mxnet.ndarray", "mxnet.symbol")
ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "recorded" / "packages.json"


class Uses(ast.NodeVisitor):
    """The names that one file touches."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.of_spaces: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        for one in node.names:
            if one.name.split(".")[0] == "mxnet":
                self.names.add(one.name)
                self.bound[one.asname or "mxnet"] = one.name if one.asname else "mxnet"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and node.module is not None and node.module.split(".")[0] == "mxnet":
            self.names.add(node.module)
            for one in node.names:
                if one.name != "*":
                    self.names.add(f"{node.module}.{one.name}")
                    self.bound[one.asname or one.name] = f"{node.module}.{one.name}"

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain = list(_chain(node))
        if chain and chain[0] == "F":
            # hybrid_forward gets mx.nd or mx.sym.
            self.of_spaces.add(".".join(chain[1:]))
        start = self.bound.get(chain[0]) if chain else None
        if start is None:
            self.attributes.add(node.attr)
        else:
            self.names.add(".".join([start, *chain[1:]]))
        self.generic_visit(node)


def _chain(node: ast.expr) -> Iterator[str]:
    """Yields the names of a chain of attributes that begins with a name. Yields none for others."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
        yield from reversed(names)


def uses(folder: Path) -> tuple[set[str], set[str]]:
    """The names that the sources in a folder reach from modules of MXNet, and other attributes."""
    names: set[str] = set()
    attributes: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        found = Uses()
        found.visit(ast.parse(path.read_text(encoding="utf-8", errors="replace")))
        names |= found.names
        if found.bound:
            names |= {f"{space}.{name}" for space in SPACES for name in found.of_spaces}
        if found.bound:
            attributes |= found.attributes
    return names, attributes


def value_of(name: str) -> Any:
    """Returns the object of a dotted name. Raises AttributeError if MXNet does not have it."""
    parts = name.split(".")
    thing = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], 1):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            try:
                thing = importlib.import_module(".".join(parts[: place + 1]))
            except ImportError:
                raise AttributeError(name) from None
    return thing


def main(folders: list[Path]) -> None:
    sys.path[:0] = [str(ROOT / "tests" / "surface"), str(ROOT / "tests" / "recorded")]
    import mxnet
    from record_surface import kind

    from surface_objects import MAKERS, inside

    names: dict[str, str] = {}
    attributes: set[str] = set()
    for folder in folders:
        some, others = uses(folder)
        attributes |= others
        for name in some:
            try:
                names[name] = kind(value_of(name))
            except AttributeError:
                print(f"{folder.name} names {name}, which MXNet {mxnet.__version__} does not have")
    with tempfile.TemporaryDirectory() as there, inside(there), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = {name: sorted(attributes & set(dir(make(mxnet)))) for name, make in MAKERS.items()}
    found = {"packages": [one.name for one in folders], "names": dict(sorted(names.items())), "members": members}
    TARGET.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main([Path(argument) for argument in sys.argv[1:]])
