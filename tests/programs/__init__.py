"""Programs that surround models, written after the flow of public ones: each is run with either
module, and says what it computed.

``python -m programs`` in the folder ``tests``, with a Python that has MXNet 1.9.1, writes
``tests/recorded/programs.json`` again. A program takes the module and an empty folder.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from . import around, blocks, examples, images, language, servers
from ._base import PROGRAMS

__all__ = ["PROGRAMS", "RECORDED", "around", "blocks", "examples", "images", "language", "run", "servers"]

RECORDED = Path(__file__).parent.parent / "recorded" / "programs.json"


def run(mx, name: str):
    """The result of a program as JSON."""
    with tempfile.TemporaryDirectory() as folder, mx.name.NameManager():
        return json.loads(json.dumps(PROGRAMS[name](mx, Path(folder))))
