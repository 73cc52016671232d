"""Classes of programs that redefine methods of blocks and parameters. The expected values were
read off MXNet 1.9.1.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="module")
def lib(mx):
    """A block with a parameter whose shape only its class knows how to infer, and a network with a
    parameter of a class that the tests choose.
    """

    class Shift(mx.gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.b = self.params.get("b", shape=(0,), init="ones", allow_deferred_init=True)

        def infer_shape(self, x, *args):
            self.b.shape = (x.shape[1],)

        def hybrid_forward(self, F, x, b):
            return F.broadcast_add(x, b)

    def net(kind):
        class Scale(mx.gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                self.w = kind("w", shape=(3,))
                self.params.update({"w": self.w})

            def hybrid_forward(self, F, x, w):
                return F.broadcast_mul(x, w)

        made = Scale()
        made.initialize(mx.init.One())
        return made

    return SimpleNamespace(Shift=Shift, net=net)


@pytest.mark.parametrize("kind", ["plain", "hybridised", "in a sequence", "for a plan"])
def test_a_block_infers_the_shapes_of_its_parameters_itself(mx, lib, kind: str) -> None:
    net = lib.Shift()
    x = mx.nd.zeros((2, 3))
    if kind == "in a sequence":
        outer = mx.gluon.nn.HybridSequential()
        outer.add(net)
        outer.initialize()
        assert outer(x).asnumpy().tolist() == [[1.0] * 3] * 2
    else:
        net.initialize()
        if kind != "plain":
            net.hybridize()
        if kind == "for a plan":
            assert net.plan(x, measure=False)
        assert net(x).asnumpy().tolist() == [[1.0] * 3] * 2
    assert net.b.shape == (3,)


def test_what_goes_wrong_in_it_is_said(mx, lib) -> None:
    class Wrong(lib.Shift):
        def infer_shape(self, x):
            raise KeyError("depth")

    class Idle(lib.Shift):
        def infer_shape(self, x):
            pass

    for hybrid in (False, True):
        net = Wrong()
        net.initialize()
        net.hybridize(hybrid)
        with pytest.raises(ValueError, match=r"shape cannot be inferred.*depth"):
            net(mx.nd.zeros((2, 3)))
        net = Idle()
        net.initialize()
        net.hybridize(hybrid)
        with pytest.raises(AssertionError, match="invalid shape"):
            net(mx.nd.zeros((2, 3)))


def test_the_method_around_the_inference_is_called(mx) -> None:
    seen = []

    class Dense(mx.gluon.nn.Dense):
        def _deferred_infer_shape(self, *args):
            seen.append(len(args))
            super()._deferred_infer_shape(*args)

    for hybrid in (False, True):
        net = Dense(2)
        net.initialize(mx.init.One())
        net.hybridize(hybrid)
        assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[3.0, 3.0]]
    assert seen == [1, 1]


def test_compiled_calls_go_through_the_class(mx, lib) -> None:
    built = []

    class Fivefold(lib.Shift):
        def _call_cached_op(self, *args):
            return super()._call_cached_op(*args) * 5

    class Sevenfold(lib.Shift):
        def _get_graph(self, *args):
            inputs, out = super()._get_graph(*args)
            return inputs, out * 7

    class Built(lib.Shift):
        def _build_cache(self, *args):
            built.append(len(args))
            super()._build_cache(*args)

    class FivefoldSymbol(mx.gluon.SymbolBlock):
        def _call_cached_op(self, *args):
            return super()._call_cached_op(*args) * 5

    data = mx.sym.var("data")
    x = mx.nd.zeros((1, 2))
    for net, expected in ((Fivefold(), 5), (Sevenfold(), 7), (Built(), 1), (FivefoldSymbol(data + 1, data), 5)):
        net.initialize()
        net.hybridize()
        assert [net(x).asnumpy().tolist() for _ in range(2)] == [[[expected] * 2]] * 2, type(net)
    assert built == [1]


@pytest.mark.parametrize("name", ["_finish_deferred_init", "_init_impl", "initialize"])
def test_first_values_are_made_by_the_class_of_the_parameter(mx, lib, name: str) -> None:
    seen = []

    def method(self, *args, **kwargs):
        seen.append(name)
        getattr(mx.gluon.Parameter, name)(self, *args, **kwargs)

    kind = type("Own", (mx.gluon.Parameter,), {name: method})
    net = lib.net(kind)
    assert seen == [name]
    assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[1.0] * 3]

    # One that waits for its shape.
    waiting = kind("v", shape=(0,), allow_deferred_init=True)
    waiting.initialize(mx.init.One())
    waiting.shape = (2,)
    waiting._finish_deferred_init()
    assert waiting.data().asnumpy().tolist() == [1.0, 1.0]


def test_random_first_values_do_not_depend_on_the_class(mx) -> None:
    class Own(mx.gluon.Parameter):
        def initialize(self, *args, **kwargs):
            super().initialize(*args, **kwargs)

    values = []
    for kind in (mx.gluon.Parameter, Own):
        params = mx.gluon.ParameterDict()
        params.update({"a": mx.gluon.Parameter("a", shape=(2,)), "b": kind("b", shape=(2,))})
        mx.random.seed(3)
        params.initialize()
        values.append([one.data().asnumpy().tolist() for one in params.values()])
    assert values[0] == values[1]


def test_files_are_read_and_written_by_the_class_of_the_parameter(mx, lib, tmp_path: Path) -> None:
    seen = []

    class Own(mx.gluon.Parameter):
        def data(self, ctx=None):
            seen.append("data")
            return super().data(ctx)

        def list_data(self):
            seen.append("list_data")
            return super().list_data()

        def set_data(self, data):
            seen.append("set_data")
            super().set_data(data)

        def _load_init(self, data, ctx, cast_dtype=False, dtype_source="current"):
            seen.append("_load_init")
            super()._load_init(data, ctx, cast_dtype, dtype_source)

        def _init_impl(self, data, ctx_list):
            seen.append("_init_impl")
            super()._init_impl(data, ctx_list)

    net = lib.net(Own)
    assert seen == ["_init_impl"]
    path = str(tmp_path / "net.params")
    for act, expected in (
        (lambda: net.save_parameters(path), ["list_data", "data"]),
        (lambda: net.load_parameters(path), ["_load_init", "set_data"]),
        (lambda: net.collect_params().save(path), ["list_data", "data"]),
        (lambda: net.collect_params().load(path), ["_load_init", "set_data"]),
        (lambda: net.collect_params().reset_ctx(mx.cpu(1)), ["_init_impl"]),
    ):
        seen.clear()
        act()
        assert [one for one in seen if one in expected] == expected
    assert net.w.list_ctx() == [mx.cpu(1)]


@pytest.mark.parametrize("name", ["data", "_check_and_get"])
def test_every_call_asks_the_class_of_the_parameter_for_its_value(mx, lib, name: str) -> None:
    factor = [1]

    def method(self, *args):
        return getattr(mx.gluon.Parameter, name)(self, *args) * factor[0]

    net = lib.net(type("Own", (mx.gluon.Parameter,), {name: method}))
    x = mx.nd.ones((1, 3))
    for hybrid in (False, True):
        net.hybridize(hybrid)
        for factor[0] in (2, 3):
            assert net(x).asnumpy().tolist() == [[float(factor[0])] * 3]


def test_a_value_for_a_parameter_that_was_never_initialized(mx) -> None:
    one = mx.gluon.Parameter("w", shape=(2,))
    with pytest.raises(AssertionError, match="'w' has not been initialized") as caught:
        one.set_data(mx.nd.ones((2,)))
    assert isinstance(caught.value, mx.base.MXNetError)


def test_an_empty_dictionary_of_parameters_is_true(mx) -> None:
    assert mx.gluon.ParameterDict()
