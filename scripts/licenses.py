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
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--manifest-path", str(ROOT / "Cargo.toml")]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    data = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    waiting = [identity for identity, package in packages.items() if package["name"] == "mxrt-py"]
    seen = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if linked and dependency["pkg"] not in seen and not is_macro(packages[dependency["pkg"]]):
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    others = [packages[identity] for identity in seen if packages[identity]["source"] is not None]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def is_macro(package: dict[str, Any]) -> bool:
    """Whether a crate runs in the compiler and leaves nothing of itself."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


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
