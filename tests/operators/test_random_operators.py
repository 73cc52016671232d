"""Random calls of operators against references; ``make random-operators`` runs 100,000 of them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from random_operators import FAMILIES, run

# Of each family.
CASES = int(os.environ.get("MXRT_RANDOM_CASES", "280")) // len(FAMILIES)


@pytest.mark.parametrize("family", range(len(FAMILIES)), ids=[family.__name__ for family in FAMILIES])
def test_random_calls_give_what_the_reference_gives(mx: Any, family: int) -> None:
    for case in range(CASES):
        run(mx, case * len(FAMILIES) + family)
