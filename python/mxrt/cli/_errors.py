"""How commands end."""

from __future__ import annotations

__all__ = ["BAD", "GOOD", "INTERRUPTED", "USAGE", "CommandError", "ModelError", "UsageError"]

GOOD, BAD, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses: all is well; the model or the data are wrong; the command line is; Ctrl-C."""


class CommandError(Exception):
    """A sentence for the user: what is wrong, what was expected, what to do."""

    status = BAD


class ModelError(CommandError):
    """The model or the data are wrong."""


class UsageError(CommandError):
    """The command line does not say what is needed, or names what is not there."""

    status = USAGE
