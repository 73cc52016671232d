"""Mixed precision: training with it is refused; models run unchanged."""

from .amp import (
    convert_bucketing_module,
    convert_hybrid_block,
    convert_model,
    convert_symbol,
    init,
    init_trainer,
    scale_loss,
    unscale,
)

__all__ = [
    "convert_bucketing_module",
    "convert_hybrid_block",
    "convert_model",
    "convert_symbol",
    "init",
    "init_trainer",
    "scale_loss",
    "unscale",
]
