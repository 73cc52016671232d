"""Methods of MXNet's that a class of a program redefines: MXNet calls these, and so does mxrt."""

from __future__ import annotations

from typing import Any

__all__ = ["redefines"]


def redefines(thing: Any, base: type, *names: str) -> bool:
    """Whether the class of a thing has other methods of these names than the class `base`."""
    kind = type(thing)
    return kind is not base and any(getattr(kind, name) is not getattr(base, name) for name in names)
