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
