"""Reading and writing symbol files, with errors that say what to do."""

from __future__ import annotations

import json
import os
from typing import Any

from .. import _mxrt
from ..base import MXNetDataError

# How a list of arrays begins.
_PARAMS_MAGIC = (0x112).to_bytes(8, "little")


def read(fname: str) -> str:
    """The text of a symbol file."""
    path = _path(fname)
    return text_of(_mxrt.read_file(path), path)


def text_of(content: bytes, path: str) -> str:
    """The text of what a symbol file holds; ``path`` names it in errors."""
    if content.startswith(_PARAMS_MAGIC):
        raise MXNetDataError(
            f"'{path}' is not a symbol file but a parameter file: the two are in each other's place. Pass the one that "
            "ends in -symbol.json here"
        )
    advice = _mxrt.recognise(content[:512])
    if advice is not None:
        raise MXNetDataError(f"'{path}' is not a symbol file. {advice}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MXNetDataError(
            f"'{path}' is not a symbol file: byte {error.start} is not UTF-8 text. Copy or download the file again"
        ) from None


def write(fname: str, text: str) -> None:
    """Writes a symbol file, whole or not at all."""
    _mxrt.write_file(_path(fname), text.encode("utf-8"))


def without_casts(text: str) -> str:
    """A graph as JSON whose operators read what ``amp_cast`` and ``amp_multicast`` would convert.

    Outputs of the graph that are made by these stay, as in MXNet.
    """
    graph: dict[str, Any] = json.loads(text, strict=False)
    nodes = graph["nodes"]
    # What an output stands for; inputs come before the nodes that read them.
    sources: dict[tuple[int, int], list[int]] = {}
    for number, node in enumerate(nodes):
        node["inputs"] = [sources.get((of, output), [of, output, *rest]) for of, output, *rest in node["inputs"]]
        if node["op"] in ("amp_cast", "amp_multicast"):
            sources.update(((number, output), source) for output, source in enumerate(node["inputs"]))
    return json.dumps(graph)


def _path(fname: str) -> str:
    if not isinstance(fname, (str, os.PathLike)):
        raise TypeError("fname need to be string")
    path = os.fspath(fname)
    return path[len("file://") :] if path.startswith("file://") else path
