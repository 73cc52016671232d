"""Networks that MXNet exported in numpy mode, called by many threads, some with bad requests."""

from __future__ import annotations

import threading
from typing import Any

import numpy as onp
import pytest

from np_blocks import BLOCKS, outputs, sample
from support import RECORDED

FOLDER = RECORDED / "np_blocks"
THREADS, ROUNDS = 64, 25
# One request of so many is a bad one.
BAD = 100


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def test_ten_networks_answer_64_threads_and_bad_requests_fail_alone(mx: Any) -> None:
    assert len(BLOCKS) >= 10
    with onp.load(FOLDER / "outputs.npz") as stored:
        recorded = {key: stored[key] for key in stored.files}
    nets, good, bad = {}, {}, {}
    for name, (_, shape) in BLOCKS.items():
        nets[name] = mx.gluon.SymbolBlock.imports(
            f"{FOLDER / name}-symbol.json", ["data"], f"{FOLDER / name}-0000.params"
        )
        good[name] = mx.np.array(sample(shape, 7))
        # No network takes an array of seven axes.
        bad[name] = mx.np.ones((1,) * 7)
    names = list(BLOCKS)
    wrong: list[str] = []
    refused: list[str] = []

    def ask(number: int) -> None:
        for turn in range(ROUNDS):
            name, request = names[(number + turn) % len(names)], number * ROUNDS + turn
            if request % BAD == 0:
                try:
                    outputs(nets[name](bad[name]))
                    wrong.append(f"{name} answers seven axes")
                except (mx.base.MXNetError, ValueError) as error:
                    refused.append(str(error))
                continue
            for place, value in enumerate(outputs(nets[name](good[name]))):
                want = recorded[f"{name}{place}"]
                if value.shape != want.shape or not onp.allclose(value, want, rtol=2e-4, atol=1e-5):
                    wrong.append(f"{name}: output {place} is {value}, expected {want}")

    def run(number: int) -> None:
        try:
            ask(number)
        except Exception as error:
            wrong.append(f"{names[number % len(names)]}: {error!r}")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(refused) == -(-THREADS * ROUNDS // BAD)
    assert all("MX-" in message for message in refused)
