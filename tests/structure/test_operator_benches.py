"""The generated rows of `make bench-operators`: none is missing, and mxrt makes each call."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from support import ROOT


@pytest.fixture(scope="module")
def tables() -> Any:
    """The package of the rows and the module that calls them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benches" / "operators"))
        yield importlib.import_module("cases"), importlib.import_module("cases.calls")


def registered(mx: Any) -> set[str]:
    """Operators, without their further names."""
    return {mx._mxrt.get_operator(name).name for name in mx._mxrt.operator_names()}


def test_every_operator_has_a_generated_row_or_a_reason(mx: Any, tables: Any) -> None:
    cases, _ = tables
    assert not registered(mx) - cases.named(), "give each of these a row or a reason in benches/operators/cases"
    assert not cases.named() - set(mx._mxrt.operator_names()), "no operator has this name"


def test_no_operator_has_both_a_row_and_a_reason_and_reasons_are_sentences(tables: Any) -> None:
    cases, _ = tables
    assert not cases.REASONS.keys() & {row.operator for row in cases.CASES.values()}
    assert all(len(reason.split()) > 3 for reason in cases.REASONS.values())


def test_rows_have_a_small_size_and_no_two_sizes_alike(tables: Any) -> None:
    cases, _ = tables
    for name, row in cases.CASES.items():
        counts = list(row.sizes().values())
        assert counts[0] == cases.SIZES["small"] and counts == sorted(set(counts)), name


def test_the_small_call_of_every_row_has_an_answer(mx: Any, tables: Any) -> None:
    cases, calls = tables
    failed = {}
    for name in cases.CASES:
        try:
            calls.prepare("mxrt", mx, name, "small")
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    assert not failed
