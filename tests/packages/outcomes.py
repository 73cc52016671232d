"""A plugin of pytest for run.py: tests find mxrt or MXNet, and the outcome of each is appended to a
file as soon as it is known.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

if os.environ["MXRT_TESTS_OVER"] == "mxrt":
    import mxrt

    mxrt.install_as_mxnet()

with open(os.environ["MXRT_LEFT_OUT"], encoding="utf-8") as _file:
    LEFT_OUT = set(json.load(_file))
REFUSAL = "TrainingNotSupportedError"
ORDER = ["passed", "skipped", "failed", "trains"]
"""Of several outcomes of one test, of its fixtures too, the last in this list counts."""

found: dict[str, str] = {}


def _note(test: str, outcome: str) -> None:
    with open(os.environ["MXRT_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps([test, outcome]) + "\n")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    items[:] = [item for item in items if item.nodeid not in LEFT_OUT]


def pytest_runtest_logstart(nodeid: str) -> None:
    # What stays there if the process dies.
    _note(nodeid, "crashed")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    report = (yield).get_result()
    outcome = report.outcome
    if report.failed and REFUSAL in report.longreprtext:
        outcome = "trains"
    before = found.get(item.nodeid, "passed")
    found[item.nodeid] = max(before, outcome, key=ORDER.index)


def pytest_runtest_logfinish(nodeid: str) -> None:
    _note(nodeid, found[nodeid])


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _note(report.nodeid, "failed")


def pytest_unconfigure() -> None:
    # Threads that tests leave behind would hold the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
