"""Interleaved engines: processes with a network loaded, and rounds in which other programs stayed
out of the way.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import environments
import numpy as np
from environments import say

from mxrt.bench.peer import engines
from mxrt.bench.peer.load import PAUSE, QUIET
from mxrt.bench.peers import PeerError, Process

# A disturbed turn is repeated so often at most; then it counts, and the row says so.
REPEATS = 6
# What neighbours on the host take is in no counter of a virtual machine: its cores slow down to 0.6
# times their speed, or stop sharing a cache, for a tenth of a second to some. Many brief turns, of
# so many seconds behind so many that do not count, meet that evenly; each round has so many of
# them.
BRIEF_SECONDS, BRIEF_RAMP, BRIEF_TURNS = 0.15, 0.06, 12
# With more callers an answer takes longer than a brief turn.
BRIEF_CALLERS = 2
# Ticks of the system's clock that others may have in a turn, however brief.
TICKS = 2
# A round counts as quiet if probes on both sides of it reached this part of the best tenth of all
# probes; rounds go on, up to so many times as many, until as many of them were quiet as there would
# be without probes.
QUIET_PART, MOST_TIMES = 0.95, 4
# Answers that are off by more, as a part of the largest, are wrong. Rounding to bf16 moves those of
# resnet50_v1, whose weights are random here, by a tenth on every engine.
WRONG = 0.2
# Steps of 8 bits, and bf16 in mobilenet1.0, move them further.
WRONG_IN_FEW_BITS = 0.5
# A peer as `pip install` gives it: no threads, hints or precision are set.
AS_INSTALLED = engines.AS_INSTALLED
# So many turns each setting of a peer is tried before the best is measured, and so long is one with
# many callers.
TRIES, TRY_SECONDS = 5, 0.6

Answer = dict[str, Any]
# Called with the number of the round.
Turn = Callable[[int], Answer]


@dataclass
class Options:
    """The options of the command line."""

    rounds: int = 5
    seconds: float = 1.5
    peers: Sequence[str] = ("onnxruntime", "openvino")
    quiet: float = QUIET


@dataclass
class Rounds:
    """The answers of every lane, round by round."""

    answers: dict[str, list[Answer]]
    repeated: int = 0
    disturbed: int = 0

    def values(self, key: str) -> dict[str, list[float]]:
        """One number of every lane, round by round."""
        return {lane: [one[key] for one in seen] for lane, seen in self.answers.items()}


@dataclass
class Lane:
    """An engine with a network, in a process of its own."""

    process: Process
    model: engines.Model
    extra: Mapping[str, Any] = field(default_factory=dict)
    quiet: float = QUIET
    setting: str = ""
    precision: str = "float32"
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def use(self, name: str) -> None:
        """Switches to one of the engine's settings."""
        self.setting = name
        loaded = self.process.ask("load", model=self.model, setting={**self.settings[name], **self.extra})
        self.precision = loaded["precision"]

    def choose(self, callers: int) -> None:
        """Switches to the setting that serves this number of callers best."""
        self.settings = engines.settings(self.process.engine, callers, engines.cores())
        rates = {}
        for name in self.settings:
            self.use(name)
            if len(self.settings) == 1:
                return
            rates[name] = self._try(callers)
        self.use(max(rates, key=lambda name: rates[name]))

    def _try(self, callers: int) -> float:
        """Images per second in some turns."""
        if callers <= BRIEF_CALLERS:
            turn, times = partial(self.serve_briefly, callers), TRIES
        else:
            # Above 64 callers nothing changes but the length of the queue.
            turn, times = partial(self.serve, min(callers, 64), TRY_SECONDS), 1
        turn()
        return middle([quietly(turn, self.quiet)[0]["images_per_second"] for _ in range(times)])

    def serve(self, callers: int, seconds: float, ramp: float = 0.2, each: int = 0) -> Answer:
        """One closed loop."""
        return self.process.ask("closed", callers=callers, seconds=seconds, ramp=ramp, each=each)

    def serve_briefly(self, callers: int) -> Answer:
        """A brief turn of a closed loop."""
        return self.serve(callers, BRIEF_SECONDS, BRIEF_RAMP)


class Bench:
    """Starts lanes and interleaves them; ends all processes with its `with` block."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._stack = ExitStack()
        self.notes: list[str] = []

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def process(
        self, engine: str, environment: Mapping[str, str] | None = None, processors: Sequence[int] = ()
    ) -> Process:
        """An engine in a process of its own."""
        python = environments.interpreter(engine.removesuffix(AS_INSTALLED))
        return self._stack.enter_context(Process(engine, python, environment, processors))

    def lane(
        self,
        engine: str,
        network: str,
        batch: int = 1,
        extra: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        processors: Sequence[int] = (),
        model: engines.Model | None = None,
        settings: dict[str, dict[str, Any]] | None = None,
        wrong: float = WRONG,
    ) -> Lane:
        """The engine with the network, or its form in 8 bits, `model`, loaded, asked for batches of
        this size; its answers are compared with MXNet's of the network. It has the first of these
        settings, or of those that are tried.
        """
        say(f"starting {engine} with {network}")
        model = model or files(engine, network, batch)
        lane = Lane(self.process(engine, environment, processors), model, extra or {}, self.options.quiet)
        lane.settings = settings or engines.settings(engine, 1, 1 if processors else engines.cores())
        lane.use(next(iter(lane.settings)))
        lane.process.ask("inputs", file=environments.network(network) + "-input.npy", batch=batch)
        self._check(lane, network, wrong)
        return lane

    def lanes(self, network: str, callers: int = 1, batch: int = 1, **kwargs: Any) -> dict[str, Lane]:
        """mxrt and its peers, each in its best setting; what does not work is left out with a
        note.
        """
        found = {}
        for engine in ("mxrt", *self.options.peers):
            try:
                found[engine] = self.lane(engine, network, batch, **kwargs)
                found[engine].choose(callers)
            except (PeerError, RuntimeError) as error:
                if engine == "mxrt":
                    raise
                self.notes.append(f"{engine} is left out: {error}")
                say(self.notes[-1])
        return found

    def as_installed(self, network: str, callers: int = 1) -> dict[str, Lane]:
        """The peers without any setting; OpenVINO then computes in bf16 where processors do."""
        given = {"onnxruntime": ("", {"threads": 0}), "openvino": (AS_INSTALLED, {"requests": min(callers, 64)})}
        found = {}
        for peer, (end, setting) in given.items():
            if peer in self.options.peers:
                try:
                    found[peer + AS_INSTALLED] = self.lane(
                        peer + end, network, settings={"": setting}, wrong=WRONG_IN_FEW_BITS
                    )
                except (PeerError, RuntimeError) as error:
                    self.notes.append(f"{peer}{AS_INSTALLED} is left out: {error}")
        return found

    def _check(self, lane: Lane, network: str, limit: float) -> None:
        expected = environments.expected(network)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "answers.npz"
            lane.process.ask("outputs", file=str(file))
            with np.load(file) as answers:
                off = float(np.abs(answers["arr_0"][:1] - expected).max() / np.abs(expected).max())
        if off > limit:
            raise PeerError(f"{lane.process.engine} answers {network} wrongly: off by {off:.2g} of the largest")
        say(f"  off by {off:.1e} of the largest number")

    def rounds(self, turns: Mapping[str, Turn], count: int | None = None, brief: bool = False) -> Rounds:
        """Every turn in every round, each round beginning with another one; disturbed turns are
        repeated.
        """
        names = list(turns)
        out = Rounds({name: [] for name in names})
        each = BRIEF_TURNS if brief else 1
        for number in range((count or self.options.rounds) * each):
            at = number % len(names)
            for name in names[at:] + names[:at]:
                answer, repeated, good = quietly(partial(turns[name], number), self.options.quiet)
                out.answers[name].append(answer)
                out.repeated += repeated
                out.disturbed += not good
            if (number + 1) % each == 0:
                rates = {
                    name: [one.get("images_per_second", 0.0) for one in seen[-each:]]
                    for name, seen in out.answers.items()
                }
                say(f"  round {number // each + 1}: { {name: round(middle(seen), 1) for name, seen in rates.items()} }")
        return out

    def probed_rounds(self, probe: Turn, turns: Mapping[str, Turn]) -> tuple[Rounds, Rounds]:
        """Brief rounds between probes, which tell what no counter does: how fast the processors
        were for anybody.

        All of them, with the probe that ends each as `probe`, and those that neighbours left alone.
        """
        wanted, names, every = self.options.rounds * BRIEF_TURNS, list(turns), {**turns, "probe": probe}
        seen = Rounds({name: [] for name in every})
        rates, quiet = [probe(0)["images_per_second"]], []
        for number in range(1, MOST_TIMES * wanted + 1):
            for name in (*(names if number % 2 else names[::-1]), "probe"):
                answer, repeated, good = quietly(partial(every[name], number), self.options.quiet)
                seen.answers[name].append(answer)
                seen.repeated += repeated
                seen.disturbed += not good
            rates.append(seen.answers["probe"][-1]["images_per_second"])
            quiet = between_good_ones(rates)
            if number % BRIEF_TURNS == 0:
                say(f"  {number} rounds, {len(quiet)} of them quiet")
            if len(quiet) >= wanted:
                break
        return seen, Rounds({name: [answers[i] for i in quiet] for name, answers in seen.answers.items()})


def between_good_ones(rates: Sequence[float]) -> list[int]:
    """The rounds of which the probes before and after are good; round `i` lies between probes `i`
    and `i + 1`.
    """
    least = QUIET_PART * sorted(rates)[len(rates) * 9 // 10]
    return [i for i in range(len(rates) - 1) if min(rates[i], rates[i + 1]) >= least]


def quietly(turn: Callable[[], Answer], limit: float) -> tuple[Answer, int, bool]:
    """An answer while other programs took no more than `limit` cores, the number of repetitions,
    and whether it is undisturbed.
    """
    tick = 1 / os.sysconf("SC_CLK_TCK")
    for repeated in range(REPEATS + 1):
        time.sleep(PAUSE)
        answer = turn()
        if (answer["others"] or 0.0) <= max(limit, TICKS * tick / answer["seconds"]):
            return answer, repeated, True
    return answer, REPEATS, False


def files(engine: str, network: str, batch: int) -> engines.Model:
    """The files of a network for an engine."""
    base = environments.network(network)
    image = np.load(f"{base}-input.npy", mmap_mode="r").shape[1:]
    reads_onnx = engine.removesuffix(AS_INSTALLED) in ("onnxruntime", "openvino")
    return engines.Model(
        symbol=f"{base}-symbol.json",
        params=f"{base}-0000.params",
        onnx=environments.onnx(network, image, batch) if reads_onnx else None,
        inputs=["data"],
    )


def middle(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)
