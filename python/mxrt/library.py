"""Libraries of further operators can be named, and are refused."""

from __future__ import annotations

from typing import NoReturn

from .base import MXNetNotImplementedError

__all__ = ["load"]


def load(path: str, verbose: bool = True) -> NoReturn:
    """Refused: libraries made for MXNet's C++ interface cannot be loaded."""
    raise MXNetNotImplementedError(
        f"library.load('{path}'): libraries of operators made for MXNet are not part of this build of mxrt; "
        "mx.subgraph rewrites graphs from Python"
    )
