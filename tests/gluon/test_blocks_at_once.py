"""Blocks, modules and symbols in threads that run Python code at the same moment."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import numpy as np
import pytest

from support import together

THREADS = 16


def dense(mx, hybridize: bool = True):
    net = mx.gluon.nn.HybridSequential()
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(8, activation="relu", flatten=False), mx.gluon.nn.Dense(3, flatten=False))
    net.initialize(mx.init.One())
    if hybridize:
        net.hybridize()
    return net


# ---- blocks and parameters -----------------------------------------------------------------------


@pytest.mark.parametrize("hybridize", [True, False])
def test_the_first_calls_of_a_block_may_have_different_shapes(mx, hybridize: bool) -> None:
    for _ in range(10):
        net = dense(mx, hybridize)
        results = together(lambda number, net=net: net(mx.nd.ones((number + 1, 5))).asnumpy())
        for number, result in enumerate(results):
            assert np.array_equal(result, np.full((number + 1, 3), 40.0))
        assert len(net.collect_params()) == 4


def test_a_block_may_be_changed_while_it_is_called(mx) -> None:
    net = dense(mx)

    def work(number: int) -> None:
        x = mx.nd.ones((number + 1, 5))
        for _ in range(20):
            if number == 0:
                net.hybridize()
            elif number == 1:
                assert [one.shape for one in net.collect_params().values()][:1] in ([(8, 5)], [(8, 0)])
            else:
                assert np.array_equal(net(x).asnumpy(), np.full((number + 1, 3), 40.0))

    together(work)


def test_a_call_sees_parameters_of_one_moment(mx, tmp_path: Path) -> None:
    net = dense(mx)
    net(mx.nd.ones((1, 5)))
    files = []
    for value in (1, 2):
        net.collect_params().initialize(mx.init.Constant(value), force_reinit=True)
        files.append(str(tmp_path / f"{value}.params"))
        net.save_parameters(files[-1])

    def work(number: int) -> None:
        for turn in range(20):
            if number == 0:
                net.load_parameters(files[turn % 2])
            else:
                # 5 inputs, 8 units; the biases are zero.
                assert set(net(mx.nd.ones((1, 5))).asnumpy()[0].tolist()) <= {40.0, 160.0}

    together(work)


def test_a_value_is_read_whole_while_it_is_set(mx) -> None:
    parameter = mx.gluon.Parameter("weight", shape=(1000,))
    parameter.initialize(mx.init.Zero())

    def work(number: int) -> None:
        for value in range(50):
            if number < 2:
                parameter.set_data(mx.nd.full((1000,), value))
            else:
                assert np.unique(parameter.data().copy().asnumpy()).size == 1

    together(work)


def test_a_forward_may_set_attributes(mx) -> None:
    class Keeps(mx.gluon.nn.HybridSequential):
        def forward(self, x):
            for number in range(20):
                setattr(self, f"last_{threading.get_ident()}_{number}", x.shape)
            return super().forward(x)

    for _ in range(20):
        net = Keeps()
        net.add(mx.gluon.nn.Dense(2, in_units=5))
        net.initialize()

        def work(number: int, net=net) -> None:
            if number % 2:
                net(mx.nd.ones((1, 5)))
            else:
                assert len(net.collect_params()) == 2 and "Dense" in repr(net)

        together(work)


def test_hooks_come_and_go_while_the_block_is_called(mx) -> None:
    net = dense(mx)
    net(mx.nd.ones((1, 5)))
    calls = itertools.count()
    net.register_forward_hook(lambda *_: next(calls))

    def work(number: int) -> None:
        for _ in range(200):
            if number % 2:
                with net.register_forward_hook(lambda *_: None), net.register_forward_pre_hook(lambda *_: None):
                    pass
            else:
                net(mx.nd.ones((1, 5)))

    together(work)
    assert next(calls) == THREADS // 2 * 200
    assert len(net._forward_hooks) == 1 and not net._forward_pre_hooks


def test_the_mode_of_training_is_that_of_a_thread(mx) -> None:
    dropout = mx.gluon.nn.Dropout(0.5)
    dropout.hybridize()
    x = mx.nd.ones(1000)

    def work(number: int) -> None:
        for _ in range(20):
            if number % 2:
                with mx.autograd.train_mode():
                    assert mx.autograd.is_training() and dropout(x).asnumpy().min() == 0
            else:
                assert not mx.autograd.is_training() and dropout(x).asnumpy().min() == 1

    together(work)


# ---- names and graphs ----------------------------------------------------------------------------


def test_a_shared_manager_gives_every_name_once(mx) -> None:
    manager = mx.name.NameManager()

    def work(_: int) -> list[str]:
        with manager:
            return [mx.sym.relu(mx.sym.var("x")).name for _ in range(50)]

    names = [name for found in together(work) for name in found]
    assert sorted(names) == sorted(f"relu{number}" for number in range(THREADS * 50))


def test_bodies_of_loops_have_different_names(mx) -> None:
    from mxrt.symbol import control_flow

    found = together(lambda _: [control_flow._unique_name("loop of all threads") for _ in range(2000)])
    assert len({name for names in found for name in names}) == THREADS * 2000


def test_modules_of_one_symbol_are_bound_by_all_threads(mx) -> None:
    graph = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    shared = mx.mod.Module(graph, label_names=None)
    shared.bind([("data", (1, 5))], for_training=False)
    shared.init_params(mx.init.One())

    def work(number: int) -> None:
        for _ in range(5):
            module = mx.mod.Module(graph, label_names=None)
            module.bind([("data", (number + 1, 5))], for_training=False)
            module.init_params(mx.init.One())
            batch = mx.io.DataBatch([mx.nd.ones((number + 1, 5))])
            for one in (module, shared):
                one.forward(batch)
                assert np.array_equal(one.get_outputs()[0].asnumpy(), np.full((number + 1, 3), 5.0))

    together(work)
