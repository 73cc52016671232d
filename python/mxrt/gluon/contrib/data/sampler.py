"""The name that MXNet has here for :class:`mxrt.gluon.data.IntervalSampler`."""

from ...data.sampler import IntervalSampler

__all__ = ["IntervalSampler"]
