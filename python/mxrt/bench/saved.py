"""Saved measurements, and the changes since."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..cli._errors import ModelError, UsageError

__all__ = ["blocks", "compare", "load", "save"]

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
    except (FileNotFoundError, IsADirectoryError):
        raise UsageError(f"there is no file '{file}' (--compare); mxrt bench MODEL --save FILE writes one") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelError(f"'{file}' is no measurement; expected what mxrt bench MODEL --save FILE wrote") from None
    return dict(report)


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
    if not rows:
        raise UsageError(f"--compare: the saved measurement has {', '.join(map(str, before))} callers, this one others")
    return rows


def _ratio(before: np.ndarray[Any, Any], now: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    rng = np.random.RandomState(0)
    left = rng.choice(before, (_RESAMPLES, before.size)).mean(axis=1)
    right = rng.choice(now, (_RESAMPLES, now.size)).mean(axis=1)
    low, high = np.percentile(left / right, [2.5, 97.5])
    return float(before.mean() / now.mean()), float(low), float(high)
