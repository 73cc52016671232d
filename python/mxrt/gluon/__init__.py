"""Models as Python objects: ``mx.gluon``."""

from __future__ import annotations

from typing import Any, NoReturn

from ..base import no_training
from . import contrib, nn
from .block import Block, HybridBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict
from .symbol_block import SymbolBlock, SymbolBlockThreadSafe

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
    "SymbolBlockThreadSafe",
    "Trainer",
    "contrib",
    "nn",
]


_ABSENT = ("data", "loss", "metric", "model_zoo", "rnn", "utils")


def __getattr__(name: str) -> NoReturn:
    if name in _ABSENT:
        raise AttributeError(
            f"mx.gluon.{name} is not part of this build of mxrt; export the network with MXNet and load it with "
            "gluon.SymbolBlock.imports"
        )
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class Trainer:
    """Not available: mxrt runs models, it does not train them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse()


def _refuse() -> NoReturn:
    raise no_training("gluon.Trainer")
