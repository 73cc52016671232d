"""Random programs of ``mx.np`` against NumPy; ``make random-np`` runs 100,000 of them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from np_programs import STEPS, Program

PROGRAMS = int(os.environ.get("MXRT_NP_PROGRAMS", "400"))
# One program of so many is a graph too.
GRAPHS = 8


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


@pytest.mark.parametrize("part", range(4))
def test_a_random_program_gives_what_numpy_gives(mx: Any, part: int) -> None:
    for number in range(part, PROGRAMS, 4):
        program = Program(number)
        program.check(program.run(mx.np), f"program {number}")


def test_a_random_program_gives_the_same_as_one_graph(mx: Any) -> None:
    for number in range(0, PROGRAMS, GRAPHS):
        program = Program(number)
        if program.steps:
            program.check(program.run_as_graph(mx), f"program {number} as a graph")


def test_few_programs_use_every_kind_of_step() -> None:
    names = {step.name for number in range(400) for step in Program(number).steps}
    assert len(names) > 3 * len(STEPS)
