"""The recipes: every page is listed, and its code runs."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from commands import picture
from support import DIGITS, ROOT, digits

RECIPES = ROOT / "docs" / "recipes"
PAGES = sorted(path.stem for path in RECIPES.glob("*.md") if path.stem != "README")
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
#: A command that fails ends the shell of a block.
SHELL = "set -e\n"


def blocks(page: str) -> list[tuple[str, str]]:
    """The code of a page: language and text of each block. What is indented is for a shell."""
    text = (RECIPES / f"{page}.md").read_text()
    found = re.finditer(r"^```(\w+)\n(.*?)^```$|(?<=\n\n)((?: {4}[^\n]*\n)+)", text, re.M | re.S)
    return [(one[1], one[2]) if one[1] else ("sh", textwrap.dedent(one[3])) for one in found]


def in_folder(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder, without input."""
    return subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def material(tmp_path_factory) -> Path:
    """A folder with what the recipes name: a model, labels, images, a table, recorded outputs."""
    folder = tmp_path_factory.mktemp("recipes")
    shutil.copy(DIGITS / "digits_cnn-symbol.json", folder / "model-symbol.json")
    shutil.copy(DIGITS / "digits_cnn-0000.params", folder / "model-0000.params")
    shutil.copy(DIGITS / "golden.npz", folder)
    (folder / "labels.txt").write_text("\n".join(NAMES) + "\n")
    (folder / "images").mkdir()
    values, labels = digits(40)
    values = values[[labels.tolist().index(digit) for digit in range(3)]]
    for number, image in enumerate((values[:, 0] * 255).round().astype("uint8")):
        picture(folder / "images" / f"{number}.png", image)
    lines = [",".join(f"{value:g}" for value in row) for row in values.reshape(3, -1)]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_there_are_recipes_and_each_is_listed_once() -> None:
    assert len(PAGES) >= 25
    listed = re.findall(r"^- \[(.+)\]\((.+)\.md\)$", (RECIPES / "README.md").read_text(), re.M)
    assert sorted(name for _, name in listed) == PAGES
    for title, name in listed:
        assert (RECIPES / f"{name}.md").read_text().startswith(f"# {title}\n"), name


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_recipe_runs(mx, page: str, material: Path, tmp_path: Path) -> None:
    folder = tmp_path / "place"
    shutil.copytree(material, folder)
    found = blocks(page)
    assert found, "a recipe has code"
    lacking = []
    for number, (language, text) in enumerate(found):
        if language == "text":
            continue
        if language == "sh":
            done = in_folder(["bash", "-c", SHELL + text], folder)
        else:
            assert language == "python", language
            file = folder / f"program{number}.py"
            file.write_text(text)
            compile(text, str(file), "exec")
            needs = re.match(r"# needs: (.*)\n", text)
            missing = [one for one in (needs[1].split(", ") if needs else []) if importlib.util.find_spec(one) is None]
            if missing:
                lacking += missing
                continue
            # Other libraries may warn of each other.
            options = [] if needs else ["-W", "error"]
            done = in_folder([sys.executable, *options, str(file)], folder)
        assert done.returncode == 0, (text, done.stdout[-2000:], done.stderr[-2000:])
        assert "Traceback" not in done.stderr, done.stderr
    if lacking:
        pytest.skip(f"the rest needs {', '.join(lacking)}")


@pytest.mark.parametrize("page", PAGES)
def test_options_that_a_recipe_names_exist(page: str) -> None:
    """Text blocks do not run; their options are those of a command."""
    known = set(re.findall(r"--[a-z][\w-]*", (ROOT / "docs" / "commands.md").read_text())) | {"--preload", "--workers"}
    text = (RECIPES / f"{page}.md").read_text()
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)) <= known
