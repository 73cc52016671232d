"""Models as Python objects: ``mx.gluon``."""

from __future__ import annotations

from typing import Any, NoReturn

from ..base import no_training
from . import contrib
from .block import Block, HybridBlock, SymbolBlock, SymbolBlockThreadSafe
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict

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
]


class Trainer:
    """Not available: mxrt runs models, it does not train them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse()


def _refuse() -> NoReturn:
    raise no_training("gluon.Trainer")
