"""Samplers and texts that MXNet has under ``gluon.contrib.data``."""

from . import text
from .sampler import IntervalSampler

__all__ = ["IntervalSampler", "text"]
