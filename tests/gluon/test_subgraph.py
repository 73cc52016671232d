"""Rewrites of graphs by name: from programs, and from the environment."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support import DIGITS, digits, in_threads, last_json, run_python


def relu_as_leaky(symbol, **options):
    """The graph with another operator, of equal results, in the place of every relu."""
    import mxrt as mx

    graph = json.loads(symbol.tojson())
    for node in graph["nodes"]:
        if node["op"] == "Activation" and node["attrs"]["act_type"] == "relu":
            node.update(op="LeakyReLU", attrs={"act_type": "leaky", "slope": str(options.get("slope", 0.0))})
    return mx.sym.load_json(json.dumps(graph))


@pytest.fixture
def backend(mx):
    """A backend that exists during a test."""
    mx.subgraph.register("leaky")(relu_as_leaky)
    yield "leaky"
    mx.subgraph._BACKENDS.pop("leaky")


def operators(symbol) -> set[str]:
    return {node["op"] for node in json.loads(symbol.tojson())["nodes"]}


def test_a_rewritten_graph_answers_from_many_threads(mx, backend: str) -> None:
    symbol, args, aux = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)
    made = symbol.optimize_for(backend, args, aux)
    assert "Activation" in operators(symbol)
    assert {"LeakyReLU"} <= operators(made)
    assert "Activation" not in operators(made)
    images, _ = digits(64)
    plain = mx.mod.Module(symbol, label_names=None)
    other = mx.mod.Module(made, label_names=None)
    for module in (plain, other):
        module.bind([("data", (1, *images.shape[1:]))], for_training=False)
        module.set_params(args, aux)

    def call(number: int) -> None:
        batch = mx.io.DataBatch([mx.nd.array(images[number : number + 1])])
        for module in (plain, other):
            module.forward(batch)
        found, want = (module.get_outputs()[0].asnumpy() for module in (other, plain))
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)

    in_threads(64, call)
    steep = symbol.optimize_for(backend, slope=0.5)
    assert "slope" in steep.tojson()
    assert operators(symbol.get_backend_symbol(backend)) == operators(made)


def test_parameters_come_and_go_with_the_graph(mx) -> None:
    @mx.subgraph.register("without bias")
    def rewrite(symbol, args, ctx):
        args["scale"] = mx.nd.array([2.0], ctx=ctx)
        net = mx.sym.FullyConnected(mx.sym.var("x"), mx.sym.var("fc_weight"), num_hidden=2, no_bias=True)
        return mx.sym.broadcast_mul(net, mx.sym.var("scale"))

    try:
        symbol = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
        args = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.ones(2)}
        made = symbol.optimize_for("without bias", args)
        assert sorted(args) == ["fc_weight", "scale"]
        assert made.bind(mx.cpu(), {**args, "x": mx.nd.ones((1, 3))}).forward()[0].asnumpy().tolist() == [[6, 6]]
        with pytest.raises(mx.base.MXNetTypeError, match="has no option nonsense"):
            symbol.optimize_for("without bias", args, nonsense=1)
    finally:
        mx.subgraph._BACKENDS.pop("without bias")


def test_what_is_no_backend_is_said(mx) -> None:
    symbol = mx.sym.var("x") + 1
    with pytest.raises(mx.base.MXNetError, match="nonsense is not found; the backends are MKLDNN"):
        symbol.optimize_for("nonsense")
    assert symbol.get_backend_symbol("MKLDNN").list_arguments() == ["x"]
    mx.subgraph.register("of a test")(lambda symbol: None)
    try:
        with pytest.raises(mx.base.MXNetTypeError, match="returned <class 'NoneType'>, expected a Symbol"):
            symbol.optimize_for("of a test")
        mx.subgraph.register("of a test")(lambda symbol: symbol["no such output"])
        with pytest.raises((ValueError, KeyError)):
            symbol.optimize_for("of a test")
    finally:
        mx.subgraph._BACKENDS.pop("of a test")


def test_the_environment_chooses_a_backend() -> None:
    code = """
    import json
    import mxrt as mx

    @mx.subgraph.register("negated")
    def negated(symbol):
        return -symbol

    @mx.subgraph.register("renamed")
    def renamed(symbol):
        return mx.sym.var("other") + 1

    import os
    found = []
    for name in ("negated", "NONE", "MKLDNN", "renamed", "nonsense"):
        os.environ["MXNET_SUBGRAPH_BACKEND"] = name
        try:
            executor = (mx.sym.var("x") + 1).bind(mx.cpu(), {"x": mx.nd.ones(1)})
            found.append(executor.forward()[0].asscalar().item())
        except mx.base.MXNetError as error:
            found.append(str(error).split(":")[0][:60])
    print(json.dumps(found))
    """
    assert last_json(run_python(code)) == [
        -2.0,
        2.0,
        2.0,
        "MXNET_SUBGRAPH_BACKEND",
        "SubgraphProperty nonsense is not found; the backends are MKL",
    ]


def test_random_symbols_have_all_of_mxnets_names(mx) -> None:
    random = mx.sym.random
    lam = mx.nd.array([1.0, 50.0])
    for make, values in (
        (lambda: random.randn(200, 3), {}),
        (lambda: random.poisson(4.0, shape=(200, 3)), {}),
        (lambda: random.poisson(mx.sym.var("lam"), shape=(300,)), {"lam": lam}),
        (lambda: random.exponential(2.0, shape=(200, 3)), {}),
        (lambda: random.gamma(2.0, 3.0, shape=(200, 3)), {}),
        (lambda: random.negative_binomial(3, 0.5, shape=(200, 3)), {}),
        (lambda: random.generalized_negative_binomial(2.0, 0.3, shape=(200, 3)), {}),
        (lambda: random.randint(0, 9, shape=(200, 3)), {}),
        (lambda: random.shuffle(mx.sym.var("lam")), {"lam": lam}),
    ):
        mx.random.seed(7)
        found = make().bind(mx.cpu(), values).forward()[0].asnumpy()
        assert np.isfinite(found).all()
        assert found.std() > 0
    spread = random.poisson(mx.sym.var("lam"), shape=(300,)).bind(mx.cpu(), {"lam": lam}).forward()[0].asnumpy()
    np.testing.assert_allclose(spread.mean(axis=1), [1, 50], rtol=0.3)
    drawn = random.multinomial(mx.sym.var("p"), shape=(50,)).bind(mx.cpu(), {"p": mx.nd.array([[0, 1.0, 0]])}).forward()
    assert set(drawn[0].asnumpy().ravel()) == {1}
    np.testing.assert_allclose(drawn[1].asnumpy(), 0, atol=1e-6)
    mean = random.exponential(4.0, shape=(20000,)).bind(mx.cpu(), {}).forward()[0].asnumpy().mean()
    np.testing.assert_allclose(mean, 4.0, rtol=0.05)
    with pytest.raises(ValueError, match="numbers"):
        random.randint(mx.sym.var("a"), 3)
