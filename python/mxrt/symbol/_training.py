"""Operators of a graph that compute something else while training."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .symbol import Symbol

__all__ = ["training_operators"]

_NORMS = ("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU")


def _differs(op: str, attrs: dict[str, str]) -> bool:
    if op in _NORMS:
        return attrs.get("use_global_stats", "False") not in ("True", "1")
    if op == "Dropout":
        return float(attrs.get("p", "0.5")) > 0 and attrs.get("mode", "training") != "always"
    if op == "RNN":
        return float(attrs.get("p", "0")) > 0
    if op == "LeakyReLU":
        return attrs.get("act_type") == "rrelu"
    return op in ("IdentityAttachKLSparseReg", "Custom")


def _nodes(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for node in graph["nodes"]:
        yield node
        for inner in node.get("subgraphs", []):
            yield from _nodes(inner)


def training_operators(symbol: Symbol) -> list[str]:
    """Operators and nodes, as text, whose results are others with ``is_train=True``."""
    found = _nodes(json.loads(symbol.tojson(remove_amp_cast=False)))
    return [f"{node['op']} '{node['name']}'" for node in found if _differs(node["op"], node.get("attrs", {}))]
