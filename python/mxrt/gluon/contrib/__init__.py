"""Layers that MXNet has under ``gluon.contrib``."""

from ..symbol_block import SymbolBlockThreadSafe
from . import cnn, nn, rnn

__all__ = ["SymbolBlockThreadSafe", "cnn", "nn", "rnn"]
