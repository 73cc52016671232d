"""Linear algebra: ``mx.nd.linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._operators.functions import module_functions as _module_functions
from ._make import make as _make

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._signatures.linalg import *  # noqa: F403

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = _module_functions(globals(), "linalg", _make)
