"""Files of a crate may use each other in a circle of three at most, so that a file can be read with
few others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import ROOT

CRATES = ["graph", "io", "mxrt", "serve", "sim"]
MOST = 3


def read(file: Path) -> str:
    """The text of a file without comments, tests, and the rooms in which a name is visible."""
    text = re.sub(r"//.*|\bpub\(in [^)]*\)", "", file.read_text())
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def paths_of(tree: str) -> Iterator[str]:
    """The paths of `a::{b, c::{d, e}}`."""
    before, brace, rest = tree.partition("{")
    if not brace:
        yield tree.split(" as ")[0].strip()
        return
    depth, branch = 0, ""
    for sign in rest.rstrip()[:-1] + ",":
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            if branch.strip():
                yield from paths_of(before.strip() + branch.strip())
            branch = ""
        else:
            branch += sign


def module_of(source: Path, file: Path) -> tuple[str, ...]:
    """The module of a file: `a/mod.rs` and `a.rs` are `a`, `lib.rs` is the crate."""
    names = file.relative_to(source).with_suffix("").parts
    return names[:-1] if names[-1] in ("mod", "lib") else names


def uses(source: Path) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """The modules that the file of each module names: from the crate on, or its own children. A
    child that names its parent by `super` is a part of it, which is no arrow.
    """
    texts = {module_of(source, file): read(file) for file in sorted(source.rglob("*.rs")) if file.name != "tests.rs"}

    def nearest(path: tuple[str, ...]) -> tuple[str, ...]:
        return next(path[:length] for length in range(len(path), -1, -1) if path[:length] in texts)

    found = {}
    for module, text in texts.items():
        trees = re.findall(r"\buse ([^;]*);", text)
        named = [path for tree in trees for path in paths_of(tree)]
        named += re.findall(r"(?<![\w:])\w+(?:::\w+)+", re.sub(r"\buse [^;]*;", "", text))
        targets = set()
        for path in named:
            first, *rest = path.split("::")
            if first == "crate":
                targets.add(nearest(tuple(rest)))
            elif first == "self":
                targets.add(nearest((*module, *rest)))
            elif (*module, first) in texts and module:
                targets.add(nearest((*module, first, *rest)))
        # What the crate itself names is its interface.
        found[module] = targets - {module, ()}
    return found


def circles(arrows: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[list[tuple[str, ...]]]:
    """The groups of modules in which each reaches every other one."""

    def reached(start: tuple[str, ...]) -> set[tuple[str, ...]]:
        seen: set[tuple[str, ...]] = set()
        open_ones = [start]
        while open_ones:
            for target in arrows[open_ones.pop()] - seen:
                seen.add(target)
                open_ones.append(target)
        return seen

    reach = {module: reached(module) for module in arrows}
    groups = {frozenset(other for other in reach[module] if module in reach[other]) for module in arrows}
    return sorted(sorted(group) for group in groups if group)


@pytest.mark.parametrize("crate", CRATES)
def test_no_circle_of_files_is_large(crate: str) -> None:
    arrows = uses(ROOT / "crates" / crate / "src")
    assert sum(map(len, arrows.values())) > len(arrows) / 2, "the arrows are not found"
    for group in circles(arrows):
        listed = [
            f"{'/'.join(module)} -> {', '.join('/'.join(to) for to in sorted(arrows[module]) if to in group)}"
            for module in group
        ]
        assert len(group) <= MOST, "\n".join([f"{crate} has a circle of {len(group)} files; move names down", *listed])


def test_a_circle_is_found_through_trees_children_and_paths(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a; mod b; mod c; mod d; pub use a::A;",
        "a.rs": "use crate::{b::{B, helper as h}, d};",
        "b/mod.rs": "mod inner;\npub use inner::B;\npub(in crate::d) fn f() {}",
        "b/inner.rs": "use super::f;\nfn g() { crate::c::run() }",
        "c.rs": "// use crate::d::D;\nuse crate::a::A;\n#[cfg(test)]\nmod tests { use crate::d::D; }",
        "d.rs": "pub struct D;",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert circles(uses(tmp_path)) == [[("a",), ("b",), ("b", "inner"), ("c",)]]
    (tmp_path / "c.rs").write_text("use crate::d::D;")
    assert circles(uses(tmp_path)) == []


def test_one_file_of_the_server_knows_statuses_of_http() -> None:
    source = ROOT / "crates/serve/src"
    knowing = {file.relative_to(source).as_posix() for file in source.rglob("*.rs") if "StatusCode" in file.read_text()}
    assert knowing == {"status.rs"}
