"""Attributes that all symbols made in a ``with`` block get."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, ClassVar

from ._scopes.scope import Scope, deprecated

__all__ = ["AttrScope", "current"]


class _AttrScopeType(type):
    """Gives ``AttrScope`` the property ``current``."""

    current: Any = deprecated(lambda: AttrScope._current, "AttrScope.current", "Use a with block.")


class AttrScope(metaclass=_AttrScopeType):
    """``with AttrScope(ctx_group='dev1'): ...`` puts the attribute on every symbol made inside."""

    _current: ClassVar[Scope]
    # How often a name was given to a subgraph of control flow, under MXNet's name.
    _subgraph_names: ClassVar[defaultdict[str, int]] = defaultdict(int)

    def __init__(self, **kwargs: str) -> None:
        for value in kwargs.values():
            if not isinstance(value, str):
                raise ValueError("Attributes need to be string")
        self._attr: dict[str, str] = kwargs
        self._old_scope: Any = None

    def get(self, attr: Mapping[str, str] | None) -> dict[str, str]:
        """The attributes of the scope, completed or overruled by those given."""
        return {**self._attr, **(attr or {})}

    def __enter__(self) -> AttrScope:
        inner = AttrScope()
        inner._attr = {**current()._attr, **self._attr}
        _scope.stack.append(inner)
        return self

    def __exit__(self, *exception: Any) -> None:
        _scope.stack.pop()


_scope = Scope(AttrScope)
AttrScope._current = _scope


def current() -> AttrScope:
    """The attributes that symbols made by this thread get."""
    found: AttrScope = _scope.stack[-1]
    return found
