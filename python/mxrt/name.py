"""Names for symbols that are not given one."""

from __future__ import annotations

from typing import Any, ClassVar

from ._scopes.scope import Scope, deprecated
from ._system.locks import fork_safe_lock

__all__ = ["NameManager", "Prefix", "current"]


class _NameManagerType(type):
    """Gives ``NameManager`` the property ``current``."""

    current: Any = deprecated(lambda: NameManager._current, "NameManager.current", "Use a with block.")


class NameManager(metaclass=_NameManagerType):
    """Counts names: ``relu0``, ``relu1``. A ``with`` block makes this thread use it."""

    _current: ClassVar[Scope]

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._old_manager: Any = None
        self._lock = fork_safe_lock()

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


_scope = Scope(NameManager)
NameManager._current = _scope


def current() -> NameManager:
    """The name manager of this thread."""
    found: NameManager = _scope.stack[-1]
    return found
