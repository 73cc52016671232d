"""MXNet's name for the module with the error classes."""

from .base import InternalError, MXNetError

__all__ = ["InternalError", "MXNetError"]
