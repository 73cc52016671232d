"""Quantization of models can be named, and is refused."""

from __future__ import annotations

from typing import Any, NoReturn

from ..base import MXNetNotImplementedError

__all__ = ["quantize_graph", "quantize_model", "quantize_model_mkldnn", "quantize_net", "quantize_net_v2"]


def _refuse(name: str) -> NoReturn:
    raise MXNetNotImplementedError(
        f"contrib.quantization.{name} is not part of this build of mxrt, which has no operators on quantized numbers "
        "either. What makes models faster here: net.hybridize(precision='bf16'), which rounds what layers multiply to "
        "bf16 on processors with AVX512-BF16"
    )


def quantize_model(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no operators on quantized numbers."""
    _refuse("quantize_model")


def quantize_model_mkldnn(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no operators on quantized numbers."""
    _refuse("quantize_model_mkldnn")


def quantize_graph(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no operators on quantized numbers."""
    _refuse("quantize_graph")


def quantize_net(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no operators on quantized numbers."""
    _refuse("quantize_net")


def quantize_net_v2(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no operators on quantized numbers."""
    _refuse("quantize_net_v2")
