"""The recorded results of MXNet on gpu(0), of a real driver or of the stand-in.

    conformance_gpu.py REPORT [--jobs N]

Prints one line of JSON: the cases that passed, by family, and those whose answers differ. Cases of
operators without a kernel on GPUs say so, and are neither. Exits with 1 if an answer differs, or
fewer cases of a family passed than should.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import CONFORMANCE, NO_KERNEL, ON_GPUS
from test_conformance import known_differences

HERE = Path(__file__).resolve().parent

FAMILIES = {
    "activation": 180,
    "binary": 270,
    "conv": 115,
    "creation": 190,
    "deconv": 50,
    "dense_norm": 145,
    "graphs": 310,
    "index": 55,
    "larger": 80,
    "order": 170,
    "pooling": 180,
    "reduce": 420,
    "rnn": 70,
    "scalar_ops": 180,
    "sequence": 55,
    "shape": 260,
    "unary": 290,
    "vision": 150,
}


def environment() -> dict[str, str]:
    """Variables for a run of the recorded cases on GPUs."""
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return {"MXRT_TEST_DEVICES": "gpu", "PYTHONPATH": path}


def command(report: Path, *arguments: str) -> list[str]:
    run = [sys.executable, str(CONFORMANCE / "run.py"), "--module", "conformance_on_device"]
    families = [word for family in FAMILIES for word in ("--family", family)]
    return [*run, "--json", str(report), *families, *arguments]


def judged(report: Path) -> tuple[Counter[str], list[str]]:
    """How many cases of each family passed, and what differs."""
    results = json.loads(report.read_text())["results"]
    known = {(family, case) for family, case in known_differences()}
    wrong = [
        f"{r['family']} {r['id']}: {' '.join(r['message'].split())[:200]}"
        for r in results
        if not (r["passed"] or NO_KERNEL in r["message"] or (r["family"], r["id"]) in known or r["id"] in ON_GPUS)
    ]
    return Counter(r["family"] for r in results if r["passed"]), wrong


def missing(passed: Counter[str]) -> dict[str, str]:
    """Families of which fewer cases passed than have kernels."""
    return {family: f"{passed[family]} of {least}" for family, least in FAMILIES.items() if passed[family] < least}


def main() -> int:
    report = Path(sys.argv[1])
    report.unlink(missing_ok=True)
    every = {**os.environ, **environment()}
    code = subprocess.run(command(report, *sys.argv[2:]), env=every, stdout=subprocess.DEVNULL).returncode
    # 1: cases failed, among them those of operators without a kernel.
    if code not in (0, 1) or not report.exists():
        print(f"the run of the cases ended with {code}, and {'a' if report.exists() else 'no'} report")
        return 1
    passed, wrong = judged(report)
    few = missing(passed)
    print("\n".join(wrong))
    print(json.dumps({"passed": passed.total(), "wrong": len(wrong), "families": passed, "too few": few}))
    return 1 if wrong or few else 0


if __name__ == "__main__":
    sys.exit(main())
