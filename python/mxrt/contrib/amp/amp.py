"""Functions of ``mx.contrib.amp``, each of which is refused when it is called."""

from __future__ import annotations

from typing import Any, NoReturn

from ...base import MXNetNotImplementedError, no_training

__all__ = ["convert_bucketing_module", "convert_hybrid_block", "convert_model", "convert_symbol", "init"]
__all__ += ["init_trainer", "scale_loss", "unscale"]

# Programs ask for it before they use what init sets up.
_amp_initialized = False

_INSTEAD = (
    "is not part of this build of mxrt: a model that MXNet converted runs as it is; to run a model in float32 with "
    "bf16 products, use hybridize(precision='bf16')"
)


def init(target_dtype: str = "float16", *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: it changes operators for training in mixed precision."""
    raise no_training("contrib.amp.init")


def init_trainer(optimizer_or_trainer: Any) -> NoReturn:
    """Refused: mxrt does not train."""
    raise no_training("contrib.amp.init_trainer")


def scale_loss(loss: Any, optimizer_or_trainer: Any) -> NoReturn:
    """Refused: mxrt does not train."""
    raise no_training("contrib.amp.scale_loss")


def unscale(optimizer_or_trainer: Any) -> NoReturn:
    """Refused: mxrt does not train."""
    raise no_training("contrib.amp.unscale")


def convert_symbol(sym: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: graphs are not rewritten for float16."""
    raise MXNetNotImplementedError(f"contrib.amp.convert_symbol {_INSTEAD}")


def convert_model(sym: Any, arg_params: Any, aux_params: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: graphs are not rewritten for float16."""
    raise MXNetNotImplementedError(f"contrib.amp.convert_model {_INSTEAD}")


def convert_hybrid_block(block: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: graphs are not rewritten for float16."""
    raise MXNetNotImplementedError(f"contrib.amp.convert_hybrid_block {_INSTEAD}")


def convert_bucketing_module(bucketing_mod: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: graphs are not rewritten for float16."""
    raise MXNetNotImplementedError(f"contrib.amp.convert_bucketing_module {_INSTEAD}")
