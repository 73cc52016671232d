"""Builds the documentation site from the pages of the repository: ``python scripts/site.py OUT``.

Warnings are errors, and so are links within the site that lead nowhere. The pages stay where they
are: Sphinx reads copies, next to the tables of contents that this script makes. Other files that a
page links to are copied too.
"""

from __future__ import annotations

import functools
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
#: Titles in the tables of contents that pages do not have themselves.
TITLES = {"crates/mxrt/README.md": "mxrt in Rust programs"}
#: Titles of the parts of the site, and their pages, in order.
PARTS = {
    "Begin": ["docs/tutorial.md", "docs/guide.md", "docs/recipes/README.md", "docs/differences.md", "docs/coverage.md"],
    "Serve": ["docs/serving.md", "docs/serving-operation.md", "docs/serving-reference.md"],
    "Look up": [
        *("docs/commands.md", "docs/errors.md", "docs/settings.md", "docs/api.md", "docs/operators.md"),
        *("docs/support.md", "docs/embedding.md", "crates/mxrt/README.md", "docs/gpu.md"),
    ],
    "Measurements": [
        *("docs/performance.md", "docs/performance-operators.md", "docs/performance-engine.md"),
        "docs/serving-performance.md",
    ],
    "Develop": ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/testing.md", "CHANGELOG.md", "SECURITY.md"],
}


_LINK = re.compile(r"(?<=\]\()([^)\s:#]+)(?=[)#])")


def _targets(name: str) -> Iterator[str]:
    """Paths of the files that a page links to."""
    for link in _LINK.findall((ROOT / name).read_text()):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
        if (ROOT / target).is_file():
            yield target


@functools.cache
def files() -> frozenset[str]:
    """Paths of all pages of the site, and of the files that they link to."""
    found = {"README.md", *(name for names in PARTS.values() for name in names)}
    found |= {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")}
    new = set(found)
    while new:
        new = {target for name in new if name.endswith(".md") for target in _targets(name)} - found
        found |= new
    return frozenset(found)


def pages() -> list[str]:
    """Paths of all pages of the site."""
    return ["README.md", *sorted(name for name in files() if name.endswith(".md") and name != "README.md")]


def contents(title: str, names: list[str], hidden: bool = True) -> str:
    """A table of contents in MyST."""
    lines = ["```{toctree}", f":caption: {title}", ":maxdepth: 1", *([":hidden:"] if hidden else [])]

    def entry(name: str) -> str:
        path = name.removesuffix(".md")
        return f"{TITLES[name]} <{path}>" if name in TITLES else path

    return "\n".join([*lines, "", *map(entry, names), "```", ""])


#: The first page of the site, which is the README.
FIRST = "index" + ".md"


def copy(to: Path) -> None:
    """Copies the pages into a folder, with tables of contents."""
    shutil.copy(ROOT / "docs" / "site" / "conf.py", to)
    (to / "_static").mkdir()
    shutil.copy(ROOT / "docs" / "site" / "site.css", to / "_static")
    for name in sorted(files()):
        target = to / (FIRST if name == "README.md" else name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            target.write_text(_for_site((ROOT / name).read_text(), name))
        else:
            shutil.copy(ROOT / name, target)
    listed = {name for names in PARTS.values() for name in names}
    inner = [n for n in pages() if n.startswith("docs/recipes/") and not n.endswith("README.md")]
    rest = [name for name in pages() if name not in listed and name not in inner and name != "README.md"]
    with (to / FIRST).open("a") as index:
        index.write("\n" + "\n".join(contents(title, names) for title, names in PARTS.items()))
        index.write(contents("More", rest))
    with (to / "docs" / "recipes" / "README.md").open("a") as recipes:
        recipes.write("\n" + contents("Recipes", [name.removeprefix("docs/recipes/") for name in inner]))


def _for_site(text: str, name: str) -> str:
    """A page whose links to README.md lead to the first page of the site, without code that only
    rustdoc reads.
    """
    folder = posixpath.dirname(name)

    def link(found: re.Match[str]) -> str:
        first = posixpath.normpath(posixpath.join(folder, found[0])) == "README.md"
        return posixpath.relpath(FIRST, folder or ".") if first else found[0]

    def rust(found: re.Match[str]) -> str:
        return "```rust\n" + re.sub(r"^# .*\n", "", found[1], flags=re.M)

    return re.sub(r"^```rust(?:,\w+)?\n(.*?^)(?=```$)", rust, _LINK.sub(link, text), flags=re.M | re.S)


class _Page(HTMLParser):
    """The links and the anchors of a page of the site."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps what an element links to and is called."""
        for key, value in attrs:
            if value and key in ("href", "src"):
                self.links.append(value)
            elif value and key == "id":
                self.anchors.add(value)


def dead_links(out: Path) -> list[str]:
    """Links within a built site that lead to no file or to no place of a page."""
    built = {file.resolve(): _Page(file.read_text()) for file in out.rglob("*.html")}
    dead = []
    for file, page in sorted(built.items()):
        for link in page.links:
            path, _, anchor = link.partition("#")
            if re.match(r"\w+:|//", link):
                continue
            path = unquote(path.partition("?")[0])
            there = (file.parent / path).resolve() if path else file
            if not there.is_file() or (anchor and there in built and unquote(anchor) not in built[there].anchors):
                dead.append(f"{file.relative_to(out.resolve())}: {link} leads nowhere")
    return dead


def version() -> str:
    """The version of the workspace."""
    found = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M)
    assert found, "Cargo.toml names no version"
    return found[1]


def main() -> int:
    """Builds the site; returns the status of Sphinx."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site")
    with tempfile.TemporaryDirectory(prefix="mxrt-site-") as folder:
        copy(Path(folder))
        options = ["-q", "-W", "--keep-going", "-b", "html", "-D", f"release={version()}"]
        done = subprocess.run([sys.executable, "-m", "sphinx", *options, folder, str(out)])
    if done.returncode != 0:
        return done.returncode
    dead = dead_links(out)
    print(*(dead or [f"the site is in {out}"]), sep="\n")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
