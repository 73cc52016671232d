"""``mx.onnx``: the newer place of ``mx.contrib.onnx``."""

from .contrib.onnx import export_model, get_model_metadata

__all__ = ["export_model", "get_model_metadata"]
