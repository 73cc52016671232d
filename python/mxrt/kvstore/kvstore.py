"""The store of one process."""

from __future__ import annotations

from .base import KVStoreBase, create

__all__ = ["KVStore", "KVStoreBase", "create"]


class KVStore(KVStoreBase):
    """A store of one process."""

    def __init__(self, kind: str = "local") -> None:
        self._kind = kind

    @property
    def type(self) -> str:
        """Name of the kind of store, as given to ``create``."""
        return self._kind
