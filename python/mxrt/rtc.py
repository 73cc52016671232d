"""CUDA source compiled at run time can be named, and is refused."""

from __future__ import annotations

from typing import Any

from .base import MXNetNotImplementedError

__all__ = ["CudaModule"]


class CudaModule:
    """Kernels from CUDA source; refused when one is made."""

    def __init__(self, source: str, options: Any = (), exports: Any = ()) -> None:
        raise MXNetNotImplementedError(
            "rtc.CudaModule: CUDA source is not compiled at run time in this build of mxrt; an operator written in "
            "Python is a mx.operator.CustomOp"
        )
