"""All recorded results on every kind of engine, on a simulated device, and on two GPUs of the
stand-in for the CUDA driver with the default engine and both asynchronous ones. They must agree
with what the default engine gives on the CPU; a GPU may have no kernel.

    conformance_kinds.py [ROW ...]

ROW is how names of rows begin: `gpu` for those on GPUs. Prints a line for each; the exit status is
1 where one differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import ASYNC, CONFORMANCE, KINDS, NO_KERNEL, ON_GPUS, standin

HERE = Path(__file__).resolve().parent
# An error of a random operator, which other engines raise when its result is read.
RAISES_AT_THE_CALL = "misc-011"
Results = dict[tuple[str, str], dict[str, Any]]


def results(env: dict[str, str], module: str = "mxrt") -> Results:
    """Runs all cases; by family and case."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, str(CONFORMANCE / "run.py"), "--module", module, "--json", str(report)]
        environment = {**os.environ, "PYTHONPATH": str(HERE), **env}
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        cases = json.loads(report.read_text())["results"]
    return {(case["family"], case["id"]): case for case in cases}


def differing(found: Results, usual: Results) -> dict[str, str]:
    """Cases that pass on one of the two only, and the messages of `found`."""
    names = [key for key, case in found.items() if case["passed"] != usual[key]["passed"]]
    return {f"{family} {case}": " ".join(found[family, case]["message"].split()) for family, case in names}


def meant(row: str, case: str, message: str) -> bool:
    """Whether a case should differ from the default engine's in a row."""
    device = row.split()[0]
    if row == "NaiveEngine":
        return case.endswith(RAISES_AT_THE_CALL)
    # Texts and attributes of arrays name their device.
    if device.startswith(("sim(", "gpu(")) and case.startswith("ndarray props") and device[:3] in message:
        return True
    return device.startswith("gpu(") and (NO_KERNEL in message or case.split()[-1] in ON_GPUS)


def rows(wanted: tuple[str, ...]) -> dict[str, Callable[[], Results]]:
    """Runs of all cases, by the names of rows that begin so."""
    made: dict[str, Callable[[], Results]] = {}
    for kind in KINDS:
        made[kind] = partial(results, {"MXNET_ENGINE_TYPE": kind})
    made["sim(0)"] = partial(results, {}, "conformance_on_device")
    for number in range(2):
        for kind in ("", *ASYNC):
            env = {"MXRT_TEST_DEVICES": "gpu", "MXRT_TEST_DEVICE": str(number), "MXNET_ENGINE_TYPE": kind}
            made[f"gpu({number}) {kind}".strip()] = partial(on_gpus, env)
    return {name: run for name, run in made.items() if name.startswith(wanted)}


def on_gpus(env: dict[str, str]) -> Results:
    return results({**standin(), **env}, "conformance_on_device")


def main() -> int:
    chosen = rows(tuple(sys.argv[1:]) or ("",))
    if not chosen:
        sys.exit(f"no row begins with {' or '.join(sys.argv[1:])}: {', '.join(rows(('',)))}")
    usual = results({})
    print(f"{'default engine':38s}{sum(case['passed'] for case in usual.values()):6d} of {len(usual)} pass")
    wrong = 0
    for name, run in chosen.items():
        found = run()
        others = differing(found, usual)
        unmeant = {case: message for case, message in others.items() if not meant(name, case, message)}
        passed = sum(case["passed"] for case in found.values())
        right = len(others) - len(unmeant)
        print(f"{name:38s}{passed:6d} of {len(found)} pass, {right} differ as they should", flush=True)
        for case, message in unmeant.items():
            wrong += 1
            print(f"  {case}: {message[:300]}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
