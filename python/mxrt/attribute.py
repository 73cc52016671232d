"""Attributes that all symbols made in a ``with`` block get."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

__all__ = ["AttrScope", "current"]


class AttrScope:
    """``with AttrScope(ctx_group='dev1'): ...`` puts the attribute on every symbol made inside."""

    def __init__(self, **kwargs: str) -> None:
        for value in kwargs.values():
            if not isinstance(value, str):
                raise ValueError("Attributes need to be string")
        self._attr: dict[str, str] = kwargs

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


class _Scope(threading.local):
    def __init__(self) -> None:
        self.stack = [AttrScope()]


_scope = _Scope()


def current() -> AttrScope:
    """The attributes that symbols made by this thread get."""
    return _scope.stack[-1]
