"""Further optimizers: they can be constructed, and do not update."""

from __future__ import annotations

from typing import Any, ClassVar

from .optimizer import _WithSettings, register

__all__ = ["GroupAdaGrad"]


@register
class GroupAdaGrad(_WithSettings):
    """AdaGrad with one history for each row of a parameter: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"eps": 1e-5}
