"""How commands end."""

from __future__ import annotations

from .._output.codes import with_code, without_codes

__all__ = ["BAD", "GOOD", "INTERRUPTED", "USAGE", "CommandError", "ModelError", "UsageError"]

GOOD, BAD, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses: all is well; the model or the data are wrong; the command line is; Ctrl-C."""


class CommandError(Exception):
    """A sentence for the user: what is wrong, what was expected, what to do. Its text ends with a
    code, which :mod:`mxrt._output.codes` lists.
    """

    status = BAD
    kind = "model"

    def __str__(self) -> str:
        return with_code(without_codes(super().__str__()), self.kind)


class ModelError(CommandError):
    """The model or the data are wrong."""


class UsageError(CommandError):
    """The command line does not say what is needed, or names what is not there."""

    status = USAGE
    kind = "usage"
