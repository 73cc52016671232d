"""Well-known architectures: ``mx.gluon.model_zoo``."""

from . import model_store, vision

__all__ = ["model_store", "vision"]
