"""Attributes that MXNet's objects store, and that are worked out here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["overrulable"]

_Value = TypeVar("_Value")


class overrulable(Generic[_Value]):
    """A property that is worked out until a program sets it. What it sets stays."""

    def __init__(self, work_out: Callable[[Any], _Value]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    @overload
    def __get__(self, thing: None, kind: type) -> overrulable[_Value]: ...

    @overload
    def __get__(self, thing: object, kind: type) -> _Value: ...

    def __get__(self, thing: object | None, kind: type) -> overrulable[_Value] | _Value:
        # Python looks into the object first, where an assignment puts its value.
        return self if thing is None else self._work_out(thing)
