"""How MXNet divides a batch and fills arrays with it: the part of ``mx.executor_manager`` that
programs use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .module._split import pieces as _split_input_slice
from .ndarray import NDArray

__all__ = ["_load_data", "_load_general", "_load_label", "_split_input_slice"]


def _load_general(data: Sequence[NDArray], targets: Sequence[Any]) -> None:
    """Copies arrays to others: each to an array, or by slices to several."""
    for source, target in zip(data, targets, strict=False):
        if isinstance(target, NDArray):
            source.copyto(target)
            continue
        if target[-1][0].stop != source.shape[0]:
            raise AssertionError(f"Batch size miss match. Expected {target[-1][0].stop}, got {source.shape[0]}")
        for rows, part in target:
            source[rows].copyto(part)


def _load_data(batch: Any, targets: Sequence[Any]) -> None:
    """Copies the data of a batch to arrays."""
    _load_general(batch.data, targets)


def _load_label(batch: Any, targets: Sequence[Any]) -> None:
    """Copies the labels of a batch to arrays."""
    _load_general(batch.label, targets)
