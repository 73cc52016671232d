"""Models from MXNet 1.9.1 give the numbers MXNet gave, loaded and called in every way a user can.

tests/models/check.py does the work; each model has a process of its own. The weights of the
full-size networks are computed into a temporary folder and removed again, one network at a time.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from support import BUILD, MODELS, run

TRAINED = ["digits_cnn", "module_mlp", "legacy_mlp", "mlp_int8", "cnn_int8_fused"]
# Full-size networks that are small enough to be called from many threads every day.
DAILY_THREADS = {"mobilenet1.0", "resnet18_v1", "squeezenet1.1"}
ZOO = sorted(path.parent.name for path in (MODELS / "zoo").glob("*/shapes.json"))


def check(name: str, timeout: int, *options: str) -> str:
    folder = BUILD / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    # The limit of `run` counts what is computed. That of a model is for a machine that is busy.
    limit = ["--timeout", str(10 * timeout)]
    command = [sys.executable, str(MODELS / "check.py"), "--only", name, *limit, *options]
    result = run(command, timeout + 60, env={"TMPDIR": str(folder)})
    last = result.stdout.strip().splitlines()[-1] if result.stdout.strip() else ""
    good = re.fullmatch(r"[1-9]\d* passed, 0 failed", last) and result.returncode == 0
    assert good, f"{result.stdout}\n{result.stderr[-3000:]}"
    return result.stdout


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", TRAINED)
def test_a_trained_model_answers_as_mxnet_did(mx, name: str) -> None:
    said = check(name, 120)
    for way in ("block", "module", "threads", "threads-op", "threads-load", "accuracy"):
        assert re.search(rf"^ok +{name} +{way} ", said, re.M), f"{way} was not run:\n{said}"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ZOO)
def test_a_full_size_network_answers_as_mxnet_did(mx, name: str, resnet18: Path) -> None:
    """Every network in all ways; calls from eight threads with those of `DAILY_THREADS` alone."""
    options = ["--zoo-dir", str(resnet18)] if name == "resnet18_v1" else []
    ways = [] if name in DAILY_THREADS else ["--way", "block", "cachedop", "module"]
    check(f"zoo/{name}", 300, *options, *ways)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", [name for name in ZOO if name not in DAILY_THREADS])
def test_a_full_size_network_answers_eight_threads_as_mxnet_did(mx, name: str) -> None:
    check(f"zoo/{name}", 300, "--way", "threads", "threads-op")


def test_the_check_notices_a_wrong_model(mx, tmp_path: Path) -> None:
    """A check that cannot fail is none: one attribute of the graph changed must be seen."""
    models = tmp_path / "models"
    folder = models / "digits_cnn"
    folder.mkdir(parents=True)
    for path in (MODELS / "digits_cnn").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    symbol = folder / "digits_cnn-symbol.json"
    text = symbol.read_text()
    assert '"eps": "1e-05"' in text
    symbol.write_text(text.replace('"eps": "1e-05"', '"eps": "0.01"', 1))
    command = [
        sys.executable,
        str(MODELS / "check.py"),
        "--models",
        str(models),
        "--only",
        "digits_cnn",
        "--way",
        "block",
    ]
    result = run(command, 120)
    assert result.returncode == 1
    assert result.stdout.strip().endswith("0 passed, 1 failed")
