"""Codes of errors: each text of an error ends with one, and `mxrt explain CODE` prints its page."""

from __future__ import annotations

import re

__all__ = ["CODES", "code_of", "with_code", "without_codes"]

#: The code of each kind of error. `docs/errors.md` and `mxrt explain` have a page for each.
CODES = {
    "shape": "MX-SHAPE",
    "data": "MX-DATA",
    "file_not_found": "MX-FILE",
    "value": "MX-VALUE",
    "type": "MX-TYPE",
    "index": "MX-INDEX",
    "key": "MX-KEY",
    "not_implemented": "MX-NONE",
    "training": "MX-TRAINING",
    "memory": "MX-MEMORY",
    "deadline": "MX-TIME",
    "cancelled": "MX-CANCEL",
    "device": "MX-DEVICE",
    "operator": "MX-OPERATOR",
    "multiple": "MX-MULTIPLE",
    "shutdown": "MX-END",
    "panic": "MX-DEFECT",
    "not_completed": "MX-DEFECT",
    # of commands
    "model": "MX-MODEL",
    "usage": "MX-USAGE",
    # of a server's answers
    "request": "MX-REQUEST",
    "busy": "MX-BUSY",
    "hook": "MX-HOOK",
}
_OTHER = CODES["operator"]
_AT_END = re.compile(r" \[MX-[A-Z]+\]")


def code_of(kind: str) -> str:
    """The code of a kind; that of a failed operator for a kind of a program's own."""
    return CODES.get(kind, _OTHER)


def with_code(message: str, kind: str) -> str:
    """The text of an error with the code of its kind at the end."""
    return f"{message} [{code_of(kind)}]" if message else f"[{code_of(kind)}]"


def without_codes(message: str) -> str:
    """A message without the codes of errors that it quotes: it gets its own."""
    return _AT_END.sub("", message) if " [MX-" in message else message
