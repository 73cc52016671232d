"""Recorded results of MXNet 1.9.1: every case whose operators are registered must agree.

One test per family. The table at the end of the run says how many cases were asked and what the
others wait for. Differences that are meant stand in conformance/known_differences.txt, each with
its reason.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from conformance_select import Chooser
from support import CONFORMANCE, run

DATA = CONFORMANCE / "data"
FAMILIES = sorted(path.parent.name for path in DATA.glob("*/cases.json"))
DIFFERENCES = CONFORMANCE / "known_differences.txt"


def known_differences() -> dict[tuple[str, str], str]:
    """(family, case) -> reason."""
    known = {}
    for number, line in enumerate(DIFFERENCES.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            fields = line.split(maxsplit=2)
            assert len(fields) == 3, f"{DIFFERENCES.name} line {number}: family, case and reason expected: {line!r}"
            known[fields[0], fields[1]] = fields[2]
    return known


@pytest.fixture(scope="module")
def chooser(mx) -> Chooser:
    return Chooser(mx)


@pytest.fixture(scope="module")
def table(final_table):
    """Collects a row per family and prints them at the end."""
    rows: dict[str, tuple[int, int, int, int]] = {}
    reasons: Counter[str] = Counter()
    yield rows, reasons
    lines = ["conformance with MXNet 1.9.1", f"{'family':14s}{'passed':>8s}{'failed':>8s}{'known':>8s}{'skipped':>8s}"]
    lines += [f"{name:14s}" + "".join(f"{n:8d}" for n in row) for name, row in sorted(rows.items())]
    lines.append(f"{'all':14s}" + "".join(f"{sum(column):8d}" for column in zip(*rows.values(), strict=True)))
    if reasons:
        lines.append(f"skipped, {len(reasons)} reasons; the most frequent:")
        lines += [f"{count:8d}  {reason}" for reason, count in reasons.most_common(15)]
    final_table("\n".join(lines))


def prepare(folder: Path, family: str, cases: list[dict]) -> None:
    """A data folder that holds these cases of one family only."""
    target = folder / family
    target.mkdir(parents=True)
    for path in (DATA / family).iterdir():
        if path.name != "cases.json":
            (target / path.name).symlink_to(path)
    (target / "cases.json").write_text(json.dumps(cases))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", FAMILIES)
def test_recorded_results(family: str, chooser: Chooser, table, tmp_path: Path) -> None:
    rows, reasons = table
    asked, skipped = chooser.split(DATA / family)
    left_out = sum(count for count, _ in skipped)
    why: Counter[str] = Counter()
    for count, reason in skipped:
        why[reason] += count
    reasons.update(why)
    rows[family] = (0, 0, 0, left_out)
    if not asked:
        pytest.skip(f"none of {left_out} cases can be asked: " + "; ".join(f"{r} ({n})" for r, n in why.most_common(4)))
    prepare(tmp_path / "data", family, asked)
    report = tmp_path / "report.json"
    command = [sys.executable, str(CONFORMANCE / "run.py"), "--data", str(tmp_path / "data"), "--json", str(report)]
    command += ["--timeout", "300"]  # for a case on a busy machine
    result = run(command, 540)
    assert report.exists(), result.stdout + result.stderr
    results = json.loads(report.read_text())["results"]
    shutil.rmtree(tmp_path / "data")

    known = {case: reason for (fam, case), reason in known_differences().items() if fam == family}
    statements = {case["id"]: case for case in asked}
    failed = []
    for r in results:
        if r["passed"] or r["id"] in known:
            continue
        absent = chooser.excuse(statements.get(r["id"], {}), r["message"])
        if absent:
            reasons[absent] += 1
            left_out += 1
        else:
            failed.append(r)
    healed = [r["id"] for r in results if r["passed"] and r["id"] in known]
    rows[family] = (sum(r["passed"] for r in results), len(failed), len(known) - len(healed), left_out)
    lines = [f"{r['id']}: {' '.join(r['message'].split())[:300]}" for r in failed[:50]]
    assert not failed, f"{len(failed)} of {len(results)} cases differ from MXNet:\n" + "\n".join(lines)
    assert not healed, f"these agree with MXNet now; take them out of {DIFFERENCES.name}: {healed}"
    assert results


def test_the_runner_notices_wrong_results(tmp_path: Path) -> None:
    """A module that answers zeros must fail; a comparison that cannot fail proves nothing."""
    fake = tmp_path / "fake_mxnet.py"
    fake.write_text(
        "import types\nimport numpy as np\n"
        "class A:\n"
        "    def __init__(self, a, dtype=None): self.a = np.asarray(a, dtype)\n"
        "    shape = property(lambda s: s.a.shape)\n    dtype = property(lambda s: s.a.dtype)\n"
        "    def asnumpy(self): return self.a\n"
        "nd = types.SimpleNamespace(array=A, relu=lambda x: A(x.a * 0))\n"
    )
    cases = [case for case in json.loads((DATA / "unary" / "cases.json").read_text()) if case["op"] == "relu"]
    prepare(tmp_path / "data", "unary", cases)
    command = [sys.executable, str(CONFORMANCE / "run.py"), "--data", str(tmp_path / "data"), "--module", "fake_mxnet"]
    result = run(command, 120, env={"PYTHONPATH": str(tmp_path)})
    assert result.returncode == 1
    passed, failed = (int(word) for word in result.stdout.split()[-4::2])
    assert failed > passed


def test_gelu_of_float64_is_exact_to_float64(mx) -> None:
    """A difference that no recorded case shows: MXNet is exact to float32 there."""
    x = np.linspace(-6, 6, 1001)
    wanted = [0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x]
    found = mx.nd.LeakyReLU(mx.nd.array(x, dtype="float64"), act_type="gelu").asnumpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
