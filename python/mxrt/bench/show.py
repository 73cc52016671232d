"""The report of `mxrt bench` as text and as a picture."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..cli._errors import UsageError
from ..cli._out import counted, saved_in
from ..cli._shapes import folder_of
from .peer.load import QUIET

__all__ = ["as_text", "check_picture", "draw"]

FORMATS = (".png", ".svg", ".pdf")


def as_text(report: dict[str, Any], top: int) -> str:
    """The report as tables, with that many of the slowest steps."""
    inputs = ", ".join(f"{name} {tuple(shape)}" for name, shape in report["inputs"].items())
    weights = report["parameters"] or "none found: random numbers"
    precision = "" if report["precision"] == "default" else f"; precision {report['precision']}"
    lines = [report["model"], f"parameters: {weights}", f"inputs: {inputs}; {report['cores']} cores{precision}"]
    if report.get("images"):
        count = counted(report["images"]["count"], "image")
        lines.append(f"each call reads, decodes and answers one of {count}; the layers are measured without that")
    lines.append("")
    lines += _slowest(report["plan"]["steps"], top)
    lines += [f"note: {text}" for text in report["plan"]["notes"]]
    lines += [
        "",
        f"loaded in {report['load_ms']:.1f} ms, first answer after {report['first_answer_ms']:.1f} ms more",
        "",
    ]
    if report.get("rate") is not None:
        lines.append(f"{report['rate']:g} requests arrive in a second")
    lines += _table(report)
    lines += _changes(report.get("compared", ()))
    lines += _remarks(report)
    memory = report["memory"]
    if memory["resident_mb"] is not None:
        lines += ["", f"resident {memory['resident_mb']:.0f} MB, at most {memory['resident_peak_mb']:.0f} MB"]
    lines.append(
        f"arrays and running requests {memory['arrays_mb']:.1f} MB, at most {memory['arrays_peak_mb']:.1f} MB; "
        f"folded and packed weights {memory['constant_bytes'] / 1e6:.1f} MB"
    )
    return "\n".join(lines)


def _slowest(steps: Sequence[dict[str, Any]], top: int) -> list[str]:
    total = sum(one["measured_us"] for one in steps) or 1.0
    rest = "" if top >= len(steps) else f" (--top {len(steps)}: all; mxrt plan and mxrt profile say more)"
    lines = [f"the {min(top, len(steps))} slowest of {len(steps)} steps, {total / 1e3:.3f} ms measured in all{rest}"]
    for one in sorted(steps, key=lambda one: -float(one["measured_us"]))[:top]:
        share = 100 * one["measured_us"] / total
        lines.append(f"{share:6.1f} %{one['measured_us']:11.1f} us  {one['node']}  {one['operator']}  {one['kernel']}")
    return lines


def _changes(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"callers: {one['callers']}: {one['verdict']}: {one['ratio']:.3f} x as fast as the saved measurement "
        f"(95 % between {one['low']:.3f} and {one['high']:.3f})"
        for one in rows
    ]


def _everything(report: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line of the table with its engine, by number of callers."""
    for one in report["runs"]:
        yield "mxrt", one
        for peer in report["peers"]:
            for run in peer["runs"]:
                if run["callers"] == one["callers"]:
                    yield peer["engine"], run


def _table(report: dict[str, Any]) -> list[str]:
    compared = bool(report["peers"])
    width = 2 + max(len(engine) for engine, _ in _everything(report))
    name = f"{'engine':>{width}}" if compared else ""
    lines = [f"{'callers':>8}{name}{'images/s':>12}{'p50 ms':>11}{'p99 ms':>11}{'max ms':>11}{'requests':>11}"]
    if compared:
        lines[0] += "   mxrt does"
    for engine, one in _everything(report):
        name = f"{engine:>{width}}" if compared else ""
        numbers = "".join(f"{one[key]:11.3f}" for key in ("p50_ms", "p99_ms", "max_ms"))
        line = f"{one['callers']:8d}{name}{one['images_per_second']:12.1f}{numbers}{one['requests']:11d}"
        if "setting" in one:
            line += f"   {one['mxrt_is_faster_by']:.2f} x as many ({one['setting']})"
        lines.append(line)
    return lines


def _remarks(report: dict[str, Any]) -> list[str]:
    lines = []
    if other := report["other_precision"]:
        lines.append(
            f"precision auto chose {other['chosen']}; with precision {other['precision']} one caller gets "
            f"{other['images_per_second']:.1f} images/s"
        )
    few = sorted({one["callers"] for _, one in _everything(report) if one["requests"] < 100})
    if few:
        which = ", ".join(map(str, few))
        lines.append(f"(fewer than 100 requests at {which} callers: p99 says little; --seconds for more)")
    busy = max((one["others"] or 0.0 for _, one in _everything(report)), default=0.0)
    if busy > QUIET:
        lines.append(
            f"(other programs used up to {busy:.2f} cores meanwhile: on a quiet machine the numbers are better)"
        )
    for peer in report["peers"]:
        lines.append(
            f"{peer['engine']} {peer['version']}, {peer['precision']}, in its best setting for each number of callers; "
            f"largest difference of its answer to mxrt's {peer['largest_difference']:.1e}"
        )
    lines += [f"{name} is left out: {reason}" for name, reason in report["peers_left_out"].items()]
    return lines


def check_picture(file: str) -> None:
    """Whether a picture can be drawn into this file: to be asked before minutes of measuring."""
    if Path(file).suffix.lower() not in FORMATS:
        raise UsageError(f"--plot '{file}': the name says the format; expected one that ends in {', '.join(FORMATS)}")
    folder_of(file, "--plot")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib, which is not installed: pip install matplotlib (or 'mxrt[plot]')")


def draw(report: dict[str, Any], file: str) -> None:
    """Draws throughput and latency against the number of callers."""
    importlib.import_module("matplotlib").use("Agg")
    plt: Any = importlib.import_module("matplotlib.pyplot")
    ticker: Any = importlib.import_module("matplotlib.ticker")
    series = {"mxrt": report["runs"], **{peer["engine"]: peer["runs"] for peer in report["peers"]}}
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for number, (engine, runs) in enumerate(series.items()):
        callers = [one["callers"] for one in runs]
        colour = f"C{number}"
        left.plot(callers, [one["images_per_second"] for one in runs], marker="o", color=colour, label=engine)
        for key, style in (("p50_ms", "-"), ("p99_ms", "--")):
            right.plot(callers, [one[key] for one in runs], style, marker="o", color=colour)
    for name, style in (("p50", "-"), ("p99", "--")):
        right.plot([], [], style, color="gray", label=name)
    left.set(xlabel="callers", ylabel="images per second")
    # Room above the highest point, whose marker the frame would cut.
    left.set_ylim(0, 1.08 * max(one["images_per_second"] for runs in series.values() for one in runs))
    right.set(xlabel="callers", ylabel="milliseconds until the answer", yscale="log")
    right.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    right.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    ticks = [one["callers"] for one in report["runs"]]
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [str(n) for n in ticks])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper")
    shapes = ", ".join("x".join(map(str, shape)) for shape in report["inputs"].values())
    name = Path(report["model"]).name.removesuffix("-symbol.json")
    figure.suptitle(f"{name}, {shapes}, {report['cores']} cores")
    with saved_in(file) as unfinished:
        figure.savefig(unfinished, format=Path(file).suffix.lower().removeprefix("."))
    plt.close(figure)
