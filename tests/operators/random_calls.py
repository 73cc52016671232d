"""Random calls of operators under MXNet 1.9.1 and under mxrt: ``make random-mxnet``.

A call is made from a recorded one (``tests/conformance``) by other extents, element types, values
and attributes; its number alone decides about it. MXNet refuses many. Of those that it answers,
mxrt must give the same, or say in an error why not: arguments that do not fit, of which MXNet reads
other memory, and what mxrt does not have.

    python random_calls.py answer --module mxnet --calls 2000 --out FILE
    python random_calls.py compare FILE FILE
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import multiprocessing
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Answer = tuple[str, Any]  # "values" and arrays, or the name of an exception and its message

DATA = Path(__file__).parents[1] / "conformance" / "data"
# int8 and sparse arrays are no part of this build; random numbers are others.
LEFT_OUT = {"quantized", "sparse", "random", "creation", "image"}
# Equal or singular elements: which of two right answers comes is no matter of the operator.
AMBIGUOUS = ("svd", "syevd", "gelqf", "topk", "argsort", "bipartite", "box_nms", "MultiBox", "Proposal")
# Extents that attributes repeat.
EXTENTS = {"num_hidden", "num_filter", "num_outputs", "state_size", "input_dim", "output_dim", "shape", "target_shape"}
TYPES = ("float32", "float64", "float16")
TOLERANCES = {"float16": (2e-2, 2e-2), "float32": (1e-3, 1e-3), "float64": (1e-5, 1e-5)}
PART = 200  # calls of one process: malformed ones end or damage it
SLOW = 60  # seconds that a call may take


def recorded() -> list[tuple[dict[str, Any], dict[str, Array]]]:
    """The recorded calls that are varied."""
    found = []
    for folder in sorted(DATA.iterdir()):
        if folder.name in LEFT_OUT or not (folder / "cases.json").exists():
            continue
        arrays = dict(np.load(folder / "arrays.npz"))
        cases = json.loads((folder / "cases.json").read_text())
        wanted = (c for c in cases if c["kind"] == "op" and c["check"] == "values")
        found += [(c, arrays) for c in wanted if not any(word in c["op"] for word in AMBIGUOUS)]
    return found


class Variation:
    """How one call differs from the recorded one."""

    def __init__(self, number: int) -> None:
        self.random = np.random.RandomState(number % 2**32)
        self.extents: dict[int, int] = {}
        self.resized = self.random.rand() < 0.6
        self.dtype = TYPES[self.random.randint(3)] if self.random.rand() < 0.3 else None

    def extent(self, n: int) -> int:
        """Equal extents stay equal."""
        if not self.resized or n < 2:
            return n
        if n not in self.extents:
            self.extents[n] = int(self.random.randint(max(1, n - 2), n + 4))
        return self.extents[n]

    def array(self, array: Array) -> Array:
        shape = tuple(self.extent(n) for n in array.shape)
        dtype = array.dtype
        if self.dtype and dtype.kind == "f":
            dtype = np.dtype(self.dtype)
        if array.size == 0 or 0 in shape:
            return np.zeros(shape, dtype)
        flat = np.resize(array.reshape(-1), shape).reshape(-1)
        flat = self.random.permutation(flat)
        if dtype.kind == "f" and np.any(flat != np.round(flat)):
            flat = flat * (1 + 0.05 * self.random.rand(flat.size))
        with np.errstate(over="ignore"):
            return flat.reshape(shape).astype(dtype)

    def attribute(self, name: str, value: Any) -> Any:
        if name in EXTENTS and isinstance(value, int) and not isinstance(value, bool):
            return self.extent(value)
        if name in EXTENTS and isinstance(value, list):
            return [self.extent(v) if isinstance(v, int) and v > 0 else v for v in value]
        if self.random.rand() > 0.25:
            return value
        if isinstance(value, bool):
            return not value
        if name == "axis" and isinstance(value, int):
            return int(self.random.randint(-3, 3))
        if isinstance(value, float):
            return value * float(self.random.uniform(0.5, 1.5))
        if isinstance(value, int):
            return value + int(self.random.randint(-1, 2))
        if isinstance(value, list) and value and all(isinstance(v, int) for v in value):
            return [v + int(self.random.randint(-1, 2)) for v in value]
        return value


def tuples(value: Any) -> Any:
    return tuple(tuples(v) for v in value) if isinstance(value, list) else value


def call(mx: Any, case: dict[str, Any], arrays: dict[str, Array], number: int) -> list[Array]:
    """Makes call number ``number`` of a recorded one."""
    vary = Variation(number)

    def given(entry: dict[str, Any]) -> Any:
        if "v" in entry:
            return tuples(entry["v"])
        if "list" in entry:
            return [given(e) for e in entry["list"]]
        array = vary.array(arrays[entry["a"]])
        return mx.nd.array(array, dtype=array.dtype)

    positional = [given(entry) for entry in case["inputs"] if "kw" not in entry]
    named = {entry["kw"]: given(entry) for entry in case["inputs"] if "kw" in entry}
    named.update({name: tuples(vary.attribute(name, value)) for name, value in case["attrs"].items()})
    operator = mx.nd
    for part in case["op"].split("."):
        operator = getattr(operator, part)
    out = operator(*positional, **named)
    return [np.asarray(o.asnumpy()) for o in (out if isinstance(out, (list, tuple)) else [out])]


def part(module: str, numbers: list[int], answers: Any) -> None:
    """Answers some calls, in a process of its own."""
    mx = importlib.import_module(module)
    cases = recorded()
    answers.send(None)  # what takes long before the first call is no matter of it
    for number in numbers:
        case, arrays = cases[number % len(cases)]
        answer: Answer
        try:
            answer = ("values", call(mx, case, arrays, number))
        except Exception as error:
            answer = (type(error).__name__, str(error)[:300])
        answers.send((number, answer))
    answers.close()


def answer_all(module: str, first: int, calls: int) -> dict[int, Answer]:
    """All answers. A call that ends its process, or is too slow, has none."""
    context = multiprocessing.get_context("spawn")
    found: dict[int, Answer] = {}
    numbers = list(range(first, first + calls))
    while numbers:
        receive, send = context.Pipe(duplex=False)
        now, numbers = numbers[:PART], numbers[PART:]
        process = context.Process(target=part, args=(module, now, send))
        process.start()
        send.close()
        try:
            if not receive.poll(600):
                raise TimeoutError(f"{module} was not imported within ten minutes")
            receive.recv()
            while receive.poll(SLOW):
                number, answer = receive.recv()
                found[number] = answer
                now.remove(number)
        except EOFError:
            pass
        process.kill()
        process.join()
        if now:
            print(f"call {now[0]} ended {module}, or was too slow")
            numbers = now[1:] + numbers
    return found


def difference(case: dict[str, Any], want: list[Array], got: list[Array]) -> str | None:
    """The difference of two answers, as far as MXNet defines its outputs."""
    if len(want) != len(got):
        return f"{len(got)} outputs, not {len(want)}"
    for n, (w, g) in enumerate(zip(want, got, strict=True)):
        if n < len(case["outputs"]) and case["outputs"][n].get("skip"):
            continue
        if w.dtype != g.dtype or w.shape != g.shape:
            return f"{g.dtype}{g.shape}, not {w.dtype}{w.shape}"
        relative, absolute = TOLERANCES.get(w.dtype.name, (0.0, 0.0))
        with np.errstate(all="ignore"):
            finite = w[np.isfinite(w)] if w.dtype.kind == "f" else w
            scale = float(np.max(np.abs(finite.astype("float64")), initial=1.0))
            # What overflows or has no value is not defined by the operator.
            defined = np.isfinite(w.astype("float64")) & np.isfinite(g.astype("float64"))
            close = np.abs(w.astype("float64") - g.astype("float64")) <= absolute * scale + relative * np.abs(w)
        if not np.all(close | ~defined):
            at = tuple(int(i) for i in np.argwhere(~(close | ~defined))[0])
            return f"{g[at]!r}, not {w[at]!r}, at {at}"
    return None


def compare(theirs: dict[int, Answer], ours: dict[int, Answer]) -> int:
    """Prints what differs; the number of differences."""
    cases = recorded()
    counts: collections.Counter[str] = collections.Counter()
    refused: collections.Counter[str] = collections.Counter()
    examples: dict[str, list[str]] = collections.defaultdict(list)
    for number, (kind, want) in sorted(theirs.items()):
        if kind != "values":
            continue
        counts["answered by MXNet"] += 1
        case = cases[number % len(cases)][0]
        name = case["op"]
        ours_kind, got = ours.get(number, ("no answer", "the process ended"))
        if ours_kind == "no answer":
            examples[name].append(f"call {number} ended the process")
        elif ours_kind != "values":
            counts["refused by mxrt"] += 1
            refused[f"{name}: {ours_kind}"] += 1
        elif text := difference(case, want, got):
            examples[name].append(f"call {number}: {text}")
        else:
            counts["equal"] += 1
    for name, found in sorted(examples.items()):
        print(f"{name}: {len(found)} differ, such as {found[0]}")
    print("refused: " + ", ".join(f"{name} {n}" for name, n in sorted(refused.items())))
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return sum(map(len, examples.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    answering = commands.add_parser("answer", help="make the calls")
    answering.add_argument("--module", default="mxrt")
    answering.add_argument("--first", type=int, default=0)
    answering.add_argument("--calls", type=int, default=2000)
    answering.add_argument("--out", type=Path, required=True)
    comparing = commands.add_parser("compare", help="compare answers: MXNet's, then mxrt's")
    comparing.add_argument("files", type=Path, nargs=2)
    given = parser.parse_args()
    if given.command == "answer":
        given.out.write_bytes(pickle.dumps(answer_all(given.module, given.first, given.calls)))
        return 0
    theirs, ours = (pickle.loads(path.read_bytes()) for path in given.files)
    return 1 if compare(theirs, ours) else 0


if __name__ == "__main__":
    sys.exit(main())
