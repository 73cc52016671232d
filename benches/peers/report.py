"""Results of rows: kept as JSON, one file a row, and printed together as one Markdown table."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lanes import AS_INSTALLED, Lane, Rounds, middle

PEERS = ("onnxruntime", "openvino", "mxnet")
ENGINES = ("mxrt", *PEERS, f"onnxruntime{AS_INSTALLED}", f"openvino{AS_INSTALLED}")
# The key of the goal that counts against the peer that is best.
BEST = "the best peer"


@dataclass
class Result:
    """One row of the table."""

    row: str
    what: str
    cells: dict[str, str]
    measured: str
    goal: str
    met: bool | None = None
    notes: list[str] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)


def best_and_median(values: list[float], higher: bool = True, digits: int = 1) -> str:
    """`best / median` of some rounds."""
    best = max(values) if higher else min(values)
    return f"{best:.{digits}f} / {middle(values):.{digits}f}"


def quartiles(values: list[float]) -> list[float]:
    """The lower one, the median and the upper one; of one value all three are that."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


def disturbance(rounds: Rounds) -> list[str]:
    """The disturbance of the rounds by other programs."""
    notes = [f"{rounds.repeated} disturbed turns repeated"] if rounds.repeated else []
    return notes + ([f"{rounds.disturbed} turns stayed disturbed"] if rounds.disturbed else [])


def settings(lanes: dict[str, Lane]) -> list[str]:
    """The best setting of each peer."""
    return [f"{name}: {lane.setting}" for name, lane in lanes.items() if len(lane.settings) > 1]


def against_best(
    row: str, what: str, lanes: dict[str, Lane], rounds: Rounds, goal: float | Mapping[str, float], key: str
) -> Result:
    """A row whose goals are ratios of rates to the best peer's, or those of peers by their names:
    of medians, and of quartiles (bad moments and good). Peers as installed have cells only.
    """
    goals = goal if isinstance(goal, Mapping) else {BEST: goal}
    values = rounds.values(key)
    peers = sorted((name for name in values if name in PEERS), key=lambda name: -middle(values[name]))
    cells = {name: best_and_median(seen) + _other_precision(lanes[name]) for name, seen in values.items()}
    wanted = ", ".join(f">= {factor:g} x {name}" for name, factor in goals.items())
    result = Result(row, what, cells, "no peer", wanted, None)
    if peers:
        ratios = {name: middle(values["mxrt"]) / middle(values[name]) for name in peers}
        low, _, high = (a / b for a, b in zip(quartiles(values["mxrt"]), quartiles(values[peers[0]]), strict=True))
        result.measured = f"{ratios[peers[0]]:.2f} x {peers[0]} (quartiles {low:.2f}, {high:.2f})"
        result.measured += "".join(f", {ratios[name]:.2f} x {name}" for name in peers[1:])
        result.raw |= {"ratio": ratios[peers[0]], "ratios": ratios}
        seen = {**ratios, BEST: ratios[peers[0]]}
        met = [seen[name] >= factor for name, factor in goals.items() if name in seen]
        result.met = all(met) if met else None
    result.notes = settings(lanes) + disturbance(rounds)
    result.raw["rounds"] = rounds.answers
    return result


def _other_precision(lane: Lane) -> str:
    """The precision of a peer as installed, where that is not float32."""
    return f" ({lane.precision})" if lane.process.engine.endswith(AS_INSTALLED) and lane.precision != "float32" else ""


def save(result: Result, folder: Path) -> None:
    """Keeps the row for the table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{result.row}.json").write_text(json.dumps(asdict(result), indent=1) + "\n")


def saved(folder: Path, rows: list[str]) -> list[Result]:
    """Rows measured before, in the order of the list."""
    files = [folder / f"{row}.json" for row in rows]
    return [Result(**json.loads(file.read_text())) for file in files if file.exists()]


def mean_of_networks(results: list[Result], rows: list[str], callers: str) -> Result | None:
    """The geometric mean of the networks' ratios, once all of these rows have been measured."""
    ratios = [one.raw["ratio"] for one in results if one.row in rows and "ratio" in one.raw]
    if len(ratios) != len(rows):
        return None
    mean = math.prod(ratios) ** (1 / len(ratios))
    what = f"geometric mean of the {len(ratios)} networks, {callers}"
    return Result("mean", what, {}, f"{mean:.2f} x the best peer", ">= 1.35 x", mean >= 1.35)


def markdown(results: list[Result]) -> str:
    """The table, followed by remarks about single rows."""
    used = [name for name in ENGINES if any(name in one.cells for one in results)]
    lines = ["| " + " | ".join(["what", *used, "measured", "goal", "met"]) + " |"]
    lines.append("|" + " --- |" * (len(used) + 4))
    for one in results:
        met = {True: "yes", False: "**no**", None: ""}[one.met]
        cells = [one.what, *(one.cells.get(name, "") for name in used), one.measured, one.goal, met]
        lines.append("| " + " | ".join(cells) + " |")
    notes = [f"- {one.row}: {'; '.join(one.notes)}" for one in results if one.notes]
    return "\n".join([*lines, "", *notes])
