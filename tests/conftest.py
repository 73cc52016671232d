"""Fixtures, and what the run prints at its end."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from longest import rank
from support import DEVICE_KIND, ROOT, standin, zoo_artifacts

TABLES: list[str] = []

# What nohup, cron and some shells leave ignored or blocked, this process and the children of tests
# would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
os.umask(0o022)
# `mxrt` is next to Python, whether or not the environment is activated.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="session")
def mx():
    """The installed mxrt, not the source tree."""
    import mxrt

    path = Path(mxrt.__file__)
    assert not path.is_relative_to(ROOT / "python"), f"{path} is the source tree, not an installed wheel"
    return mxrt


@pytest.fixture
def sim(mx):
    """A simulated device, or a GPU where MXRT_TEST_DEVICES says so."""
    return mx.Context(DEVICE_KIND, 0)


@pytest.fixture(scope="session")
def gpus() -> dict[str, str]:
    """Variables for a child that finds two GPUs."""
    return standin()


@pytest.fixture(scope="session")
def resnet18() -> Path:
    """Folder with resnet18_v1-symbol.json, -0000.params and -input.npy, computed once per checkout
    (47 MB).
    """
    return zoo_artifacts("resnet18_v1")


@pytest.fixture
def eager_switching():
    """Threads take turns as often as they can, so that races show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="session")
def final_table():
    """Call it with text to be printed below the results."""
    return TABLES.append


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A stable sort: a file's tests keep their order.
    items.sort(key=lambda item: rank(item.nodeid))
    # On a busy machine tests may take ten times as long, as in `support.output_of`.
    for item in items:
        if limit := item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(10 * limit.args[0]), append=False)


def pytest_sessionfinish(session: pytest.Session) -> None:
    # In a process that tests are spread over: the tables go to the one that prints.
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["tables"] = TABLES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    TABLES.extend(getattr(node, "workeroutput", {}).get("tables", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for table in TABLES:
        terminalreporter.section(table.splitlines()[0])
        terminalreporter.write_line("\n".join(table.splitlines()[1:]))
