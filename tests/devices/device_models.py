"""A child of test_device_models.py and of `make soak-devices`: models on devices give the CPU's
bits, or its numbers where kernels are a GPU's own.

    device_models.py [--seeds N] [--threads N] [--zoo-dir DIR] [--complete] NAME ...

Every model runs on sim(0) and sim(1) at once (on gpu(0) and gpu(1) with MXRT_TEST_DEVICES=gpu),
called from several threads, under as many seeds as asked for; each seed is another order of the
devices' work, and the checker of the simulated devices says whether all of it was ordered. Then
every operator of the graph runs by itself (Executor over all internal outputs). Prints one
line of JSON. With --complete it exits with 1 if an operator of a model has no kernel on the
devices, or if some of their work was not ordered.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "models"
sys.path.insert(0, str(MODELS))

os.environ.setdefault("MXRT_SIM_MODE", "pumped")
os.environ.setdefault("MXRT_SIM_CHECK", "1")

import numpy as np  # noqa: E402
from check import Case  # noqa: E402

import mxrt as mx  # noqa: E402

KIND = os.environ.get("MXRT_TEST_DEVICES", "sim")
DEVICES = (mx.Context(KIND, 0), mx.Context(KIND, min(1, int(os.environ.get("MXRT_TEST_GPUS", "2")) - 1)))
# Whether the devices run the host's kernels.
HOST_KERNELS = KIND == "sim" or os.environ.get("STANDIN_HOST_MEMORY") == "1"


def near(name: str, found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Relative to the largest number of each result. Where some are in half precision, what follows
    from them is no nearer.
    """
    tolerance = 1e-2 if any(b.dtype == np.float16 for b in wanted) else 1e-5
    for n, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), (name, n, a.shape, a.dtype)
        scale = max(float(np.abs(b.astype("float64")).max(initial=0)), 1e-6)
        worst = float(np.abs(a.astype("float64") - b).max(initial=0)) / scale
        assert worst <= tolerance, (name, n, worst)


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    """Bit for bit."""
    return [one.tobytes() for one in a] == [one.tobytes() for one in b]


class Model:
    """A model on every context, and the CPU's answers."""

    def __init__(self, name: str, zoo_dir: str | None) -> None:
        self.case = Case(str(MODELS), name, zoo_dir)
        self.feeds = self.case.inputs + [label for label, _ in self.case.labels]
        contexts = [mx.cpu(), *DEVICES]
        self.block = mx.gluon.SymbolBlock.imports(self.case.symbol, self.feeds, self.case.params, ctx=contexts)
        self.batches = [(batch, xs) for batch, xs, _ in self.case.golden]
        numbers = range(len(self.batches))
        self.wanted = [self.call(DEVICES[0], n) for n in numbers]
        for n in numbers:
            on_cpu = self.call(mx.cpu(), n)
            if HOST_KERNELS:
                assert same(self.wanted[n], on_cpu), (name, n)
            near(name, self.wanted[n], on_cpu)

    def call(self, ctx: mx.Context, number: int) -> list[np.ndarray]:
        batch, xs = self.batches[number]
        made = self.block(*[mx.nd.array(a, ctx=ctx, dtype=a.dtype) for a in xs + self.case.label_arrays(batch)])
        return [one.asnumpy() for one in (made if isinstance(made, list) else [made])]

    def numbers(self, thread: int, threads: int, seed: int) -> list[int]:
        """The batches that a thread calls: all; with a full-size network the first, and one thread
        another.
        """
        if not self.case.zoo:
            return [(n + thread) % len(self.batches) for n in range(len(self.batches))]
        return [1 + seed % (len(self.batches) - 1) if thread == seed % threads else 0]

    def check_calls(self, threads: int, seed: int) -> int:
        """Calls from several threads on both devices; returns how many."""

        def work(thread: int) -> int:
            numbers = self.numbers(thread, threads, seed)
            for number in numbers:
                found = self.call(DEVICES[thread % 2], number)
                assert same(found, self.wanted[number]), (self.case.name, number, thread)
            return len(numbers)

        with ThreadPoolExecutor(threads) as pool:
            return sum(pool.map(work, range(threads)))

    def check_nodes(self) -> int:
        """Every operator by itself, on the host and on a device; returns how many values were
        compared.
        """
        symbol = mx.sym.load(self.case.symbol)
        inner = symbol.get_internals()
        group = mx.sym.Group([inner[i] for i, n in enumerate(inner.list_outputs()) if n not in symbol.list_inputs()])
        batch, xs = self.batches[0]
        values = {key.split(":", 1)[1]: value for key, value in mx.nd.load(self.case.params).items()}
        given = [mx.nd.array(a, dtype=a.dtype) for a in xs + self.case.label_arrays(batch)]
        values.update(zip(self.feeds, given, strict=True))
        results = []
        for ctx in (mx.cpu(), DEVICES[0]):
            there = {name: value.as_in_context(ctx) for name, value in values.items()}
            arguments = {name: there[name] for name in group.list_arguments()}
            states = {name: there[name] for name in group.list_auxiliary_states()}
            made = group.bind(ctx, arguments, aux_states=states, grad_req="null").forward(is_train=False)
            assert all(one.context == ctx for one in made)
            results.append([one.asnumpy() for one in made])
        if HOST_KERNELS:
            assert same(*results), self.case.name
        near(self.case.name, results[1], results[0])
        return len(results[0])


def run(name: str, seeds: range, threads: int, zoo_dir: str | None) -> dict[str, object]:
    """One model."""
    model = Model(name, zoo_dir)
    mx.nd.waitall()
    calls = 0
    for seed in seeds:
        if KIND == "sim":
            mx.testing.reseed(DEVICES[0], seed)
        calls += model.check_calls(threads, seed)
    nodes = model.check_nodes()
    mx.nd.waitall()
    violations, pairs = mx.testing.check(DEVICES[0]) if KIND == "sim" else ([], 0)
    del model
    for ctx in DEVICES:
        ctx.empty_cache()
    return {"model": name, "calls": calls, "nodes": nodes, "pairs": pairs, "violations": violations[:20]}


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--threads", type=int, default=8)
    options.add_argument("--zoo-dir")
    options.add_argument("--complete", action="store_true")
    options.add_argument("names", nargs="+")
    given = options.parse_args()
    found = []
    for name in given.names:
        try:
            found.append(run(name, range(given.seeds), given.threads, given.zoo_dir))
        except mx.base.MXNetNotImplementedError as error:
            found.append({"model": name, "not_there": str(error).splitlines()[0]})
        print(f"{mx.runtime.info()['engine']}: {found[-1]}", file=sys.stderr, flush=True)
    print(json.dumps({"engine": mx.runtime.info()["engine"], "models": found}))
    return 1 if given.complete and any(model.get("violations", model) for model in found) else 0


if __name__ == "__main__":
    sys.exit(main())
