"""Rows about images per second."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bert
import images
import quantized
from environments import NETWORKS
from lanes import BRIEF_CALLERS, WRONG_IN_FEW_BITS, Answer, Bench, Lane, Rounds, Turn, middle
from report import BEST, Result, against_best, best_and_median, disturbance

# What each network should reach, as a multiple of the best peer's images per second.
GOALS = {"resnet18_v1": 1.9, "vgg11_bn": 2.0, "resnet50_v1": 1.3, "resnet50_v2": 1.3}
OTHER_GOAL = 1.1
# Processors with tiles (AMX) have goals of their own.
TILES = "amx_bf16" in Path("/proc/cpuinfo").read_text()
# Batches of BERT-base for each length; single ones have the network's name.
BERT_BATCH = 8
# The peer that detectors and segmentation networks are compared with, and that of the others.
IMAGE_PEERS = {
    name: "onnxruntime" if name in ("resnet18_3d", "unet_decoder") else "openvino" for name in images.NETWORKS
}
# Networks of which an answer takes longer than a brief turn.
SLOW = (*(name for name in images.NETWORKS if name != "unet_decoder"), f"{bert.NAME}-s512")
# Networks that are measured in 8 bits.
EIGHT_BITS = ("resnet18_v1", "resnet50_v1", "mobilenetv2_1.0", bert.NAME)
# Turns lie a tenth apart while neighbours disturb, so medians of nine differ by up to 7 % by
# chance.
EVEN_ROUNDS = 25


def network(bench: Bench, name: str, callers: int = 1) -> Result:
    """Images per second of callers that wait for each answer."""
    lanes = {**bench.lanes(name, callers), **bench.as_installed(name, callers)}
    rounds = _long_rounds(bench, lanes) if name in SLOW else _rounds(bench, lanes, callers)
    row = name if callers == 1 else f"{name}-{callers}"
    what = f"{name}, {callers} caller{'s' * (callers > 1)}, images/s"
    return against_best(row, what, lanes, rounds, goals(name), "images_per_second")


def goals(name: str) -> Mapping[str, float]:
    """The goals of a network in float32."""
    if name in bert.TOKENS:
        best = (1.1 if bert.TOKENS[name] < 128 else 1.5) if TILES else 1.05
        return {"openvino" if TILES else BEST: best, "mxnet": 1.5}
    if name in IMAGE_PEERS:
        return {IMAGE_PEERS[name]: 1.3 if TILES else 1.2}
    return {BEST: GOALS.get(name, OTHER_GOAL)}


def callers(bench: Bench, count: int) -> Result:
    """resnet-18 for several callers."""
    lanes = {**bench.lanes("resnet18_v1", count), **(bench.as_installed("resnet18_v1", count) if count == 8 else {})}
    rounds = _rounds(bench, lanes, count)
    what = f"resnet18_v1, {count} callers, images/s"
    return against_best(f"callers-{count}", what, lanes, rounds, 2.0, "images_per_second")


def batch(bench: Bench, size: int) -> Result:
    """One caller with batches."""
    lanes = bench.lanes("resnet18_v1", batch=size)
    rounds = bench.rounds({key: _turn(bench, lane, 1) for key, lane in lanes.items()})
    what = f"resnet18_v1, batches of {size}, images/s"
    return against_best(f"batch-{size}", what, lanes, rounds, 1.8, "images_per_second")


def bert_batches(bench: Bench, name: str) -> Result:
    """BERT-base with one caller and batches, whose answers take longer than a brief turn."""
    lanes = bench.lanes(name, batch=BERT_BATCH)
    rounds = _long_rounds(bench, lanes)
    what = f"{name}, batches of {BERT_BATCH}, rows/s"
    return against_best(f"{name}-b{BERT_BATCH}", what, lanes, rounds, goals(name), "images_per_second")


def bfloat16(bench: Bench, name: str, callers: int = 1) -> Result:
    """Reduced precision: mxrt's and OpenVINO's; for BERT-base onnxruntime's float32 too."""
    extras = {"mxrt": {"precision": "bf16"}, "openvino": {"INFERENCE_PRECISION_HINT": "bf16"}}
    wanted = {"openvino": 1.0 if TILES else 1.05}
    if name == "resnet18_v1" and not TILES:
        wanted = {"openvino": 1.25}
    if name == bert.NAME:
        extras["onnxruntime"] = {}
        wanted = {"openvino": 1.2} if TILES else {"openvino": 1.0, "onnxruntime": 1.5}
    lanes = {engine: bench.lane(engine, name, extra=extra, wrong=WRONG_IN_FEW_BITS) for engine, extra in extras.items()}
    for lane in lanes.values():
        lane.choose(callers)
    rounds = _rounds(bench, lanes, callers)
    row = f"bf16-{name}" if callers == 1 else f"bf16-{name}-{callers}"
    what = f"{name}, bf16, {callers} caller{'s' * (callers > 1)}, images/s"
    return against_best(row, what, lanes, rounds, wanted, "images_per_second")


def eight_bits(bench: Bench, name: str, callers: int = 1) -> Result:
    """8-bit integers: MXNet's quantized form, and that of onnxruntime's quantizer for peers."""
    lanes = bench.lanes(name, callers, model=quantized.files(name), wrong=WRONG_IN_FEW_BITS)
    rounds = _rounds(bench, lanes, callers)
    row = f"int8-{name}" if callers == 1 else f"int8-{name}-{callers}"
    what = f"{name}, int8, {callers} caller{'s' * (callers > 1)}, images/s"
    return against_best(row, what, lanes, rounds, 1.0, "images_per_second")


def avx2(bench: Bench) -> Result:
    """mxrt without AVX-512 against onnxruntime with it."""
    lanes = {
        "mxrt": bench.lane("mxrt", "resnet18_v1", environment={"MXRT_ISA": "avx2"}),
        "onnxruntime": bench.lane("onnxruntime", "resnet18_v1"),
    }
    for lane in lanes.values():
        lane.choose(1)
    rounds = _rounds(bench, lanes, 1)
    what = "resnet18_v1, MXRT_ISA=avx2, images/s"
    return against_best("avx2", what, lanes, rounds, 1.1, "images_per_second")


def two_cores(bench: Bench) -> Result:
    """One caller on two cores against one core, in rounds that neighbours left alone.

    Two processes that share nothing, each bound to a core of its own, are the probe between the
    rounds: they tell what the cores have to give together.
    """
    two = bench.lane("mxrt", "resnet18_v1")
    other, one = (bench.lane("mxrt", "resnet18_v1", processors=(core,)) for core in (0, 1))
    turns: dict[str, Turn] = {"two": lambda _: two.serve_briefly(1), "one": lambda _: one.serve_briefly(1)}
    seen, quiet = bench.probed_rounds(lambda _: _both(one, other), turns)
    times = quiet.values("p50_ms")
    cell = f"{best_and_median(times['two'], False, 2)}, one core {best_and_median(times['one'], False, 2)}"
    (ratio, apart), (ratio_of_all, apart_of_all) = (_of_one_core(rounds) for rounds in (quiet, seen))
    return Result(
        "two-cores",
        "resnet18_v1, 1 caller, ms on all cores",
        {"mxrt": cell},
        f"{ratio:.2f} x (two processes {apart:.2f} x); in all rounds {ratio_of_all:.2f} x ({apart_of_all:.2f} x)",
        ">= 1.8 x one core",
        ratio >= 1.8,
        [f"{len(times['two'])} of {len(seen.answers['two'])} rounds were quiet", *disturbance(seen)],
        {"rounds": seen.answers},
    )


def _of_one_core(rounds: Rounds) -> tuple[float, float]:
    """The throughput of one caller on all cores, and of two processes, relative to one core."""
    times, rates = rounds.values("p50_ms"), rounds.values("images_per_second")
    return middle(times["one"]) / middle(times["two"]), middle(rates["probe"]) / middle(rates["one"])


def _both(one: Lane, other: Lane) -> Answer:
    """A brief turn of two lanes at once, each on a core of its own, which is no disturbance to the
    other.
    """
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda lane: lane.serve_briefly(1), (one, other)))
    return {
        "images_per_second": sum(answer["images_per_second"] for answer in answers),
        "p50_ms": max(answer["p50_ms"] for answer in answers),
        "seconds": min(answer["seconds"] for answer in answers),
        "others": max(0.0, max(answer["others"] or 0.0 for answer in answers) - 1),
    }


def even(bench: Bench) -> Result:
    """Equal throughput for any number of callers.

    Neighbours slow whole rounds down, so rates as parts of their round's mean are reported as well.
    """
    lane = bench.lane("mxrt", "resnet18_v1")
    counts = (2, 8, 64, 960)
    turns = {str(count): _turn(bench, lane, count) for count in counts}
    rounds = bench.rounds(turns, max(EVEN_ROUNDS, bench.options.rounds))
    rates = list(rounds.values("images_per_second").values())
    means = [sum(one) / len(one) for one in zip(*rates, strict=True)]
    within = _apart([[rate / mean for rate, mean in zip(seen, means, strict=True)] for seen in rates])
    spread = _apart(rates)
    what = "resnet18_v1 at 2, 8, 64, 960 callers, medians of images/s"
    return Result(
        "even",
        what,
        {"mxrt": ", ".join(f"{middle(seen):.0f}" for seen in rates)},
        f"{spread * 100:.1f} % apart, {within * 100:.1f} % within rounds",
        "<= 5 %",
        spread <= 0.05,
        disturbance(rounds),
        {"rounds": rounds.answers},
    )


def _apart(series: list[list[float]]) -> float:
    """How far the lowest median is below the highest."""
    medians = [middle(one) for one in series]
    return 1 - min(medians) / max(medians)


def push(bench: Bench) -> Result:
    """The cost of one small imperative operator, which only MXNet has as well."""
    count, times = 5000, {}
    lanes = {engine: bench.process(engine) for engine in ("mxrt", "mxnet")}
    for process in lanes.values():
        process.ask("add", count=count)
    for _ in range(bench.options.rounds):
        for engine, process in lanes.items():
            times.setdefault(engine, []).append(process.ask("add", count=count)["seconds"] / count * 1e6)
    cells = {engine: best_and_median(seen, False, 2) for engine, seen in times.items()}
    ratio = middle(times["mxnet"]) / middle(times["mxrt"])
    what = f"b + 1 of 16 numbers, {count} times and a wait, us each"
    return Result("push", what, cells, f"{ratio:.1f} x as fast as mxnet", "", None, [], {"times": times})


def _rounds(bench: Bench, lanes: dict[str, Lane], callers: int) -> Rounds:
    """All lanes with images one by one."""
    brief = callers <= BRIEF_CALLERS
    turns = {
        key: (lambda _, lane=lane: lane.serve_briefly(callers)) if brief else _turn(bench, lane, callers)
        for key, lane in lanes.items()
    }
    return bench.rounds(turns, brief=brief)


def _long_rounds(bench: Bench, lanes: dict[str, Lane]) -> Rounds:
    """One caller whose answers take long: each turn has one at least."""
    return bench.rounds({key: _turn(bench, lane, 1, 1) for key, lane in lanes.items()})


def _turn(bench: Bench, lane: Lane, callers: int, each: int = 0) -> Turn:
    seconds = bench.options.seconds if callers < 900 else max(4.0, bench.options.seconds)
    ramp = 0.2 if callers < 64 else 0.6
    return lambda _: lane.serve(callers, seconds, ramp, each)


# The row of each network with eight callers; that of resnet-18 is one of a series.
EIGHT_CALLERS = {name: "callers-8" if name == "resnet18_v1" else f"{name}-8" for name in NETWORKS}

ROWS = {
    **{name: lambda bench, name=name: network(bench, name) for name in NETWORKS},
    **{row: lambda bench, name=name: network(bench, name, 8) for name, row in EIGHT_CALLERS.items()},
    **{name: lambda bench, name=name: network(bench, name) for name in bert.TOKENS},
    **{f"{name}-b{BERT_BATCH}": lambda bench, name=name: bert_batches(bench, name) for name in bert.TOKENS},
    f"{bert.NAME}-8": lambda bench: network(bench, bert.NAME, 8),
    **{f"callers-{count}": lambda bench, count=count: callers(bench, count) for count in (2, 8, 64, 960)},
    "even": even,
    "two-cores": two_cores,
    "batch-32": lambda bench: batch(bench, 32),
    **{name: lambda bench, name=name: network(bench, name) for name in images.NETWORKS},
    **{f"bf16-{name}": lambda bench, name=name: bfloat16(bench, name) for name in (*NETWORKS, bert.NAME)},
    **{f"bf16-{name}-8": lambda bench, name=name: bfloat16(bench, name, 8) for name in (*NETWORKS, bert.NAME)},
    **{f"int8-{name}": lambda bench, name=name: eight_bits(bench, name) for name in EIGHT_BITS},
    **{f"int8-{name}-8": lambda bench, name=name: eight_bits(bench, name, 8) for name in EIGHT_BITS},
    "avx2": avx2,
    "push": push,
}
