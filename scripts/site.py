"""Builds the documentation site from the pages of the repository: ``python scripts/site.py OUT``.

Warnings are errors. The pages stay where they are: Sphinx reads copies, next to the tables of
contents that this script makes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Titles of the parts of the site, and their pages, in order.
PARTS = {
    "Begin": ["docs/guide.md", "docs/recipes/README.md", "docs/differences.md"],
    "Serve": ["docs/serving.md", "docs/serving-operation.md", "docs/serving-reference.md"],
    "Look up": ["docs/commands.md", "docs/errors.md", "docs/settings.md", "docs/embedding.md", "docs/gpu.md"],
    "Measurements": ["docs/performance.md", "docs/performance-engine.md", "docs/serving-performance.md"],
    "Develop": ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/testing.md", "CHANGELOG.md", "SECURITY.md"],
}


def pages() -> list[str]:
    """Paths of all pages of the site."""
    return ["README.md", *sorted({page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")}),
            *PARTS["Develop"][:2], *PARTS["Develop"][3:]]  # fmt: skip


def contents(title: str, names: list[str], hidden: bool = True) -> str:
    """A table of contents in MyST."""
    lines = ["```{toctree}", f":caption: {title}", ":maxdepth: 1", *([":hidden:"] if hidden else [])]
    return "\n".join([*lines, "", *(name.removesuffix(".md") for name in names), "```", ""])


#: The first page of the site, which is the README.
FIRST = "index" + ".md"


def copy(to: Path) -> None:
    """Copies the pages into a folder, with tables of contents."""
    shutil.copy(ROOT / "docs" / "site" / "conf.py", to)
    for name in pages():
        target = to / (FIRST if name == "README.md" else name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_for_site((ROOT / name).read_text(), name))
    listed = {name for names in PARTS.values() for name in names}
    inner = [n for n in pages() if n.startswith("docs/recipes/") and not n.endswith("README.md")]
    rest = [name for name in pages() if name not in listed and name not in inner and name != "README.md"]
    with (to / FIRST).open("a") as index:
        index.write("\n" + "\n".join(contents(title, names) for title, names in PARTS.items()))
        index.write(contents("More", rest))
    with (to / "docs" / "recipes" / "README.md").open("a") as recipes:
        recipes.write("\n" + contents("Recipes", [name.removeprefix("docs/recipes/") for name in inner]))


def _for_site(text: str, name: str) -> str:
    """A page whose links to README.md lead to the first page of the site."""
    if name == "README.md":
        return text
    return re.sub(r"\]\((?:\.\./)+README\.md\)", f"]({'../' * name.count('/')}{FIRST})", text)


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
    if done.returncode == 0:
        print(f"the site is in {out}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
