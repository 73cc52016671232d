"""Rows about how long answers take, and how evenly."""

from __future__ import annotations

from lanes import Bench, Lane, Turn, middle
from report import Result, best_and_median, disturbance, settings

# Each caller asks at least so often within a window.
EACH = 20
# Threads that stand ready in an open loop: more than ever wait at half load.
CLIENTS = 32
OPEN_SECONDS = 8.0


def tail(bench: Bench, callers: int) -> Result:
    """p99 - p50 in a closed loop."""
    lanes = bench.lanes("resnet18_v1", callers)
    turns = {key: _closed(bench, lane, callers) for key, lane in lanes.items()}
    rounds = bench.rounds(turns)
    p50, p99 = rounds.values("p50_ms"), rounds.values("p99_ms")
    apart = {key: [b - a for a, b in zip(p50[key], p99[key], strict=True)] for key in p50}
    cells = {
        key: f"{middle(p50[key]):.1f} and {middle(p99[key]):.1f}, {best_and_median(apart[key], False)} apart"
        for key in p50
    }
    what = f"resnet18_v1, {callers} callers, p50 and p99 in ms"
    result = Result(f"tail-{callers}", what, cells, "no OpenVINO", "apart <= OpenVINO's + 0.5 ms")
    if "openvino" in apart:
        excess = middle(apart["mxrt"]) - middle(apart["openvino"])
        result.measured, result.met = f"OpenVINO's {excess:+.2f} ms", excess <= 0.5
    result.notes = settings(lanes) + disturbance(rounds)
    result.raw["rounds"] = rounds.answers
    return result


def _closed(bench: Bench, lane: Lane, callers: int) -> Turn:
    return lambda _: lane.serve(callers, bench.options.seconds, 0.5, EACH)


def poisson(bench: Bench) -> Result:
    """Requests at random times, half as many as OpenVINO can answer; OpenVINO in each of its
    settings.
    """
    capacity = bench.lane("openvino", "resnet18_v1")
    capacity.choose(8)
    rate = capacity.serve(8, 3.0)["images_per_second"] / 2
    lanes = {"mxrt": bench.lane("mxrt", "resnet18_v1")}
    for name in capacity.settings:
        lanes[name] = bench.lane("openvino", "resnet18_v1")
        lanes[name].settings = capacity.settings
        lanes[name].use(name)

    def turn(lane: Lane) -> Turn:
        load = {"rate": rate, "seconds": OPEN_SECONDS, "ramp": 0.5, "clients": CLIENTS}
        return lambda number: lane.process.ask("open", **load, seed=number)

    rounds = bench.rounds({key: turn(lane) for key, lane in lanes.items()}, min(3, bench.options.rounds))
    p50 = {key: middle(seen) for key, seen in rounds.values("p50_ms").items()}
    p99 = {key: middle(seen) for key, seen in rounds.values("p99_ms").items()}
    peers = [key for key in lanes if key != "mxrt"]
    best = {"p50": min(p50[key] for key in peers), "p99": min(p99[key] for key in peers)}
    ratios = {"p50": p50["mxrt"] / best["p50"], "p99": p99["mxrt"] / best["p99"]}
    cells = {"mxrt": f"{p50['mxrt']:.1f} and {p99['mxrt']:.1f}", "openvino": f"{best['p50']:.1f} and {best['p99']:.1f}"}
    return Result(
        "poisson",
        f"resnet18_v1, {rate:.0f} requests/s at random, p50 and p99 in ms",
        cells,
        f"{ratios['p50']:.2f} x and {ratios['p99']:.2f} x",
        "<= 0.6 x and <= 0.8 x OpenVINO's",
        ratios["p50"] <= 0.6 and ratios["p99"] <= 0.8,
        [f"{key}: {p50[key]:.1f} and {p99[key]:.1f}" for key in peers] + disturbance(rounds),
        {"rate": rate, "rounds": rounds.answers},
    )


ROWS = {
    "tail-8": lambda bench: tail(bench, 8),
    "tail-64": lambda bench: tail(bench, 64),
    "poisson": poisson,
}
