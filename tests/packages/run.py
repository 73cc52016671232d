"""Runs the unit tests of packages above MXNet over mxrt, and lists those that MXNet 1.9.1 passes
and mxrt does not. Tests that mxrt refuses because they train are left out.

    python tests/packages/run.py check SOURCES WORK [PACKAGE...]
    python tests/packages/run.py record SOURCES WORK [PACKAGE...]

``python`` has the packages, MXNet 1.9.1 and mxrt. SOURCES has a folder for each package: a checkout
at the version of the table below. WORK keeps outcomes and logs. ``record`` runs the tests under
MXNet that failed at the last ``check``. It writes into recorded.json which of them MXNet does not
pass either, such as those that download. Status 1 of ``check``: there is a difference without a
reason, or a reason without a difference.
"""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded.json"
SECONDS = 300
"""A test that takes longer fails."""

# Version, the folders of its unit tests, and other arguments of pytest. insightface 0.1.5 and
# d2l 0.17.6 have no tests.
PACKAGES: dict[str, tuple[str, list[str]]] = {
    "sockeye": ("2.3.24", ["test/unit"]),
    "gluonts": ("0.11.12", ["test/mx"]),
    "gluonnlp": ("0.10.0", ["tests/unittest"]),
    "gluoncv": ("0.10.0", ["tests/unittests"]),
}

# Tests that differ, by patterns as in file names, and why.
REASONS: dict[str, str] = {
    "gluonts/*test_deeptpp.py::test_log_likelihood*": "weights that MXNet draws from a seed",
    "gluonnlp/*test_candidate_sampler.py::test_unigram_candidate_sampler*": "numbers that MXNet draws from a seed",
    "gluonnlp/*test_embedding.py::test_csr_embedding*": "sparse arrays",
    "gluonnlp/*test_embedding.py::test_fasttext_embedding*": "sparse arrays",
}


def outcomes(package: str, sources: Path, work: Path, side: str) -> dict[str, str]:
    """The outcome of every test of a package over mxrt or MXNet."""
    file, ours = work / f"{package}-{side}.jsonl", work / f"{package}-mxrt.jsonl"
    file.unlink(missing_ok=True)
    # Under MXNet only those that mxrt does not pass are of interest.
    others = {test for test, outcome in read(ours).items() if outcome != "failed"} if side == "mxnet" else set()
    env = {**os.environ, "MXRT_OUTCOMES": str(file), "MXRT_TESTS_OVER": side, "OMP_NUM_THREADS": "1"}
    left_out = work / f"{package}-left-out.json"
    env["MXRT_LEFT_OUT"] = str(left_out)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "outcomes"]
    command += ["--timeout", str(SECONDS), "--tb", "short", *PACKAGES[package][1]]
    with open(work / f"{package}-{side}.log", "wb") as log:
        status, found = 1, None
        # A test that ends the process leaves the others to the next one.
        while status != 0 and found != read(file):
            found = read(file)
            left_out.write_text(json.dumps([*others, *found]), encoding="utf-8")
            status = subprocess.run(command, cwd=sources / package, env=env, stdout=log, stderr=log).returncode
    found = read(file)
    print(f"{package} {PACKAGES[package][0]} over {side}: {dict(Counter(found.values()))}", flush=True)
    return found


def read(file: Path) -> dict[str, str]:
    """The outcomes in a file; there is none before the first run."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return dict(json.loads(line) for line in lines)


def record(names: list[str], sources: Path, work: Path) -> None:
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    for name in names:
        found = outcomes(name, sources, work, "mxnet")
        recorded[name] = sorted(test for test, outcome in found.items() if outcome != "passed")
    RECORDED.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def check(names: list[str], sources: Path, work: Path) -> int:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    used, lost = set(), []
    for name in names:
        for test, outcome in outcomes(name, sources, work, "mxrt").items():
            if outcome in ("passed", "skipped", "trains") or test in recorded[name]:
                continue
            patterns = [one for one in REASONS if fnmatch.fnmatchcase(f"{name}/{test}", one)]
            used.update(patterns)
            if not patterns:
                lost.append(f"{name}/{test}: {outcome}")
    idle = [one for one in REASONS if one.split("/")[0] in names and one not in used]
    print(*lost, *(f"no difference any more: {one}" for one in idle), sep="\n")
    print(f"{len(lost)} differences without a reason")
    return int(bool(lost or idle))


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("check", "record"):
        sys.exit(__doc__)
    folder = Path(sys.argv[3]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = sys.argv[4:] or list(PACKAGES)
    work_on = check if sys.argv[1] == "check" else record
    sys.exit(work_on(chosen, Path(sys.argv[2]).resolve(), folder))
