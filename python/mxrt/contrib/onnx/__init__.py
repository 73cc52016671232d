"""Conversion from and to ONNX can be named, and is refused."""

from __future__ import annotations

from typing import Any, NoReturn

from ...base import MXNetNotImplementedError

__all__ = ["export_model", "get_model_metadata", "import_model", "import_to_gluon"]


def import_model(model_file: str) -> NoReturn:
    """Refused: ONNX files are not read."""
    raise MXNetNotImplementedError("contrib.onnx.import_model: reading ONNX files is not part of mxrt")


def import_to_gluon(model_file: str, ctx: Any) -> NoReturn:
    """Refused: ONNX files are not read."""
    raise MXNetNotImplementedError("contrib.onnx.import_to_gluon: reading ONNX files is not part of mxrt")


def get_model_metadata(model_file: str) -> NoReturn:
    """Refused: ONNX files are not read."""
    raise MXNetNotImplementedError("contrib.onnx.get_model_metadata: reading ONNX files is not part of mxrt")


def export_model(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: ONNX files are not written."""
    raise MXNetNotImplementedError("contrib.onnx.export_model: writing ONNX files is not part of mxrt")
