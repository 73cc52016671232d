"""``mx.gluon.nn``: the blocks that exist here. Layers to build networks of do not."""

from __future__ import annotations

from typing import NoReturn

from .block import Block, HybridBlock
from .symbol_block import SymbolBlock

__all__ = ["Block", "HybridBlock", "SymbolBlock"]


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    raise AttributeError(
        f"mx.gluon.nn.{name} is not part of this build of mxrt; export the network with MXNet and load it with "
        "gluon.SymbolBlock.imports"
    )
