"""Operators whose names start with ``_contrib_``: ``mx.nd.contrib``."""

from __future__ import annotations

from sys import modules as _modules
from typing import TYPE_CHECKING, Any, NoReturn

from .._operators.functions import WholeModule as _WholeModule
from .._operators.functions import module_functions as _module_functions
from ..base import no_training
from ._make import make as _make
from .control_flow import cond, foreach, isfinite, isinf, isnan, while_loop
from .zipfian import rand_zipfian

__all__ = ["cond", "foreach", "isfinite", "isinf", "isnan", "rand_zipfian", "while_loop"]

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._signatures import contrib as _signatures
    from .._signatures.contrib import *  # noqa: F403

    __all__ += _signatures.__all__  # type: ignore[has-type]


def adamw_update(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: it updates weights. Packages import the name for their optimizers."""
    raise no_training("nd.contrib.adamw_update")


mp_adamw_update: Callable[..., NoReturn] = adamw_update
multi_adamw_update: Callable[..., NoReturn] = adamw_update
multi_mp_adamw_update: Callable[..., NoReturn] = adamw_update

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = _module_functions(globals(), "contrib", _make)
_modules[__name__].__class__ = _WholeModule
