"""The operators ``_npi_X`` by their names: ``mx.np._internal.X``."""

from __future__ import annotations

from typing import Any

from .. import _mxrt
from .._imports import load

__all__ = ["cvimdecode", "cvimread"]


def cvimdecode(buf: Any, flag: int = 1, to_rgb: bool = True) -> Any:
    """Decodes an image; :func:`mxrt.image.imdecode` describes it."""
    from ..image import imdecode

    return imdecode(buf.as_nd_ndarray() if hasattr(buf, "as_nd_ndarray") else buf, flag, to_rgb).as_np_ndarray()


def cvimread(filename: str, flag: int = 1, to_rgb: bool = True) -> Any:
    """Reads an image; :func:`mxrt.image.imread` describes it."""
    from ..image import imread

    return imread(filename, flag, to_rgb).as_np_ndarray()


def __getattr__(name: str) -> Any:
    operator = None if name.startswith("__") else _mxrt.get_operator(f"_npi_{name}")
    if operator is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}': there is no operator _npi_{name}")
    load("mxrt.numpy_extension")
    from ..numpy_extension._make import make

    found = globals()[name] = make(operator, name, __name__)
    return found
