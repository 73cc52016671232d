"""Switches of MXNet 1.9 that programs ask for. The numpy interface is not part of this build."""

from __future__ import annotations

import os
from typing import Any

from .base import MXNetNotImplementedError

__all__ = ["getenv", "is_np_array", "is_np_shape", "reset_np", "set_np", "set_np_shape", "setenv"]


def is_np_shape() -> bool:
    """Whether zero axes mean a scalar: never in this build."""
    return False


def is_np_array() -> bool:
    """Whether the numpy interface is switched on: never in this build."""
    return False


def set_np_shape(active: Any) -> bool:
    """Only False can be set."""
    if active:
        raise MXNetNotImplementedError("numpy shape semantics are not part of this build of mxrt")
    return False


def set_np(shape: bool = True, array: bool = True, dtype: bool = False) -> None:
    """Only False can be set."""
    if shape or array:
        raise MXNetNotImplementedError("the numpy interface (mx.np, mx.npx) is not part of this build of mxrt")


def reset_np() -> None:
    """Switches the numpy interface off, as it is."""


def getenv(name: str) -> str | None:
    """An environment variable."""
    return os.environ.get(name)


def setenv(name: str, value: str) -> None:
    """Sets an environment variable. mxrt reads its own once, when it is first used."""
    os.environ[name] = value
