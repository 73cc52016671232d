"""Data iterators: ``mx.io``."""

from .io import CSVIter, DataBatch, DataDesc, DataIter, NDArrayIter, ResizeIter

__all__ = ["CSVIter", "DataBatch", "DataDesc", "DataIter", "NDArrayIter", "ResizeIter"]
