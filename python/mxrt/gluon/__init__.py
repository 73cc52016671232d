"""Models as Python objects: ``mx.gluon``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._imports import load
from ..ndarray import NDArray
from ..symbol import Symbol
from . import utils
from .block import Block
from .hybrid_block import HybridBlock
from .parameter import Constant, DeferredInitializationError, Parameter
from .parameter_dict import ParameterDict
from .symbol_block import SymbolBlock, SymbolBlockThreadSafe
from .trainer import Trainer

if TYPE_CHECKING:
    from . import contrib, data, loss, model_zoo, nn, rnn

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
    "data",
    "loss",
    "model_zoo",
    "nn",
    "rnn",
    "utils",
]

# What blocks take and give.
tensor_types: tuple[type[Symbol], type[NDArray]] = (Symbol, NDArray)

# Imported when they are first used.
_LAZY = ("contrib", "data", "loss", "model_zoo", "nn", "rnn")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        try:
            return load(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"mx.gluon.{name} is not part of this build of mxrt") from None
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
