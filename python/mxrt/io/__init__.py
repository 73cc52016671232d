"""Data iterators: ``mx.io``."""

from . import _iterators
from ._iterators import *  # noqa: F403
from .io import DataBatch, DataDesc, DataIter, MXDataIter, NDArrayIter, ResizeIter

__all__ = ["DataBatch", "DataDesc", "DataIter", "MXDataIter", "NDArrayIter", "ResizeIter"]
__all__ += _iterators.__all__
