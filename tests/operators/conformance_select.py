"""The recorded cases that this mxrt can be asked, and the reasons against the others.

A case is asked when every operator it names is registered and the kinds of storage and ways of
running it uses exist. What statements need shows only when they run: they are left out when a name
of the interface, an operator or a kind of storage turns out not to exist, and only then. Whatever
is asked and answers wrongly is a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# Nodes of a graph that are no operators.
NO_OPERATOR = {"null"}


class Chooser:
    """Answers, for one module, what a case lacks."""

    def __init__(self, mx) -> None:
        self.mx = mx
        self.operators = frozenset(mx._mxrt.operator_names())
        self.resolves = cache(self._resolves)
        self.stores = cache(self._stores)

    def _resolves(self, dotted: str) -> bool:
        """`nd.contrib.box_nms` under mx, without calling anything."""
        thing = self.mx
        for part in dotted.split("."):
            thing = getattr(thing, part, None)
            if thing is None:
                return False
        return True

    def registered(self, name: str) -> bool:
        """An operator by the name that the registry and symbol JSON use."""
        return name in self.operators

    def function_exists(self, dotted: str) -> bool:
        """`contrib.box_nms` of mx.nd; where Python wraps operators of another name, one of those
        must exist too.
        """
        space, _, name = dotted.rpartition(".")
        wrapped = {"randn": "normal"}.get(name, name)
        behind = [f"_random_{wrapped}", f"_sample_{wrapped}", f"_{wrapped}"]
        return self.resolves(f"nd.{dotted}") and (space != "random" or any(map(self.registered, behind)))

    def _stores(self, stype: str) -> bool:
        """Whether arrays of this storage type exist at all."""
        try:
            return self.mx.nd.ones((2, 2)).tostype(stype).stype == stype
        except (AttributeError, self.mx.base.MXNetError):
            return False

    def lacks_in_call(self, case: dict) -> str | None:
        """The reason against a call of one operator."""
        if not self.function_exists(case["op"]):
            return f"operator {case['op']} is not registered"
        for entry in [*flat(case["inputs"]), *case.get("outputs", [])]:
            if entry.get("stype", "default") != "default" and not self.stores(entry["stype"]):
                return f"{entry['stype']} storage is not there"
        return None

    def lacks_in_graph(self, case: dict, folder: Path) -> str | None:
        """The reason against a graph: the operators of all its nodes, nested graphs too."""
        missing = sorted(op for op in operators(folder / case["symbol"]) if not self.registered(op))
        return f"operator {', '.join(missing)} is not registered" if missing else None

    def lacks_for_api(self, api: str) -> str | None:
        """The reason against one way of running a graph."""
        needs = {
            "symbol": ["sym.load", "sym.Symbol.infer_shape", "sym.Symbol.tojson"],
            "executor": ["sym.Symbol.simple_bind", "sym.Symbol.bind"],
            "symbolblock": ["gluon.SymbolBlock.imports"],
            "symbolblock_static": ["gluon.SymbolBlock.imports", "gluon.SymbolBlock.hybridize"],
            "module": ["mod.Module"],
        }
        missing = [name for name in needs[api] if not self.resolves(name)]
        return f"mx.{missing[0]} is not there" if missing else None

    def excuse(self, case: dict, message: str) -> str | None:
        """The excuse for statements that ended in an error: a name that they needed, if it really
        does not exist.
        """
        if "code" not in case:
            return None
        if name := re.search(r"'?(\w+)'?(?: object)? has no attribute '(\w+)'", message):
            return f"{name[1]}.{name[2]} is not there"
        if (part := re.search(r"mx\.([\w.]*\w) is not part of this build", message)) and not self.resolves(part[1]):
            return f"mx.{part[1]} is not there"
        if (op := re.search(r"Operator (\w+) is not registered", message)) and not self.registered(op[1]):
            return f"operator {op[1]} is not registered"
        if (stype := re.search(r"storage type '(\w+)'", message)) and not self.stores(stype[1]):
            return f"{stype[1]} storage is not there"
        return None

    def split(self, folder: Path) -> tuple[list[dict], list[tuple[int, str]]]:
        """(cases to ask, [(number of checks left out, reason)]) of one family's folder."""
        asked, skipped = [], []
        for case in json.loads((folder / "cases.json").read_text()):
            checks = 1
            if case["kind"] == "graph":
                reason = self.lacks_in_graph(case, folder)
                checks = len(case["apis"])
                if reason is None:
                    lacking = {api: self.lacks_for_api(api) for api in case["apis"]}
                    skipped += [(1, why) for why in lacking.values() if why]
                    case["apis"] = [api for api, why in lacking.items() if not why]
            else:
                # What statements need shows only when they run: see `excuse`.
                reason = None if "code" in case else self.lacks_in_call(case)
            if reason:
                skipped.append((checks, reason))
            elif case["kind"] != "graph" or case["apis"]:
                asked.append(case)
        return asked, skipped


def flat(inputs: list[dict]) -> Iterator[dict]:
    for entry in inputs:
        yield from flat(entry["list"]) if "list" in entry else [entry]


def operators(symbol: Path) -> set[str]:
    """Types of all nodes of a symbol file of any age, subgraphs included."""
    found: set[str] = set()

    def visit(graph: dict) -> None:
        for node in graph["nodes"]:
            found.add(node["op"])
            for nested in node.get("subgraphs", []):
                visit(nested)

    visit(json.loads(symbol.read_text()))
    return found - NO_OPERATOR
