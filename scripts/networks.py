"""Networks of GluonCV, MXNet and GluonNLP: compares MXNet's answers with mxrt's.

``record FOLDER`` runs where MXNet 1.9.1 is; ``check FOLDER`` runs the same constructors over mxrt;
``table FOLDER`` prints the results of ``check``. All three take names of networks, and continue
where an earlier run stopped. Parameters come from a generator that both sides seed by their names,
so that the folder holds inputs and answers only.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import os
import subprocess
import sys
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

THREADS = 8
TOLERANCE = 1e-3
"""Of the largest value of an output: the widest tolerance of ``tests/models/zoo``."""

STEADY = 1e-4
"""How far an input changed by 1e-6 may move MXNet's answers in float32. Random weights make
some deep networks amplify rounding: they have smaller weights, or else compute in float64.
"""
WEIGHTS = ((1.0, "float32"), (0.5, "float32"), (1.0, "float64"))
"""Scales and types of parameters, in the order in which they are tried."""

# Their answers are lists of boxes, which random weights leave without an order.
DETECTORS = ("ssd", "rcnn", "yolo", "center_net")

# They keep what they compute in attributes of the block, which calls at once mix up in any library.
STATEFUL = ("monodepth2",)

# The first extents that a network takes are its input: small ones, for time.
IMAGES = [(3, side, side) for side in (64, 96, 128, 224, 299, 331)]
CLIPS = [(3, frames, side, side) for frames, side in ((16, 64), (32, 64), (16, 112), (32, 112), (32, 224), (64, 224))]


def families() -> Iterator[tuple[str, Any]]:
    """Name and constructor of every network."""
    import gluoncv
    import gluonnlp
    from gluoncv.model_zoo import model_zoo as cv
    from mxnet.gluon.model_zoo import vision

    del gluoncv
    for name in sorted(cv._models):
        home = getattr(cv._models[name], "__module__", "")
        if not any(part in home or part in name for part in DETECTORS):
            yield f"gluoncv/{name}", cv._models[name]
    for name, make in sorted(vars(vision).items()):
        if inspect.isfunction(make) and name != "get_model" and not name.startswith(("get_", "_")):
            yield f"mxnet/{name}", make

    def bert(**_: Any) -> Any:
        words = Counter(f"word{number}" for number in range(1000))
        vocabulary = gluonnlp.vocab.BERTVocab(gluonnlp.data.count_tokens(words))
        return gluonnlp.model.get_model("bert_12_768_12", pretrained=False, vocab=vocabulary, dataset_name=None)[0]

    yield "gluonnlp/bert_12_768_12", bert


def chosen(only: list[str]) -> list[tuple[str, Any]]:
    """The named networks in the order of the names; all without names."""
    known = dict(families())
    return [(name, known[name]) for name in only or known]


def build(name: str, make: Any, side: int) -> Any:
    """A network with no parameters yet."""
    if name.startswith(("mxnet/", "gluonnlp/")):
        return make()
    options: dict[str, Any] = {"pretrained": False, "pretrained_base": False}
    if any(part in make.__module__ for part in ("fcn", "pspnet", "deeplab", "danet", "icnet", "fastscnn", "segbase")):
        options |= {"crop_size": side, "base_size": side}
    while True:
        try:
            return make(**options)
        except TypeError as error:  # an option that this constructor does not know
            unknown = str(error).rpartition("argument ")[2].strip("'")
            if unknown not in options:
                raise
            del options[unknown]


def inputs(name: str, extents: tuple[int, ...], which: int, dtype: str = "float32") -> list[np.ndarray]:
    """One of two requests."""
    random = np.random.default_rng(which)
    if name.startswith("gluonnlp/"):
        words = random.integers(0, 1000, (2, 24)).astype("float32")
        return [
            words,
            (np.arange(24) >= 12).astype("float32") * np.ones((2, 1), "float32"),
            np.float32([24, 17]),
            np.float32([[1, 5, 9]] * 2),
        ]
    # A tracker sees a picture of its target and one to search.
    images = [(3, 127, 127), (3, 287, 287)] if "siamrpn" in name else [extents]
    return [random.standard_normal((1, *image), dtype="float32").astype(dtype) for image in images]


def candidates(name: str) -> list[tuple[int, ...]]:
    """Extents to try."""
    if name.startswith("gluonnlp/") or "siamrpn" in name:
        return [()]
    if "cifar" in name:
        return [(3, 32, 32)]
    if any(part in name for part in ("i3d", "slowfast", "r2plus1d", "p3d", "c3d", "3d")):
        return CLIPS
    if any(part in name for part in ("pose", "mobile_pose", "alpha")):
        return [(3, 64, 64), (3, 128, 96), (3, 256, 192), (3, 320, 256)]
    return IMAGES


def fill(net: Any, scale: float) -> int:
    """Gives every parameter the values that follow from its name; returns how many values."""
    import mxnet as mx

    total = 0
    for name, parameter in net._collect_params_with_prefix().items():
        if isinstance(parameter, mx.gluon.Constant):
            continue
        shape, random = parameter.shape, np.random.default_rng(zlib.crc32(name.encode()))
        values = random.random(shape, dtype="float32") * 2 - 1
        if name.endswith(("gamma", "running_var")):
            values = 1 + values / 5
        elif len(shape) < 2:
            values /= 10
        else:
            values *= scale * (6 / float(np.prod(shape[1:]))) ** 0.5
        parameter.set_data(mx.nd.array(values, dtype=parameter.dtype))
        total += values.size
    return total


def answers(net: Any, request: list[np.ndarray]) -> list[np.ndarray]:
    """The answers of a network to a request, as a flat list."""
    import mxnet as mx

    def flat(value: Any) -> list[Any]:
        return [x for item in value for x in flat(item)] if isinstance(value, (list, tuple)) else [value]

    return [
        array.asnumpy() for array in flat(net(*(mx.nd.array(x, dtype=x.dtype) for x in request))) if array is not None
    ]


def prepared(name: str, make: Any, extents: tuple[int, ...], scale: float, dtype: str) -> Any:
    """A network with its parameters."""
    import mxnet as mx

    net = build(name, make, extents[-1] if extents else 0)
    net.initialize(mx.init.Zero())
    if dtype != "float32":
        net.cast(dtype)
    answers(net, inputs(name, extents, 0, dtype))
    fill(net, scale)
    return net


def unsteady(net: Any, name: str, extents: tuple[int, ...], found: list[list[np.ndarray]]) -> str:
    """The reason why these weights would not show a wrong answer; empty if they would."""
    if not all(np.isfinite(x).all() and np.abs(x).max() < 1e15 for one in found for x in one):
        return "not finite"
    if found[0][0].dtype == np.float64 or not extents:
        return ""
    moved = 0.0
    for which, factor in ((0, 1 + 1e-6), (0, 1 - 1e-6), (1, 1 + 1e-6), (1, 1 - 1e-6)):
        (image,) = inputs(name, extents, which)
        moved = max(moved, deviation(answers(net, [image * np.float32(factor)]), found[which]))
    if moved > STEADY:
        return f"an input changed by 1e-6 moves the answers by {moved:.1e}"
    return "" if deviation(*found) > 2 * TOLERANCE else "both requests have the same answers"


def recorded(name: str, make: Any) -> tuple[dict[str, Any], list[list[np.ndarray]]]:
    """Facts and answers of the first input that the network takes."""
    failures: list[str] = []
    for extents in candidates(name):
        for scale, dtype in WEIGHTS:
            try:
                net = prepared(name, make, extents, scale, dtype)
                found = [answers(net, inputs(name, extents, which, dtype)) for which in (0, 1)]
            except Exception as error:  # any error means: not with this input
                failures.append(f"{extents}: {type(error).__name__}: {str(error)[:300]}")
                break
            why = unsteady(net, name, extents, found)
            if not why:
                return {"extents": extents, "scale": scale, "dtype": dtype}, found
            failures.append(f"{extents}: {why}")
    return {"error": failures[-1], "first": failures[0]}, []


def file_of(folder: Path, name: str, end: str) -> Path:
    return folder / (name.replace("/", "-") + end)


def needs_plain(facts: dict[str, Any]) -> bool:
    """Whether MXNet failed by oneDNN's layouts, as it does for convolutions over three axes."""
    return "IsDefaultData" in facts.get("error", "") and os.environ.get("MXNET_MKLDNN_ENABLED") != "0"


def record(folder: Path, only: list[str]) -> None:
    """Writes answers of MXNet; without oneDNN those of networks that fail with it."""
    folder.mkdir(parents=True, exist_ok=True)
    again = []
    for name, make in chosen(only):
        facts_file = file_of(folder, name, ".json")
        if facts_file.exists():
            if not needs_plain(json.loads(facts_file.read_text())):
                continue
            facts_file.unlink()
        began = time.monotonic()
        facts, found = recorded(name, make)
        arrays = {f"{which}_{at}": array for which, one in enumerate(found) for at, array in enumerate(one)}
        np.savez(file_of(folder, name, ".npz"), **arrays)
        if needs_plain(facts):
            again.append(name)
            continue
        facts_file.write_text(json.dumps(facts))
        print(f"{name}: {facts} {time.monotonic() - began:.1f} s", flush=True)
        gc.collect()
    if again:
        command = [sys.executable, __file__, "record", str(folder), *again]
        subprocess.run(command, check=True, env=os.environ | {"MXNET_MKLDNN_ENABLED": "0"})


def deviation(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest difference, of each output's largest value; infinite where shapes differ."""
    if [x.shape for x in found] != [x.shape for x in wanted]:
        return float("inf")
    worst = 0.0
    for a, b in zip(found, wanted, strict=True):
        if a.size:
            worst = max(worst, float(np.abs(a - b).max()) / max(float(np.abs(b).max()), 1e-30))
    return worst if np.isfinite(worst) else float("inf")


def from_threads(net: Any, requests: list[list[np.ndarray]], wanted: list[list[np.ndarray]], number: int) -> float:
    """The worst deviation of calls made by `number` threads at once, each with one request."""
    barrier, results = threading.Barrier(number), [float("inf")] * max(number, 2)
    errors: list[BaseException] = []

    def call(at: int) -> None:
        try:
            barrier.wait()
            for which in range(at, len(results), number):
                results[which] = deviation(answers(net, requests[which % 2]), wanted[which % 2])
        except BaseException as error:  # it is raised below
            errors.append(error)

    threads = [threading.Thread(target=call, args=(at,)) for at in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return max(results)


def checked(folder: Path, name: str, make: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """Deviations of mxrt from the recorded answers."""
    stored = np.load(file_of(folder, name, ".npz"))
    wanted = [
        [stored[key] for key in sorted(stored, key=lambda key: int(key[2:])) if key[0] == which] for which in "01"
    ]
    extents = tuple(facts["extents"])
    dtype = facts.get("dtype", "float32")
    requests = [inputs(name, extents, which, dtype) for which in (0, 1)]
    net = prepared(name, make, extents, facts["scale"], dtype)
    found: dict[str, Any] = {"apart": deviation(wanted[0], wanted[1])}
    plain = 1 if any(part in name for part in STATEFUL) else THREADS
    if plain == 1:
        found["plain from"] = 1
    found["plain"] = from_threads(net, requests, wanted, plain)
    if hasattr(net, "hybrid_forward"):
        net.hybridize()
        answers(net, requests[0])
    else:
        net.hybridize()
    return found | {"hybridised": from_threads(net, requests, wanted, THREADS)}


def check(folder: Path, only: list[str], wait: float) -> int:
    """Runs what was recorded; returns how many networks deviate or fail."""
    bad, todo, end = 0, dict(chosen(only)), time.monotonic() + wait
    while todo:
        for name, make in list(todo.items()):
            facts_file, result = file_of(folder, name, ".json"), file_of(folder, name, ".result.json")
            if result.exists():
                del todo[name]
            elif facts_file.exists():
                del todo[name]
                facts, began = json.loads(facts_file.read_text()), time.monotonic()
                try:
                    found = {"mxnet": facts["error"]} if "error" in facts else checked(folder, name, make, facts)
                except Exception as error:  # the table shows it
                    found = {"error": f"{type(error).__name__}: {str(error)[:400]}"}
                good = "mxnet" in found or max(found.get("plain", 9), found.get("hybridised", 9)) <= TOLERANCE
                bad += not good
                result.write_text(json.dumps(found))
                print(f"{'' if good else 'BAD '}{name}: {found} {time.monotonic() - began:.1f} s", flush=True)
                gc.collect()
        if todo and time.monotonic() > end:
            print(f"not recorded: {len(todo)}")
            break
        time.sleep(1 if todo else 0)
    return bad


def table(folder: Path) -> None:
    """Counts and deviations by source; then each network that does not answer as MXNet does."""
    print("| source | answer | agree | largest deviation | not built by MXNet |\n| --- | --- | --- | --- | --- |")
    others: list[str] = []
    for source in ("gluoncv", "mxnet", "gluonnlp"):
        results = {
            path.name.removesuffix(".result.json").split("-", 1)[1]: json.loads(path.read_text())
            for path in sorted(folder.glob(f"{source}-*.result.json"))
        }
        ran = {name: found for name, found in results.items() if "mxnet" not in found}
        worst = {name: max(found.get("plain", np.inf), found.get("hybridised", np.inf)) for name, found in ran.items()}
        good = [value for value in worst.values() if value <= TOLERANCE]
        print(f"| {source} | {len(ran)} | {len(good)} | {max(good, default=0):.1e} | {len(results) - len(ran)} |")
        others += [f"{name}: {found}" for name, found in ran.items() if worst[name] > TOLERANCE]
        others += [f"{name}: MXNet: {found['mxnet']}" for name, found in results.items() if "mxnet" in found]
    print("\n".join(others))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("what", choices=("record", "check", "table"))
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--wait", type=float, default=0, help="seconds to wait for answers still being recorded")
    chosen = arguments.parse_args()
    warnings.simplefilter("ignore")
    if chosen.what == "table":
        table(chosen.folder)
        return 0
    if chosen.what == "record":
        record(chosen.folder, chosen.names)
        return 0
    import mxrt

    mxrt.install_as_mxnet()
    return 1 if check(chosen.folder, chosen.names, chosen.wait) else 0


if __name__ == "__main__":
    sys.exit(main())
