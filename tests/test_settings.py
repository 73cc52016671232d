"""Environment variables: read once, obeyed, and refused by name when they make no sense."""

from __future__ import annotations

import pytest

from support import last_json, run_python

FAILING = """
import json
import mxrt as mx
stage = "call"
try:
    bad = mx.nd.random_normal(0, -1, (2, 3))
    stage = "wait"
    bad.wait_to_read()
except mx.base.MXNetError:
    print(json.dumps(stage))
"""


def test_the_naive_engine_raises_at_the_call() -> None:
    assert last_json(run_python(FAILING, env={"MXNET_ENGINE_TYPE": "NaiveEngine"})) == "call"


@pytest.mark.parametrize("engine", ["ThreadedEngine", "ThreadedEnginePerDevice"])
def test_the_threaded_engines_raise_where_the_result_is_awaited(engine: str) -> None:
    assert last_json(run_python(FAILING, env={"MXNET_ENGINE_TYPE": engine})) == "wait"


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    code = """
    import json
    import mxrt as mx
    try:
        mx.nd.ones((2,)).asnumpy()
    except (mx.base.MXNetError, ValueError) as error:
        print(json.dumps(str(error)))
    """
    text = last_json(run_python(code, env={"MXNET_ENGINE_TYPE": "QuickEngine"}))
    for word in ("QuickEngine", "NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice"):
        assert word in text
