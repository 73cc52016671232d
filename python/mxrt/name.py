"""Names for symbols that are not given one."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["NameManager", "Prefix", "current"]


class NameManager:
    """Counts names: ``relu0``, ``relu1``. A ``with`` block makes it the one that this thread uses."""

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._lock = threading.Lock()

    def get(self, name: str | None, hint: str) -> str:
        """The name given, or a new one made from the hint."""
        if name:
            return name
        with self._lock:
            number = self._counter.get(hint, 0)
            self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> NameManager:
        _scope.stack.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _scope.stack.pop()


class Prefix(NameManager):
    """Puts a prefix in front of all names, also of given ones."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """The name given, or one made from `hint`, with the prefix."""
        return self._prefix + super().get(name, hint)


class _Scope(threading.local):
    def __init__(self) -> None:
        self.stack = [NameManager()]


_scope = _Scope()


def current() -> NameManager:
    """The name manager of this thread."""
    return _scope.stack[-1]
