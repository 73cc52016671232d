#!/usr/bin/env python3
"""Break the engine on purpose, one rule at a time, and see whether its tests notice.

The list is crates/engine/mutants/*.mutant. Each mutant is applied to a scratch copy of the crate,
the tests it names are built and run (a filter may follow the name, `loom` means the models,
`sim/NAME` a test of the simulated device), then all the others until one fails. A mutant that does
not compile or does not apply is an error of the list, not a kill. Nothing in the source tree is
changed.

    scripts/mutants.py                 all of them, and a table scripts/mutants.py token fork
    those whose name contains one of the words scripts/mutants.py --check         only whether every
    edit applies scripts/mutants.py --baseline      only the unchanged crate: every test must pass
    scripts/mutants.py --models        every model against the mutants that its comment says it
    kills
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "crates" / "engine"
SIM = ROOT / "crates" / "sim"
# Files of the simulated device, as the lists name them.
OF_SIM = "../sim/"
# Cheap ones first; what no test of its own names is looked for in this order.
FAST = [
    "order",
    "failures",
    "waiting",
    "edges",
    "leaks",
    "races",
    "basics",
    "serial_order",
    "guards",
    "late_and_cancelled",
    "bulk",
    "gate",
    "parts",
    "idle",
    "fork_and_exit",
    "memory",
    "allocations",
    "sim/checker",
    "sim/order",
    "sim/host",
    "sim/memory",
    "sim/errors",
    "sim/exchange",
    "sim/lifecycle",
    "sim/staging",
    "sim/drivers",
    "sim/own_kernels",
    "sim/profiler",
    "sim/threads",
    "sim/fork",
    "sim/programs",
    "loom",
]
LIMIT = {"loom": 60, "serial_order": 40, "sim/programs": 60}
# Interleavings of each scenario on the simulated device.
SIM_SEEDS = "200"


@dataclass
class Mutant:
    """One way to break the engine: edits of the source, each replacing one place by another
    text.
    """

    name: str
    rule: str = ""
    tests: list = field(default_factory=list)
    edits: list = field(default_factory=list)  # (file, old, new)
    equivalent: str = ""


def parse(path):
    """Reads one list of mutants."""
    mutants, file, old, new, part = [], None, [], [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if part is None:
            if not line.strip() or line.startswith("#"):
                continue
            if line == "<<<<":
                old, new, part = [], [], "old"
                continue
            key, _, value = line.partition(":")
            value = value.strip()
            if key == "mutant":
                mutants.append(Mutant(value))
            elif key == "rule":
                mutants[-1].rule = value
            elif key == "test":
                mutants[-1].tests.append(value)
            elif key == "equivalent":
                mutants[-1].equivalent = value
            elif key == "file":
                file = value
            else:
                sys.exit(f"{path}:{number}: expected mutant, rule, test, equivalent, file or <<<<, found {line!r}")
        elif line == "====":
            part = "new"
        elif line == ">>>>":
            mutants[-1].edits.append((file, "\n".join(old), "\n".join(new)))
            part = None
        else:
            (old if part == "old" else new).append(line)
    return mutants


def mutated(mutant):
    """The changed files: path below the crate, new text. Raises if an edit does not apply exactly
    once.
    """
    texts = {}
    for file, old, new in mutant.edits:
        text = texts.get(file) or (CRATE / file).read_text()
        found = text.count(old)
        if found != 1:
            raise ValueError(f"{mutant.name}: the text to replace occurs {found} times in {file}, not once: {old!r}")
        texts[file] = text.replace(old, new)
    return texts


def write(path, text):
    """Writes only what differs, so that cargo rebuilds only what changed."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Scratch:
    """A workspace of its own: the engine and the simulated device, without what their tests do not
    need.
    """

    def __init__(self, where):
        self.where = where
        self.crate = where / "crates" / "engine"
        workspace = (ROOT / "Cargo.toml").read_text()
        members = 'members = ["crates/engine", "crates/sim"]'
        write(where / "Cargo.toml", re.sub(r"(?m)^members = .*", members, workspace))
        if not (where / "Cargo.lock").exists():
            shutil.copy(ROOT / "Cargo.lock", where / "Cargo.lock")
        for source, copy in [(CRATE, self.crate), (SIM, where / "crates" / "sim")]:
            manifest = (source / "Cargo.toml").read_text()
            manifest = re.sub(r"(?m)^criterion.*\n", "", manifest)
            manifest = re.sub(r"(?ms)^\[\[bench\]\]\n.*?(?=^\[|\Z)", "", manifest)
            write(copy / "Cargo.toml", manifest)

    def restore(self, changed=None):
        """Makes the copy equal to the source, except for the changed files."""
        changed = changed or {}
        of_sim = {name.removeprefix(OF_SIM): text for name, text in changed.items() if name.startswith(OF_SIM)}
        self.copy(CRATE, self.crate, changed)
        self.copy(SIM, self.where / "crates" / "sim", of_sim)

    @staticmethod
    def copy(source, copy, changed):
        """Makes one crate equal to its source, except for the changed files."""
        for folder in ("src", "tests"):
            wanted = {p.relative_to(source) for p in (source / folder).rglob("*.rs")}
            for path in wanted:
                write(copy / path, changed.get(str(path)) or (source / path).read_text())
            for path in list((copy / folder).rglob("*.rs")):
                if path.relative_to(copy) not in wanted:
                    path.unlink()

    def build(self, test):
        """Builds a test; returns its executable, or the compiler's words."""
        env = dict(os.environ, CARGO_PROFILE_DEV_OPT_LEVEL="1", CARGO_PROFILE_DEV_DEBUG="0", CARGO_INCREMENTAL="1")
        env["CARGO_PROFILE_RELEASE_LTO"] = "off"
        package, _, name = test.rpartition("/")
        what = ["--test", name]
        env["CARGO_TARGET_DIR"] = str(self.where / "target")
        if test == "loom":
            what = ["--lib", "--release"]
            env["RUSTFLAGS"] = "--cfg loom"
            env["CARGO_TARGET_DIR"] = str(self.where / "target-loom")
        command = ["cargo", "test", "-q", "-j", JOBS, "-p", "mxrt-" + (package or "engine")]
        command += [*what, "--no-run", "--message-format=json"]
        done = subprocess.run(command, cwd=self.where, env=env, capture_output=True, text=True)
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0:
            said = [m["message"]["rendered"] for m in messages if m.get("reason") == "compiler-message"]
            return None, "".join(said) + done.stderr
        found = [m["executable"] for m in messages if m.get("executable")]
        return found[-1], ""

    def run(self, executable, test, words):
        """Runs a test; returns what failed, or None."""
        limit = LIMIT.get(test, 25) * PATIENCE
        begin = time.time()
        # On the slowest machines a test of a second takes ten; a hang takes for ever.
        environment = dict(os.environ, MXRT_SIM_SEEDS=SIM_SEEDS)
        process = subprocess.Popen(
            [executable, *words], cwd=self.crate, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            listed = subprocess.run([executable, "--list", *words], cwd=self.crate, capture_output=True, text=True)
            every = re.findall(r"^(\S+): test$", listed.stdout, re.M)
            ended = re.findall(r"^test (\S+) \.\.\. \w", output, re.M)
            hung = [n.split("::")[-1] for n in every if n not in ended]
            more = f" and {len(hung) - 1} more" if len(hung) > 1 else ""
            return f"{test}: {hung[0] if hung else '?'}{more} (hangs)", time.time() - begin
        if process.returncode == 0:
            ran = re.search(r"test result: ok. (\d+) passed", output)
            if not ran or ran.group(1) == "0":
                return f"NO TEST of {test} matches {words}", time.time() - begin
            return None, time.time() - begin
        return describe(test, process.returncode, output), time.time() - begin


def describe(test, code, output):
    """The name of the test that failed."""
    failed = re.findall(r"^test (\S+) \.\.\. FAILED", output, re.M)
    hung = re.findall(r"^HANG: (\S+)", output, re.M)
    names = [n.split("::")[-1] for n in failed]
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"{test}: {names[0]}{more}"
    if hung:
        return f"{test}: {hung[0].split('::')[-1]} (hangs)"
    last = re.findall(r"^test (\S+) \.\.\. ?$", output, re.M)
    how = f"ends by signal {-code}" if code < 0 else f"status {code}"
    return f"{test}: {last[-1].split('::')[-1] + ', ' if last else ''}{how}"


def test_file(test):
    """Where the source of a test is."""
    package, _, name = test.rpartition("/")
    return (SIM if package == "sim" else CRATE) / "tests" / f"{name}.rs"


def stages(mutant):
    """Tests to try, as (name, words): those the mutant names, then everything else."""
    named = [(t.split()[0], t.split()[1:]) for t in mutant.tests]
    whole = [(t, []) for t in FAST if t == "loom" or test_file(t).exists()]
    return named + [stage for stage in whole if stage not in named]


def judge(scratch, mutant, thorough):
    """What kills the mutant."""
    scratch.restore(mutated(mutant))
    tried = stages(mutant) if thorough else stages(mutant)[: max(1, len(mutant.tests))]
    for test, words in tried:
        executable, errors = scratch.build(test)
        if executable is None:
            return "INVALID", "does not compile: " + next(
                (x for x in errors.splitlines() if "error" in x), errors[:200]
            )
        failed, _ = scratch.run(executable, test, words)
        if failed and failed.startswith("NO TEST"):
            return "INVALID", failed
        if failed:
            return "killed", failed
    return ("equivalent" if mutant.equivalent else "SURVIVED"), mutant.equivalent


def claims():
    """What the comments of the models say they kill: (model, mutant). Those of steps that are not
    the engine's own code say "in model form" and are left out.
    """
    found = []
    for path in sorted((CRATE / "src").rglob("*.rs")):
        for comment, name in re.findall(r"((?:^///[^\n]*\n)+)#\[test\]\nfn (\w+)", path.read_text(), re.M):
            text = " ".join(comment.replace("///", "").split())
            if "Kills" in text and "in model form" not in text and "in its model form" not in text:
                found += [(name, mutant) for mutant in re.findall(r"`([\w-]+)`", text.split("Kills")[1].split(".")[0])]
    return found


def check_models(scratch, mutants):
    """Runs every model against the mutants it says it kills."""
    by_name = {m.name: m for m in mutants}
    wrong = 0
    for model, name in sorted(claims(), key=lambda claim: claim[1]):
        scratch.restore(mutated(by_name[name]))
        executable, errors = scratch.build("loom")
        failed = (
            "does not compile: " + errors[:300] if executable is None else scratch.run(executable, "loom", [model])[0]
        )
        ok = executable is not None and failed is not None and not failed.startswith("NO TEST")
        print(f"| {model} | {name} | {'killed' if ok else 'SURVIVED'} | {failed or ''} |", flush=True)
        wrong += not ok
    scratch.restore()
    return 1 if wrong else 0


def main():
    """Command line."""
    global JOBS, PATIENCE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only mutants whose name contains one of these")
    parser.add_argument("--check", action="store_true", help="only look whether every edit applies")
    parser.add_argument("--baseline", action="store_true", help="only run the tests on the unchanged crate")
    parser.add_argument("--models", action="store_true", help="only the models, each against the mutants it names")
    parser.add_argument("--named-only", action="store_true", help="run only the tests that a mutant names")
    parser.add_argument("--scratch", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--table", type=Path, help="append every result to this file, and leave out what is in it")
    parser.add_argument("--patience", type=int, default=1, help="times as long until a test counts as hanging")
    parser.add_argument("--jobs", default=str(os.cpu_count() or 1))
    arguments = parser.parse_args()
    JOBS, PATIENCE = arguments.jobs, arguments.patience
    mutants = [m for path in sorted((CRATE / "mutants").glob("*.mutant")) for m in parse(path)]
    names = [m.name for m in mutants]
    assert len(set(names)) == len(names), "two mutants have one name"
    chosen = [m for m in mutants if not arguments.words or any(w in m.name for w in arguments.words)]
    stale = []
    for mutant in chosen:
        try:
            mutated(mutant)
        except ValueError as error:
            stale.append(str(error))
    print("\n".join(stale) or f"{len(chosen)} mutants apply", flush=True)
    if arguments.check or stale:
        return 1 if stale else 0

    scratch = Scratch(arguments.scratch)
    if arguments.baseline:
        scratch.restore()
        bad = 0
        for test, words in stages(Mutant("")):
            executable, errors = scratch.build(test)
            failed, seconds = (
                ("does not compile\n" + errors, 0) if executable is None else scratch.run(executable, test, words)
            )
            print(f"{test}: {failed or 'passes'} ({seconds:.0f} s)", flush=True)
            bad += failed is not None
        return 1 if bad else 0

    if arguments.models:
        return check_models(scratch, mutants)
    results = {}
    if arguments.table and arguments.table.exists():
        for line in arguments.table.read_text().splitlines():
            results[line.split("|")[1].strip()] = line.split("|")[3].strip()
    for mutant in (m for m in chosen if m.name not in results):
        begin = time.time()
        verdict, by = judge(scratch, mutant, not arguments.named_only)
        results[mutant.name] = verdict
        line = f"| {mutant.name} | {mutant.rule} | {verdict} | {by} |"
        print(f"{line} {time.time() - begin:.0f} s", flush=True)
        if arguments.table:
            with arguments.table.open("a") as table:
                table.write(line + "\n")
    scratch.restore()
    count = {v: list(results.values()).count(v) for v in ("killed", "SURVIVED", "equivalent", "INVALID")}
    print(", ".join(f"{n} {v}" for v, n in count.items()))
    tried = count["killed"] + count["SURVIVED"]
    return 0 if not count["INVALID"] and count["killed"] >= 0.9 * tried else 1


if __name__ == "__main__":
    sys.exit(main())
