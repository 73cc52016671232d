"""SymbolBlock beyond the ways that the recorded models are called."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, block_of, digits


@pytest.fixture
def net(mx):
    return block_of(mx)


@pytest.fixture
def x(mx):
    return mx.nd.array(digits(3)[0])


def small(mx):
    """A dense layer with its weights."""
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc")
    weights = {"fc_weight": mx.nd.ones((3, 5)), "fc_bias": mx.nd.zeros((3,))}
    net = mx.gluon.SymbolBlock(fc, [mx.sym.var("x")])
    net.collect_params().load_dict(weights)
    return net


def test_parameters_are_known_by_name(mx, net) -> None:
    params = net.collect_params()
    names = list(params)
    assert len(names) == len(params)
    weights = net.collect_params(".*weight")
    assert list(weights) == [name for name in names if name.endswith("weight")]
    first = next(iter(weights.values()))
    assert first.data().shape == first.shape
    assert first.list_ctx() == [mx.cpu(0)]
    with pytest.raises(KeyError):
        params["missing"]
    statistics = [p for name, p in params.items() if name.endswith("running_mean")]
    assert statistics
    assert all(p.grad_req == "null" for p in statistics)
    with pytest.raises(mx.base.MXNetError, match=r"(?i)train"):
        first.grad()


def test_parameters_come_in_mxnets_order(mx, net) -> None:
    graph = mx.sym.load(str(DIGITS / "digits_cnn-symbol.json"))
    arguments = [name for name in graph.list_arguments() if name != "data"]
    assert list(net.collect_params()) == [*arguments, *graph.list_auxiliary_states()]


def test_a_new_value_counts_from_the_next_call_on(mx) -> None:
    net, x = small(mx), mx.nd.ones((2, 5))
    before = net(x)
    net.collect_params()["fc_weight"].set_data(mx.nd.zeros((3, 5)))
    after = net(x)
    assert before.asnumpy().tolist() == [[5] * 3] * 2
    assert after.asnumpy().tolist() == [[0] * 3] * 2
    with pytest.raises(AssertionError, match="shape"):
        net.collect_params()["fc_weight"].set_data(mx.nd.ones((9, 9)))


def test_loading_parameters_replaces_all_of_them_or_none(mx, tmp_path: Path) -> None:
    net, path = small(mx), str(tmp_path / "p")
    mx.nd.save(path, {"fc_weight": mx.nd.zeros((3, 5)), "fc_bias": mx.nd.ones((4,))})
    with pytest.raises(mx.base.MXNetError) as caught:
        net.load_parameters(path)
    assert "fc_bias" in str(caught.value)
    assert net(mx.nd.ones((1, 5))).asnumpy().tolist() == [[5] * 3]
    mx.nd.save(path, {"fc_weight": mx.nd.zeros((3, 5)), "fc_bias": mx.nd.ones((3,))})
    net.load_parameters(path)
    assert net(mx.nd.ones((1, 5))).asnumpy().tolist() == [[1] * 3]


def test_what_is_saved_and_exported_loads_again(mx, net, x, tmp_path: Path) -> None:
    want = net(x).asnumpy()
    saved = str(tmp_path / "saved.params")
    net.save_parameters(saved)
    net.export(str(tmp_path / "out"), epoch=7)
    again = mx.gluon.SymbolBlock.imports(str(tmp_path / "out-symbol.json"), "data", str(tmp_path / "out-0007.params"))
    assert np.array_equal(again(x).asnumpy(), want)
    fresh = mx.gluon.SymbolBlock.imports(str(DIGITS / "digits_cnn-symbol.json"), ["data"])
    fresh.load_parameters(saved)
    assert np.array_equal(fresh(x).asnumpy(), want)
    fresh.load_parameters(str(tmp_path / "out-0007.params"))
    assert np.array_equal(fresh(x).asnumpy(), want)


def test_a_block_without_values_says_so(mx, x) -> None:
    net = mx.gluon.SymbolBlock.imports(str(DIGITS / "digits_cnn-symbol.json"), ["data"])
    with pytest.raises(RuntimeError, match="not been initialized"):
        net(x)


def test_a_block_can_be_given_first_values(mx) -> None:
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc")
    net = mx.gluon.SymbolBlock(fc, mx.sym.var("x"))
    net.initialize(mx.init.One())
    assert net(mx.nd.ones((2, 5))).asnumpy().tolist() == [[6] * 3] * 2  # MXNet: One is also the first value of the bias
    assert net.collect_params()["fc_weight"].shape == (3, 5)


def test_several_outputs_are_a_list_and_symbols_make_larger_graphs(mx) -> None:
    x = mx.sym.var("x")
    both = mx.gluon.SymbolBlock([x * 2, x + 1], [x])
    out = both(mx.nd.ones((2,)))
    assert isinstance(out, list)
    assert [o.asnumpy().tolist() for o in out] == [[2, 2], [2, 2]]
    larger = small(mx)(mx.sym.var("q") * 3)
    assert larger.list_arguments() == ["q", "fc_weight", "fc_bias"]


def test_inputs_must_be_variables_and_arrays(mx, net) -> None:
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc")
    with pytest.raises(AssertionError, match="variable"):
        mx.gluon.SymbolBlock(fc, [fc])
    for wrong in ([1], "x", None):
        with pytest.raises(AssertionError, match="NDArray"):
            net(wrong)


def test_an_input_that_nothing_uses_is_warned_of(mx) -> None:
    x = mx.sym.var("x")
    net = mx.gluon.SymbolBlock(x * 2, [x, mx.sym.var("idle")])
    with pytest.warns(UserWarning, match="idle"):
        assert net(mx.nd.ones((1,)), mx.nd.ones((1,))).asscalar() == 2


def test_flags_are_accepted_and_checked(mx, net, x) -> None:
    want = net(x).asnumpy()
    net.hybridize(static_alloc=True, static_shape=True, inline_limit=0, forward_bulk_size=5)
    assert np.array_equal(net(x).asnumpy(), want)
    net.hybridize(static_shape=True)
    with pytest.raises(mx.base.MXNetError, match="static_alloc"):
        net(x)
    with pytest.raises(TypeError, match=r"hybridize: .* no keyword 'prescision'; known: static_alloc, .*precision"):
        net.hybridize(prescision="exact")
    net.hybridize()
    assert np.array_equal(net(x).asnumpy(), want)
    assert "onvolution" in net.plan(x)


def test_parameters_move_between_contexts(mx) -> None:
    net, x = small(mx), mx.nd.ones((1, 5), ctx=mx.cpu(1))
    with pytest.raises(RuntimeError, match=r"cpu\(1\)"):
        net(x)
    net.reset_ctx([mx.cpu(0), mx.cpu(1)])
    assert net(x).context == mx.cpu(1)
    assert net(mx.nd.ones((1, 5))).context == mx.cpu(0)


def test_casting_to_half_keeps_batchnorm_in_single_precision(mx, net) -> None:
    net.cast("float16")
    kinds = {name: np.dtype(p.dtype).name for name, p in net.collect_params().items()}
    assert {kinds[n] for n in kinds if n.endswith(("running_mean", "running_var", "gamma"))} == {"float32"}
    assert {kinds[n] for n in kinds if "conv" in n and n.endswith("weight")} == {"float16"}


def test_hooks_see_every_call(mx, net, x) -> None:
    seen = []
    net.register_forward_pre_hook(lambda block, inputs: seen.append(("before", inputs[0].shape)))
    net.register_forward_hook(lambda block, inputs, out: seen.append(("after", out.shape)))
    net(x)
    assert seen == [("before", (3, 1, 8, 8)), ("after", (3, 10))]


def test_new_values_published_while_others_call_are_never_mixed(mx, eager_switching) -> None:
    """fc_weight and fc_bias always hold the same number: an answer from two versions would show."""
    net, x = small(mx), mx.nd.ones((1, 5))
    sets = [{"fc_weight": mx.nd.full((3, 5), n), "fc_bias": mx.nd.full((3,), 100 * n)} for n in (1, 2, 3)]
    net.collect_params().load_dict(sets[0])
    allowed = {105.0, 210.0, 315.0}
    wrong, stop = [], threading.Event()

    def call() -> None:
        while not stop.is_set():
            got = net(x).asnumpy()
            if got[0, 0] not in allowed:
                wrong.append(got)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(600):
        net.collect_params().load_dict(sets[n % 3])
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]


def normalised(mx, n: int):
    """Parameters of `dense_and_norm`, and the answer they give for an input of ones."""
    shapes = {"fc_weight": (3, 5), "fc_bias": (3,), "bn_gamma": (3,), "bn_beta": (3,), "bn_moving_mean": (3,)}
    values = {name: mx.nd.full(shape, n) for name, shape in shapes.items()}
    return {**values, "bn_moving_var": mx.nd.ones((3,))}, float(5 * n * n + n)


def dense_and_norm(mx):
    """A network whose results depend on folded weights, which depend on six parameters."""
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc")
    return mx.sym.BatchNorm(fc, fix_gamma=False, eps=0, name="bn")


def while_others_call(call, update, allowed: set[float]) -> None:
    """Updates again and again; every element of every answer meanwhile must belong to one of the
    versions.
    """
    wrong, stop = [], threading.Event()

    def caller() -> None:
        try:
            while not stop.is_set():
                got = set(call().asnumpy().ravel().tolist())
                if len(got) != 1 or not got <= allowed:
                    wrong.append(got)
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=caller) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(150):
        update(n % 3)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("way", ["load_parameters", "collect_params().load"])
def test_files_read_while_others_call_are_seen_whole(mx, tmp_path: Path, way: str) -> None:
    net, x = mx.gluon.SymbolBlock(dense_and_norm(mx), [mx.sym.var("x")]), mx.nd.ones((1, 5))
    allowed = set()
    for i in range(3):
        values, answer = normalised(mx, i + 1)
        mx.nd.save(str(tmp_path / f"{i}.params"), values)
        allowed.add(answer)
    read = net.load_parameters if way == "load_parameters" else net.collect_params().load
    read(str(tmp_path / "0.params"))
    while_others_call(lambda: net(x), lambda i: read(str(tmp_path / f"{i}.params")), allowed)


def test_a_module_takes_all_its_parameters_over_at_once(mx) -> None:
    mod = mx.mod.Module(dense_and_norm(mx), data_names=["x"], label_names=None)
    mod.bind([("x", (1, 5))], for_training=False)
    sets, allowed = [], set()
    for i in range(3):
        values, answer = normalised(mx, i + 1)
        aux = {name: values.pop(name) for name in ("bn_moving_mean", "bn_moving_var")}
        sets.append((values, aux))
        allowed.add(answer)
    mod.set_params(*sets[0])
    batch = mx.io.DataBatch([mx.nd.ones((1, 5))])

    def call():
        mod.forward(batch, is_train=False)
        return mod.get_outputs()[0]

    while_others_call(call, lambda i: mod.set_params(*sets[i]), allowed)


def test_the_plan_cache_says_what_it_holds_and_stays_bounded(mx, net) -> None:
    rows = digits(100)[0]
    for n in range(1, 81):
        net(mx.nd.array(rows[:n]))
    mx.nd.waitall()
    facts = net.plan_cache_info()
    assert facts["plans"] == facts["max_plans"] == 64
    assert (facts["built"], facts["evicted"]) == (80, 16)
    assert 0 < facts["constant_bytes"] < facts["max_bytes"]
    assert facts["plan_bytes"] > 0


def test_symbol_block_is_found_where_the_tutorials_have_it(mx) -> None:
    assert mx.gluon.nn.SymbolBlock is mx.gluon.SymbolBlock
    assert mx.gluon.nn.HybridBlock is mx.gluon.HybridBlock
    assert mx.gluon.block.SymbolBlock is mx.gluon.SymbolBlock
    assert mx.gluon.block.HybridBlock is mx.gluon.HybridBlock
    assert mx.gluon.parameter.ParameterDict is mx.gluon.ParameterDict


def test_a_plan_tells_kernels_memory_and_times(mx, net, x) -> None:
    lines = net.plan(x).splitlines()
    assert len(lines) > 5
    for line in lines[1:-1]:
        assert "arena" in line and "packed" in line and "~" in line, line
        assert line.endswith(" us"), line
    assert any("direct" in line or "winograd" in line for line in lines), "the kernels of convolutions are named"
    assert "measured" in lines[-1] and "packed" in lines[-1]
    assert "measured" not in net.plan(x, measure=False)
    with pytest.raises(mx.base.MXNetError, match="shape"):
        net.plan(mx.nd.ones((1, 2, 8, 8)))


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_large_dense_layers_answer_alike_however_their_weights_are_packed(mx, rows: int) -> None:
    data = mx.sym.var("data")
    net = mx.gluon.SymbolBlock(mx.sym.FullyConnected(data, num_hidden=1100, name="fc"), data)
    weights = net.collect_params()
    random = np.random.RandomState(rows)
    x, bias = random.randn(rows, 3000).astype(np.float32), random.randn(1100).astype(np.float32)
    net.collect_params().initialize()
    net(mx.nd.array(x))
    weights["fc_bias"].set_data(mx.nd.array(bias))
    few = random.randn(1100, 3000).astype(np.float32) * 0.02
    few[:, ::5] = 0
    few[7, 11], few[8, 2999] = 1e-30, 1e20
    many = few * np.exp2(random.randint(-40, 40, few.shape)).astype(np.float32)
    for weight in (few, many, few):  # packed in fewer bits, as they are, and again
        weights["fc_weight"].set_data(mx.nd.array(weight))
        exact = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
        scale = np.abs(x).astype(np.float64) @ np.abs(weight.T).astype(np.float64) + np.abs(bias)
        assert (np.abs(net(mx.nd.from_numpy(x)).asnumpy() - exact) <= 1e-6 * scale).all()
    assert np.array_equal(weights["fc_weight"].data().asnumpy(), few), "raw values stay as they are"
