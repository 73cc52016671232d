"""The logger of mxrt: ``logging.getLogger("mxrt")``.

MXNet wrote to the root logger by ``logging.info``, which gives a root without handlers one. So does
this, so that programs which only set a level see what they saw.
"""

from __future__ import annotations

import logging

__all__ = ["LOGGER", "debug", "info"]

LOGGER = logging.getLogger("mxrt")


def info(text: str, *values: object) -> None:
    """Logs what a program may want to know."""
    _write(logging.INFO, text, values)


def debug(text: str, *values: object) -> None:
    """Logs what helps to find a defect."""
    _write(logging.DEBUG, text, values)


def _write(level: int, text: str, values: tuple[object, ...]) -> None:
    if LOGGER.isEnabledFor(level):
        if not LOGGER.hasHandlers():
            logging.basicConfig()
        LOGGER.log(level, text, *values, stacklevel=3)
