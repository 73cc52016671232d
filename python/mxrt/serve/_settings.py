"""Settings of the server as data, from the text that `mxrt serve --print-config` prints."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["as_data"]

#: A string, or a bare word, and whether it is a key of a table.
_WORD = re.compile(r'("(?:[^"\\]|\\.)*"|[\w-]+)( = )?')
_MODEL, _UNSET = re.compile(r"\[models\.(.*)\]"), re.compile(r"# (\w+) is not set")


def as_data(text: str) -> dict[str, Any]:
    """The settings of the server and of all models, and those of each model by its name.

    Each has its value, None where it is not set, and who gave it.
    """
    settings: dict[str, Any] = {}
    models: dict[str, Any] = {}
    place = settings
    for line in text.split("\n"):
        if found := _MODEL.fullmatch(line):
            place = models[json.loads(_quoted(found[1]))] = {}
        elif found := _UNSET.fullmatch(line):
            place[found[1]] = {"value": None, "by": None}
        elif not line.startswith("#") and " = " in line:
            key, _, rest = line.partition(" = ")
            rest = _json(rest)
            value, end = json.JSONDecoder().raw_decode(rest)
            place[key] = {"value": value, "by": rest[end:].removeprefix("  # ")}
    return {"settings": settings, "models": models}


def _quoted(name: str) -> str:
    """A key of TOML as a string of JSON."""
    return name if name.startswith('"') else json.dumps(name)


def _json(value: str) -> str:
    """A value of TOML, whose tables alone are written otherwise in JSON."""
    return _WORD.sub(lambda found: f"{_quoted(found[1])}: " if found[2] else found[1], value)
