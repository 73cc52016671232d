"""MXNet's ``gluon.contrib``: layers, samplers, estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._imports import load
from ..symbol_block import SymbolBlockThreadSafe

if TYPE_CHECKING:
    from . import cnn, data, estimator, nn, rnn

__all__ = ["SymbolBlockThreadSafe", "cnn", "data", "estimator", "nn", "rnn"]


def __getattr__(name: str) -> Any:
    if name in ("cnn", "data", "estimator", "nn", "rnn"):
        return load(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
