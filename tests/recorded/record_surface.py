"""Records what programs find in MXNet 1.9.1. ``python record_surface.py`` in its environment writes
surface.json again: the names of its modules, the attributes that its objects let programs set, the
public functions of these, and the modules of Python that ``import mxnet`` imports.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mxnet as mx

sys.path.insert(0, str(Path(__file__).parents[1] / "surface"))
from surface_objects import MAKERS, inside, methods, settable

PATH = Path(__file__).parent / "surface.json"
# Which names generated modules and those of the numpy interface have follows from operators.
GENERATED = (".gen_", ".numpy", "._internal", "._op", ".op", "mxnet.numpy", "onnx2mx.", "mx2onnx.")


def kind(value) -> str:
    if inspect.ismodule(value):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if callable(value) else "value"


def modules() -> dict[str, dict[str, list[str]]]:
    """Returns the names of each module of MXNet, grouped by their kinds. Generated modules and
    names that begin with two underscores are left out.
    """
    for found in pkgutil.walk_packages(mx.__path__, "mxnet."):
        try:
            importlib.import_module(found.name)
        except (Exception, SystemExit) as error:
            print(f"left out: {found.name}: {error!r:.80}")
    listed: dict[str, dict[str, list[str]]] = {}
    for name, module in sorted(sys.modules.items()):
        if name.split(".")[0] != "mxnet" or any(part in name for part in GENERATED):
            continue
        kinds: dict[str, list[str]] = {}
        for one, value in sorted(vars(module).items()):
            if not one.startswith("__"):
                kinds.setdefault(kind(value), []).append(one)
        listed[name] = kinds
    return listed


def objects(names_of: Callable[[Any], list[str]]) -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder, inside(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: names_of(make(mx)) for name, make in MAKERS.items()}


def standard() -> list[str]:
    """The modules of Python's library that the first import brings."""
    code = "import sys; import mxnet; print(*(n for n in sys.modules if n.split('.')[0] in sys.stdlib_module_names))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split() if not name.startswith("_"))


if __name__ == "__main__":
    found = {"standard": standard(), "objects": objects(settable), "methods": objects(methods), "modules": modules()}
    PATH.write_text(json.dumps(found, indent=1) + "\n")
