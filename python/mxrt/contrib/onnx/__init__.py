"""Conversion from and to ONNX can be named, and is refused."""

from __future__ import annotations

from typing import Any, NoReturn

from ...base import MXNetNotImplementedError

_READ = (
    "reading ONNX files is not part of mxrt. Convert the file once with MXNet 1.9.1: mx.contrib.onnx.import_model, "
    "then mx.model.save_checkpoint, whose files mxrt loads"
)
_WRITTEN = "writing ONNX files is not part of mxrt. MXNet 1.9.1 writes them of the same files: mx.onnx.export_model"

__all__ = ["export_model", "get_model_metadata", "import_model", "import_to_gluon"]


def import_model(model_file: str) -> NoReturn:
    """Refused: ONNX files are not read."""
    raise MXNetNotImplementedError(f"contrib.onnx.import_model: {_READ}")


def import_to_gluon(model_file: str, ctx: Any) -> NoReturn:
    """Refused: ONNX files are not read."""
    raise MXNetNotImplementedError(f"contrib.onnx.import_to_gluon: {_READ}")


def get_model_metadata(model_file: str) -> NoReturn:
    """Refused: ONNX files are not read."""
    raise MXNetNotImplementedError(f"contrib.onnx.get_model_metadata: {_READ}")


def export_model(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: ONNX files are not written."""
    raise MXNetNotImplementedError(f"contrib.onnx.export_model: {_WRITTEN}")
