"""``is_train=True`` and ``bind(for_training=True)``: programs that only predict use them. What a
forward computes is computed; gradients are refused.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

# What MXNet 1.9.1 gives for BatchNorm in training, of numpy.arange(24) ** 1.5 as (2, 3, 2, 2) with
# gamma [1, 2, 3], beta 1 and eps 1e-3.
NORMALISED = [
    *(-0.0753, -0.0339, 0.0417, 0.1397, -1.2981, -1.0905, -0.8610, -0.6115, -2.5190, -2.1525, -1.7650, -1.3577),
    *(1.6443, 1.8637, 2.0917, 2.3281, 2.3570, 2.7547, 3.1642, 3.5853, 3.0811, 3.6503, 4.2332, 4.8296),
]


def normalised(mx):
    net = mx.sym.BatchNorm(mx.sym.var("data"), name="bn", fix_gamma=False, eps=1e-3)
    data = mx.nd.array(np.arange(24).reshape(2, 3, 2, 2) ** 1.5)
    args = {"bn_gamma": mx.nd.array([1, 2, 3]), "bn_beta": mx.nd.ones(3)}
    states = {"bn_moving_mean": mx.nd.zeros(3), "bn_moving_var": mx.nd.ones(3)}
    return net, data, args, states


def test_batch_norm_takes_the_statistics_of_the_batch(mx) -> None:
    net, data, args, states = normalised(mx)
    held = net.bind(mx.cpu(), {"data": data, **args}, aux_states=states)
    assert np.allclose(held.forward(is_train=True)[0].asnumpy().ravel(), NORMALISED, atol=2e-4)
    assert states["bn_moving_mean"].asnumpy().tolist() == [0, 0, 0]
    plain = held.forward(is_train=False)[0].asnumpy().ravel()
    assert np.allclose(plain[:4], [1, 1.9995, 3.8270, 6.1935], atol=1e-3)


def test_dropout_drops_while_training_and_not_otherwise(mx) -> None:
    net = mx.sym.Dropout(mx.sym.var("data"), p=0.5)
    held = net.bind(mx.cpu(), {"data": mx.nd.ones((1000,))})
    dropped = held.forward(is_train=True)[0].asnumpy()
    assert set(dropped.tolist()) == {0, 2} and 300 < (dropped == 0).sum() < 700
    assert not np.array_equal(held.forward(is_train=True)[0].asnumpy(), dropped)
    assert held.forward()[0].asnumpy().tolist() == [1] * 1000


def test_a_module_that_is_bound_for_training_predicts(mx) -> None:
    net = mx.sym.Dropout(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), p=0.5)
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (100, 2))], for_training=True)
    module.init_params(mx.init.One())
    batch = mx.io.DataBatch([mx.nd.ones((100, 2))])
    module.forward(batch, is_train=False)
    assert (module.get_outputs()[0].asnumpy() == 2).all()
    module.forward(batch)
    assert set(module.get_outputs()[0].asnumpy().ravel().tolist()) == {0, 4}
    module.forward(batch, is_train=False)
    assert (module.get_outputs()[0].asnumpy() == 2).all()
    assert (module.predict(mx.io.NDArrayIter(np.ones((100, 2)), batch_size=100)).asnumpy() == 2).all()
    for refused in (module.backward, module.update):
        with pytest.raises(mx.base.TrainingNotSupportedError):
            refused()


KINDS = ["Module", "BucketingModule", "SequentialModule"]


def module_of(mx, kind: str, net):
    if kind == "BucketingModule":
        return mx.mod.BucketingModule(lambda key: (net, ["data"], None), 1)
    module = mx.mod.Module(net, label_names=None)
    return mx.mod.SequentialModule().add(module) if kind == "SequentialModule" else module


@pytest.mark.parametrize("kind", KINDS[1:])
def test_other_modules_pass_it_on(mx, kind: str) -> None:
    module = module_of(mx, kind, mx.sym.Dropout(mx.sym.var("data"), p=0.5))
    shapes = [("data", (100, 2))]
    module.bind(shapes, for_training=True)
    module.init_params()
    batch = mx.io.DataBatch([mx.nd.ones((100, 2))], bucket_key=1, provide_data=shapes)
    module.forward(batch)
    assert set(module.get_outputs()[0].asnumpy().ravel().tolist()) == {0, 2}
    module.forward(batch, is_train=False)
    assert (module.get_outputs()[0].asnumpy() == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_bind_is_for_training_where_it_is_not_told(mx, kind: str) -> None:
    module = module_of(mx, kind, mx.sym.BatchNorm(mx.sym.var("data"), name="bn", fix_gamma=False, eps=1e-5))
    rows, shapes = [[1, 2], [3, 6]], [("data", (2, 2))]
    batch = mx.io.DataBatch([mx.nd.array(rows)], bucket_key=1, provide_data=shapes)

    def forward(**options: bool) -> list[list[float]]:
        module.forward(batch, **options)
        return module.get_outputs()[0].asnumpy().round(3).tolist()

    module.bind(shapes)
    module.init_params()
    assert module.for_training and forward() == [[-1, -1], [1, 1]]
    assert forward(is_train=False) == rows
    rest = mx.io.NDArrayIter(np.array(rows), batch_size=2)
    assert module.predict(rest).asnumpy().round(3).tolist() == rows
    assert [out[0].asnumpy().round(3).tolist() for out, _, _ in module.iter_predict(rest)] == [rows]
    assert module.predict(np.array(rows)).asnumpy().round(3).tolist() == rows
    module.bind(shapes, for_training=False, force_rebind=True)
    assert forward() == rows


# ---- loops and branches --------------------------------------------------------------------------

#: Rows of 2 channels. MXNet 1.9.1 computes what the two functions below do: as in inference, and
#: with the statistics of each row.
ROWS = [[[1, 2, 3, 6], [0, 4, 4, 4]], [[2, 2, 2, 4], [9, 1, 1, 1]]]
BN_ARGUMENTS = {"norm_gamma": [1, 2], "norm_beta": [1, 1], "norm_moving_mean": [5, 5], "norm_moving_var": [4, 4]}


def in_control_flow(mx, kind: str) -> tuple[Any, dict[str, Any]]:
    """A graph with a BatchNorm inside, and the values of its inputs. Each gives the rows, one for
    each time.
    """

    def norm(row):
        return mx.sym.BatchNorm(row, name="norm", fix_gamma=False, eps=1e-3)

    data, state = mx.sym.var("data"), mx.sym.var("state")
    arrays = {name: mx.nd.array(value) for name, value in BN_ARGUMENTS.items()}
    rows = mx.nd.array(ROWS).reshape((2, 1, 2, 4))
    if kind == "foreach":
        out, _ = mx.sym.contrib.foreach(lambda row, last: (norm(row), last), data, state)
        return out, {**arrays, "data": rows, "state": mx.nd.zeros((1,))}
    if kind == "cond":
        out = mx.sym.contrib.cond(mx.sym.sum(state) > 0, lambda: norm(data), lambda: data * 0)
        return out, {**arrays, "data": rows[0], "state": mx.nd.ones((1,))}
    out, _ = mx.sym.contrib.while_loop(
        lambda at, row: mx.sym.sum(at) < 1,
        lambda at, row: ([norm(row)], [at + 1, row]),
        [state, data],
        max_iterations=1,
    )
    return out[0], {**arrays, "data": rows[0], "state": mx.nd.zeros((1,))}


def as_in_training(count: int) -> np.ndarray:
    rows = np.array(ROWS[:count], "float64")
    apart = rows - rows.mean(-1, keepdims=True)
    gamma, beta = (np.array(BN_ARGUMENTS[name])[:, None] for name in ("norm_gamma", "norm_beta"))
    return apart / np.sqrt(rows.var(-1, keepdims=True) + 1e-3) * gamma + beta


def as_in_inference(count: int) -> np.ndarray:
    gamma, beta = (np.array(BN_ARGUMENTS[name])[:, None] for name in ("norm_gamma", "norm_beta"))
    return (np.array(ROWS[:count], "float64") - 5) / np.sqrt(4 + 1e-3) * gamma + beta


@pytest.mark.parametrize("kind", ["foreach", "cond", "while_loop"])
def test_batch_norm_in_a_loop_takes_the_statistics_of_its_rows(mx, kind: str) -> None:
    """The mode of the thread decides inside of loops, as in executors of MXNet 1.9.1; `is_train`
    does not.
    """
    graph, arrays = in_control_flow(mx, kind)
    count = arrays["data"].size // 8
    training, inference = as_in_training(count), as_in_inference(count)
    states = {name: arrays[name] for name in graph.list_auxiliary_states()}
    arguments = {name: arrays[name] for name in graph.list_arguments()}
    held = graph.bind(mx.cpu(), arguments, aux_states=states)
    net = mx.gluon.SymbolBlock(graph, [mx.sym.var("data"), mx.sym.var("state")])
    for name, parameter in net.collect_params().items():
        parameter.shape = arrays[name].shape
    net.initialize()
    for name, parameter in net.collect_params().items():
        parameter.set_data(arrays[name])

    def check(out: Any, wanted: np.ndarray) -> None:
        np.testing.assert_allclose(out.asnumpy().reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5)

    for is_train in (False, True):
        check(held.forward(is_train=is_train)[0], inference)
        check(net(arrays["data"], arrays["state"]), inference)
        with mx.autograd.train_mode():
            check(held.forward(is_train=is_train)[0], training)
            check(net(arrays["data"], arrays["state"]), training)
    assert [arrays[f"norm_moving_{what}"].asnumpy().tolist() for what in ("mean", "var")] == [[5, 5], [4, 4]]


def test_statistics_of_half_precision_are_those_of_float32(mx) -> None:
    """A mean of 1000 and a deviation of 0.5, which float16 cannot square."""
    values = np.tile(np.array([999.5, 1000.5], "float16"), 40).reshape(40, 1, 2)
    graph = mx.sym.BatchNorm(mx.sym.var("data"), name="norm")
    held = graph.simple_bind(mx.cpu(), grad_req="null", type_dict={"data": "float16"}, data=values.shape)
    out = held.forward(is_train=True, data=mx.nd.array(values, dtype="float16"))[0]
    assert out.dtype == np.float16
    np.testing.assert_allclose(out.asnumpy(), np.tile([-0.998, 0.998], 40).reshape(40, 1, 2), atol=2e-3)


# ---- autograd ------------------------------------------------------------------------------------


def test_blocks_of_autograd_say_what_mxnet_says(mx) -> None:
    """Pairs of is_training and is_recording that MXNet 1.9.1 gives."""

    def now() -> tuple[bool, bool]:
        return mx.autograd.is_training(), mx.autograd.is_recording()

    assert now() == (False, False)
    with mx.autograd.train_mode():
        assert now() == (True, False)
    with mx.autograd.record():
        assert now() == (True, True)
    with mx.autograd.record(train_mode=False):
        assert now() == (False, True)
        for scope, wanted in (
            (mx.autograd.train_mode(), (True, True)),
            (mx.autograd.pause(), (False, False)),
            (mx.autograd.pause(train_mode=True), (True, False)),
            (mx.autograd.predict_mode(), (False, True)),
        ):
            with scope:
                assert now() == wanted
        assert now() == (False, True)
    assert (mx.autograd.set_training(True), mx.autograd.set_training(False)) == (False, True)
    assert (mx.autograd.set_recording(True), mx.autograd.set_recording(False)) == (False, True)
    with mx.contrib.autograd.train_section():
        assert now() == (True, True)
        with mx.contrib.autograd.test_section():
            assert now() == (False, False)
    assert now() == (False, False)


def test_the_mode_belongs_to_a_thread_and_ends_with_an_error(mx) -> None:
    found = []
    with pytest.raises(ZeroDivisionError), mx.autograd.train_mode():
        other = threading.Thread(target=lambda: found.append(mx.autograd.is_training()))
        other.start()
        other.join()
        raise ZeroDivisionError
    assert found == [False]
    assert not mx.autograd.is_training()


def test_operators_compute_as_in_training(mx) -> None:
    _, data, args, states = normalised(mx)
    ones = mx.nd.ones((1000,))
    given = [data, *args.values(), *states.values()]
    with mx.autograd.train_mode():
        out, mean, deviation = mx.nd.BatchNorm(*given, fix_gamma=False, eps=1e-3, output_mean_var=True)
        dropped = mx.nd.Dropout(ones, p=0.5)
        into = mx.nd.zeros((1000,))
        mx.nd.Dropout(ones, p=0.5, out=into)
        slopes = mx.nd.LeakyReLU(mx.nd.full((1000,), -1), act_type="rrelu", lower_bound=0.25, upper_bound=0.5)
    assert np.allclose(out.asnumpy().ravel(), NORMALISED, atol=2e-4)
    # What MXNet 1.9.1 gives.
    assert np.allclose(mean.asnumpy(), [25.992989, 43.209618, 64.61289], rtol=1e-5)
    assert np.allclose(deviation.asnumpy(), [0.04136736, 0.03263498, 0.02793803], rtol=1e-5)
    assert states["bn_moving_mean"].asnumpy().tolist() == [0, 0, 0]
    assert set(dropped.asnumpy().tolist()) == {0, 2}
    assert set(into.asnumpy().tolist()) == {0, 2}
    drawn = -slopes[0].asnumpy()
    assert (drawn >= 0.25).all() and (drawn <= 0.5).all() and len(set(drawn.tolist())) > 100
    assert np.array_equal(slopes[1].asnumpy(), drawn)
    assert mx.nd.Dropout(ones, p=0.5).asnumpy().tolist() == [1] * 1000


@pytest.mark.parametrize("kind", ["plain", "hybridised", "exported", "cached"])
def test_blocks_compute_as_in_training(mx, tmp_path, kind: str) -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.BatchNorm(epsilon=1e-3, scale=True), mx.gluon.nn.Dropout(0.5))
    net.initialize()
    data = normalised(mx)[1]
    if kind != "plain":
        net.hybridize()
    if kind == "exported":
        net(data)
        net.export(str(tmp_path / "net"))
        net = mx.gluon.SymbolBlock.imports(
            str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params")
        )
    call = net
    if kind == "cached":
        net(data)
        graph = net(mx.sym.var("data"))
        values = {"data": data, **{name: one.data() for name, one in net.collect_params().items()}}
        op, arrays = mx.nd.CachedOp(graph), [values[name] for name in graph.list_inputs()]
        call = lambda _: op(*arrays)  # noqa: E731
    with mx.autograd.train_mode():
        trained = [call(data).asnumpy() for _ in range(2)]
    assert not np.array_equal(*trained)
    # Elements that are kept are twice the normalised ones.
    wanted = (np.asarray(NORMALISED).reshape(2, 3, 2, 2) - 1) / np.arange(1, 4).reshape(3, 1, 1) * 2
    kept = trained[0] != 0
    assert 0 < kept.sum() < kept.size
    assert np.allclose(trained[0][kept], wanted[kept], atol=5e-4)
    assert np.allclose(call(data).asnumpy(), data.asnumpy() / np.sqrt(1 + 1e-3), rtol=1e-5)
    with mx.autograd.record(train_mode=False):
        assert np.allclose(call(data).asnumpy(), data.asnumpy() / np.sqrt(1 + 1e-3), rtol=1e-5)


def test_the_first_call_of_a_block_may_be_one_of_training(mx, tmp_path) -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dropout(0.5))
    net.initialize()
    net.hybridize()
    with mx.autograd.record():
        net(mx.nd.ones((2, 3)))
    assert net(mx.nd.ones((2, 3))).shape == (2, 4)
    net.export(str(tmp_path / "net"))


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        *[
            (mode, options)
            for mode in ("lstm", "gru", "rnn_relu", "rnn_tanh")
            for options in ({}, {"bidirectional": True})
        ],
        ("lstm", {"projection_size": 3}),
    ],
)
def test_layers_of_rnn_have_dropout_between_them(mx, mode: str, options: dict) -> None:
    names = ["data", "parameters", "state", "state_cell"][: 4 if mode == "lstm" else 3]

    def graph(p: float):
        variables = [mx.sym.var(name) for name in names]
        return mx.sym.RNN(*variables, mode=mode, state_size=4, num_layers=3, p=p, state_outputs=True, **options)

    shapes, _, _ = graph(0.5).infer_shape(data=(5, 2, 3))
    draw = np.random.RandomState(3)
    arrays = {name: mx.nd.array(draw.uniform(-1, 1, shape)) for name, shape in zip(names, shapes, strict=True)}

    def run(p: float, is_train: bool) -> list[np.ndarray]:
        return [one.asnumpy() for one in graph(p).bind(mx.cpu(), arrays).forward(is_train=is_train)]

    plain = run(0.5, False)
    # What hardly ever drops computes the same.
    for one, other in zip(plain, run(1e-9, True), strict=True):
        assert np.allclose(one, other, atol=1e-5)
    assert not np.allclose(run(0.5, True)[0], plain[0], atol=1e-3)
    assert not np.array_equal(run(0.5, True)[0], run(0.5, True)[0])


def test_custom_operators_are_told_that_they_train(mx) -> None:
    told = []

    class Tells(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            told.append(bool(is_train))
            self.assign(out_data[0], req[0], in_data[0])

    @mx.operator.register("tells_training")
    class TellsProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Tells()

    data = mx.nd.ones((2,))
    with mx.autograd.train_mode():
        mx.nd.Custom(data, op_type="tells_training").wait_to_read()
    mx.nd.Custom(data, op_type="tells_training").wait_to_read()
    held = mx.sym.Custom(mx.sym.var("data"), op_type="tells_training").bind(mx.cpu(), {"data": data})
    held.forward(is_train=True)[0].wait_to_read()
    held.forward()[0].wait_to_read()
    assert told == [True, False, True, False]


def test_dropout_in_a_loop_drops(mx) -> None:
    def step(row, state):
        return mx.sym.Dropout(row + state, p=0.5), state

    out, _ = mx.sym.contrib.foreach(step, mx.sym.var("data"), mx.sym.var("state"))
    held = out.bind(mx.cpu(), {"data": mx.nd.ones((3, 500)), "state": mx.nd.zeros((500,))})
    # As in executors of MXNet, where the mode of the thread decides in a loop.
    assert set(held.forward(is_train=True)[0].asnumpy().ravel().tolist()) == {1}
    with mx.autograd.train_mode():
        assert set(held.forward()[0].asnumpy().ravel().tolist()) == {0, 2}
    assert set(held.forward()[0].asnumpy().ravel().tolist()) == {1}


def test_only_gradients_are_refused(mx) -> None:
    data = mx.nd.ones((2,))
    with mx.autograd.record():
        out = data * 2
        for refused in (out.backward, lambda: mx.autograd.grad(out, [data]), lambda: mx.autograd.backward([out])):
            with pytest.raises(mx.base.TrainingNotSupportedError):
                refused()
    assert out.asnumpy().tolist() == [2, 2]
