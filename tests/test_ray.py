"""`mxrt.ray` where there is no Ray. `make test-ray` tests it with Ray."""

from __future__ import annotations

import importlib.util

import pytest

from support import DIGITS


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_one_sentence_says_so(mx) -> None:
    for ask in (lambda: mx.ray.predict(None, DIGITS), lambda: mx.ray.deployment(DIGITS)):
        with pytest.raises(NotImplementedError, match=r"mxrt\.ray needs Ray: pip install 'mxrt\[ray\]'"):
            ask()


def test_a_replica_takes_and_returns_arrays_by_name(mx) -> None:
    import numpy as np

    symbol, params = DIGITS / "digits_cnn-symbol.json", DIGITS / "digits_cnn-0000.params"
    replica = mx.ray.Replica(symbol.read_text(), params.read_bytes())
    given = np.random.default_rng(1).random((3, 1, 8, 8), "float32")
    net = mx.gluon.SymbolBlock.imports(str(symbol), ["data"], str(params))
    [found] = replica({"data": given}).values()
    assert found.tobytes() == net(mx.nd.array(given)).asnumpy().tobytes()
    with pytest.raises(ValueError, match="got the inputs date; wanted data"):
        replica({"date": given})
