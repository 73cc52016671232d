"""All recorded results on every kind of engine, on a simulated device, and on a GPU of the stand-in
for the CUDA driver. They must agree with what the default engine gives; a GPU may have no kernel.
Prints a line for each; the exit status is 1 where one differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from support import KINDS, NO_KERNEL, ON_GPUS, standin

HERE = Path(__file__).resolve().parent
# An error of a random operator, which other engines raise when its result is read.
RAISES_AT_THE_CALL = "misc-011"
Results = dict[tuple[str, str], dict[str, Any]]


def results(env: dict[str, str], module: str = "mxrt") -> Results:
    """Runs all cases; by family and case."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, str(HERE / "conformance" / "run.py"), "--module", module, "--json", str(report)]
        environment = {**os.environ, "PYTHONPATH": str(HERE), **env}
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        cases = json.loads(report.read_text())["results"]
    return {(case["family"], case["id"]): case for case in cases}


def differing(found: Results, usual: Results) -> dict[str, str]:
    """Cases that pass on one of the two only, and the messages of `found`."""
    names = [key for key, case in found.items() if case["passed"] != usual[key]["passed"]]
    return {f"{family} {case}": " ".join(found[family, case]["message"].split()) for family, case in names}


def main() -> int:
    usual = results({})
    print(f"{'default engine':28s}{sum(case['passed'] for case in usual.values()):6d} of {len(usual)} pass")
    wrong = 0
    runs = {kind: results({"MXNET_ENGINE_TYPE": kind}) for kind in KINDS}
    runs["sim(0)"] = results({}, "conformance_on_device")
    runs["gpu(0)"] = results({**standin(), "MXRT_TEST_DEVICES": "gpu"}, "conformance_on_device")
    for name, found in runs.items():
        others = differing(found, usual)
        # Texts and attributes of arrays name their device.
        meant = {
            case
            for case, message in others.items()
            if (name == "NaiveEngine" and case.endswith(RAISES_AT_THE_CALL))
            or (name in ("sim(0)", "gpu(0)") and case.startswith("ndarray props") and name[:3] in message)
            or (name == "gpu(0)" and (NO_KERNEL in message or case.split()[-1] in ON_GPUS))
        }
        passed = sum(case["passed"] for case in found.values())
        print(f"{name:28s}{passed:6d} of {len(found)} pass, {len(meant)} differ as they should")
        for case in others.keys() - meant:
            wrong += 1
            print(f"  {case}: {others[case][:300]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
