"""Replays the mutants: each fault is put into a copy of the engine, and the tests named for it must fail.

    python3 crates/engine/mutants/run.py [--only WORDS] [--models] [--list]

Models take a build of their own (`--cfg loom`); without --models, mutants that only a model is named for are left out.
The copy and its build are under target/mutants.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

CRATE = Path(__file__).resolve().parent.parent
ROOT = CRATE.parent.parent
WORK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
# Seconds for a test: it takes a few; a hang is a kill.
LIMIT = 40


@dataclass
class Mutant:
    name: str
    file: str = ""
    tests: list[str] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)


def read(path: Path) -> list[Mutant]:
    mutants: list[Mutant] = []
    old: list[str] | None = None
    new: list[str] | None = None

    def close() -> None:
        nonlocal old, new
        if old is not None and new is not None:
            while new and not new[-1].strip():
                new.pop()
            mutants[-1].changes.append(("\n".join(old), "\n".join(new)))
        old = new = None

    for line in path.read_text().splitlines():
        if line.startswith("== "):
            close()
            mutants.append(Mutant(line[3:]))
        elif line == "<<<":
            close()
            old = []
        elif line == ">>>":
            new = []
        elif new is not None:
            new.append(line)
        elif old is not None:
            old.append(line)
        elif line.startswith("file: "):
            mutants[-1].file = line[6:]
        elif line.startswith("test: "):
            mutants[-1].tests = line[6:].split()
    close()
    return mutants


def copy() -> Path:
    """The workspace with only the engine in it, so that nothing else is built."""
    crate = WORK / "crates" / "engine"
    shutil.rmtree(WORK / "crates", ignore_errors=True)
    shutil.copytree(CRATE, crate)
    shutil.copy(ROOT / "Cargo.lock", WORK)
    workspace = (ROOT / "Cargo.toml").read_text()
    (WORK / "Cargo.toml").write_text(re.sub(r"members = \[[^]]*\]", 'members = ["crates/engine"]', workspace))
    # Benchmarks are not replayed, and would be most of the build.
    manifest = re.sub(r"\[\[bench\]\][^[]*|criterion\.workspace = true\n", "", (CRATE / "Cargo.toml").read_text())
    (crate / "Cargo.toml").write_text(manifest)
    shutil.rmtree(crate / "benches", ignore_errors=True)
    return crate


def test(selection: str) -> bool:
    """Whether the tests pass."""
    file, _, name = selection.partition(":")
    env = {**os.environ, "CARGO_TARGET_DIR": str(WORK / ("loom" if file == "models" else "build"))}
    command = ["cargo", "test", "-q", "-p", "mxrt-engine"]
    if file == "models":
        env["RUSTFLAGS"] = "--cfg loom"
        command += ["--release", "--lib"]
    else:
        command += ["--test", file]
    built = subprocess.run([*command, "--no-run"], cwd=WORK, env=env, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"the mutant does not compile:\n{built.stderr[-3000:]}")
    child = subprocess.Popen(
        [*command, "--", name],
        cwd=WORK,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return child.wait(LIMIT) == 0
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.wait()
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name contains this")
    parser.add_argument("--models", action="store_true", help="run models too")
    parser.add_argument("--list", action="store_true", help="check that every mutant applies, run nothing")
    options = parser.parse_args()
    mutants = [m for m in read(Path(__file__).with_name("mutants.txt")) if options.only in m.name]
    for mutant in mutants:
        source = (CRATE / "src" / mutant.file).read_text()
        for old, _ in mutant.changes:
            assert source.count(old) == 1, f"{mutant.name}: its text is in {mutant.file} {source.count(old)} times"
    if options.list:
        print("\n".join(f"{m.file:14} {m.name}" for m in mutants), f"\n{len(mutants)} mutants")
        return 0
    crate = copy()
    killed, survivors = 0, []
    for mutant in mutants:
        tests = [t for t in mutant.tests if options.models or not t.startswith("models:")]
        if not tests:
            continue
        place = crate / "src" / mutant.file
        source = place.read_text()
        changed = source
        for old, new in mutant.changes:
            changed = changed.replace(old, new)
        place.write_text(changed)
        began = time.monotonic()
        killer = next((t for t in tests if not test(t)), None)
        place.write_text(source)
        killed += killer is not None
        if killer is None:
            survivors.append(mutant.name)
        verdict = f"killed by {killer}" if killer else "SURVIVED"
        print(f"{time.monotonic() - began:5.0f} s  {mutant.name}: {verdict}", flush=True)
    print(f"{killed} of {killed + len(survivors)} killed")
    return 1 if killed < 0.9 * (killed + len(survivors)) else 0


if __name__ == "__main__":
    sys.exit(main())
