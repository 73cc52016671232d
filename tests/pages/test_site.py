"""The documentation site: every page of the repository is in it, under a table of contents."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from support import ROOT

SPEC = importlib.util.spec_from_file_location("site_script", ROOT / "scripts" / "site.py")
assert SPEC is not None and SPEC.loader is not None
site = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(site)
FIRST = site.FIRST


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """The pages as Sphinx gets them."""
    folder = tmp_path_factory.mktemp("site")
    site.copy(folder)
    return folder


def test_every_page_is_in_one_table_of_contents(copied: Path) -> None:
    listed: list[str] = []
    for page in copied.rglob("*.md"):
        for table in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.M | re.S):
            names = [line for line in table.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r".*<(.*)>", r"\1", name) for name in names]
            listed += [(page.parent / f"{name}.md").relative_to(copied).as_posix() for name in names]
    there = {page.relative_to(copied).as_posix() for page in copied.rglob("*.md")} - {FIRST}
    assert sorted(listed) == sorted(there)
    assert {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")} <= there


def test_no_line_of_a_page_begins_as_a_comment_that_the_site_leaves_out(copied: Path) -> None:
    # MyST takes a line that begins with % for a comment, also within a paragraph.
    for page in copied.rglob("*.md"):
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S)
        assert re.findall(r"^ *(?:%|\+\+\+).*", text, re.M) == [], page.relative_to(copied)


def test_options_in_texts_keep_their_hyphens(copied: Path) -> None:
    settings: dict[str, object] = {}
    exec((copied / "conf.py").read_text(), settings)
    assert settings["smartquotes"] is False, "a dash in place of the hyphens of --params is no option"


def test_links_to_the_first_page_lead_to_the_first_page_of_the_site(copied: Path) -> None:
    for page in copied.rglob("*.md"):
        for target in re.findall(r"\]\(([^)\s:#]*index[.]md)", page.read_text()):
            assert (page.parent / target).resolve() == (copied / FIRST).resolve(), (page, target)
    assert f"(../{FIRST})" in (copied / "docs" / "guide.md").read_text()
    assert f"({FIRST})" in (copied / "ARCHITECTURE.md").read_text()
    recipes = (copied / "docs" / "recipes" / "sagemaker.md").read_text()
    assert FIRST not in recipes, "README.md there is the list of recipes"


def test_code_in_rust_is_without_what_only_rustdoc_reads(copied: Path) -> None:
    page = (copied / "crates" / "mxrt" / "README.md").read_text()
    assert "```rust\nlet model" in page and "```rust," not in page and "\n# Ok" not in page and "\n# mxrt" not in page
    assert page.startswith("# mxrt\n")


def test_links_of_pages_lead_to_files_of_the_site(copied: Path) -> None:
    texts = {page: re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S) for page in copied.rglob("*.md")}
    dead = [
        f"{page.relative_to(copied)}: {target}"
        for page, text in texts.items()
        for target in re.findall(r"\]\(([^)\s:#]+)[)#]", text)
        if not (page.parent / target).exists()
    ]
    assert dead == []
    assert (copied / "crates" / "mxrt" / "README.md").is_file() and (copied / "deploy" / "Dockerfile").is_file()


def test_a_link_of_the_built_site_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="top">B</h1>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#top"> <a href="b.html#end"> <a href="c.html"> <a href="#x"> <a href="https://c">'
        '<a href="b.html?q=1"> <img src="a%20b.png">'
    )
    found = [line.split()[1] for line in site.dead_links(tmp_path)]
    assert found == ["b.html#end", "c.html", "#x", "a%20b.png"]
