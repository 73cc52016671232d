"""Records the names of arguments of MXNet's functions and methods of arrays in np_signatures.json.

    python record_np_signatures.py

It runs with MXNet 1.9.1. Functions that are NumPy's own are left out.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

SPACES = ("np", "np.linalg", "np.random", "npx", "npx.random", "npx.image", "np.ndarray")
# Helpers that the modules import.
NOT_PUBLIC = ("check_call", "classproperty", "with_metaclass")


def arguments(owner: Any) -> dict[str, list[str]]:
    found = {}
    for name in sorted(dir(owner)):
        what = inspect.getattr_static(owner, name)
        if name.startswith("_") or name in NOT_PUBLIC or not inspect.isfunction(what):
            continue
        if what.__module__.startswith("numpy"):
            continue
        names = [
            {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "") + one.name
            for one in inspect.signature(what).parameters.values()
        ]
        found[name] = names
    return found


def main() -> None:
    import mxnet as mx

    made = {}
    for space in SPACES:
        owner = mx
        for part in space.split("."):
            owner = getattr(owner, part)
        made[space] = arguments(owner)
    rows = [f"{json.dumps(space)}: {json.dumps(names)}" for space, names in made.items()]
    Path(__file__).with_name("np_signatures.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
