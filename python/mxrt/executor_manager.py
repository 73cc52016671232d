"""How MXNet divides a batch: the part of ``mx.executor_manager`` that programs use."""

from __future__ import annotations

from .module._split import pieces as _split_input_slice

__all__ = ["_split_input_slice"]
