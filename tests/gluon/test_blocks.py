"""Blocks: names, parameters, files, hooks. What they should be was read off MXNet 1.9.1."""

from __future__ import annotations

import copy
import json
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from support import in_threads


@pytest.fixture(scope="module")
def lib(mx):
    """Blocks of one's own, as programs define them."""
    nn = mx.gluon.nn

    class Net(mx.gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.a = nn.Dense(3, activation="relu")
                self.b = nn.Dense(2)
                self.c = nn.HybridSequential(prefix="")
                with self.c.name_scope():
                    self.c.add(nn.Dense(4), nn.BatchNorm())
                self.scale = self.params.get("scale", shape=(1,), init="ones")
                self.k = self.params.get_constant("k", [[1.0, 2.0, 3.0, 4.0]])

        def hybrid_forward(self, F, x, scale, k):
            return F.broadcast_mul(F.broadcast_mul(self.c(self.b(self.a(x))), scale), k)

    class Plain(mx.gluon.Block):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.inner = Net()

        def forward(self, x):
            return self.inner(x) * 2

    return SimpleNamespace(Net=Net, Plain=Plain)


def test_names_follow_the_scopes_they_are_made_in(mx, lib) -> None:
    net = lib.Net(prefix="mine_")
    assert (net.name, net.prefix, net.a.name) == ("mine", "mine_", "mine_dense0")
    assert list(net.collect_params()) == [
        "mine_scale",
        "mine_k",
        *("mine_dense0_weight", "mine_dense0_bias", "mine_dense1_weight", "mine_dense1_bias"),
        *("mine_dense2_weight", "mine_dense2_bias"),
        *("mine_batchnorm0_gamma", "mine_batchnorm0_beta"),
        *("mine_batchnorm0_running_mean", "mine_batchnorm0_running_var"),
    ]
    assert list(net._collect_params_with_prefix())[:4] == ["scale", "k", "a.weight", "a.bias"]
    assert "c.1.running_var" in net._collect_params_with_prefix()
    assert list(net.collect_params(".*dense0|.*k")) == ["mine_k", "mine_dense0_weight", "mine_dense0_bias"]
    with mx.name.Prefix("p_"):
        assert mx.gluon.nn.Dense(1).name.startswith("p_dense")


def test_scopes_of_threads_do_not_mix(mx) -> None:
    names: dict[int, list[str]] = {}
    barrier = threading.Barrier(8)

    def build(number: int) -> None:
        net = mx.gluon.nn.HybridSequential(prefix=f"net{number}_")
        barrier.wait()
        with net.name_scope():
            for _ in range(20):
                net.add(mx.gluon.nn.Dense(1))
        names[number] = [child.name for child in net]

    in_threads(8, build)
    assert names == {n: [f"net{n}_dense{i}" for i in range(20)] for n in range(8)}


def test_blocks_can_share_parameters(mx) -> None:
    one = mx.gluon.nn.Dense(3, in_units=2, prefix="one_")
    two = mx.gluon.nn.Dense(3, in_units=2, prefix="two_", params=one.collect_params())
    assert two.weight is one.weight
    net = mx.gluon.nn.HybridSequential()
    net.add(one, two)
    assert list(net.collect_params()) == ["one_weight", "one_bias"]
    with pytest.raises(AssertionError, match="shape"):
        mx.gluon.nn.Dense(4, in_units=2, params=one.collect_params())


def test_children_are_registered_and_checked(mx, lib) -> None:
    net = lib.Net()
    with pytest.raises(TypeError, match="Changing attribute type"):
        net.a = mx.gluon.nn.Flatten()
    with pytest.raises(TypeError, match="Changing attribute type"):
        net.scale = 3
    with pytest.raises(AssertionError, match="Overriding Parameter"):
        net.scale = net.params.get("other", shape=(1,))
    with pytest.raises(ValueError, match="HybridSequential"):
        mx.gluon.nn.HybridSequential().add(mx.gluon.nn.Sequential())
    net.a = mx.gluon.nn.Dense(5)
    assert net._children["a"] is net.a
    net.hidden = [mx.gluon.nn.Dense(1)]
    with pytest.warns(UserWarning, match="unregistered container"):
        net.collect_params()


def test_values_wait_for_the_shapes_of_inputs(mx, lib) -> None:
    net = lib.Net()
    with pytest.raises(RuntimeError, match="not been initialized"):
        net(mx.nd.ones((1, 2)))
    net.initialize(mx.init.One())
    with pytest.raises(mx.gluon.DeferredInitializationError):
        net.a.weight.data()
    # dense: 1 + 2 and no bias, three times that, two of these; batch normalisation changes nothing
    # much
    got = net(mx.nd.array([[1, 2]])).asnumpy()
    np.testing.assert_allclose(got, [[18, 36, 54, 72]], rtol=1e-4)
    assert net.a.weight.shape == (3, 2)
    with pytest.raises(ValueError, match="Deferred initialization failed"):
        other = mx.gluon.nn.Conv2D(1, 3)
        other.initialize()
        other(mx.nd.ones((2, 2)))


@pytest.mark.parametrize("kind", ["Net", "Plain"])
def test_hybridised_blocks_answer_alike(mx, lib, kind: str) -> None:
    net = getattr(lib, kind)()
    net.initialize(mx.init.Normal(0.5))
    x = mx.nd.random.uniform(shape=(3, 2))
    want = net(x).asnumpy()
    net.hybridize(static_alloc=True, static_shape=True)
    np.testing.assert_allclose(net(x).asnumpy(), want, rtol=1e-5, atol=1e-6)
    net.hybridize(False)
    assert np.array_equal(net(x).asnumpy(), want)


@pytest.mark.parametrize("hybrid", [True, False])
def test_sixteen_threads_call_one_block(mx, lib, hybrid: bool, eager_switching) -> None:
    x = [mx.nd.random.uniform(shape=(1 + i % 3, 2)) for i in range(16)]
    net = lib.Plain()
    net.initialize(mx.init.Normal(0.5))
    copied = lib.Plain()  # its first calls, which make values and graphs, come from all threads at once
    copied.initialize(mx.init.One())
    one = lib.Plain()
    one.initialize(mx.init.One())
    if hybrid:
        net.hybridize()
        copied.hybridize()
        one.hybridize()
    want = [net(value).asnumpy() for value in x]
    first = [one(value).asnumpy() for value in x]
    barrier = threading.Barrier(16)

    def call(number: int) -> None:
        barrier.wait()
        assert np.array_equal(copied(x[number]).asnumpy(), first[number])
        for _ in range(20):
            assert np.array_equal(net(x[number]).asnumpy(), want[number])

    in_threads(16, call)


def test_structures_of_arguments_and_results(mx) -> None:
    class Several(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, a, b, c=None):
            parts = F.split(a[0], num_outputs=2, axis=0)
            found = [parts[0] + b, [parts[1], a[1]]]
            return found if c is None else [*found, c]

    def plain(value):
        return [plain(part) for part in value] if isinstance(value, list) else value.asnumpy().tolist()

    net = Several()
    a, b = [mx.nd.ones((2, 2)), mx.nd.ones((1, 2)) * 5], mx.nd.ones((1, 2)) * 2
    want = [[[3, 3]], [[[1, 1]], [[5, 5]]]]
    assert plain(net(a, b)) == want
    assert plain(net(a, b, b)) == [*want, [[2, 2]]]
    net.hybridize()
    assert plain(net(a, b)) == want
    assert plain(net(a, b, None)) == want
    with pytest.raises(ValueError, match="argument structure"):
        net(a, b, b)
    net.hybridize()
    assert plain(net(a, b, b)) == [*want, [[2, 2]]]
    with pytest.raises(ValueError, match="one NDArray or one Symbol"):
        net(3, 4)
    with pytest.raises(ValueError, match="mixed"):
        net(a, mx.sym.var("b"))


def test_the_graph_is_made_anew_when_the_structure_changes(mx) -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Activation("relu"))
    net.hybridize()
    x = mx.nd.array([[-1.0, 2.0]])
    assert net(x).asnumpy().tolist() == [[0, 2]]
    net.add(mx.gluon.nn.HybridLambda(lambda F, x: x * 3))
    assert net(x).asnumpy().tolist() == [[0, 6]]


def test_a_parameter_used_twice_is_one_input_of_the_graph(mx) -> None:
    class Twice(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.layer = mx.gluon.nn.Dense(2, in_units=2, prefix="d_")

        def hybrid_forward(self, F, x):
            return self.layer(self.layer(x))

    net = Twice()
    net.initialize(mx.init.One())
    net.hybridize()
    assert net(mx.nd.ones((1, 2))).asnumpy().tolist() == [[4, 4]]
    assert net(mx.sym.var("q")).list_arguments() == ["q", "d_weight", "d_bias"]


def test_exported_blocks_load_as_symbol_blocks(mx, lib, tmp_path: Path) -> None:
    net = lib.Net(prefix="e_")
    with pytest.raises(RuntimeError, match="hybridize"):
        net.export(str(tmp_path / "early"))
    net.initialize(mx.init.Normal(0.5))
    net.hybridize()
    x = mx.nd.random.uniform(shape=(2, 2))
    want = net(x).asnumpy()
    net.export(str(tmp_path / "net"), epoch=7)
    document = json.loads((tmp_path / "net-symbol.json").read_text())
    first = {node["name"]: node for node in document["nodes"]}["e_dense0_weight"]["attrs"]
    assert first["__shape__"] == "(3, 0)" and first["__lr_mult__"] == "1.0"
    loaded = mx.gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), "data", str(tmp_path / "net-0007.params"))
    assert np.array_equal(loaded(x).asnumpy(), want)


@pytest.mark.parametrize("way", ["save_parameters", "deduplicate", "save_params", "save"])
def test_parameters_come_back_from_files(mx, lib, tmp_path: Path, way: str) -> None:
    net, other, path = lib.Net(prefix="one_"), lib.Net(prefix="two_"), str(tmp_path / "p")
    net.initialize(mx.init.Normal(0.5))
    x = mx.nd.random.uniform(shape=(2, 2))
    want = net(x).asnumpy()
    if way == "save_params":
        with pytest.warns(UserWarning, match="deprecated"):
            net.save_params(path)
        with pytest.warns(UserWarning, match="deprecated"):
            other.load_params(path)
    elif way == "save":
        net.save(path)
        other.load(path)
        assert other.a.name == "one_dense0"
    else:
        net.save_parameters(path, deduplicate=way == "deduplicate")
        other.load_parameters(path)
    assert np.array_equal(other(x).asnumpy(), want)


def test_what_does_not_fit_is_listed_and_nothing_is_loaded(mx, tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    nn = mx.gluon.nn

    def stack(*layers):
        net = nn.HybridSequential()
        net.add(*layers)
        net.initialize(mx.init.One())
        return net

    stack(nn.Dense(2, in_units=3), nn.Dense(1, in_units=2)).save_parameters(path)
    net = stack(nn.Dense(2, in_units=4), nn.Dense(1, in_units=2), nn.Dense(1, in_units=1))
    with pytest.raises(AssertionError, match=r"(?s)'2\.weight'.*'0\.weight' has shape \(2, 3\), needs \(2, 4\)"):
        net.load_parameters(path)
    assert net[1].weight.data().asnumpy().tolist() == [[1, 1]]
    with pytest.raises(ValueError, match=r"'1\.weight'"):
        stack(nn.Dense(2, in_units=3)).load_parameters(path)
    stack(nn.Dense(2, in_units=3)).load_parameters(path, ignore_extra=True)
    stack(nn.Dense(2, in_units=3), nn.Dense(1), nn.Dense(3, in_units=1)).load_parameters(path, allow_missing=True)
    half = stack(nn.Dense(2, in_units=3), nn.Dense(1, in_units=2))
    half.cast("float16")
    with pytest.raises(AssertionError, match="dtype"):
        half.load_parameters(path)
    half.load_parameters(path, cast_dtype=True)
    assert half[0].weight.data().dtype == np.float16
    half.load_parameters(path, cast_dtype=True, dtype_source="saved")
    assert half[0].weight.data().dtype == np.float32


def test_hooks_come_and_go(mx, lib) -> None:
    net, seen = mx.gluon.nn.Flatten(), []
    before = net.register_forward_pre_hook(lambda block, inputs: seen.append(("before", inputs[0].shape)))
    with net.register_forward_hook(lambda block, inputs, output: seen.append(("after", output.shape))):
        net(mx.nd.ones((2, 3, 4)))
    net(mx.nd.ones((1, 2)))
    before.detach()
    net(mx.nd.ones((1, 2)))
    assert seen == [("before", (2, 3, 4)), ("after", (2, 12)), ("before", (1, 2))]
    names: list[str] = []
    lib.Net().apply(lambda block: names.append(type(block).__name__))
    assert names == ["Activation", "Dense", "Dense", "Dense", "BatchNorm", "HybridSequential", "Net"]


@pytest.mark.parametrize("everything", [False, True])
def test_op_hooks_see_every_operator(mx, everything: bool) -> None:
    net = mx.gluon.nn.HybridSequential(prefix="hk_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(2), mx.gluon.nn.Activation("relu"))
    net.initialize(mx.init.One())
    net.hybridize()
    seen = []
    net.register_op_hook(lambda name, op, array: seen.append((name.decode(), op.decode(), array.shape)), everything)
    assert net(mx.nd.ones((2, 3))).asnumpy().tolist() == [[3, 3]] * 2
    outputs = [
        ("hk_dense0_fwd_output", "FullyConnected", (2, 2)),
        ("hk_relu0_fwd_output", "Activation", (2, 2)),
    ]
    inputs = [
        ("hk_dense0_fwd_data", "FullyConnected", (2, 3)),
        ("hk_dense0_fwd_weight", "FullyConnected", (2, 3)),
        ("hk_dense0_fwd_bias", "FullyConnected", (2,)),
    ]
    dense, relu = outputs
    assert seen == ([*inputs, dense, ("hk_relu0_fwd_input0", "Activation", (2, 2)), relu] if everything else outputs)


def test_summary_counts_parameters(mx, lib, capsys) -> None:
    net = lib.Net()
    net.initialize()
    net.summary(mx.nd.ones((1, 2)))
    text = capsys.readouterr().out
    assert "Total params: 50" in text and "Non-trainable params: 12" in text
    net.hybridize()
    with pytest.raises(AssertionError, match="must not be hybridized"):
        net.summary(mx.nd.ones((1, 2)))


def test_casting_keeps_statistics_in_single_precision(mx, lib) -> None:
    net = lib.Net()
    net.initialize()
    net(mx.nd.ones((1, 2)))
    net.cast("float16")
    kinds = {name.rsplit("_", 1)[-1]: np.dtype(p.dtype).name for name, p in net.collect_params().items()}
    assert kinds == {
        **dict.fromkeys(["scale", "k", "weight", "bias"], "float16"),
        **dict.fromkeys(["gamma", "beta", "mean", "var"], "float32"),
    }


def test_blocks_are_copied_whole(mx, lib) -> None:
    net, x = lib.Net(), mx.nd.ones((1, 2))
    net.initialize(mx.init.One())
    net.hybridize()
    want = net(x).asnumpy()
    other = copy.deepcopy(net)
    net.a.weight.set_data(mx.nd.zeros((3, 2)))
    assert np.array_equal(other(x).asnumpy(), want)
    assert not np.array_equal(net(x).asnumpy(), want)


def test_parameters_asked_for_again_must_agree(mx) -> None:
    params = mx.gluon.ParameterDict("p_")
    one = params.get("w", shape=(3, 0), allow_deferred_init=True)
    assert params.get("w", shape=(0, 4)) is one and one.shape == (3, 4)
    with pytest.raises(AssertionError, match="shape"):
        params.get("w", shape=(5, 4))
    with pytest.raises(AssertionError, match="dtype"):
        params.get("w", dtype="float16")
    constant = params.get_constant("c", [1, 2])
    assert params.get_constant("c", mx.nd.array([1, 2])) is constant
    with pytest.raises(AssertionError, match="value"):
        params.get_constant("c", mx.nd.array([1, 3]))
    with pytest.raises(KeyError, match="No constant"):
        params.get_constant("absent")
    with pytest.warns(UserWarning, match="grad_req"):
        constant.grad_req = "write"
    params.initialize()
    assert constant.data().asnumpy().tolist() == [1, 2]
    with pytest.raises(AssertionError, match="same name"):
        params.update({"p_w": mx.gluon.Parameter("p_w")})


def test_weights_that_change_count_in_plain_layers_too(mx) -> None:
    net = mx.gluon.nn.Dense(1, in_units=2)
    net.initialize(mx.init.One())
    x = mx.nd.ones((1, 2))
    assert [net(x).asscalar() for _ in range(3)] == [2, 2, 2]
    net.weight.set_data(mx.nd.ones((1, 2)) * 3)
    assert net(x).asscalar() == 6
    net.weight.initialize(mx.init.Constant(5), force_reinit=True)
    assert net(x).asscalar() == 10

    class Doubled(mx.gluon.nn.Dense):
        def hybrid_forward(self, F, x, weight, bias=None):
            return super().hybrid_forward(F, x, weight * 2, bias)

    net = Doubled(1, in_units=2)
    net.initialize(mx.init.One())
    assert net(x).asscalar() == 4


def test_sparse_parameters_are_for_their_layers(mx) -> None:
    layer = mx.gluon.contrib.nn.SparseEmbedding(4, 2)
    layer.initialize(mx.init.One())
    assert layer(mx.nd.array([1, 3])).asnumpy().tolist() == [[1, 1], [1, 1]]
    for read in (layer.weight.data, layer.weight.list_data):
        with pytest.raises(RuntimeError, match="storage type is row_sparse"):
            read()
    with pytest.raises(AssertionError, match="row_sparse"):
        mx.gluon.SymbolBlock(mx.sym.var("x") * mx.sym.var("w", stype="row_sparse"), [mx.sym.var("x")])


@pytest.mark.parametrize(
    ("given", "got"), [(None, "NoneType"), (3, "int"), ([], "an empty list"), ([[None]], "NoneType")]
)
@pytest.mark.parametrize("place", [0, 1])
def test_symbol_blocks_are_made_of_symbols(mx, place: int, given: object, got: str) -> None:
    arguments = [mx.sym.relu(mx.sym.var("x")), mx.sym.var("x")]
    arguments[place] = given
    with pytest.raises(TypeError, match=f"SymbolBlock: {('outputs', 'inputs')[place]} must be .*got .*{got}"):
        mx.gluon.SymbolBlock(*arguments)


def test_a_trainer_can_be_made_and_trains_nothing(mx) -> None:
    net = mx.gluon.nn.Dense(1, in_units=2)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    with pytest.raises(NotImplementedError, match=r"Trainer\.step"):
        trainer.step(1)
    with pytest.raises(ValueError, match="Parameters"):
        mx.gluon.Trainer([1], "sgd")


@pytest.mark.parametrize("kind", ["HybridBlock", "SymbolBlock"])
def test_blocks_run_rewritten_graphs(mx, tmp_path: Path, kind: str) -> None:
    @mx.subgraph.register("scaled")
    def scaled(symbol, args, ctx, by=1.0):
        args["by"] = mx.nd.array([by], ctx=ctx)
        return mx.sym.broadcast_mul(symbol, mx.sym.var("by"))

    net = mx.gluon.nn.Dense(1, prefix="fc_")
    net.initialize(mx.init.One())
    x = mx.nd.ones((1, 2))
    if kind == "SymbolBlock":
        net(x)
        symbols = mx.gluon.SymbolBlock(net(mx.sym.var("q")), [mx.sym.var("q")], params=net.collect_params())
        net = symbols
    try:
        with pytest.raises(ValueError, match="backend"):
            net.optimize_for(x)
        with pytest.raises(mx.base.MXNetError, match="nonsense is not found"):
            net.optimize_for(x, backend="nonsense")
        net.optimize_for(x, backend="scaled", by=3.0)
        in_threads(16, lambda number: np.testing.assert_array_equal(net(x).asnumpy(), [[6]]))
        net.hybridize(clear=False, static_alloc=True)
        assert net(x).asscalar() == 6
        net.export(str(tmp_path / "net"))
        name = "q" if kind == "SymbolBlock" else "data"
        files = [str(tmp_path / "net-symbol.json"), name, str(tmp_path / "net-0000.params")]
        assert mx.gluon.SymbolBlock.imports(*files)(x).asscalar() == 6
        net.hybridize()
        assert net(x).asscalar() == 2
    finally:
        mx.subgraph._BACKENDS.pop("scaled")


def test_hybridised_blocks_show_their_plan(mx, lib) -> None:
    net, x = lib.Net(), mx.nd.ones((1, 2))
    net.initialize()
    with pytest.raises(RuntimeError, match="hybridize"):
        net.plan(x)
    with pytest.raises(RuntimeError, match="hybridize"):
        net.plan_cache_info()
    net.hybridize()
    assert "FullyConnected" in net.plan(x, measure=False)
    assert net.plan_report(x, measure=False)["steps"]
    net(x)
    assert net.plan_cache_info()["plans"] >= 1


def test_hybridizing_while_others_call(mx, lib, eager_switching) -> None:
    net, x = lib.Net(), mx.nd.ones((1, 2))
    net.initialize(mx.init.Normal(0.5))
    net.hybridize()
    want = net(x).asnumpy()

    def call(number: int) -> None:
        for turn in range(20):
            if number == 0:
                net.hybridize(active=turn % 3 != 0)
            np.testing.assert_allclose(net(x).asnumpy(), want, rtol=1e-5, atol=1e-6)

    in_threads(8, call)


def test_a_block_is_exported_as_soon_as_it_has_a_graph(mx, tmp_path: Path) -> None:
    x = mx.nd.ones((2, 3))
    layer = mx.gluon.nn.Dense(2)
    layer.initialize()
    path = str(tmp_path / "layer")
    with pytest.raises(RuntimeError, match="Please first call"):
        layer.export(path)
    want = layer(x).asnumpy()  # the first call makes a graph, which gives the shape of the weight
    layer.export(path)
    again = mx.gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0000.params")
    assert again(x).asnumpy().tolist() == want.tolist()

    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(2, in_units=3))
    net.initialize()
    net(x)
    with pytest.raises(RuntimeError, match="Please first call"):
        net.export(path)
    net.hybridize()
    net(x)
    net.register_op_hook(lambda *_: None)
    net.export(path)


def test_a_symbol_block_is_exported_before_its_first_call(mx, tmp_path: Path) -> None:
    layer = mx.gluon.nn.Dense(2, in_units=3)
    layer.initialize()
    layer.hybridize()
    layer(mx.nd.ones((2, 3)))
    path = str(tmp_path / "layer")
    layer.export(path)
    loaded = mx.gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0000.params")
    loaded.cast("float16")
    loaded.export(f"{path}-half")
    saved = mx.nd.load(f"{path}-half-0000.params")
    assert {name: array.dtype for name, array in saved.items()} == {
        f"arg:{layer.weight.name}": np.float16,
        f"arg:{layer.bias.name}": np.float16,
    }


def test_shapes_of_a_recurrent_layer_follow_from_its_input_alone(mx) -> None:
    layer = mx.gluon.rnn.LSTM(3)
    layer.initialize()
    x = mx.nd.ones((2, 1, 4))
    layer.infer_shape(x, layer.begin_state(1))
    layer.infer_shape(x)
    assert layer.l0_i2h_weight.shape == (12, 4)
    assert layer(x).shape == (2, 1, 3)


def test_a_block_that_is_called_without_input_is_a_type_error(mx) -> None:
    layer = mx.gluon.nn.Dense(2)
    layer.initialize()
    for _ in range(2):
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            layer()
        layer.hybridize()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"channels": 4, "groups": 3}, "num_filter=4 must be positive and a multiple of num_group=3"),
        ({"channels": 4, "groups": 2, "in_channels": 3}, "channels"),
        ({"channels": 0}, "num_filter=0 must be positive"),
        ({"channels": 4.0}, "num_filter expect int"),
        ({"channels": 4, "strides": 0}, "kernel, stride and dilate must be positive"),
        ({"channels": 4, "kernel_size": 0}, "kernel, stride and dilate must be positive"),
    ],
)
def test_a_convolution_of_wrong_numbers_is_refused_when_it_is_made(mx, options: dict, what: str) -> None:
    with pytest.raises(mx.base.MXNetError, match=what):
        mx.gluon.nn.Conv2D(**{"kernel_size": 1, **options})
    assert mx.gluon.nn.Conv2D(4, 3, groups=2, layout="NHWC").weight.shape == (4, 3, 3, 0)
    with mx.util.np_shape(True):
        assert mx.gluon.nn.Conv2D(4, 3, groups=2, in_channels=6).weight.shape == (4, 3, 3, 3)


def test_layers_that_get_a_list_of_arrays_say_so(mx) -> None:
    x = mx.nd.ones((1, 3, 5, 5))
    for layer in (mx.gluon.nn.Dense(2, in_units=75), mx.gluon.nn.Conv2D(2, 1, in_channels=3)):
        layer.initialize()
        with pytest.raises(AssertionError, match="must have NDArray type, but got"):
            layer([x])


def test_graphs_of_losses_have_names_and_numbers_of_mxnet(mx) -> None:
    a, b, c = (mx.sym.var(name) for name in "abc")
    with mx.name.NameManager():
        nodes = json.loads(mx.gluon.loss.L1Loss(weight=2)(a, b).tojson())["nodes"]
    assert [node["attrs"] for node in nodes if node["op"] == "_mul_scalar"] == [{"scalar": "2"}]
    with mx.name.NameManager():
        nodes = json.loads(mx.gluon.loss.CosineEmbeddingLoss()(a, b, c).tojson())["nodes"]
    start = "cosineembeddingloss0_"
    names = [node["name"].removeprefix(start) for node in nodes if node["name"].startswith(start)]
    assert " ".join(names) == (
        "reshape_like0 _mul0 sum0 reshape3 norm0 reshape1 norm1 reshape2 _mul1 _full0 "
        "broadcast_maximum0 _div0 _rminusscalar0 reshape0 _equal_scalar0 _mul2 _zeros0 "
        "_equal_scalar1 _minusscalar0 _mul3 broadcast_maximum1 _plus0"
    )
