"""The operators of ``mx.sym.contrib`` under their old name ``mx.contrib.symbol``."""

from __future__ import annotations

from typing import Any

from ..symbol import contrib as _contrib

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return getattr(_contrib, name)


def __dir__() -> list[str]:
    return dir(_contrib)
