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
            listed += [(page.parent / f"{name}.md").relative_to(copied).as_posix() for name in names]
    there = {page.relative_to(copied).as_posix() for page in copied.rglob("*.md")} - {FIRST}
    assert sorted(listed) == sorted(there)
    assert {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")} <= there


def test_options_in_texts_keep_their_hyphens(copied: Path) -> None:
    settings: dict[str, object] = {}
    exec((copied / "conf.py").read_text(), settings)
    assert settings["smartquotes"] is False, "a dash in place of the hyphens of --params is no option"


def test_links_to_the_first_page_lead_to_the_first_page_of_the_site(copied: Path) -> None:
    for page in copied.rglob("*.md"):
        for target in re.findall(r"\]\(([^)\s:#]*index[.]md)", page.read_text()):
            assert (page.parent / target).resolve() == (copied / FIRST).resolve(), (page, target)
    assert f"(../{FIRST})" in (copied / "docs" / "guide.md").read_text()
