"""Saved measurements, and the changes since."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..cli._errors import ModelError, UsageError
from ..cli._out import counted, shape_text

__all__ = ["blocks", "check", "compare", "load", "save"]

# Stretches of a run whose latencies are averaged: what disturbs one stretch counts once.
BLOCKS = 20
_RESAMPLES = 2000
# A change below this share is called none, however sure it is.
_NOISE = 0.01


def blocks(times: Sequence[float]) -> list[float]:
    """Mean latencies of consecutive stretches of a run, in ms."""
    return [float(part.mean()) for part in np.array_split(np.asarray(times), min(BLOCKS, len(times))) if part.size]


def save(report: Mapping[str, Any], target: Path) -> None:
    """Writes a report for a later comparison."""
    from .. import _mxrt

    _mxrt.write_file(target, json.dumps(report).encode())


def load(file: str) -> dict[str, Any]:
    """A report that :func:`save` wrote. UsageError if it is not there, ModelError if it is none."""
    try:
        report = json.loads(Path(file).read_text(encoding="utf-8"))
        for run in report["runs"]:
            if not run["blocks_ms"] or not all(value > 0 for value in run["blocks_ms"]):
                raise ValueError
            int(run["callers"])
        _subject(report), _machine(report)
    except (FileNotFoundError, IsADirectoryError):
        raise UsageError(f"there is no file '{file}' (--compare); mxrt bench MODEL --save FILE writes one") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(f"'{file}' is no measurement; expected what mxrt bench MODEL --save FILE wrote") from None
    return dict(report)


def check(file: str, old: Mapping[str, Any], new: Mapping[str, Any], callers: Sequence[int]) -> list[str]:
    """Notes on what was different when a file was saved: mxrt, or the processor.

    UsageError where the file and the measurement that is to begin have different subjects.
    """
    differing = [pair for pair in zip(_subject(old), _subject(new), strict=True) if len(set(pair)) > 1]
    saved = [run["callers"] for run in old["runs"]]
    if not set(saved) & set(callers):
        differing.append((f"callers {','.join(map(str, saved))}", f"callers {','.join(map(str, callers))}"))
    if differing:
        before, now = (", ".join(words) for words in zip(*differing, strict=True))
        raise UsageError(
            f"--compare: '{file}' has {before}, and this command {now}; only measurements of the same can be compared: "
            "change the options, or save another"
        )
    return [
        f"'{file}' was measured {before}, this one is {now}"
        for before, now in zip(_machine(old), _machine(new), strict=True)
        if before != now
    ]


def _subject(report: Mapping[str, Any]) -> list[str]:
    """Texts for what a report measures, callers left out, which are equal where times compare."""
    inputs = (f"{name} {shape_text(shape)}" for name, shape in report["inputs"].items())
    return [
        f"the model {Path(report['model']).name.removesuffix('-symbol.json')}",
        f"the inputs {', '.join(inputs)}",
        "a closed loop" if report.get("rate") is None else f"{report['rate']:g} requests a second",
        f"precision {report['precision']}",
        "random numbers" if report.get("images") is None else f"{counted(report['images']['count'], 'image')}",
    ]


def _machine(report: Mapping[str, Any]) -> list[str]:
    """The mxrt and the processor that a report is of."""
    return [
        f"with mxrt {report['version']}",
        f"on {counted(report['cores'], 'core')} of {report['processor']}",
    ]


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compares each number of callers in both: how many times as fast calls are now, with the
    interval that has 95 % of resampled ratios, and a verdict.
    """
    before = {run["callers"]: run["blocks_ms"] for run in old["runs"]}
    rows = []
    for run in new["runs"]:
        if run["callers"] not in before:
            continue
        ratio, low, high = _ratio(np.asarray(before[run["callers"]]), np.asarray(run["blocks_ms"]))
        same = low <= 1.0 <= high or abs(ratio - 1.0) < _NOISE
        verdict = "no difference" if same else "faster" if ratio > 1 else "slower"
        rows.append({"callers": run["callers"], "ratio": ratio, "low": low, "high": high, "verdict": verdict})
    return rows


def _ratio(before: np.ndarray[Any, Any], now: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    rng = np.random.RandomState(0)
    left = rng.choice(before, (_RESAMPLES, before.size)).mean(axis=1)
    right = rng.choice(now, (_RESAMPLES, now.size)).mean(axis=1)
    low, high = np.percentile(left / right, [2.5, 97.5])
    return float(before.mean() / now.mean()), float(low), float(high)
