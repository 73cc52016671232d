"""Values of each thread: contexts, names and attributes that ``with`` blocks set."""

from __future__ import annotations

import threading
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Callable
from typing import Any

from ..base import MXNetDeprecationWarning, warn

__all__ = ["Scope", "deprecated"]


class Scope(threading.local):
    """The blocks that a thread is in, the innermost last; the first is there from the start."""

    def __init__(self, first: Callable[[], Any]) -> None:
        self.stack = [first()]

    @property
    def value(self) -> Any:
        """The current value. Programs written for MXNet set it too."""
        return self.stack[-1]

    @value.setter
    def value(self, new: Any) -> None:
        self.stack[-1] = new


def deprecated(scope: Callable[[], Scope], name: str, instead: str) -> Any:
    """The property of a class that MXNet had before there were functions: it reads and sets what is
    current.
    """

    def say() -> None:
        warn(f"{name} has been deprecated. {instead}", MXNetDeprecationWarning)

    def get(cls: type) -> Any:
        """The current object of this thread."""
        say()
        return scope().value

    def put(cls: type, new: Any) -> None:
        say()
        scope().value = new

    return property(get, put)
