"""What MXNet's Module trains with can be named, and is refused."""

from __future__ import annotations

from typing import Any

from ..base import no_training

__all__ = ["DataParallelExecutorGroup"]


class DataParallelExecutorGroup:
    """Executors over several devices for training; refused when one is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise no_training("DataParallelExecutorGroup")
