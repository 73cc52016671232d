"""The operators of ``mx.nd.contrib`` under their old name ``mx.contrib.ndarray``."""

from __future__ import annotations

from typing import Any

from ..ndarray import contrib as _contrib

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return getattr(_contrib, name)


def __dir__() -> list[str]:
    return dir(_contrib)
