"""Tests of Rust that are modules of one program are compiled only if its main.rs names them."""

from __future__ import annotations

import re

from support import ROOT

MAINS = sorted((ROOT / "crates").glob("*/tests/*/main.rs"))


def test_every_file_next_to_a_main_file_of_tests_is_a_module_of_it() -> None:
    assert MAINS
    left_out = [
        str(file.relative_to(ROOT))
        for main in MAINS
        for file in sorted(main.parent.glob("*.rs"))
        if file != main and not re.search(rf"^mod {file.stem};$", main.read_text(), re.M)
    ]
    assert left_out == []


def names_in(script: str, begin: str, end: str) -> list[str]:
    """The words of a list in a script."""
    text = (ROOT / script).read_text().partition(begin)[2].partition(end)[0]
    return re.findall(r"[\w:]+", re.sub(r"#.*", "", text))


def test_scenarios_that_scripts_name_are_there() -> None:
    """A program of tests that gets a name without a test runs none and ends well."""
    folder = ROOT / "crates" / "sim" / "tests" / "scenarios"
    known = {
        f"{file.stem}::{name}"
        for file in folder.glob("*.rs")
        for name in re.findall(r"^\s*fn (\w+)\(", file.read_text(), re.M)
    }
    exact = names_in("scripts/scenarios.sh", "\nthreaded=(", ")")
    exact += names_in("scripts/check_gpu.py", "\nORDERED = [", "]")
    parts = names_in("scripts/scenarios.sh", "\nleft_out=(", ")")
    modules = names_in("scripts/scenarios.sh", "\nmodules=(", ")")
    assert len(exact) > 8 and len(parts) > 20 and len(modules) > 5
    assert [name for name in exact if name not in known] == []
    assert [part for part in parts if not any(part in name for name in known)] == []
    assert [module for module in modules if not (folder / f"{module}.rs").is_file()] == []
