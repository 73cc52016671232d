"""The workflows of `.github`: their actions are pinned, and what they run exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_an_action_is_pinned_to_a_commit_with_its_version(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text())
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_has_only_the_rights_that_its_jobs_name(file: Path) -> None:
    text = file.read_text()
    assert "\npermissions: {}\n" in text
    jobs = text.partition("\njobs:\n")[2]
    for name in re.findall(r"^  (\w+):$", jobs, re.M):
        job = re.search(rf"^  {name}:\n(.*?)(?=^  \w+:$|\Z)", jobs, re.M | re.S)
        assert job and "\n    permissions:\n" in job[1] and "timeout-minutes:" in job[1], name


def test_targets_and_programs_that_workflows_run_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = "\n".join(file.read_text() for file in WORKFLOWS)
    run = set(re.findall(r"^ +make ([a-z-]+)$", text, re.M))
    assert {"docs", "notebooks", "wheels", "release-check", "check-workflows"} <= run <= targets
    assert "run: .ci/run\n" in text and (ROOT / ".ci" / "run").is_file()


def test_the_wheel_is_tried_on_every_python_that_it_is_for() -> None:
    oldest = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    named = re.search(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert oldest and named
    minors = [int(minor) for minor in re.findall(r'"3\.(\d+)"', named[1])]
    assert minors == list(range(int(oldest[1]), minors[-1] + 1)) and len(minors) > 3
