"""`mxrt bench --save` and `--compare`: what is compared, and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import command, refused
from support import DIGITS, MODELS, mxrt

MODEL = str(DIGITS / "digits_cnn")
QUICK = (MODEL, "--shape", "1,1,8,8", "--seconds", "0.3", "--callers", "1,2")


def test_a_measurement_is_saved_and_compared_with_the_next(mx, tmp_path: Path) -> None:
    file = tmp_path / "before.json"
    assert mxrt("bench", *QUICK, "--save", str(file)).returncode == 0
    report = json.loads(file.read_text())
    for one in report["runs"]:
        one["blocks_ms"] = [4 * value for value in one["blocks_ms"]]
    file.write_text(json.dumps(report))
    result = mxrt("bench", *QUICK, "--compare", str(file), "--json")
    rows = json.loads(result.stdout)["compared"]
    assert [row["callers"] for row in rows] == [1, 2]
    assert all(row["low"] <= row["ratio"] <= row["high"] for row in rows)
    file.write_text("{}")
    result = mxrt("bench", *QUICK, "--compare", str(file))
    assert result.returncode == 1 and "is no measurement" in result.stderr
    result = mxrt("bench", *QUICK, "--compare", "none.json")
    assert result.returncode == 2 and "there is no file 'none.json'" in result.stderr


def test_noise_is_no_difference_and_a_change_has_an_interval(mx) -> None:
    from mxrt.bench import saved

    rng = np.random.RandomState(1)

    def measured(scale: float) -> dict[str, Any]:
        times = scale * (1 + 0.05 * rng.standard_normal(2000))
        return {"runs": [{"callers": 1, "blocks_ms": saved.blocks(list(times))}]}

    (same,) = saved.compare(measured(1.0), measured(1.0))
    assert same["verdict"] == "no difference"
    (faster,) = saved.compare(measured(1.3), measured(1.0))
    assert faster["verdict"] == "faster" and faster["low"] < 1.3 < faster["high"]
    (slower,) = saved.compare(measured(1.0), measured(1.3))
    assert slower["verdict"] == "slower"


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """A saved measurement of :data:`QUICK`, on another machine and by another version."""
    saved = {
        "model": f"elsewhere/{Path(MODEL).name}-symbol.json",
        "inputs": {"data": [1, 1, 8, 8]},
        "precision": "default",
        "rate": None,
        "version": "0.0.9",
        "cores": 64,
        "processor": "Another",
        "runs": [{"callers": 1, "blocks_ms": [1.0, 2.0]}, {"callers": 8, "blocks_ms": [1.0, 2.0]}],
    }
    (tmp_path / "before.json").write_text(json.dumps(saved))
    return tmp_path / "before.json"


@pytest.mark.parametrize(
    ("words", "had", "has"),
    [
        (
            (MODELS / "module_mlp" / "module_mlp", "--shape", "1,64"),
            "has the model digits_cnn, the inputs data (1, 1, 8, 8), and",
            "this command the model module_mlp, the inputs data (1, 64)",
        ),
        ((MODEL, "--shape", "16,1,8,8"), "has the inputs data (1, 1, 8, 8),", "the inputs data (16, 1, 8, 8);"),
        ((*QUICK[:3], "--rate", "100"), "has a closed loop,", "this command 100 requests a second;"),
        ((*QUICK[:3], "--callers", "2,3"), "has callers 1,8,", "this command callers 2,3;"),
        ((*QUICK[:3], "--precision", "bf16"), "has precision default,", "this command precision bf16;"),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_is_measured(
    mx, capfd, monkeypatch, before: Path, words: tuple[object, ...], had: str, has: str
) -> None:
    monkeypatch.setattr("mxrt.bench.measure", lambda *_: pytest.fail("the model was measured"))
    done = command(capfd, "bench", *words, "--compare", before)
    refused(done, 2, f"--compare: '{before}'", had, has, "or save another")


def test_another_version_and_another_processor_are_notes(mx, capfd, before: Path) -> None:
    done = command(capfd, "bench", *QUICK[:3], "--callers", "1,2", "--seconds", "0.1", "--compare", before)
    assert done.status == 0, done
    first, second = done.err.splitlines()
    assert first == f"mxrt bench: '{before}' was measured with mxrt 0.0.9, this one is with mxrt {mx.__version__}"
    assert f"'{before}' was measured on 64 cores of Another, this one is on" in second
    assert "callers: 1: " in done.out and "callers: 2: " not in done.out


@pytest.mark.parametrize("key", ["model", "inputs", "precision", "version", "processor"])
def test_a_file_that_does_not_say_what_was_measured_is_no_measurement(mx, capfd, before: Path, key: str) -> None:
    saved = json.loads(before.read_text())
    before.write_text(json.dumps({**saved, key: None} if key == "inputs" else {k: saved[k] for k in saved if k != key}))
    refused(command(capfd, "bench", *QUICK, "--compare", before), 1, f"'{before}' is no measurement")
