"""Module and checkpoints beyond the ways that the recorded models are called."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from support import in_threads


@pytest.fixture
def checkpoint(mx, tmp_path: Path) -> str:
    """A dense layer that adds up its five inputs, as files."""
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    prefix = str(tmp_path / "sum")
    mx.model.save_checkpoint(prefix, 3, fc, {"fc_weight": mx.nd.ones((2, 5)), "fc_bias": mx.nd.zeros((2,))}, {})
    return prefix


@pytest.fixture
def module(mx, checkpoint: str):
    mod = mx.mod.Module.load(checkpoint, 3, data_names=["x"], label_names=None)
    mod.bind([("x", (2, 5))], for_training=False)
    return mod


def test_a_module_follows_the_shape_of_the_batch(mx, module) -> None:
    for rows in (2, 7, 1):
        module.forward(mx.io.DataBatch([mx.nd.ones((rows, 5))]), is_train=False)
        assert module.get_outputs()[0].asnumpy().tolist() == [[5, 5]] * rows
        assert module.data_shapes[0].shape == (rows, 5)
    assert module.output_shapes == [("fc_output", (1, 2))]


def test_predict_leaves_out_what_only_fills_a_batch_up(mx, module) -> None:
    rows = np.arange(35, dtype=np.float32).reshape(7, 5)
    batches = mx.io.NDArrayIter({"x": rows}, batch_size=3)
    got = module.predict(batches)
    assert np.array_equal(got.asnumpy()[:, 0], rows.sum(axis=1))
    lists = module.predict(batches, merge_batches=False)
    assert [part[0].shape[0] for part in lists] == [3, 3, 1]
    assert isinstance(module.predict(batches, always_output_list=True), list)
    assert module.predict(batches, num_batch=1).shape == (3, 2)
    assert np.array_equal(module.predict(rows).asnumpy()[:, 0], rows.sum(axis=1))
    assert [number for _, number, _ in module.iter_predict(batches)] == [0, 1, 2]


def test_parameters_that_are_missing_or_misshapen_are_all_named(mx, module) -> None:
    with pytest.raises(RuntimeError, match="fc_bias is not presented"):
        module.set_params({"fc_weight": mx.nd.ones((2, 5))}, {})
    with pytest.raises(mx.base.MXNetError) as caught:
        module.set_params({"fc_weight": mx.nd.ones((4, 4))}, {})
    assert "fc_bias" in str(caught.value)
    assert "(4, 4)" in str(caught.value)
    module.set_params({"fc_weight": mx.nd.ones((2, 5)), "fc_bias": mx.nd.ones((2,)), "extra": mx.nd.ones((1,))}, {})
    assert sorted(module.get_params()[0]) == ["fc_bias", "fc_weight"]


def test_weights_that_come_with_batches_are_those_of_the_batch(mx) -> None:
    fc = mx.sym.FullyConnected(mx.sym.var("data"), mx.sym.var("w"), num_hidden=2, name="fc")
    mod = mx.mod.Module(fc, data_names=["data", "w"], label_names=None)
    mod.bind([("data", (1, 3)), ("w", (2, 3))], for_training=False)
    mod.init_params(mx.init.One())
    data, weights = mx.nd.ones((1, 3)), [mx.nd.full((2, 3), value) for value in (1, 2)]
    for which in (0, 0, 1, 1, 0):
        mod.forward(mx.io.DataBatch([data, weights[which]]))
        assert mod.get_outputs()[0].asnumpy().tolist() == [[3.0 * (which + 1)] * 2]


def test_names_that_do_not_fit_are_named(mx, module) -> None:
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    with pytest.raises(ValueError, match="'data' is not found"):
        mx.mod.Module(fc)
    with pytest.raises(ValueError, match="data_names"):
        module.bind([("y", (2, 5))], force_rebind=True)
    with pytest.raises(mx.base.MXNetError, match="x"):
        module.forward(mx.io.DataBatch([[1.0]]))
    with pytest.raises(mx.base.MXNetError):
        module.forward(mx.io.DataBatch([]))


def test_steps_in_the_wrong_order_say_what_comes_first(mx) -> None:
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    mod = mx.mod.Module(fc, data_names=["x"], label_names=None)
    for call, first in (
        (mod.get_outputs, "bind"),
        (lambda: mod.forward(mx.io.DataBatch([mx.nd.ones((1, 5))])), "bind"),
    ):
        with pytest.raises(AssertionError, match=first):
            call()
    mod.bind([("x", (2, 5))])
    with pytest.raises(AssertionError, match="set_params"):
        mod.forward(mx.io.DataBatch([mx.nd.ones((1, 5))]))
    mod.init_params(mx.init.One())
    with pytest.raises(AssertionError, match="forward"):
        mod.get_outputs()
    mod.forward(mx.io.DataBatch([mx.nd.ones((1, 5))]))
    assert mod.get_outputs()[0].asnumpy().tolist() == [[5, 5]]


def test_files_that_are_no_checkpoint_are_refused(mx, checkpoint: str) -> None:
    mx.nd.save(f"{checkpoint}-0004.params", {"fc_weight": mx.nd.ones((2, 5))})
    with pytest.raises(ValueError, match="fc_weight"):
        mx.model.load_checkpoint(checkpoint, 4)
    mx.nd.save(f"{checkpoint}-0005.params", [mx.nd.ones((2, 5))])
    with pytest.raises(mx.base.MXNetError, match="names"):
        mx.model.load_params(checkpoint, 5)


def test_labels_have_the_shapes_of_the_last_batch(mx) -> None:
    dense = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(dense, name="softmax"))
    module.bind([("data", (4, 5))], [("softmax_label", (4,))], for_training=False)
    module.init_params(mx.init.One())
    for rows, labels in ((2, [mx.nd.zeros(2)]), (3, None), (6, [mx.nd.zeros(6), mx.nd.zeros(1)])):
        module.forward(mx.io.DataBatch([mx.nd.ones((rows, 5))], labels))
        assert [one.shape for one in module.label_shapes] == [(rows,)]
        assert module.output_shapes == [("softmax_output", (rows, 4))]


@pytest.fixture
def labelled(mx):
    """Outputs that follow from two labels, whose names are in another order than in batches."""
    data, a, b = (mx.sym.var(name) for name in ("data", "a_label", "b_label"))
    outputs = mx.sym.Group([mx.sym.MakeLoss(data * 2 - a * 10), mx.sym.MakeLoss(data * 3 - b * 100)])
    return mx.mod.Module(outputs, label_names=["b_label", "a_label"])


def test_labels_are_in_the_order_of_the_bound_shapes(mx, labelled) -> None:
    labels = {"b_label": np.full((4, 1), 2), "a_label": np.ones((4, 1))}
    batches = mx.io.NDArrayIter(np.ones((4, 1)), labels, 2)
    labelled.bind(batches.provide_data, batches.provide_label, for_training=False)
    labelled.init_params()
    assert [one.asnumpy().ravel().tolist() for one in labelled.predict(batches)] == [[-8] * 4, [-197] * 4]
    nameless = mx.io.DataBatch([mx.nd.ones((2, 1))], [np.ones((2, 1), "float32"), mx.nd.ones((2, 1)) * 2])
    labelled.forward(nameless)
    assert [one.asnumpy().ravel().tolist() for one in labelled.get_outputs()] == [[-8] * 2, [-197] * 2]
    with pytest.raises(TypeError, match="input 'a_label': got list, wanted an NDArray or a numpy array"):
        labelled.forward(mx.io.DataBatch([mx.nd.ones((2, 1))], [[1, 1], None]))


def test_shapes_of_labels_have_the_names_of_labels(mx, labelled, module) -> None:
    with pytest.raises(ValueError, match="label_shapes don't match names specified by label_names"):
        labelled.bind([("data", (2, 1))], [("a_label", (2, 1)), ("lab", (2, 1))], for_training=False)
    # An iterator may give labels that the graph does not read.
    module.bind([("x", (2, 5))], [("label", (2,))], for_training=False, force_rebind=True)


def test_arrays_of_a_batch_with_names_of_its_own_are_taken_by_position(mx) -> None:
    outputs = mx.sym.var("data") * 2 + mx.sym.var("extra") * 10
    module = mx.mod.Module(outputs, data_names=["data", "extra"], label_names=None)
    module.bind([("data", (2, 1)), ("extra", (2, 1))], for_training=False)
    module.init_params()
    for names, expected in ((("x", "y"), 32), (("data", "extra"), 32), (("extra", "data"), 16)):
        provided = [(name, (2, 1)) for name in names]
        module.forward(mx.io.DataBatch([mx.nd.ones((2, 1)), mx.nd.ones((2, 1)) * 3], provide_data=provided))
        assert module.get_outputs()[0].asnumpy().tolist() == [[expected]] * 2, names


def test_a_feed_forward_model_predicts_without_labels(mx) -> None:
    loss = mx.sym.MakeLoss(mx.sym.var("data") * 2 - mx.sym.var("softmax_label") * 10)
    with pytest.warns(DeprecationWarning, match="FeedForward has been deprecated"):
        model = mx.model.FeedForward(loss, arg_params={})

    def batches():
        return mx.io.NDArrayIter(np.ones((4, 1)), np.ones((4, 1)), 2)

    assert model.predict(batches()).ravel().tolist() == [2] * 4
    assert model.score(batches(), "mse") == 1


def test_some_parameters_of_modules_in_a_row_can_be_set(mx) -> None:
    row = mx.mod.SequentialModule()
    for name, width in (("g", 5), ("f", 3)):
        dense = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=width, name=name)
        row.add(mx.mod.Module(dense, label_names=None), auto_wiring=True)
    row.bind([("data", (4, 2))], for_training=False)
    row.init_params(mx.init.One())
    row.set_params({"g_weight": mx.nd.ones((5, 2)) * 2}, {}, allow_missing=True)
    assert row.get_params()[0]["g_weight"].asnumpy().tolist() == [[2, 2]] * 5


def test_a_monitor_hears_buckets_that_are_bound_later(mx) -> None:
    def make(key: int):
        mean = mx.sym.mean(mx.sym.var("data"), axis=1, keepdims=True)
        return mx.sym.softmax(mean, name="s"), ("data",), None

    module = mx.mod.BucketingModule(make, default_bucket_key=6)
    module.bind([("data", (2, 6))], for_training=False)
    module.init_params()
    monitor = mx.mon.Monitor(1, pattern="s_output")
    module.install_monitor(monitor)
    for key in (6, 3, 4):
        monitor.tic()
        module.forward(mx.io.DataBatch([mx.nd.ones((2, key))], bucket_key=key, provide_data=[("data", (2, key))]))
        assert [name for _, name, _ in monitor.toc()] == ["s_output"], key


def test_each_thread_gets_the_outputs_of_its_own_forward(mx, module, eager_switching) -> None:
    wrong = []

    def work(number: int) -> None:
        for n in range(200):
            rows = 1 + (number + n) % 4
            module.forward(mx.io.DataBatch([mx.nd.full((rows, 5), number)]), is_train=False)
            got = module.get_outputs()[0].asnumpy()
            if got.tolist() != [[5.0 * number] * 2] * rows:
                wrong.append(got)

    in_threads(8, work)
    assert not wrong, wrong[:3]


def test_rolling_over_begins_the_next_epoch_with_what_was_left(mx) -> None:
    batches = mx.io.NDArrayIter(np.arange(7, dtype=np.float32), batch_size=3, last_batch_handle="roll_over")
    seen = []
    for _ in range(3):
        seen.append([(batch.data[0].asnumpy().tolist(), batch.pad) for batch in batches])
        batches.reset()
    assert seen == [
        [([0, 1, 2], 0), ([3, 4, 5], 0)],
        [([6, 0, 1], 1), ([2, 3, 4], 0)],
        [([5, 6, 0], 2), ([1, 2, 3], 0), ([4, 5, 6], 0)],
    ]


def test_a_batch_needs_data_and_nothing_else(mx, module) -> None:
    """MXNet's own examples make batches of ``namedtuple("Batch", ["data"])``."""
    batch = namedtuple("Batch", ["data"])
    for rows in (2, 5):
        module.forward(batch([mx.nd.ones((rows, 5))]))
        assert module.get_outputs()[0].asnumpy().tolist() == [[5, 5]] * rows


def test_a_batch_that_does_not_fit_leaves_the_module_as_it_was(mx, module) -> None:
    with pytest.raises(mx.base.MXNetError):
        module.forward(mx.io.DataBatch([mx.nd.ones((2, 6))]))
    assert module.data_shapes[0].shape == (2, 5)
    module.set_params({"fc_weight": mx.nd.ones((2, 5)) * 2, "fc_bias": mx.nd.zeros((2,))}, {})
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 5))]))
    assert module.get_outputs()[0].asnumpy().tolist() == [[10, 10]] * 2


def test_labels_that_nobody_gives_fit_the_batch_of_their_own_thread(mx, eager_switching) -> None:
    graph = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    mod = mx.mod.Module(graph)
    mod.bind([("data", (1, 3))], [("softmax_label", (1,))], for_training=False)
    mod.set_params({"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros((2,))}, {})
    wrong = []

    def work(number: int) -> None:
        for n in range(400):
            rows = 1 + (number + n) % 5
            mod.forward(mx.io.DataBatch([mx.nd.ones((rows, 3))]))
            if mod.get_outputs()[0].asnumpy().tolist() != [[0.5, 0.5]] * rows:
                wrong.append(rows)

    in_threads(8, work)
    assert not wrong, wrong[:3]


# ---- several contexts ----------------------------------------------------------------------------


def _halves(mx, module, rows: np.ndarray) -> list[list[np.ndarray]]:
    module.forward(mx.io.DataBatch([mx.nd.array(rows)]))
    return [[part.asnumpy() for part in parts] for parts in module.get_outputs(merge_multi_context=False)]


@pytest.mark.parametrize("devices", [["cpu", "cpu"], ["sim", "sim"], ["cpu", "sim"]])
@pytest.mark.parametrize("loads", [None, [1, 3]])
def test_a_batch_is_divided_among_contexts(mx, devices: list[str], loads: list[int] | None) -> None:
    fc = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    contexts = [mx.Context(kind, number) for number, kind in enumerate(devices)]
    mod = mx.mod.Module(fc, label_names=None, context=contexts, work_load_list=loads)
    mod.bind([("data", (5, 3))], for_training=False)
    mod.set_params({"fc_weight": mx.nd.array([[1, 2, 3], [0, 1, 0]]), "fc_bias": mx.nd.array([0, 10])}, {})
    rows = np.random.RandomState(1).rand(5, 3).astype("float32")
    want = rows @ np.array([[1, 0], [2, 1], [3, 0]]) + [0, 10]
    # As MXNet divides: round(5 / 2) = 2, and round(5 / 4) = 1.
    first = 2 if loads is None else 1
    ((one, other),) = _halves(mx, mod, rows)
    assert (one.shape, other.shape) == ((first, 2), (5 - first, 2))
    np.testing.assert_allclose(np.concatenate([one, other]), want, rtol=1e-5)
    np.testing.assert_allclose(mod.get_outputs()[0].asnumpy(), want, rtol=1e-5)
    assert mod.output_shapes == [("fc_output", (5, 2))]
    kinds = [part.context.device_type for part in mod.get_outputs(merge_multi_context=False)[0]]
    assert kinds == devices
    batches = mx.io.NDArrayIter(rows, batch_size=4)
    np.testing.assert_allclose(mod.predict(batches).asnumpy(), want, rtol=1e-5)
    with pytest.raises(ValueError, match="Too many slices"):
        mod.forward(mx.io.DataBatch([mx.nd.ones((1, 3))]))
    mod.set_params({"fc_weight": mx.nd.zeros((2, 3)), "fc_bias": mx.nd.array([1, 2])}, {})
    mod.forward(mx.io.DataBatch([mx.nd.array(rows)]))
    assert mod.get_outputs()[0].asnumpy().tolist() == [[1, 2]] * 5


def test_the_batch_axis_is_that_of_the_layout(mx) -> None:
    net = mx.sym.Activation(mx.sym.var("data"), act_type="relu", __layout__="TNC", name="act")
    mod = mx.mod.Module(net, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    rows = np.random.RandomState(2).randn(3, 8, 7).astype("float16")
    mod.bind([mx.io.DataDesc("data", rows.shape, "float16", layout="TNC")], for_training=False)
    mod.init_params()
    mod.forward(mx.io.DataBatch([mx.nd.array(rows, dtype="float16")]))
    assert [part.shape for part in mod.get_outputs(merge_multi_context=False)[0]] == [(3, 4, 7)] * 2
    assert np.array_equal(mod.get_outputs()[0].asnumpy(), np.maximum(rows, 0))


def test_metrics_get_the_labels_of_each_context(mx) -> None:
    """MXNet 1.9.1 gives this for a metric that averages over updates."""
    graph = mx.sym.SoftmaxOutput(mx.sym.var("data"), name="softmax")
    scores = np.eye(2, dtype="float32")[[0, 1, 1, 1, 0, 1]]
    labels = np.array([0, 1, 0, 1, 1, 1], "float32")
    values = []
    for contexts in ([mx.cpu()], [mx.cpu(0), mx.cpu(1)]):
        mod = mx.mod.Module(graph, context=contexts)
        batches = mx.io.NDArrayIter(scores * 9, labels, batch_size=6)
        mod.bind(batches.provide_data, batches.provide_label, for_training=False)
        mod.init_params()
        values.append([mod.score(batches, name)[0][1] for name in ("acc", "f1")])
    assert np.round(values, 5).tolist() == [[0.66667, 0.75], [0.66667, 0.73333]]


def test_states_stay_from_one_forward_to_the_next(mx) -> None:
    state = mx.sym.var("state")
    total = mx.sym.FullyConnected(mx.sym.var("data"), mx.sym.var("w"), num_hidden=2, no_bias=True) + state
    mod = mx.mod.Module(total, label_names=None, state_names=["state"], context=[mx.cpu(0), mx.cpu(1)])
    mod.bind([("data", (4, 2))], for_training=False)
    mod.set_params({"w": mx.nd.array(np.eye(2))}, {})
    batch = mx.io.DataBatch([mx.nd.ones((4, 2))])
    for want in (1, 1):
        mod.forward(batch)
        assert mod.get_outputs()[0].asnumpy().tolist() == [[want] * 2] * 4
    mod.set_states(value=5)
    mod.forward(batch)
    assert mod.get_outputs()[0].asnumpy().tolist() == [[6, 6]] * 4
    for want in (7, 8):
        mod.set_states(states=mod.get_outputs(merge_multi_context=False))
        mod.forward(batch)
        assert mod.get_outputs()[0].asnumpy().tolist() == [[want] * 2] * 4
    assert [[part.shape for part in parts] for parts in mod.get_states(merge_multi_context=False)] == [[(2, 2), (2, 2)]]
    mod.forward(mx.io.DataBatch([mx.nd.ones((6, 2))]))
    assert mod.get_outputs()[0].asnumpy().tolist() == [[1, 1]] * 6, "states of another shape begin as zeros"
    with pytest.raises(AssertionError, match="either"):
        mod.set_states()
    with pytest.raises(ValueError, match="state"):
        mx.mod.Module(total, label_names=None, state_names=["stat"])


def test_a_bucket_is_divided_among_contexts_too(mx) -> None:
    def make(length: int):
        scaled = mx.sym.broadcast_mul(mx.sym.var("data"), mx.sym.var("w", shape=(1, 1)))
        return mx.sym.sum(scaled, axis=1), ("data",), None

    mod = mx.mod.BucketingModule(make, 4, context=[mx.cpu(0), mx.cpu(1)])
    mod.bind([("data", (4, 4))], for_training=False)
    mod.set_params({"w": mx.nd.array([[2]])}, {})
    for length in (4, 2, 3):
        batch = mx.io.DataBatch(
            [mx.nd.ones((6, length))], bucket_key=length, provide_data=[mx.io.DataDesc("data", (6, length))]
        )
        mod.forward(batch)
        assert mod.get_outputs()[0].asnumpy().tolist() == [2.0 * length] * 6
        assert [part.shape for part in mod.get_outputs(merge_multi_context=False)[0]] == [(3,), (3,)]


def test_buckets_share_parameters_that_have_no_name(mx) -> None:
    def make(length: int):
        net = mx.sym.FullyConnected(mx.sym.mean(mx.sym.var("data"), axis=1, keepdims=True), num_hidden=2)
        return mx.sym.Activation(net, act_type="relu"), ("data",), None

    mod = mx.mod.BucketingModule(make, 4)
    mod.bind([("data", (1, 4))], for_training=False)
    assert sorted(mod.symbol.list_arguments()) == ["data", "fullyconnected0_bias", "fullyconnected0_weight"]
    mod.set_params(
        {"fullyconnected0_weight": mx.nd.array([[1], [-1]]), "fullyconnected0_bias": mx.nd.array([0.5, 0.5])}, {}
    )
    for length in (2, 4, 3):
        shaped = [mx.io.DataDesc("data", (1, length))]
        mod.forward(mx.io.DataBatch([mx.nd.ones((1, length))], bucket_key=length, provide_data=shaped))
        assert mod.get_outputs()[0].asnumpy().tolist() == [[1.5, 0]]


def test_values_for_no_argument_are_refused_where_mxnet_refuses_them(mx, module) -> None:
    values = {"fc_weight": mx.nd.ones((2, 5)), "fc_bias": mx.nd.zeros((2,)), "fc2_bias": mx.nd.ones((1,))}
    module.set_params(values, {})
    module.set_params(values, {}, allow_missing=True, allow_extra=True)
    with pytest.raises(ValueError, match="fc2_bias"):
        module.set_params(values, {}, allow_missing=True)


def test_random_initial_values_have_the_dtype_of_the_parameter(mx) -> None:
    for dtype in ("float64", "float16"):
        for init in (mx.init.Uniform(1), mx.init.Normal(1), mx.init.Xavier(), mx.init.Orthogonal()):
            dense = mx.gluon.nn.Dense(2, in_units=3)
            dense.cast(dtype)
            dense.initialize(init)
            assert dense.weight.data().dtype == np.dtype(dtype)
            assert np.ptp(dense.weight.data().asnumpy()) > 0
        drawn = mx.nd.zeros((50,), dtype=dtype)
        mx.nd.random.normal(3, 0.1, out=drawn)
        assert drawn.dtype == np.dtype(dtype)
        assert 2 < float(drawn.asnumpy().mean()) < 4
    whole = mx.nd.zeros((50,), dtype="int64")
    mx.nd.random.randint(5, 9, out=whole)
    assert set(whole.asnumpy().tolist()) <= {5, 6, 7, 8}


class Numbered:
    """Makes iterators whose batches hold their number, and which note what they were asked."""

    def __init__(self, mx, count: int, reuse: bool = False, broken: int | None = None) -> None:
        self.events: list[str] = []
        kept = mx.nd.zeros((1, 2)), mx.nd.zeros((1, 2))

        class Iterator(mx.io.DataIter):
            provide_data = (mx.io.DataDesc("data", (1, 2)),)
            provide_label = (mx.io.DataDesc("label", (1, 2)),)
            number = 0

            def reset(iterator) -> None:
                iterator.number = 0

            def next(iterator):
                number = iterator.number
                iterator.number += 1
                self.events.append(f"read {number}")
                if number == broken:
                    raise OSError(f"batch {number} is broken")
                if number == count:
                    raise StopIteration
                data, label = kept if reuse else (mx.nd.zeros((1, 2)), mx.nd.zeros((1, 2)))
                data[:], label[:] = number, number
                return mx.io.DataBatch([data], [label], 0)

        self.iterator = Iterator(1)
        net = mx.sym.LinearRegressionOutput(mx.sym.var("data"), mx.sym.var("label"))
        self.module = mx.mod.Module(net, label_names=["label"])
        self.module.bind(Iterator.provide_data, Iterator.provide_label, for_training=False)
        self.module.init_params()


def label_is_output(label, output) -> float:
    """A metric: 1 where the label is what was computed."""
    return float((label == output).all())


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("way", ["score", "iter_predict"])
def test_the_next_batch_is_read_while_one_is_computed(mx, way: str, reuse: bool) -> None:
    run = Numbered(mx, 4, reuse)
    if way == "score":
        metric = mx.metric.np(label_is_output)
        done = lambda param: run.events.append(f"done {param.nbatch}")  # noqa: E731
        assert run.module.score(run.iterator, metric, batch_end_callback=done)[0][1] == 1
    else:
        for outputs, number, batch in run.module.iter_predict(run.iterator):
            run.events.append(f"done {number}")
            assert outputs[0].asnumpy()[0, 0] == batch.label[0].asnumpy()[0, 1] == number
    # The second batch shows whether each has arrays of its own; if not, a batch that is read
    # overwrites the one before.
    ahead = "read 0, done 0, read 1, read 2, done 1, read 3, done 2, read 4, done 3"
    in_turn = "read 0, done 0, read 1, done 1, read 2, done 2, read 3, done 3, read 4"
    assert ", ".join(run.events) == (in_turn if reuse else ahead)


@pytest.mark.parametrize("broken", [0, 1, 2, 3])
def test_a_batch_that_cannot_be_read_fails_behind_those_before_it(mx, broken: int) -> None:
    run = Numbered(mx, 4, broken=broken)
    done = []
    with pytest.raises(OSError, match=f"batch {broken} is broken"):
        for outputs, _, _ in run.module.iter_predict(run.iterator):
            done.append(outputs[0].asnumpy()[0, 0])
    assert done == list(range(broken))
    scored = []
    with pytest.raises(OSError, match=f"batch {broken} is broken"):
        run.module.score(
            run.iterator, mx.metric.np(label_is_output), batch_end_callback=lambda param: scored.append(param.nbatch)
        )
    assert scored == list(range(broken))


def test_no_more_batches_are_read_than_by_mxnet(mx) -> None:
    for read in (
        lambda run: run.module.score(run.iterator, mx.metric.np(label_is_output), num_batch=2),
        lambda run: run.module.predict(run.iterator, num_batch=2),
        lambda run: list(run.module.iter_predict(run.iterator, num_batch=2)),
    ):
        run = Numbered(mx, 9)
        read(run)
        assert run.events == ["read 0", "read 1", "read 2"]


def test_attributes_that_programs_read_are_those_of_mxnet(mx, module) -> None:
    net = mx.sym.SoftmaxOutput(mx.sym.var("data"), name="softmax")
    other = mx.mod.Module(net, context=[mx.cpu(0), mx.cpu(1)], fixed_param_names=["data"])
    assert other._context == [mx.cpu(0), mx.cpu(0)] and other._fixed_param_names == ["data"]
    buckets = mx.mod.BucketingModule(lambda key: (net, ["data"], ["softmax_label"]), 3)
    buckets.bind([("data", (1, 3))], [("softmax_label", (1,))], for_training=False)
    assert buckets._curr_bucket_key == 3
    buckets.switch_bucket(2, [("data", (1, 2))], [("softmax_label", (1,))])
    assert buckets._curr_bucket_key == 2
    with pytest.warns(DeprecationWarning):
        old = mx.model.FeedForward(net, epoch_size=4, learning_rate=0.1)
    assert old.epoch_size == 4 and old.kwargs == {"learning_rate": 0.1} and old.optimizer == "sgd"
    assert isinstance(old.initializer, mx.init.Uniform)


def test_what_looks_like_executors_shows_parameters_and_results(mx, module) -> None:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    made = mx.mod.Module(net, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    assert made._exec_group is None
    made.bind([("data", (4, 3))], for_training=False)
    made.init_params(mx.init.One())
    batch = mx.io.DataBatch([mx.nd.ones((4, 3))])
    made.forward(batch, is_train=False)
    group = made._exec_group
    assert group.batch_size == 4 and group.param_names == ["fc_weight"] and group.contexts == made._context
    first, second = group.execs
    assert first.outputs[0].asnumpy().tolist() == [[3, 3], [3, 3]] and second.arg_dict["data"].shape == (2, 3)
    first.arg_dict["fc_weight"][:] = 2
    made.forward(batch, is_train=False)
    assert made.get_outputs()[0].asnumpy().tolist() == [[6, 6]] * 4
    assert made._exec_group.execs[1].outputs[0].asnumpy().tolist() == [[6, 6]] * 2
    seen: list[tuple[str, list[list[float]]]] = []
    made._exec_group.execs[1].set_monitor_callback(
        lambda name, array: seen.append((name.decode(), array.asnumpy().tolist()))
    )
    made.forward(mx.io.DataBatch([mx.nd.ones((6, 3))]), is_train=False)
    assert seen == [("fc_output", [[6, 6]] * 3)]
    made._exec_group.execs[1].set_monitor_callback(None)
    made.forward(batch, is_train=False)
    assert len(seen) == 1
    made._reset_bind()
    assert not made.binded


def test_a_monitor_hears_the_elements_that_a_module_in_training_drops(mx) -> None:
    made = mx.mod.Module(
        mx.sym.Dropout(mx.sym.var("data"), name="drop"), label_names=None, context=[mx.cpu(0), mx.cpu(1)]
    )
    made.bind([("data", (8, 32))], for_training=False)
    made.init_params()
    heard: list[np.ndarray] = []
    for one in made._exec_group.execs:
        one.set_monitor_callback(lambda name, array: heard.append(array.asnumpy()))
    made.forward(mx.io.DataBatch([mx.nd.ones((8, 32))]), is_train=True)
    found = made.get_outputs()[0].asnumpy()
    assert 0 < (found == 0).sum() < 256
    assert np.array_equal(np.concatenate(heard), found)


@pytest.mark.parametrize("bound", ["float32", "float64", "float16"])
@pytest.mark.parametrize("given", ["float32", "float64", "float16", None])
def test_parameters_have_the_type_that_follows_from_the_bound_input(mx, bound: str, given: str | None) -> None:
    """Arrays of MXNet's executors have it, whatever a file or an initializer gives."""
    graph = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    made = mx.mod.Module(graph, label_names=None)
    made.bind([mx.io.DataDesc("data", (1, 3), bound)], for_training=False)
    if given is None:
        made.init_params(mx.init.One())
    else:
        made.set_params({"fc_weight": mx.nd.ones((2, 3), dtype=given), "fc_bias": mx.nd.ones((2,), dtype=given)}, {})
    assert {value.dtype for value in made.get_params()[0].values()} == {np.dtype(bound).type}
    for dtype in ("float32", "float16"):
        made.forward(mx.io.DataBatch([mx.nd.ones((1, 3), dtype=dtype)]))
        assert made.get_outputs()[0].dtype == np.dtype(bound).type
    if given is not None:
        assert made.get_outputs()[0].asnumpy().tolist() == [[4, 4]]
