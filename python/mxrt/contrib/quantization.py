"""Quantization of models can be named, and is refused; quantized models run where their operators
are registered.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..base import MXNetNotImplementedError

__all__ = ["quantize_graph", "quantize_model", "quantize_model_mkldnn", "quantize_net", "quantize_net_v2"]


def _refuse(name: str) -> NoReturn:
    raise MXNetNotImplementedError(
        f"contrib.quantization.{name} is not part of this build of mxrt: quantize the model with MXNet and load the "
        "exported files here"
    )


def quantize_model(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: models are quantized by MXNet."""
    _refuse("quantize_model")


def quantize_model_mkldnn(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: models are quantized by MXNet."""
    _refuse("quantize_model_mkldnn")


def quantize_graph(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: models are quantized by MXNet."""
    _refuse("quantize_graph")


def quantize_net(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: models are quantized by MXNet."""
    _refuse("quantize_net")


def quantize_net_v2(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: models are quantized by MXNet."""
    _refuse("quantize_net_v2")
