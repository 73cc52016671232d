"""Everything that only a machine with a GPU can show, in one command of six minutes.

    check_gpu.py OUT [--wheels FOLDER] [--scenarios FILE] [--inductor FOLDER]
                 [--only STEP,...] [--skip STEP,...] [--seconds N] [--list]

Needs an installed mxrt, pytest, and torch for the tables and for `capture`; --wheels installs them
from a folder of wheels, without a network. compute-sanitizer from the CUDA toolkit checks the
kernels if it is on the path. --scenarios is the test program of crates/sim of this name
(`cargo test -p mxrt-sim --test scenarios --no-run`). --inductor has a cache that
`TORCHINDUCTOR_CACHE_DIR=FOLDER table.py --warm --peers compile,max-autotune` filled on such a GPU:
then the table has rows of torch.compile.

The order: installation, ceilings of the GPU, kernels against the CPU, the other checks side by
side, networks, then what measures, one after the other. Each step has a process, a log in OUT, a
time that it is expected to take, and one after which it is ended. Prints the end of each log. Exits
with 1 if a step failed or had no time left. --list prints the steps with their times, and needs no
GPU. Expected times are estimates for an H200: the steps together have not run on one yet.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS, BENCHES = ROOT / "tests", ROOT / "benches" / "gpu"
ON_GPU = {"MXRT_TEST_DEVICES": "gpu", "MXRT_TEST_GPUS": "1"}
DEVICE_TESTS = ["devices", "device_engines", "device_failures", "device_profile", "device_exchange", "device_models"]
# They compare bits with those of the CPU's kernels.
NOT_HERE = "not (hosts_bits or full_size or sixteen or module_and_executor or parameters_move)"
NETWORKS = "alexnet densenet121 inceptionv3 mobilenet1.0 mobilenetv2_1.0 resnet18_v1 resnet50_v1 resnet50_v2 "
NETWORKS += "squeezenet1.1 vgg11_bn"
MODELS = "digits_cnn half_cnn legacy_mlp lstm_rows module_mlp ssd_digits transformer wide_deep"
# Groups of calls that compute-sanitizer checks, each in a process of its own: those of kernels with
# barriers, or with addresses from data.
SANITIZED = {
    "sums": "reductions rows order pooling moving random indexing",
    "vision": "detection nms matching proposals multibox_target",
    "linalg": "linalg triangular int8",
    "products": "products layouts",
    "tiles": "tiles",
}
ASYNC = ("ThreadedEngineAsync", "ThreadedEnginePerDeviceAsync")
# Tests of the simulated device that a GPU can run: its devices have threads.
ORDERED = [
    "programs::random_programs_in_threads",
    "threads::no_stream_and_no_thread_waits_without_a_reason",
    "staging::threads_copy_in_and_out_at_the_same_time",
    "order::two_threads_one_stream",
    "host::a_parked_op_blocks_no_worker",
]


@dataclass
class Step:
    """A process, the seconds that it is expected to take, and those after which it is ended."""

    name: str
    command: list[str]
    expected: float
    seconds: float
    env: dict[str, str] = field(default_factory=dict)
    lines: int = 3
    status: str = "not begun"
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0

    def begin(self, out: Path) -> None:
        self.began = time.monotonic()
        with (out / f"{self.name}.log").open("wb") as log:
            env = {**os.environ, "PYTHONUNBUFFERED": "1", **self.env}
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
            )

    def is_over(self) -> bool:
        assert self.process is not None
        code, took = self.process.poll(), time.monotonic() - self.began
        if code is None and took > self.seconds:
            os.killpg(self.process.pid, 9)
            self.process.wait()
            self.status = f"no end after {took:.0f} s"
            return True
        if code is not None:
            self.status = f"{'passed' if code == 0 else f'exit code {code}'} after {took:.0f} s"
        return code is not None

    def show(self, out: Path) -> None:
        text = (out / f"{self.name}.log").read_text(errors="replace").splitlines()
        print(f"== {self.name}: {self.status}, {self.expected:.0f} s expected")
        for line in text[-self.lines :]:
            print(f"   {line[:600]}")
        sys.stdout.flush()


def python(script: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-X", "faulthandler", str(script), *arguments]


def installation(wheels: Path | None) -> list[Step]:
    """The packages that steps need, from wheels that were carried along."""
    if wheels is None:
        return []
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--find-links", str(wheels)]
    packages = ["mxrt", "numpy", "torch", "pytest", "pytest-xdist", "pytest-timeout"]
    return [Step("install", [*command, *packages], 75, 100)]


def sanitizers() -> list[Step]:
    """The kernels under compute-sanitizer, if there is one."""
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if tool is None:
        print("compute-sanitizer was not found: no step for it")
        return []
    made = []
    for kind in ("memcheck", "racecheck"):
        for name, groups in SANITIZED.items():
            calls = python(TESTS / "devices" / "cuda_kernels.py", "--orders", "0-0", *groups.split())
            command = [tool, "--tool", kind, "--error-exitcode", "9", *calls]
            made.append(Step(f"{kind}-{name}", command, 60, 90, lines=4))
    return made


def on_engines() -> list[Step]:
    """Device tests and models with each kind of engine."""
    options = "-q -n 4 -p no:cacheprovider -p no:benchmark --tb=short -k".split()
    files = [str(TESTS / "devices" / f"test_{name}.py") for name in DEVICE_TESTS]
    pytest = [sys.executable, "-m", "pytest", *options, NOT_HERE, *files]
    made = []
    for kind in (*ASYNC, "NaiveEngine"):
        env = {**ON_GPU, "MXNET_ENGINE_TYPE": kind}
        models = python(TESTS / "devices" / "device_models.py", "--complete", "--seeds", "2", *MODELS.split())
        made.append(Step(f"models-{kind}", models, 20, 60, env))
        if kind != "NaiveEngine":
            # From Python 3.12 on one is printed where threads run and a process forks.
            more = {"PYTEST_XDIST_WORKER": f"gpu-{kind}", "PYTHONWARNINGS": "ignore::DeprecationWarning"}
            made.append(Step(f"devices-{kind}", pytest, 25, 80, {**env, **more}, lines=12))
    return made


def orders(scenarios: Path | None) -> list[Step]:
    """The order of work on the GPU's streams, each test in a process of its own."""
    if scenarios is None:
        return []
    env = {"MXRT_SIM_THROUGH": "gpu", "MXRT_SIM_SEEDS": "1000"}
    command = [str(scenarios), "--exact", "--test-threads=1"]
    return [Step(f"order-{test.split('::')[0]}", [*command, test], 20, 60, env) for test in ORDERED]


def checks(given: argparse.Namespace) -> list[list[Step]]:
    """Steps that check; those of a list run side by side."""
    kernels = python(TESTS / "devices" / "cuda_kernels.py", "--orders", "0-0")
    conformance = python(TESTS / "operators" / "conformance_gpu.py", str(given.out / "conformance.json"), "--jobs", "4")
    libraries = {"MXRT_GPU_LIBRARIES": "cublaslt,cudnn"}
    first = [
        Step("doctor", [sys.executable, "-m", "mxrt", "doctor"], 5, 30, lines=20),
        Step("kernels", kernels, 20, 60, lines=1),
    ]
    then = [
        *sanitizers(),
        Step("conformance", conformance, 30, 80, lines=30),
        Step("libraries", [*kernels, "products", "layouts", "tiles"], 20, 60, libraries, lines=4),
        Step("lost", python(BENCHES / "lost.py"), 10, 40),
        Step("capture", python(BENCHES / "capture.py"), 10, 40),
        *on_engines(),
        *orders(given.scenarios),
    ]
    networks = [Step(f"network-{name}", python(BENCHES / "networks.py", name), 25, 60) for name in NETWORKS.split()]
    return [first, then, networks]


def table(name: str, given: argparse.Namespace, expected: float, *arguments: str, **env: str) -> Step:
    """A run of the table of mxrt and torch."""
    command = python(BENCHES / "table.py", "--json", str(given.out / f"{name}.json"), *arguments)
    return Step(name, command, expected, 1.5 * expected, env, lines=26)


def measures(given: argparse.Namespace) -> list[Step]:
    """Steps that measure, each alone on the machine."""
    profiled = [f"{name}/{dtype}/64" for name in ("resnet18_v1", "encoder") for dtype in ("float16", "float32")]
    few = [f"{name}/float16/{batch}" for name in ("resnet18_v1", "encoder") for batch in (1, 8, 64)]
    cells = [f"{dtype}/{batch}" for dtype in ("float32", "float16") for batch in (1, 64)]
    columns = python(BENCHES / "columns.py", "--seconds", "0.1", "--json", str(given.out / "columns.json"), *cells)
    made = [table("table", given, 50, "--seconds", "0.4")]
    for kind in ASYNC:
        # torch has no such kind: its graphs were measured above.
        fast = ["--seconds", "0.2", "--peers", "graph"]
        made.append(table(f"table-{kind}", given, 12, *fast, *few, MXNET_ENGINE_TYPE=kind))
    if given.inductor:
        cache = {"TORCHINDUCTOR_CACHE_DIR": str(given.inductor), "TRITON_CACHE_DIR": str(given.inductor / "triton")}
        peers = ["--seconds", "0.4", "--peers", "graph,compile,max-autotune"]
        made.append(table("table-compile", given, 35, *peers, *few, **cache))
    return [
        *made,
        Step("callers", python(BENCHES / "callers.py", "--seconds", "1"), 20, 40, lines=8),
        Step("where", python(BENCHES / "kernels.py", *profiled), 15, 40, lines=60),
        Step("columns", columns, 20, 40, lines=20),
    ]


def steps(given: argparse.Namespace) -> list[list[Step]]:
    """All steps, those that run side by side in a list."""
    ceilings = Step("ceilings", python(BENCHES / "ceilings.py", "--json", str(given.out / "ceilings.json")), 8, 30)
    ceilings.lines = 6
    alone = [[step] for step in measures(given)]
    return [stage for stage in (installation(given.wheels), [ceilings], *checks(given), *alone) if stage]


def expected_seconds(stages: list[list[Step]]) -> float:
    """Seconds that all steps are expected to take."""
    return sum(max(step.expected for step in stage) for stage in stages)


def run(stage: list[Step], out: Path, end: float) -> list[str]:
    """Runs steps side by side; returns those that did not pass, with the reason."""
    left, failed = [], []
    for step in stage:
        if end - time.monotonic() > 10:
            step.seconds = min(step.seconds, end - time.monotonic())
            step.begin(out)
            left.append(step)
        else:
            print(f"== {step.name}: not begun, no time was left")
            failed.append(f"{step.name} (not begun)")
    while left:
        for step in [step for step in left if step.is_over()]:
            left.remove(step)
            step.show(out)
            if not step.status.startswith("passed"):
                failed.append(step.name)
        time.sleep(0.1)
    return failed


def arguments() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out", type=Path)
    options.add_argument("--wheels", type=Path, help="a folder of wheels to install from")
    options.add_argument("--scenarios", type=Path, help="the test program of crates/sim")
    options.add_argument("--inductor", type=Path, help="a folder of a cache of torch.compile")
    options.add_argument("--only", help="names of steps, or how they begin")
    options.add_argument("--skip", help="the same, of steps that are left out")
    options.add_argument("--seconds", type=float, default=360, help="after which everything is ended")
    options.add_argument("--list", action="store_true", help="print the steps and end")
    return options


def chosen(stages: list[list[Step]], only: str | None, skip: str | None) -> list[list[Step]]:
    """The steps that are wanted. Raises ValueError for a name of none."""
    names = [step.name for stage in stages for step in stage]
    words = {"--only": only.split(",") if only is not None else None, "--skip": skip.split(",") if skip else []}
    for option, given in words.items():
        for word in given or []:
            if not word or not any(name.startswith(word) for name in names):
                raise ValueError(f"{option}: no step begins with {word!r} of {', '.join(names)}")
    wanted, left_out = tuple(words["--only"] or ("",)), tuple(words["--skip"] or ())
    kept = [[s for s in stage if s.name.startswith(wanted) and not s.name.startswith(left_out)] for stage in stages]
    return [stage for stage in kept if stage]


def main() -> int:
    options = arguments()
    given = options.parse_args()
    begun = time.monotonic()
    try:
        stages = chosen(steps(given), given.only, given.skip)
    except ValueError as error:
        options.error(str(error))
    print(f"{expected_seconds(stages):.0f} s expected, {given.seconds:.0f} s at most", flush=True)
    if given.list:
        for stage in stages:
            print(", ".join(f"{step.name} {step.expected:.0f} s" for step in stage))
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for stage in stages:
        failed += run(stage, given.out, begun + given.seconds)
    print(f"{time.monotonic() - begun:.0f} s; failed: " + (", ".join(failed) or "nothing"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
