#!/usr/bin/env python3
"""Break mxrt on purpose, one rule at a time, and see whether its tests notice.

The lists are crates/*/mutants/*.mutant; their files are named from the folder of the crate. Each
mutant is applied to a scratch copy of the crates, the tests it names are built and run, and for a
mutant of the engine all other tests of engine and simulated device until one fails. A test is a
file of the engine's tests, or CRATE/FILE of another crate's, a program or a module of one;
CRATE/lib are its unit tests, `loom` the models, python/FILE a file of tests/ (or FILE::TEST).
Beginnings of names may follow. A mutant that does not compile or does not apply is an error of the
list, not a kill. Nothing in the source tree is changed.

    scripts/mutants.py                 all of them, and a table
    scripts/mutants.py token fork      those whose name, or crate, contains one of the words
    scripts/mutants.py --check         only whether every edit applies, and the tests are there
    scripts/mutants.py --baseline      only the unchanged engine: every test must pass
    scripts/mutants.py --models        every model against the mutants its comment says it kills
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
# Crates whose mutants need no others: they are built quickly.
CORE = ("engine", "sim", "cuda")
# Folders of a crate that no test needs.
LEFT_OUT = ("benches", "mutants", "target")
# Cheap ones first; what no test of its own names is looked for in this order.
FAST = [
    "order",
    "failures",
    "waiting",
    "corner_cases",
    "leaks",
    "races",
    "basics",
    "serial_order",
    "guards",
    "late_and_cancelled",
    "bulk",
    "parameter_gate",
    "resumable",
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
PYTHON_LIMIT = 300
# Interleavings of each scenario on the simulated device.
SIM_SEEDS = "200"


@dataclass
class Mutant:
    """One way to break a crate: edits of the source, each replacing one place by another text."""

    name: str
    crate: str = "engine"
    rule: str = ""
    tests: list = field(default_factory=list)
    edits: list = field(default_factory=list)  # (file from the root, old, new)
    equivalent: str = ""

    def needs_others(self):
        """Whether its tests need more crates than those that are built quickly."""
        return self.crate not in CORE or any(test.startswith("python/") for test in self.tests)


def parse(path):
    """Reads one list of mutants."""
    crate = path.parent.parent.name
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
                mutants.append(Mutant(value, crate))
            elif key == "rule":
                mutants[-1].rule = value
            elif key == "test":
                mutants[-1].tests.append(value)
            elif key == "equivalent":
                mutants[-1].equivalent = value
            elif key == "file":
                file = os.path.normpath(f"crates/{crate}/{value}")
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
    """The changed files: path from the root, new text. Raises if an edit does not apply exactly
    once.
    """
    texts = {}
    for file, old, new in mutant.edits:
        text = texts.get(file) or (ROOT / file).read_text()
        found = text.count(old)
        if found != 1:
            raise ValueError(f"{mutant.name}: the text to replace occurs {found} times in {file}, not once: {old!r}")
        texts[file] = text.replace(old, new)
    return texts


def write(path, content):
    """Writes only what differs, so that cargo rebuilds only what changed."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def manifest(path):
    """A Cargo.toml without benchmarks, and examples that lie outside of the crates."""
    text = re.sub(r"(?m)^criterion.*\n", "", path.read_text())
    return re.sub(r"(?ms)^\[\[(bench|example)\]\]\n.*?(?=^\[|\Z)", "", text)


class Scratch:
    """A workspace of its own, of these crates and what their tests need."""

    def __init__(self, where, crates):
        self.where, self.crates = where, crates
        self.crate = where / "crates" / "engine"
        workspace = (ROOT / "Cargo.toml").read_text()
        members = "members = " + json.dumps([f"crates/{name}" for name in crates])
        write(where / "Cargo.toml", re.sub(r"(?m)^members = .*", members, workspace).encode())
        for name in ("Cargo.lock", "README.md", "LICENSE"):
            if not (where / name).exists():
                shutil.copy(ROOT / name, where / name)
        # Tests read models and recorded results.
        for name in ("tests", "scripts", "docs"):
            if not (where / name).exists():
                (where / name).symlink_to(ROOT / name)

    def restore(self, changed=None):
        """Makes the copy equal to the source, except for the changed files."""
        changed = changed or {}
        for name in self.crates:
            self.copy(Path("crates") / name, changed)
        if "py" in self.crates:
            self.copy(Path("python"), {})

    def copy(self, folder, changed):
        """Makes one folder equal to its source, except for the changed files."""
        ours = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file()}
        wanted = {
            path
            for path in ours
            if path.parts[2] not in LEFT_OUT and "__pycache__" not in path.parts and path.suffix != ".so"
        }
        for path in wanted:
            if path.name == "Cargo.toml":
                write(self.where / path, manifest(ROOT / path).encode())
            elif str(path) in changed:
                write(self.where / path, changed[str(path)].encode())
            else:
                write(self.where / path, (ROOT / path).read_bytes())
        for path in list((self.where / folder).rglob("*.rs")):
            if path.relative_to(self.where) not in wanted:
                path.unlink()

    def build(self, test):
        """Builds a test; returns what runs it, or the compiler's words."""
        env = dict(os.environ, CARGO_PROFILE_DEV_OPT_LEVEL="1", CARGO_PROFILE_DEV_DEBUG="0", CARGO_INCREMENTAL="1")
        env["CARGO_PROFILE_RELEASE_LTO"] = "off"
        package = test.rpartition("/")[0]
        env["CARGO_TARGET_DIR"] = str(TARGET or self.where / "target")
        if package == "python":
            return self.build_module(env)
        what = ["--test", program(test)[0]] if is_file(test) else ["--lib"]
        if test == "loom":
            what = ["--lib", "--release"]
            env["RUSTFLAGS"] = "--cfg loom"
            env["CARGO_TARGET_DIR"] = str(self.where / "target-loom")
        command = ["cargo", "test", "-q", "-j", JOBS, "-p", "mxrt-" + (package or "engine")]
        command += [*what, "--no-run", "--message-format=json"]
        return self.cargo(command, env)

    def build_module(self, env):
        """Builds the Python module and puts it into the package; returns the interpreter."""
        library, errors = self.cargo(
            ["cargo", "build", "-q", "-j", JOBS, "-p", "mxrt-py", "--message-format=json"], env
        )
        if library is None:
            return None, errors
        write(self.where / "python" / "mxrt" / "_mxrt.abi3.so", Path(library).read_bytes())
        return sys.executable, ""

    def cargo(self, command, env):
        """Runs cargo; returns the last thing it made that can be run, or the compiler's words."""
        done = subprocess.run(command, cwd=self.where, env=env, capture_output=True, text=True)
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0:
            said = [m["message"]["rendered"] for m in messages if m.get("reason") == "compiler-message"]
            return None, "".join(said) + done.stderr
        programs = [m["executable"] for m in messages if m.get("executable")]
        libraries = [f for m in messages for f in m.get("filenames", []) if f.endswith(".so") and "_mxrt" in f]
        return (programs + libraries)[-1], ""

    def run_python(self, interpreter, test, words):
        """Runs tests of Python against the module that was built; returns what failed, or None."""
        begin = time.time()
        # Without the expression of pyproject.toml, so that slow tests run too.
        command = [interpreter, "-m", "pytest", "-m", "", "-x", "-q"]
        command += ["-p", "no:cacheprovider", "-p", "no:benchmark"]
        command += ["tests/" + test.removeprefix("python/"), *words]
        environment = dict(os.environ, PYTHONPATH=str(self.where / "python"))
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=PYTHON_LIMIT * PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"{test} (hangs)", time.time() - begin
        seconds = time.time() - begin
        if process.returncode == 0:
            return None, seconds
        if process.returncode in (4, 5):
            return f"NO TEST of {test} matches {words}", seconds
        failed = re.findall(r"^FAILED \S+::(\S+)", output, re.M)
        return f"{test}: {failed[0] if failed else f'status {process.returncode}'}", seconds

    def run(self, executable, test, words):
        """Runs a test; returns what failed, or None."""
        if test.startswith("python/"):
            return self.run_python(executable, test, words)
        if is_file(test) and (module := program(test)[1]):
            words = [f"{module}::{word}" for word in words or [""]]
        limit = LIMIT.get(test, 90 if test.startswith(("graph/", "tensor/")) else 25) * PATIENCE
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


def is_file(test):
    """Whether a test is a file of a crate's folder of tests."""
    return test != "loom" and not test.startswith("python/") and not test.endswith("/lib")


def test_file(test):
    """The source file of such a test. A folder with a main.rs is one program, and the files next to
    that are its modules.
    """
    package, _, name = test.rpartition("/")
    folder = ROOT / "crates" / (package or "engine") / "tests"
    places = [folder / f"{name}.rs", folder / name / "main.rs"]
    places += [main.with_name(f"{name}.rs") for main in sorted(folder.glob("*/main.rs"))]
    return next((place for place in places if place.exists()), None)


def program(test):
    """The test program that a file belongs to, and its module there, if it is one."""
    file = test_file(test)
    if (file.parent / "main.rs").exists():
        return file.parent.name, "" if file.stem == "main" else file.stem
    return file.stem, ""


def missing(test):
    """Tests that a mutant names and that are not there."""
    name, *words = test.split()
    if name.startswith("python/"):
        path, _, function = name.removeprefix("python/").partition("::")
        files, words = [ROOT / "tests" / path], [function, *words] if function else words
    elif name == "loom":
        files = list((CRATE / "src").rglob("*.rs"))
    elif name.endswith("/lib"):
        files = list((ROOT / "crates" / name.removesuffix("/lib") / "src").rglob("*.rs"))
    else:
        file = test_file(name)
        # The modules of a program are tests of it.
        files = [] if file is None else list(file.parent.glob("*.rs")) if file.stem == "main" else [file]
    text = "".join(file.read_text() for file in files if file.exists())
    absent = [] if text else [name]
    return absent + [f"{name} {word}" for word in words if not re.search(rf"\b(fn|def|mod) {re.escape(word)}", text)]


def stages(mutant):
    """Tests to try, as (name, words): those the mutant names, then those of the engine."""
    named = [(t.split()[0], t.split()[1:]) for t in mutant.tests]
    if mutant.needs_others():
        return named
    whole = [(t, []) for t in FAST if t == "loom" or test_file(t)]
    return named + [stage for stage in whole if stage not in named]


def judge(scratch, mutant, thorough):
    """The test that kills the mutant."""
    scratch = scratch[not mutant.needs_others()]
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
    """The claims in the comments of the models: (model, mutant). Models of steps that are not the
    engine's own code say "in model form" and are left out.
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
    global JOBS, PATIENCE, TARGET
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only mutants whose name contains one of these")
    parser.add_argument("--check", action="store_true", help="only look whether edits apply and tests are there")
    parser.add_argument("--baseline", action="store_true", help="only run the tests on the unchanged crate")
    parser.add_argument("--models", action="store_true", help="only the models, each against the mutants it names")
    parser.add_argument("--named-only", action="store_true", help="run only the tests that a mutant names")
    parser.add_argument("--scratch", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--target", type=Path, help="cargo's target folder, instead of one below the scratch folder")
    parser.add_argument("--table", type=Path, help="append every result to this file, and leave out what is in it")
    parser.add_argument("--patience", type=int, default=1, help="times as long until a test counts as hanging")
    parser.add_argument("--jobs", default=str(os.cpu_count() or 1))
    arguments = parser.parse_args()
    JOBS, PATIENCE, TARGET = arguments.jobs, arguments.patience, arguments.target
    mutants = [m for path in sorted((ROOT / "crates").glob("*/mutants/*.mutant")) for m in parse(path)]
    names = [m.name for m in mutants]
    assert len(set(names)) == len(names), "two mutants have one name"
    chosen = [m for m in mutants if not arguments.words or any(w in f"{m.crate}/{m.name}" for w in arguments.words)]
    stale = [f"{m.name}: there is no test {test}" for m in chosen for named in m.tests for test in missing(named)]
    for mutant in chosen:
        try:
            mutated(mutant)
        except ValueError as error:
            stale.append(str(error))
    print("\n".join(stale) or f"{len(chosen)} mutants apply", flush=True)
    if arguments.check or stale:
        return 1 if stale else 0

    every = sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))
    scratches = {True: Scratch(arguments.scratch, CORE), False: Scratch(arguments.scratch / "whole", every)}
    scratch = scratches[True]
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
        verdict, by = judge(scratches, mutant, not arguments.named_only)
        results[mutant.name] = verdict
        line = f"| {mutant.name} | {mutant.rule} | {verdict} | {by} |"
        print(f"{line} {time.time() - begin:.0f} s", flush=True)
        if arguments.table:
            with arguments.table.open("a") as table:
                table.write(line + "\n")
    for scratch in scratches.values():
        scratch.restore()
    count = {v: list(results.values()).count(v) for v in ("killed", "SURVIVED", "equivalent", "INVALID")}
    print(", ".join(f"{n} {v}" for v, n in count.items()))
    tried = count["killed"] + count["SURVIVED"]
    return 0 if not count["INVALID"] and count["killed"] >= 0.9 * tried else 1


if __name__ == "__main__":
    sys.exit(main())
