"""Programs that surround models end as they did under MXNet 1.9.1: see ``programs.py``."""

from __future__ import annotations

import json

import pytest

import programs
from test_blocks_recorded import agree

RECORDED = json.loads(programs.RECORDED.read_text())


def test_every_program_was_recorded() -> None:
    assert set(RECORDED) == set(programs.PROGRAMS)


# Programs use what MXNet warns of, too.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_program(mx, name: str) -> None:
    agree(programs.run(mx, name), RECORDED[name], rtol=2e-4, atol=2e-5, where=name)
