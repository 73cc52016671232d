"""Data iterators: ``mx.io``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _iterators
from ._iterators import *  # noqa: F403
from .io import DataBatch, DataDesc, DataIter, MXDataIter, NDArrayIter, ResizeIter

if TYPE_CHECKING:
    from ._prefetching import PrefetchingIter

__all__ = ["DataBatch", "DataDesc", "DataIter", "MXDataIter", "NDArrayIter", "PrefetchingIter", "ResizeIter"]
__all__ += _iterators.__all__


def __getattr__(name: str) -> Any:
    """Imports names when they are first used."""
    if name == "PrefetchingIter":
        from ._prefetching import PrefetchingIter

        return PrefetchingIter
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
