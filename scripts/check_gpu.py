"""Everything that only a machine with a GPU can show, in one command.

    check_gpu.py OUT [--programs FOLDER] [--only STEP,...] [--seconds N] [--compile]

Needs an installed mxrt, pytest, and torch for the tables and for `capture`; compute-sanitizer from
the CUDA toolkit checks the kernels if it is on the path. FOLDER has the test programs of crates/sim
(`cargo test --no-run`; `programs`, `threads`, `staging`, `order`, `host`). What says most comes
first: kernels against the CPU, then the other checks side by side, then the networks, then what
measures, one after the other. Each step has a process, a log in OUT, and a time after which it is
ended. Prints the end of each log. Exits with 1 if a step failed or had no time left: the usual
time is enough, and less than the ten minutes after which some machines end a command.
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
ORDERED = ["random_programs_in_threads", "no_stream_and_no_thread_waits_without_a_reason"]
ORDERED += ["threads_copy_in_and_out_at_the_same_time", "two_threads_one_stream", "a_parked_op_blocks_no_worker"]


@dataclass
class Step:
    """A process."""

    name: str
    command: list[str]
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
        print(f"== {self.name}: {self.status}")
        for line in text[-self.lines :]:
            print(f"   {line[:600]}")
        sys.stdout.flush()


def python(script: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-X", "faulthandler", str(script), *arguments]


def sanitizers() -> list[Step]:
    """The kernels under compute-sanitizer, if there is one."""
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if tool is None:
        print("compute-sanitizer was not found: no step for it")
        return []
    made = []
    for kind in ("memcheck", "racecheck"):
        for name, groups in SANITIZED.items():
            calls = python(TESTS / "cuda_kernels.py", "--orders", "0-0", *groups.split())
            command = [tool, "--tool", kind, "--error-exitcode", "9", *calls]
            made.append(Step(f"{kind}-{name}", command, 240, lines=4))
    return made


def checks(out: Path, programs: Path | None) -> list[list[Step]]:
    """Steps that check; those of a list run side by side."""
    files = [str(TESTS / "devices" / f"test_{name}.py") for name in DEVICE_TESTS]
    pytest = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "4",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:benchmark",
        "--tb=short",
        "-k",
        NOT_HERE,
    ]
    conformance = python(TESTS / "conformance_gpu.py", str(out / "conformance.json"), "--jobs", "4")
    first = [
        Step("doctor", [sys.executable, "-m", "mxrt", "doctor"], 30, lines=20),
        Step("kernels", python(TESTS / "cuda_kernels.py", "--orders", "0-0"), 120, lines=1),
    ]
    made = [
        *sanitizers(),
        Step("conformance", conformance, 150, lines=30),
        Step("lost", python(BENCHES / "lost.py"), 40),
        Step("capture", python(BENCHES / "capture.py"), 60),
    ]
    libraries = {"MXRT_GPU_LIBRARIES": "cublaslt,cudnn"}
    calls = python(TESTS / "cuda_kernels.py", "--orders", "0-0", "products", "layouts", "tiles")
    made.append(Step("libraries", calls, 90, libraries, lines=4))
    for kind in ("ThreadedEngineAsync", "ThreadedEnginePerDeviceAsync", "NaiveEngine"):
        models = python(TESTS / "device_models.py", "--complete", "--seeds", "2", *MODELS.split())
        if kind != "NaiveEngine":
            env = {**ON_GPU, "MXNET_ENGINE_TYPE": kind, "PYTEST_XDIST_WORKER": f"gpu-{kind}"}
            # From Python 3.12 on one is printed where threads run and a process forks.
            env["PYTHONWARNINGS"] = "ignore::DeprecationWarning"
            made.append(Step(f"devices-{kind}", [*pytest, *files], 120, env, lines=12))
        made.append(Step(f"models-{kind}", models, 90, {**ON_GPU, "MXNET_ENGINE_TYPE": kind}))
    networks = [Step(f"network-{name}", python(BENCHES / "networks.py", name), 120) for name in NETWORKS.split()]
    if programs is not None:
        env = {"MXRT_SIM_THROUGH": "gpu", "MXRT_SIM_SEEDS": "1000"}
        for program in sorted(programs.iterdir()):
            made.append(
                Step(f"order-{program.name}", [str(program), "--exact", "--test-threads=1", *ORDERED], 120, env)
            )
    return [first, made, networks]


def measures(out: Path, compiled: bool) -> list[Step]:
    profiled = [
        f"{name}/{dtype}/{batch}"
        for name in ("resnet18_v1", "encoder")
        for dtype in ("float16", "float32")
        for batch in (1, 64)
    ]
    columns = python(BENCHES / "columns.py", "--json", str(out / "columns.json"))
    made = [
        Step("callers", python(BENCHES / "callers.py"), 60, lines=8),
        Step("table", python(BENCHES / "table.py", "--json", str(out / "table.json")), 120, lines=30),
        Step("columns", columns, 60, lines=20),
        Step("where", python(BENCHES / "kernels.py", *profiled), 60, lines=90),
    ]
    if compiled:
        table = python(BENCHES / "table.py", "--compile", "--json", str(out / "table-compile.json"))
        made.append(Step("table-compile", table, 400, lines=30))
    return made


def run(steps: list[Step], out: Path, end: float) -> list[str]:
    """Runs steps side by side; returns those that did not pass, with the reason."""
    left, failed = [], []
    for step in steps:
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


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out", type=Path)
    options.add_argument("--programs", type=Path)
    options.add_argument("--only", help="names of steps, or how they begin")
    options.add_argument("--seconds", type=float, default=570, help="after which everything is ended")
    options.add_argument("--compile", action="store_true", help="measure torch.compile, too: 400 s more")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + given.seconds
    stages = [*checks(given.out, given.programs), *([step] for step in measures(given.out, given.compile))]
    names = [step.name for steps in stages for step in steps]
    wanted = tuple(given.only.split(",")) if given.only else ("",)
    unknown = [word for word in wanted if not any(name.startswith(word) for name in names)]
    if unknown or (given.only and "" in wanted):
        options.error(f"--only: no step begins with {' or '.join(map(repr, unknown or ['']))} of {', '.join(names)}")
    failed = []
    for steps in stages:
        failed += run([step for step in steps if step.name.startswith(wanted)], given.out, end)
    print("failed: " + (", ".join(failed) or "nothing"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
