"""docs/support.md names the versions that the package and the requirements have."""

from __future__ import annotations

import re

import pytest

from support import ROOT

PAGE = (ROOT / "docs" / "support.md").read_text()


@pytest.mark.parametrize(
    ("file", "pattern", "words"),
    [
        ("pyproject.toml", r'requires-python = ">=(.+)"', "| {} |"),
        ("pyproject.toml", r'dependencies = \["numpy>=(.+)"\]', "numpy {} is the oldest"),
        ("Cargo.toml", r'rust-version = "(.+)"', "Rust {} and newer"),
        ("requirements/ray.txt", r"ray\[.*\]==(\d+\.\d+)", "Ray {} |"),
        ("requirements/serve-clients.txt", r"tritonclient\[.*\]==(\d+\.\d+)", "tritonclient {},"),
        ("requirements/peer-torch.txt", r"torch==(\d+\.\d+)", "PyTorch {},"),
        ("requirements/test.txt", r"numpy==([\d.]+);", "| 3.11 | {} | tested |"),
        ("tests/clients/check_deploy.py", r'validate\(.*"(\d\.\d+)"', "Kubernetes {},"),
    ],
)
def test_a_version_on_the_page_is_the_one_that_is_used(file: str, pattern: str, words: str) -> None:
    found = re.search(pattern, (ROOT / file).read_text())
    assert found, file
    assert words.format(found[1]) in PAGE, f"docs/support.md: expected {words.format(found[1])!r}, as in {file}"


def test_targets_that_the_page_names_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z0-9-]+)`", PAGE))
    assert named and named <= targets
