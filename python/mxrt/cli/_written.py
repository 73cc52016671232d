"""The content of symbol files, read without building a graph."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _mxrt
from ._errors import ModelError

__all__ = ["Written", "written"]


@dataclass(frozen=True)
class Written:
    """The content of a symbol file, read without building the graph.

    `version` is the version of MXNet that wrote it, where it says one.
    """

    version: str | None
    nodes: list[dict[str, Any]]
    heads: list[Any]

    @property
    def operators(self) -> Counter[str]:
        """Names of operators with their counts."""
        return Counter(node["op"] for node in self.nodes if node["op"] != "null")

    @property
    def outputs(self) -> list[str]:
        """Names of the nodes that give the outputs."""
        return self._sources(self.heads)

    def inputs(self, node: dict[str, Any]) -> list[str]:
        """Names of the nodes whose values a node takes."""
        return self._sources(node.get("inputs"))

    def _sources(self, entries: object) -> list[str]:
        """The nodes of entries [node, output, version], with the output where it is not the first.
        Entries that are none are left out: loading the model says what is wrong.
        """
        found = []
        for entry in entries if isinstance(entries, list) else []:
            number, output = (*entry, 0)[:2] if isinstance(entry, list) and entry else (-1, 0)
            if type(number) is int and 0 <= number < len(self.nodes):
                found.append(self.nodes[number]["name"] + (f"[{output}]" if output else ""))
        return found

    @property
    def unsupported(self) -> list[str]:
        """Names of operators that mxrt does not have."""
        return sorted(name for name in self.operators if _mxrt.get_operator(name) is None)


def written(symbol: Path) -> Written:
    """The content of a symbol file. ModelError if it is none."""
    from ..symbol._files import read

    try:
        found = read(str(symbol))
        if not found.strip():
            raise ModelError(f"'{symbol}' is empty; expected the graph of a model: copy or download it again")
        content = json.loads(found, strict=False)
        nodes = content["nodes"]
        version = (content.get("attrs") or {}).get("mxnet_version")
        for node in nodes:
            if not isinstance(node["op"], str) or not isinstance(node["name"], str):
                raise TypeError
    except RecursionError:
        raise ModelError(f"'{symbol}' is no symbol file: its JSON is nested too deeply") from None
    except ValueError as error:
        if hasattr(error, "message"):  # an error of mxrt, which names the file
            raise
        raise ModelError(f"'{symbol}' is no symbol file: {error}; copy or download it again") from None
    except (KeyError, TypeError, AttributeError):
        raise ModelError(
            f"'{symbol}' is no symbol file: expected JSON with 'nodes' that have an 'op' and a 'name', as MXNet's "
            "symbol.save writes it"
        ) from None
    number = version[1] if isinstance(version, list) and len(version) == 2 else None
    text = f"{number // 10000}.{number // 100 % 100}.{number % 100}" if type(number) is int else None
    return Written(text, nodes, content.get("heads") or [])
