"""Which of the recorded cases can be asked of the mxrt at hand, and why not of the others.

A case is asked when every operator it names is registered and the kinds of storage and ways of running
it uses exist. Statements are run, and left out only when a name of the interface turns out not to exist.
Nothing else excuses a case; whatever is asked and answers wrongly is a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# Nodes of a graph that are no operators.
NO_OPERATOR = {"null"}
# `mx.nd.<space>.<name>` of the registered name `<prefix><name>`, as MXNet sorts them.
SPACES = {
    "_contrib_": "contrib",
    "_linalg_": "linalg",
    "_sparse_": "sparse",
    "_random_": "random",
    "_sample_": "random",
    "_image_": "image",
}


class Chooser:
    """Answers, for one module, what a case lacks."""

    def __init__(self, mx) -> None:
        self.mx = mx
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

    def registered(self, op_type: str) -> bool:
        """An operator by the name that symbol JSON uses."""
        candidates = [f"nd.{op_type}", f"nd._internal.{op_type}", f"nd.op.{op_type}"]
        for prefix, space in SPACES.items():
            if op_type.startswith(prefix):
                candidates.append(f"nd.{space}.{op_type[len(prefix) :]}")
        return any(map(self.resolves, candidates))

    def _stores(self, stype: str) -> bool:
        """Whether arrays of this storage type exist at all."""
        try:
            return self.mx.nd.ones((2, 2)).tostype(stype).stype == stype
        except (AttributeError, self.mx.base.MXNetError):
            return False

    def lacks_in_call(self, case: dict) -> str | None:
        """For a call of one operator."""
        if not self.resolves("nd." + case["op"]):
            return f"operator {case['op']} is not registered"
        for entry in [*flat(case["inputs"]), *case.get("outputs", [])]:
            if entry.get("stype", "default") != "default" and not self.stores(entry["stype"]):
                return f"{entry['stype']} storage is not there"
        return None

    def lacks_in_graph(self, case: dict, folder: Path) -> str | None:
        """For a graph: the operators of all its nodes, nested graphs too."""
        missing = sorted(op for op in operators(folder / case["symbol"]) if not self.registered(op))
        return f"operator {', '.join(missing)} is not registered" if missing else None

    def lacks_for_api(self, api: str) -> str | None:
        """For one way of running a graph."""
        needs = {
            "symbol": ["sym.load", "sym.Symbol.infer_shape", "sym.Symbol.tojson"],
            "executor": ["sym.Symbol.simple_bind", "sym.Symbol.bind"],
            "symbolblock": ["gluon.SymbolBlock.imports"],
            "symbolblock_static": ["gluon.SymbolBlock.imports", "gluon.SymbolBlock.hybridize"],
            "module": ["mod.Module"],
        }
        missing = [name for name in needs[api] if not self.resolves(name)]
        return f"mx.{missing[0]} is not there" if missing else None

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
                # What statements need shows only when they run: see `absent_name`.
                reason = None if "code" in case else self.lacks_in_call(case)
            if reason:
                skipped.append((checks, reason))
            elif case["kind"] != "graph" or case["apis"]:
                asked.append(case)
        return asked, skipped


def flat(inputs: list[dict]) -> Iterator[dict]:
    for entry in inputs:
        yield from flat(entry["list"]) if "list" in entry else [entry]


def absent_name(case: dict, message: str) -> str | None:
    """For statements that ended in an AttributeError: the name of the interface that does not exist yet."""
    found = re.search(r"'?(\w+)'?(?: object)? has no attribute '(\w+)'", message)
    return f"{found[1]}.{found[2]} is not there" if found and "code" in case else None


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
