"""The alert rules of deploy/prometheus, judged by Prometheus itself."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from support import ROOT, run

RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
SERIES = Path(__file__).with_name("alerts_test.yaml")


def test_each_alert_has_series_that_make_it_fire() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    fired = re.findall(r"alertname: (\w+)\n +exp_alerts:\n", SERIES.read_text())
    assert sorted(fired) == sorted(alerts)


def test_alerts_fire_when_they_should() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; Debian's package prometheus has it")
    for arguments in (["check", "rules", str(RULES)], ["test", "rules", str(SERIES)]):
        result = run([promtool, *arguments])
        assert result.returncode == 0, result.stdout + result.stderr
        assert "SUCCESS" in result.stdout
