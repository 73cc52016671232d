"""Whether the types of the public interface are known to a type checker: `check_typed.py WHEEL`.

Unpacks the wheel, has pyright look at it, and ends with 1 where less than 99 % have a type.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LEAST = 0.99


def main(wheel: str) -> int:
    """Prints the share and what lacks a type; returns the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        # Pyright finds packages in the environment of its interpreter alone.
        environment = Path(folder) / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        (place,) = environment.glob("lib/python*/site-packages")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place)
        numpy = Path(__import__("numpy").__file__).parent
        (place / "numpy").symlink_to(numpy)
        path = f"{environment / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["pyright", "--verifytypes", "mxrt", "--ignoreexternal", "--outputjson"],
            env={**os.environ, "PATH": path, "VIRTUAL_ENV": str(environment)},
            cwd=folder,
            capture_output=True,
            text=True,
        )
    report = json.loads(done.stdout).get("typeCompleteness", {})
    share = float(report.get("completenessScore", 0.0))
    for one in report.get("symbols", []):
        if one.get("isExported") and not (one.get("isTypeKnown") and not one.get("isTypeAmbiguous")):
            print(f"no type: {one['name']}")
    print(f"{100 * share:.1f} % of the public names have a type; expected {100 * LEAST:.0f} % at least")
    return 0 if share >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
