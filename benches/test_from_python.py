"""The cost of calls from Python: `make bench`. The numbers are to be read; nothing here fails for
being slow.
"""

from __future__ import annotations

import numpy as np
import pytest

import mxrt as mx
from support import block_of, digits, zoo_artifacts


@pytest.mark.benchmark(group="b + 1")
@pytest.mark.parametrize("count", [16, 1_000_000])
def test_add_one_and_wait(benchmark, count: int) -> None:
    b = mx.nd.ones((count,))

    def add() -> None:
        (b + 1).wait_to_read()

    benchmark(add)


@pytest.mark.benchmark(group="b + 1")
def test_add_one_to_one_element_until_it_returns(benchmark) -> None:
    b = mx.nd.ones((1,))
    b.wait_to_read()
    benchmark(lambda: b + 1)


@pytest.mark.benchmark(group="b + 1")
def test_identity_cached_op_with_asnumpy(benchmark) -> None:
    op = mx.nd.CachedOp(mx.sym.identity(mx.sym.var("data")))
    b = mx.nd.ones((1,))
    benchmark(lambda: op(b).asnumpy())


@pytest.mark.benchmark(group="b + 1")
def test_add_one_a_thousand_times_then_wait(benchmark) -> None:
    b = mx.nd.ones((16,))

    def add() -> None:
        for _ in range(1000):
            c = b + 1
        c.wait_to_read()

    benchmark(add)


@pytest.mark.benchmark(group="models")
@pytest.mark.parametrize("batch", [1, 16])
def test_digits_cnn(benchmark, batch: int) -> None:
    net = block_of(mx)
    images = digits(batch)[0]
    benchmark(lambda: net(mx.nd.array(images)).asnumpy())


@pytest.mark.benchmark(group="models")
@pytest.mark.parametrize("batch", [1, 4])
def test_resnet18(benchmark, batch: int) -> None:
    base = str(zoo_artifacts("resnet18_v1") / "resnet18_v1")
    net = mx.gluon.SymbolBlock.imports(f"{base}-symbol.json", ["data"], f"{base}-0000.params")
    images = np.load(f"{base}-input.npy")[:batch]
    benchmark(lambda: net(mx.nd.array(images)).asnumpy())
