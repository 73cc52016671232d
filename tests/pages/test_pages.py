"""The pages of the repository: their links and paths lead somewhere, their code runs, they stay
short.
"""

from __future__ import annotations

import fnmatch
import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import prose
from support import DIGITS, ROOT

# Copied from elsewhere by scripts/sync_tests.py.
_COPIES = ("tests/conformance/", "tests/models/")
# Text that may name a page of the repository.
_SOURCES = (".rs", ".py", ".pyi", ".toml", ".sh", ".md", ".h", ".c", "Makefile", ".ci/run")

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(r"[\w.*{},/-]+(?:\.(?:rs|py|pyi|md|mutant|sh|toml|h|c|supp)|/)")
_MEMBER = re.compile(r"([A-Z]\w+)::(\w+)(?:\(\))?")
_PAGE = re.compile(r"[\w./-]*\w\.md\b")


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("the repository's files are listed by git, and this is no clone")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


FILES = _tracked() if (ROOT / ".git").exists() else []
FOLDERS = sorted({"/".join(name.split("/")[:depth]) for name in FILES for depth in range(1, name.count("/") + 1)})
PAGES = [name for name in FILES if name.endswith(".md") and not name.startswith(_COPIES)]


def _lines(page: str) -> Iterator[tuple[int, str, bool]]:
    """The lines of a page with their numbers, and whether they are code."""
    fenced = False
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        fence = line.lstrip().startswith("```")
        yield number, line, fenced or fence or line.startswith("    ")
        fenced ^= fence


def _anchors(page: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = [line.lstrip("# ") for _, line, code in _lines(page) if not code and line.startswith("#")]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@functools.cache
def _exists(path: str) -> bool:
    """Whether a file or folder of the repository has this path, whole or as its last parts."""
    names = FOLDERS if path.endswith("/") else FILES
    wanted = path.rstrip("/").removeprefix("./")
    pattern = re.sub(r"\{[^}]*\}", "*", wanted)
    return any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, f"*/{pattern}") for name in names)


@functools.cache
def _rust() -> str:
    return "\n".join((ROOT / name).read_text() for name in FILES if name.startswith("crates/") and name.endswith(".rs"))


@functools.cache
def _found(pattern: str) -> frozenset[str | tuple[str, ...]]:
    """The groups of all matches in the Rust code."""
    return frozenset(re.findall(pattern, _rust()))


@functools.cache
def _has(kind: str, member: str) -> bool:
    """Whether a Rust type has a member of this name: a function or constant, or a field or
    variant.
    """
    if member in _found(r"\b(?:fn|const) (\w+)") or (kind, member) in _found(r"\b(\w+)(?=::(\w+))"):
        return kind in _found(r"\b(?:struct|enum|trait|type) (\w+)")
    bodies = re.findall(rf"\b(?:struct|enum|trait) {kind}\b[^;{{]*{{(.*?)^}}", _rust(), re.M | re.S)
    return any(re.search(rf"\b{member}\b", body) for body in bodies)


def _blocks(page: str) -> str:
    """The Python code of a page, at its own line numbers."""
    code: list[str] = []
    language = None
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("```"):
            language = None if language is not None else line[3:].strip()
            code.append("")
        else:
            code.append(line if language == "python" else "")
    return "\n".join(code) + "\n"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    wrong = []
    for number, line, code in _lines(page):
        for target in [] if code else _LINK.findall(line):
            if target.startswith(("http://", "https://")):
                continue
            path, _, anchor = target.partition("#")
            there = (ROOT / page).parent.joinpath(path).resolve() if path else ROOT / page
            if not there.exists():
                wrong.append(f"{page}:{number}: {target} does not exist")
            elif anchor and anchor not in _anchors(str(there.relative_to(ROOT))):
                wrong.append(f"{page}:{number}: {target}: there is no such heading")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page: str) -> None:
    wrong = [
        f"{page}:{number}: `{quoted}` is no file of the repository"
        for number, line, code in _lines(page)
        for quoted in ([] if code else re.findall(r"`([^`]+)`", line))
        if _PATH.fullmatch(quoted) and not _exists(quoted)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES)
def test_members_that_a_page_names_exist(page: str) -> None:
    wrong = [
        f"{page}:{number}: there is no `{quoted}`"
        for number, line, code in _lines(page)
        for quoted in ([] if code else re.findall(r"`([^`]+)`", line))
        if (named := _MEMBER.fullmatch(quoted)) and not _has(*named.groups())
    ]
    assert not wrong, "\n".join(wrong)


def test_pages_that_a_file_names_exist() -> None:
    wrong = [
        f"{name}:{number}: there is no {page}"
        for name in FILES
        if name.endswith(_SOURCES) and not name.startswith(_COPIES)
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
        for page in _PAGE.findall(line)
        if not _exists(page.lstrip("./"))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES)
def test_prose_is_wrapped(page: str) -> None:
    wide = [
        f"{page}:{number}: {len(line)} columns"
        for number, line, code in _lines(page)
        if len(line) > 110 and not code and not line.startswith("|")
    ]
    assert not wide, "\n".join(wide)


def test_prose_is_that_of_a_native_engineer() -> None:
    found = [f"{name}:{finding.line}: {finding.message}" for name in prose.files() for finding in prose.findings(name)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.rs", "/// What a call reads.\nfn a() {}\n", [(1, "begins with a verb or a noun, not with 'What'")]),
        ("a.rs", "/// A value.\n///\n/// It lies\n/// behind it.\n", [(3, "is stored"), (4, "after")]),
        ("a.rs", "//! Runs at most\n//! one request at a time.\n", []),
        ("a.rs", "/// Calls that run at\n/// a time.\n", [(1, "concurrently")]),
        ("a.rs", "/// Reads `behind`.\n///\n/// ```\n/// beside\n/// ```\n", []),
        ("a.rs", "/// Two backends behind one trait.\n// behind\n", []),
        ("a.py", 'def a():\n    """As `b`, lately."""\n', [(2, "not with 'As'"), (2, "recently")]),
        ("README.md", "# A page\n\nIt is measured\nin turns.\n\n    in turns\n", [(4, "interleaved")]),
        ("a.h", "/* One.\n * It listens at a port. */\n", [(2, "listen on")]),
        (
            "crates/a/src/a.rs",
            'fn a() {\n    b("one thing \\\n       beside another");  // "a b beside"\n}\n',
            [(3, "next to")],
        ),
        ("crates/a/src/a.rs", '#[cfg(test)]\nmod tests {\n    // "one thing beside another"\n}\n', []),
        ("crates/a/tests/a.rs", 'fn a() {\n    b("one thing beside another");\n}\n', []),
        ("python/mxrt/a.py", 'a = f"one thing {b} lately"\nc = "lately"\n', [(1, "recently")]),
    ],
)
def test_a_phrase_that_is_no_english_is_found_at_its_line(
    name: str, text: str, wanted: list[tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    found = prose.findings(name)
    assert [finding.line for finding in found] == [line for line, _ in wanted], found
    assert all(part in finding.message for finding, (_, part) in zip(found, wanted, strict=True)), found


@pytest.mark.parametrize("page", [name for name in PAGES if "pip install" in (ROOT / name).read_text()])
def test_pip_finds_mxrt_nowhere_yet_and_pages_say_so(page: str) -> None:
    text = (ROOT / page).read_text()
    # An extra is found by its name where mxrt is installed.
    assert not re.search(r"pip install '?mxrt(?![-\w\[])", text)
    if "pip install 'mxrt[" in text:
        assert "not on PyPI yet" in text


def test_the_first_pages_are_short() -> None:
    readme = (ROOT / "README.md").read_text().splitlines()
    assert len(readme) <= 160, f"README.md has {len(readme)} lines, at most 160 are wanted"
    words = (ROOT / "ARCHITECTURE.md").read_text().split()
    assert len(words) <= 3200, f"ARCHITECTURE.md has {len(words)} words, at most 3200 are wanted"


def test_the_changelog_has_the_headings_of_keep_a_changelog() -> None:
    known = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    headings = re.findall(r"^### (.*)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings and set(headings) <= known, f"CHANGELOG.md: known headings are {sorted(known)}"


@pytest.mark.parametrize(
    ("page", "then"),
    [
        ("README.md", "assert answer(__import__('numpy').zeros((1, 1, 8, 8))) in range(10)"),
        ("docs/guide.md", "assert net(x).shape == (1, 10)"),
        ("docs/tutorial.md", "assert len(found) == 100"),
    ],
)
def test_the_code_of_a_page_runs(mx, page: str, then: str, tmp_path: Path) -> None:
    shutil.copy(DIGITS / "digits_cnn-symbol.json", tmp_path / "model-symbol.json")
    shutil.copy(DIGITS / "digits_cnn-0000.params", tmp_path / "model-0000.params")
    program = tmp_path / "program.py"
    program.write_text(f"{_blocks(page)}{then}\n")
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_name_stands_for_three_types_at_most() -> None:
    types: dict[str, list[str]] = {}
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            # An associated type is indented.
            if found := re.match(r"(?:\s*(?:pub\S* )?(?:struct|enum|trait|union)|(?:pub\S* )?type) (\w+)", line):
                types.setdefault(found[1], []).append(f"{path.relative_to(ROOT)}:{number}")
    many = {name: places for name, places in types.items() if len(places) > 3}
    assert types and not many, f"put the subject in front of some of these names: {many}"
