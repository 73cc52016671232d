"""Data iterators of the Rust side. Written by crates/io/tests/stubs.rs; do not edit."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from .io import MXDataIter

# ruff: noqa

__all__ = ["CSVIter"]

class CSVIter(MXDataIter):
    def __init__(
        self,
        data_csv: str | PathLike[str],
        data_shape: int | Sequence[int],
        label_csv: str | PathLike[str] | None = ...,
        label_shape: int | Sequence[int] = ...,
        batch_size: Any = ...,
        round_batch: bool = ...,
        prefetch_buffer: int = ...,
        dtype: Any = ...,
        ctx: str | PathLike[str] | None = ...,
        num_parts: int = ...,
        part_index: int = ...,
        data_name: str = ...,
        label_name: str = ...,
    ) -> None: ...
