"""Samplers that MXNet has under ``gluon.contrib.data``."""

from .sampler import IntervalSampler

__all__ = ["IntervalSampler"]
