"""Environment variables: read once, obeyed, and refused by name when they make no sense."""

from __future__ import annotations

from pathlib import Path

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


PLAN = """
import json
import mxrt as mx
x = mx.sym.var("x")
conv = mx.sym.Convolution(x, num_filter=64, kernel=(3, 3), pad=(1, 1), name="c")
net = mx.gluon.SymbolBlock(mx.sym.relu(conv), [x])
net.initialize()
net.hybridize({})
data = mx.nd.ones((1, 64, 28, 28))
net(data)
print(json.dumps(net.plan(data)))
"""


def test_passes_can_be_switched_off() -> None:
    steps = [line.split()[1:3] for line in last_json(run_python(PLAN.format(""))).splitlines()[1:-1]]
    # Conversions are named after the input or the node whose value they convert.
    assert steps == [["_to_blocked", "x_blocked"], ["_blocked_convolution", "c"], ["_from_blocked", "c_plain"]]
    fused = last_json(run_python(PLAN.format(""), env={"MXRT_PASSES": "-all"}))
    assert [line.split()[1] for line in fused.splitlines()[1:-1]] == ["Convolution", "relu"]


def test_winograd_can_be_switched_off_for_a_process_or_a_network() -> None:
    assert "winograd" in last_json(run_python(PLAN.format("")))
    assert "winograd" not in last_json(run_python(PLAN.format(""), env={"MXRT_CONV_WINOGRAD": "0"}))
    assert "winograd" not in last_json(run_python(PLAN.format("precision='exact'")))


def test_a_network_computes_in_bf16_on_request_or_its_plan_says_that_it_cannot() -> None:
    pointwise = PLAN.replace("kernel=(3, 3)", "kernel=(1, 1)").replace("pad=(1, 1)", "pad=(0, 0)")
    assert pointwise != PLAN
    plan = last_json(run_python(pointwise.format("precision='bf16'")))
    assert ("direct bf16" in plan or "bf16 amx" in plan) != ("computed in float32" in plan)
    assert "bf16" not in last_json(run_python(pointwise.format("")))
    portable = last_json(run_python(pointwise.format("precision='bf16'"), env={"MXRT_ISA": "portable"}))
    assert "no AVX512-BF16" in portable


DENSE = """
import json
import mxrt as mx
x = mx.sym.var("x")
net = mx.gluon.SymbolBlock(mx.sym.FullyConnected(x, num_hidden=64, name="d"), [x])
net.initialize()
net.hybridize({})
data = mx.nd.ones((64, 128))
net(data)
features = mx._mxrt.info()["cpu_features"]
print(json.dumps(["amx_bf16" in features, "avx512bf16" in features, net.plan(data)]))
"""


def test_precision_auto_is_bf16_where_there_are_tiles_and_the_plan_says_what_was_chosen() -> None:
    has_tiles, _, plan = last_json(run_python(DENSE.format("precision='auto'")))
    assert ("dense bf16 amx" in plan and "precision auto: bf16" in plan) == has_tiles
    assert has_tiles or "precision auto: float32" in plan
    without = last_json(run_python(DENSE.format("precision='auto'"), env={"MXRT_ISA": "portable"}))[2]
    assert "dense portable" in without and "precision auto: float32" in without


def test_dense_layers_run_on_tiles_where_the_processor_has_them() -> None:
    has_tiles, _, plan = last_json(run_python(DENSE.format("")))
    assert ("dense amx" in plan) == has_tiles
    _, has_pairs, plan = last_json(run_python(DENSE.format("precision='bf16'")))
    assert ("dense bf16 amx" in plan) == has_tiles
    assert has_pairs or "no AVX512-BF16" in plan
    assert "dense portable" in last_json(run_python(DENSE.format(""), env={"MXRT_ISA": "portable"}))[2]
    forced = run_python(DENSE.format(""), env={"MXRT_ISA": "amx"})
    if has_tiles:
        assert "dense amx" in last_json(forced)[2]
        assert "dense avx512" in last_json(run_python(DENSE.format(""), env={"MXRT_ISA": "avx512"}))[2]
    else:
        assert "MXRT_ISA" in forced.stderr and "its best is" in forced.stderr


def test_a_file_of_measured_convolutions_goes_before_the_rules(tmp_path: Path) -> None:
    table = tmp_path / "table.txt"
    lines = [
        f"{isa} {cache} single n1 64x28x28 {filters} k3x3 s1x1 d1x1 p1x1 g1 direct 1\n"
        for isa in ("portable", "avx2", "avx512", "avx512-halves")
        for cache in ("small", "medium", "large")
        for filters in (16, 32, 64, 128)
    ]
    table.write_text("".join(lines))
    plan = last_json(run_python(PLAN.format(""), env={"MXRT_TUNED": str(table)}))
    assert "(tuned)" in plan and "winograd" not in plan


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MXRT_TUNED", "/no/such/file", "No such file"),
        ("MXRT_PASSES", "-fuse_everything", "fuse_conv"),
        ("MXRT_ISA", "mmx", "portable"),
        ("MXRT_CORES", "0", "from 1 to 4096"),
        ("MXRT_CORES", "100000", "from 1 to 4096"),
        ("MXRT_CONV_WINOGRAD", "3", "2, 4"),
    ],
)
def test_settings_that_mean_nothing_are_refused_with_what_is_known(name: str, value: str, expected: str) -> None:
    code = """
    import json
    import mxrt as mx
    try:
        mx.nd.ones((2,)).asnumpy()
    except ValueError as error:
        print(json.dumps(str(error)))
    """
    text = last_json(run_python(code, env={name: value}))
    assert name in text and expected in text


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MXNET_CPU_WORKER_NTHREADS"])
def test_a_number_of_threads_that_means_nothing_is_ignored_with_one_warning(name: str) -> None:
    code = """
    import json
    import mxrt as mx
    print(json.dumps([mx.nd.ones((2,)).asnumpy().tolist(), (mx.nd.ones((2,)) + 1).asnumpy().tolist()]))
    """
    seen = run_python(code, env={name: "abc"})
    assert last_json(seen) == [[1, 1], [2, 2]]
    assert seen.stderr.splitlines() == [
        f"mxrt: {name} is 'abc' and is ignored; expected a number of threads, 1 or more"
    ]
