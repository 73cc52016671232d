"""The operators ``_npi_X`` by their names: ``mx.np._internal.X``."""

from __future__ import annotations

from typing import Any

from .. import _mxrt

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    operator = None if name.startswith("__") else _mxrt.get_operator(f"_npi_{name}")
    if operator is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}': there is no operator _npi_{name}")
    from ..numpy_extension._make import make

    found = globals()[name] = make(operator, name, __name__)
    return found
