"""Objects of Python that threads share: what a thread has checked may change before it is used."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from support import in_threads

THREADS = 8


def slow(name: str) -> property:
    """An attribute that other threads run after each time it is read."""
    key = f"slow {name}"

    def get(self):
        value = self.__dict__[key]
        time.sleep(0.001)
        return value

    return property(get, lambda self, value: self.__dict__.__setitem__(key, value))


def slowly(make):
    """A function that other threads run in the middle of."""

    def made(*args, **kwargs):
        time.sleep(0.005)
        return make(*args, **kwargs)

    return made


def all_at_once(work) -> list:
    """The results of `work` in several threads that begin together."""
    start, found = threading.Barrier(THREADS), []

    def run(number: int) -> None:
        start.wait()
        found.append(work(number))

    in_threads(THREADS, run)
    return found


def test_a_parameter_has_one_symbol(mx, monkeypatch) -> None:
    from mxrt.gluon import parameter

    monkeypatch.setattr(parameter, "var", slowly(parameter.var))
    shared = mx.gluon.Parameter("weight", shape=(2,))
    symbols = all_at_once(lambda _: shared.var())
    assert all(symbol is symbols[0] for symbol in symbols)


@pytest.mark.parametrize("kind", ["Parameter", "Constant"])
def test_a_name_has_one_parameter(mx, monkeypatch, kind: str) -> None:
    from mxrt.gluon import parameter_dict

    made = getattr(parameter_dict, kind)
    monkeypatch.setattr(made, "__init__", slowly(made.__init__))
    params = mx.gluon.ParameterDict("net_")
    get = {
        "Parameter": lambda _: params.get("weight", shape=(2,)),
        "Constant": lambda _: params.get_constant("weight", [1.0, 2.0]),
    }
    assert all(found is params["net_weight"] for found in all_at_once(get[kind]))


def test_parameters_change_while_their_first_value_is_made(mx) -> None:
    class Slow(mx.gluon.Parameter):
        _deferred = slow("_deferred")
        _arrays = slow("_arrays")

    for _ in range(5):
        waiting = Slow("weight", shape=(0, 3), allow_deferred_init=True)
        waiting.initialize(mx.init.One(), mx.cpu(0))

        def work(number: int, waiting=waiting) -> None:
            if number % 4 == 0:
                waiting.shape = (2, 3)
                waiting._finish_deferred()
            elif number % 4 == 1:
                waiting.reset_ctx([mx.cpu(0)])
            elif number % 4 == 2:
                assert waiting.list_ctx() == [mx.cpu(0)]
            else:
                waiting.cast("float32")

        all_at_once(work)
        assert waiting._deferred is None and waiting.data().asnumpy().tolist() == [[1] * 3] * 2


def test_a_value_that_is_set_while_the_first_is_made_stays(mx) -> None:
    class Slow(mx.gluon.Parameter):
        _deferred = slow("_deferred")

    waiting = Slow("weight", shape=(0, 3), allow_deferred_init=True)
    waiting.initialize(mx.init.One(), mx.cpu(0))

    def work(number: int) -> None:
        if number == 0:
            waiting.shape = (2, 3)
            waiting._finish_deferred()
        else:
            waiting.set_data(mx.nd.full((2, 3), 7))

    all_at_once(work)
    assert waiting.data().asnumpy().tolist() == [[7] * 3] * 2


def test_only_one_of_several_threads_initialises(mx) -> None:
    class Slow(mx.gluon.Parameter):
        _arrays = slow("_arrays")

    shared = Slow("weight", shape=(2,))
    with pytest.warns(UserWarning, match="already initialized"):
        held = all_at_once(lambda _: shared.initialize(mx.init.One()) or shared._arrays[mx.cpu()])
    assert all(array is held[0] for array in held)


@pytest.mark.parametrize("kind", ["known", "deferred", "eager", "one", "rewritten"])
def test_an_initializer_may_wait_for_another_thread_that_uses_blocks(mx, kind: str) -> None:
    began, done = threading.Event(), threading.Event()

    class Waiting(mx.init.Initializer):
        def _init_weight(self, name, arr) -> None:
            began.set()
            assert done.wait(60), "the other thread stands still while an initializer runs"
            arr[:] = 1

    x = mx.nd.ones((2, 3))
    net = mx.gluon.nn.Dense(4, in_units=3 if kind in ("known", "one") else 0, use_bias=False)
    net.hybridize(kind != "eager")

    def initialise() -> np.ndarray:
        if kind == "one":
            net.weight.initialize(Waiting())
        else:
            net.initialize(Waiting())
        if kind == "rewritten":
            net.optimize_for(x, backend="MKLDNN")
        return net(x).asnumpy()

    def use_others() -> np.ndarray:
        assert began.wait(60)
        other = mx.gluon.nn.Dense(4, use_bias=False)
        other.hybridize()
        other.initialize(mx.init.One())
        made = other(x).asnumpy()
        other.cast("float32")
        other.collect_params().reset_ctx(mx.cpu())
        done.set()
        return made

    made = {}
    in_threads(2, lambda number: made.update({number: initialise() if number == 0 else use_others()}))
    assert len(made) == 2 and all((result == 3).all() for result in made.values())


def test_blocks_are_exported_while_others_forget_their_graph(mx, tmp_path) -> None:
    class Forgetful(mx.gluon.nn.Dense):
        """Loses its graph whenever that was read."""

        _graph = None

        @property
        def _compiled(self):
            graph, self.__dict__["_graph"] = self.__dict__.get("_graph"), None
            return graph

        @_compiled.setter
        def _compiled(self, graph) -> None:
            self.__dict__["_graph"] = graph

    net = Forgetful(2, in_units=3)
    net.initialize(mx.init.One())
    net.hybridize()
    x = mx.nd.ones((1, 3))
    for use in (lambda: net.export(str(tmp_path / "net")), net.plan_cache_info, lambda: net._cached_op.num_inputs):
        net._compiled = net._compile((x,))
        assert net._graph is not None
        use()
        assert net._graph is None


def test_a_graph_that_was_begun_before_a_change_does_not_stay(mx) -> None:
    class Slow(mx.gluon.nn.HybridSequential):
        def hybrid_forward(self, F, x):
            out = super().hybrid_forward(F, x)
            if len(self) == 1 and F is mx.sym:
                in_threads(1, lambda _: self.add(mx.gluon.nn.HybridLambda(lambda F, x: x + 10)))
            return out

    net = Slow()
    net.add(mx.gluon.nn.HybridLambda(lambda F, x: x * 2))
    net.hybridize()
    assert net(mx.nd.ones(1)).asscalar() == 2
    assert net(mx.nd.ones(1)).asscalar() == 12


def test_outputs_of_an_executor_are_those_of_the_last_run(mx, monkeypatch) -> None:
    executor = (mx.sym.var("x") * 2).bind(mx.cpu(), {"x": mx.nd.ones(3)})
    zeros = executor._zeros

    def interrupted():
        in_threads(1, lambda _: executor.forward())
        return zeros()

    monkeypatch.setattr(executor, "_zeros", interrupted)
    assert executor.outputs[0].asnumpy().tolist() == [2, 2, 2]
    assert executor.outputs[0].asnumpy().tolist() == [2, 2, 2]


def test_parameters_of_a_module_are_those_of_one_moment(mx) -> None:
    class Slow(mx.mod.Module):
        _store = slow("_store")

    net = mx.sym.BatchNorm(mx.sym.var("data"), name="norm")
    module = Slow(net, label_names=None)
    module.bind([("data", (1, 2))], for_training=False)

    def set_to(value: int) -> None:
        names = [*(net.list_arguments()[1:]), *net.list_auxiliary_states()]
        values = {name: mx.nd.full((2,), value) for name in names}
        module.set_params(values, values)

    def work(number: int) -> None:
        for value in range(10):
            if number == 0:
                set_to(value)
                continue
            args, aux = module.get_params()
            assert args["norm_gamma"].asnumpy()[0] == aux["norm_moving_var"].asnumpy()[0]

    set_to(1)
    all_at_once(work)


def test_batches_made_ahead_are_handed_to_one_thread(mx) -> None:
    class Slow(mx.gluon.data.DataLoader):
        _ready = slow("_ready")

    loader = Slow(np.arange(12, dtype="float32"), batch_size=4, auto_reload=True)
    epochs = all_at_once(lambda _: [batch.asnumpy().tolist() for batch in loader])
    assert epochs == [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]] * THREADS


def test_workers_serve_one_epoch_at_a_time(mx) -> None:
    class Slow(mx.gluon.data.DataLoader):
        _idle = slow("_idle")

    loader = Slow(np.arange(6, dtype="float32"), batch_size=3, num_workers=1)
    want = [[0, 1, 2], [3, 4, 5]]
    assert [batch.asnumpy().tolist() for batch in loader] == want  # leaves workers for the next epoch
    epochs: list = []
    in_threads(3, lambda _: epochs.append(loader._begin()))
    assert len({id(epoch._workers) for epoch in epochs}) == 3
    assert [[batch.asnumpy().tolist() for batch in epoch] for epoch in epochs] == [want] * 3
