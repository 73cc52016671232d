"""The engine: ``mx.engine``."""

from __future__ import annotations

from types import TracebackType

__all__ = ["bulk", "set_bulk_size"]

_size = 15


class _Bulk:
    def __init__(self, size: int) -> None:
        self._size = size
        self._old = 0

    def __enter__(self) -> None:
        self._old = set_bulk_size(self._size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        set_bulk_size(self._old)


def set_bulk_size(size: int) -> int:
    """Accepted for compatibility: a compiled graph is always one operation. Returns the old number."""
    global _size
    old, _size = _size, size
    return old


def bulk(size: int) -> _Bulk:
    """A scope with another bulk size; see :func:`set_bulk_size`."""
    return _Bulk(size)
