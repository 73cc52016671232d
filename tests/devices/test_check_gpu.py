"""The plan of scripts/check_gpu.py, and its predictions; the steps themselves need a GPU."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support import ROOT


def loaded(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


check_gpu = loaded("scripts/check_gpu.py")
peaks = loaded("benches/gpu/peaks.py")


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch):
    """All steps of a machine that has what steps are optional for."""
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    words = ["out", "--wheels", "w", "--scenarios", "s", "--inductor", "i"]
    return check_gpu.steps(check_gpu.arguments().parse_args(words))


def test_all_steps_are_expected_to_fit_six_minutes(everything) -> None:
    names = [step.name for stage in everything for step in stage]
    assert names[:4] == ["install", "ceilings", "doctor", "kernels"]
    assert {"memcheck-tiles", "racecheck-tiles", "order-threads", "table-compile", "callers"} <= set(names)
    assert len(names) == len(set(names))
    assert check_gpu.expected_seconds(everything) <= 360
    assert all(step.expected < step.seconds for stage in everything for step in stage)


def test_steps_name_scripts_that_are_there(everything) -> None:
    words = [word for stage in everything for step in stage for word in step.command]
    files = {word for word in words if word.endswith(".py")}
    assert len(files) > 8
    assert [file for file in files if not Path(file).is_file()] == []


def test_both_asynchronous_engines_are_checked_and_measured(everything) -> None:
    for kind in ("ThreadedEngineAsync", "ThreadedEnginePerDeviceAsync"):
        on_it = [step.name for stage in everything for step in stage if step.env.get("MXNET_ENGINE_TYPE") == kind]
        assert on_it == [f"models-{kind}", f"devices-{kind}", f"table-{kind}"]


def test_steps_are_chosen_and_left_out_by_how_they_begin(everything) -> None:
    kept = check_gpu.chosen(everything, "table,network", "network-vgg,table-")
    names = [step.name for stage in kept for step in stage]
    assert "table" in names and "network-alexnet" in names
    assert not any(name.startswith(("network-vgg", "table-", "kernels")) for name in names)
    for only, skip in (("tables", None), (None, "nothing"), ("", None)):
        with pytest.raises(ValueError, match="no step begins with"):
            check_gpu.chosen(everything, only, skip)


def test_a_step_that_fails_or_does_not_end_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def step(name: str, code: str, seconds: float) -> object:
        return check_gpu.Step(name, [sys.executable, "-c", code], 1, seconds)

    stage = [step("good", "print('all well')", 500), step("bad", "raise SystemExit(3)", 500)]
    stage.append(step("endless", "input() if 0 else __import__('threading').Event().wait()", 0.2))
    end = check_gpu.time.monotonic() + 600
    assert sorted(check_gpu.run(stage, tmp_path, end)) == ["bad", "endless"]
    told = capsys.readouterr().out
    assert "all well" in told and "== bad: exit code 3" in told and "== endless: no end after" in told
    assert check_gpu.run([step("late", "", 5)], tmp_path, check_gpu.time.monotonic()) == ["late (not begun)"]


def test_predictions_are_the_slower_of_arithmetic_and_memory() -> None:
    rates = peaks.of("NVIDIA H200")
    assert peaks.of("NVIDIA H100 80GB HBM3") is peaks.PEAKS["H100"] and peaks.of("simulated GPU") is None
    assert peaks.roofline(rates, "float16", 768e12, 4.2e9, 0) == pytest.approx(1)
    assert peaks.roofline(rates, "float32", 51e9, 4.2e12, 100) == pytest.approx(1 + 100 * rates.step)
    assert peaks.compared(2.0, 4.0) == "predicted 4, measured 0.50 of it"
    assert peaks.compared(2.0, None) == "no prediction"
