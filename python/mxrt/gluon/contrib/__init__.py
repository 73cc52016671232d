"""Layers that MXNet has under ``gluon.contrib``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..symbol_block import SymbolBlockThreadSafe

if TYPE_CHECKING:
    from . import cnn, nn, rnn

__all__ = ["SymbolBlockThreadSafe", "cnn", "nn", "rnn"]


def __getattr__(name: str) -> Any:
    if name in ("cnn", "nn", "rnn"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
