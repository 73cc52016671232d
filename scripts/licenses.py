#!/usr/bin/env python3
"""Collects the licences of the crates that the wheel carries compiled, for LICENSE-THIRD-PARTY.

    scripts/licenses.py            write it scripts/licenses.py --check    say whether it names the
    crates of Cargo.lock; exit status 1 when not

Needs cargo, and the sources of the crates, which a build has fetched.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "LICENSE-THIRD-PARTY"
HEAD = """Licences of the Rust crates that the shared library of mxrt is built of.
Written by scripts/licenses.py; do not edit.
Texts that several crates share stand once, below their names.
"""
RULE = "=" * 100
# Of two licences that a crate offers the first of these whose text it carries is the one that is
# taken.
PREFERRED = ("MIT", "APACHE", "LICENSE", "COPYING", "UNLICENSE", "ZLIB", "BSD")


def crates() -> list[dict[str, Any]]:
    """The crates of others that end up in the shared library, by name and version."""
    manifest = ["--locked", "--manifest-path", str(ROOT / "Cargo.toml")]
    data = json.loads(run("metadata", "--format-version=1", *manifest))
    packages = {(package["name"], package["version"]): package for package in data["packages"]}
    # Without what runs in the compiler, and with the features of the library, not those of tests.
    kinds = ["--edges", "normal,no-proc-macro", "--target", "x86_64-unknown-linux-gnu"]
    lines = run("tree", "--package", "mxrt-py", "--prefix", "none", "--format", "{p}", *kinds, *manifest).splitlines()
    linked = {(name, version.removeprefix("v")) for name, version in (line.split()[:2] for line in lines)}
    return [packages[key] for key in sorted(linked) if packages[key]["source"] is not None]


def run(*command: str) -> str:
    return subprocess.run(["cargo", *command], check=True, stdout=subprocess.PIPE, text=True).stdout


def title(package: dict[str, Any]) -> str:
    return f"{package['name']} {package['version']} ({package['license'] or 'see below'})"


def text(package: dict[str, Any]) -> str:
    """The text of a crate's licence; that of another crate may stand for it where it brings
    none.
    """
    folder = Path(package["manifest_path"]).parent
    found = [p for p in folder.iterdir() if re.match(r"(?i)(licen[sc]e|copying|unlicense)", p.name) and p.is_file()]
    for word in PREFERRED:
        for path in sorted(found):
            if word in path.name.upper():
                return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""


def content() -> str:
    """The whole file."""
    texts: dict[str, list[str]] = {}
    for package in crates():
        texts.setdefault(text(package), []).append(title(package))
    silent = texts.pop("", [])
    parts = [HEAD]
    parts += ["\n".join([RULE, *names, RULE, "", body, ""]) for body, names in texts.items()]
    if silent:
        note = "These bring no text; the licence of that name is in this file or in LICENSE."
        parts.append("\n".join([RULE, *silent, RULE, "", note, ""]))
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the file is up to date")
    if not parser.parse_args().check:
        TARGET.write_text(content())
        return 0
    held = TARGET.read_text() if TARGET.exists() else ""
    missing = [title(package) for package in crates() if title(package) not in held.splitlines()]
    if missing:
        print(f"{TARGET.name} lacks {', '.join(missing)}; run scripts/licenses.py")
        return 1
    print(f"{TARGET.name} names every crate")
    return 0


if __name__ == "__main__":
    sys.exit(main())
