"""Records the expressions of tests/np/np_cases.py in np.json.

    python record_np.py

It runs with MXNet 1.9.1 and NumPy 1.23. Each expression is evaluated with new arrays.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "np"))


def main() -> None:
    import mxnet as mx

    from np_cases import EXPRESSIONS, environment, evaluated

    mx.npx.set_np()
    mx.random.seed(1)
    rows = [json.dumps([one, evaluated(one, environment(mx))]) for one in EXPRESSIONS]
    (FOLDER / "np.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
