"""Optimizers can be named, subclassed and constructed; what would update parameters is refused."""

from . import contrib, optimizer
from .optimizer import *  # noqa: F403

__all__ = ["contrib"]
__all__ += optimizer.__all__
