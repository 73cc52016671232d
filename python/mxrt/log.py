"""Loggers with MXNet's short format: ``mx.log``."""

from __future__ import annotations

import logging
import warnings  # noqa: F401 (a name of MXNet's module)
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING

from .base import MXNetDeprecationWarning, warn

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]


class _Formatter(logging.Formatter):
    """A letter for the level, time, process and place, in colour, before the message."""

    def __init__(self) -> None:
        super().__init__(datefmt="%m%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        colour = 31 if record.levelno >= WARNING else 32 if record.levelno >= INFO else 34
        letter = {CRITICAL: "C", ERROR: "E", WARNING: "W", INFO: "I", DEBUG: "D"}.get(record.levelno, "U")
        place = f"{record.process} {record.pathname}:{record.funcName}:{record.lineno}"
        return f"\x1b[{colour}m{letter}{record.asctime} {place}]\x1b[0m {record.message}"

    def usesTime(self) -> bool:
        return True


def get_logger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """The logger of this name. The first call for a name gives it a level and a handler: a file, or
    stderr.
    """
    logger = logging.getLogger(name)
    if name is not None and not getattr(logger, "_init_done", False):
        logger._init_done = True  # type: ignore[attr-defined]  # remembers that the handler is there
        handler: logging.Handler
        if filename:
            handler = logging.FileHandler(filename, filemode or "a")
        else:
            handler = logging.StreamHandler()
            handler.setFormatter(_Formatter())
        logger.addHandler(handler)
        logger.setLevel(level)
    return logger


def getLogger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """An old name of ``get_logger``."""
    warn("getLogger is deprecated, Use get_logger instead.", MXNetDeprecationWarning)
    return get_logger(name, filename, filemode, level)
