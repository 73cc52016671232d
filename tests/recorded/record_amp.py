"""Records what MXNet 1.9.1's contrib.amp makes of graphs: ``record_amp.py`` writes amp.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mxnet as mx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "precision"))

from amp_cases import cases, converted  # noqa: E402


def main() -> None:
    """Writes one line for each case."""
    lines = [f"{json.dumps(name)}: {json.dumps(converted(mx, convert))}" for name, convert in cases()]
    (HERE / "amp.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
