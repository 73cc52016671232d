"""Executors: shapes that change, gradients' arrays, forward while training, and looking inside."""

from __future__ import annotations

import ctypes
import logging
import pickle

import numpy as np
import pytest

from support import DIGITS, digits, in_threads


def test_an_executor_of_smaller_shape_keeps_the_contents(mx) -> None:
    symbol = mx.sym.var("a") + 1
    grads = mx.nd.ones((4, 3))
    first = symbol.bind(mx.cpu(), {"a": mx.nd.arange(12).reshape((4, 3))}, args_grad={"a": grads})
    smaller = first.reshape(a=(2, 3))
    assert smaller.arg_dict["a"].asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert smaller.grad_dict["a"].shape == (2, 3)
    other = first.reshape(a=(2, 2))
    other.arg_dict["a"][:] = 7
    assert first.arg_dict["a"].asnumpy().ravel().tolist() == [7, 7, 7, 7, *range(4, 12)]
    assert other.forward()[0].asnumpy().tolist() == [[8, 8], [8, 8]]
    with pytest.raises(mx.base.MXNetError, match="allow_up_sizing=True"):
        first.reshape(a=(5, 3))
    assert first.reshape(allow_up_sizing=True, a=(5, 3)).arg_dict["a"].shape == (5, 3)


def test_arrays_for_gradients_are_handed_back(mx) -> None:
    symbol = mx.sym.var("a") * mx.sym.var("b")
    args = {"a": mx.nd.ones(2), "b": mx.nd.ones(2)}
    grad = mx.nd.zeros(2)
    assert symbol.bind(mx.cpu(), args, args_grad={"b": grad}).grad_dict == {"a": None, "b": grad}
    assert symbol.bind(mx.cpu(), args, args_grad=[grad, None]).grad_arrays == [grad, None]
    assert symbol.bind(mx.cpu(), args).grad_arrays is None
    with pytest.raises(ValueError, match="args_grad"):
        symbol.bind(mx.cpu(), args, args_grad=[grad])


def test_forward_in_training_runs_where_nothing_differs(mx) -> None:
    data = mx.sym.var("data")
    same = {
        "dense": mx.sym.FullyConnected(data, num_hidden=2),
        "fixed": mx.sym.BatchNorm(data, use_global_stats=True),
        "nothing dropped": mx.sym.Dropout(data, p=0),
        "leaky": mx.sym.LeakyReLU(data, act_type="leaky"),
    }
    for name, symbol in same.items():
        executor = symbol.simple_bind(mx.cpu(), data=(2, 3))
        assert len(executor.forward(is_train=True)) == len(symbol), name


def watched_network(mx):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, no_bias=True, name="fc")
    parts = mx.sym.split(net, num_outputs=2, axis=1, name="parts")
    return mx.sym.Concat(parts[0] * parts[1], parts[1], name="joined")


def test_a_callback_hears_every_result(mx) -> None:
    executor = watched_network(mx).simple_bind(mx.cpu(), data=(2, 3))
    executor.arg_dict["data"][:] = 1
    executor.arg_dict["fc_weight"][:] = mx.nd.arange(12).reshape((4, 3))
    heard = []
    executor.set_monitor_callback(lambda name, array: heard.append((name.decode(), array.asnumpy())))
    result = executor.forward()[0].asnumpy()
    names = ["fc_output", "parts_output0", "parts_output1", "_mul0_output", "joined_output"]
    assert ["_mul0_output" if name.startswith("_mul") else name for name, _ in heard] == names
    found = dict(heard)
    assert np.array_equal(found["joined_output"], result)
    assert found["fc_output"].tolist() == [[3, 12, 21, 30]] * 2

    heard.clear()
    executor.set_monitor_callback(lambda name, array: heard.append((name.decode(), array.shape)), monitor_all=True)
    executor.forward()
    assert heard[:4] == [("data", (2, 3)), ("fc_data", (2, 3)), ("fc_weight", (4, 3)), ("fc_weight", (4, 3))]
    assert ("joined_arg1", (2, 2)) in heard

    heard.clear()
    executor.set_monitor_callback(None)
    executor.forward()
    assert heard == []


def test_a_callback_of_mxnet_makes_an_array_of_its_handle(mx) -> None:
    """Callbacks of ``mxnet/monitor.py`` keep nothing but the handle."""
    heard = {}

    def callback(name: bytes, array) -> None:
        array = ctypes.cast(array, mx.base.NDArrayHandle)
        array = mx.nd.NDArray(array, writable=False)
        heard[mx.base.py_str(name)] = array.asnumpy().tolist()

    executor = mx.sym.relu(mx.sym.var("x"), name="r").bind(mx.cpu(), {"x": mx.nd.array([-1, 2])})
    executor.set_monitor_callback(callback)
    executor.forward()
    assert heard == {"r_output": [0, 2]}


def test_a_monitor_hears_what_training_computes(mx) -> None:
    """BatchNorm of the batch, and the elements that Dropout of this very run leaves."""
    data = mx.sym.var("data")
    net = mx.sym.Group([mx.sym.Dropout(mx.sym.BatchNorm(data, name="norm"), p=0.5, name="drop"), data])
    executor = net.simple_bind(mx.cpu(), data=(64, 4))
    executor.arg_dict["data"][:] = mx.nd.random.normal(3, 2, (64, 4))
    executor.arg_dict["norm_gamma"][:] = 1
    executor.aux_dict["norm_moving_var"][:] = 1
    heard: dict[str, np.ndarray] = {}
    executor.set_monitor_callback(lambda name, array: heard.update({name.decode(): array.asnumpy()}))
    dropped, same = executor.forward(is_train=True)
    assert np.array_equal(heard["drop_output"], dropped.asnumpy())
    assert 0 < (heard["drop_output"] == 0).sum() < 256
    assert np.allclose(heard["norm_output"].mean(axis=0), 0, atol=1e-5)
    assert np.array_equal(same.asnumpy(), executor.arg_dict["data"].asnumpy())
    executor.arg_dict["data"][:] = 5
    assert same.asnumpy().std() > 1, "a result is an array of its own"

    whole = executor.forward()[0].asnumpy()
    assert np.array_equal(heard["norm_output"], whole) and np.array_equal(heard["drop_output"], whole)
    assert np.allclose(whole, 5, atol=1e-2)


def test_a_monitor_collects_statistics_now_and_then(mx, caplog: pytest.LogCaptureFixture) -> None:
    monitor = mx.mon.Monitor(2, pattern=".*output|fc_weight", sort=True)
    executor = watched_network(mx).simple_bind(mx.cpu(), data=(1, 3))
    executor.arg_dict["data"][:] = 1
    executor.arg_dict["fc_weight"][:] = 2
    monitor.install(executor)
    seen = []
    for _ in range(3):
        monitor.tic()
        executor.forward()
        seen.append(monitor.toc())
    assert [len(rows) for rows in seen] == [6, 0, 6]
    rows = {name: text for _, name, text in seen[0]}
    assert rows["fc_output"] == "6.0\t"
    assert rows["fc_weight"] == "2.0\t"
    assert [name for _, name, _ in seen[0]] == sorted(rows)
    assert {step for step, _, _ in seen[2]} == {3}
    with caplog.at_level(logging.INFO):
        monitor.tic()
        executor.forward()
        monitor.tic()
        executor.forward()
        monitor.toc_print()
    assert "Batch:       5 fc_output                      6.0" in caplog.text


def test_a_module_is_monitored_and_scored(mx) -> None:
    images, labels = digits(60)
    symbol, args, aux = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)
    net = mx.sym.SoftmaxOutput(symbol, name="softmax")
    module = mx.mod.Module(net, context=[mx.cpu(0), mx.cpu(1)])
    batches = mx.io.NDArrayIter(images, labels, 20)
    module.bind(batches.provide_data, batches.provide_label)
    module.set_params(args, aux)
    heard: list[tuple[int, int]] = []
    found = module.score(
        batches, ["acc", "ce"], batch_end_callback=lambda param: heard.append((param.epoch, param.nbatch)), epoch=7
    )
    answers = module.predict(batches).asnumpy()
    assert heard == [(7, 0), (7, 1), (7, 2)]
    assert dict(found)["accuracy"] == (answers.argmax(axis=1) == labels).mean()
    want = -np.log(answers[np.arange(60), labels.astype(int)] + 1e-12).mean()
    np.testing.assert_allclose(dict(found)["cross-entropy"], want, rtol=1e-4)
    assert module.score(batches, "acc", num_batch=1)[0][1] == (answers[:20].argmax(axis=1) == labels[:20]).mean()

    monitor = mx.mon.Monitor(1, stat_func=mx.nd.max, pattern="softmax_output|.*net_conv0.*_output")
    module.install_monitor(monitor)
    monitor.tic()
    batches.reset()
    module.forward(next(batches), is_train=False)
    rows: dict[str, list[float]] = {}
    for _, name, text in monitor.toc():
        rows.setdefault(name, []).append(float(text))
    assert [len(values) for values in rows.values()] == [2, 2], "one for each context"
    want = [answers[:10].max(), answers[10:20].max()]
    np.testing.assert_allclose(rows["softmax_output"], want, rtol=1e-5)


def test_the_oldest_kind_of_model_answers(mx) -> None:
    images, labels = digits(30)
    with pytest.warns(DeprecationWarning, match="FeedForward has been deprecated"):
        model = mx.model.FeedForward.load(str(DIGITS / "digits_cnn"), 0, ctx=mx.cpu(), numpy_batch_size=8)
    symbol, args, aux = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)
    module = mx.mod.Module(symbol, label_names=None)
    module.bind([("data", images.shape)])
    module.set_params(args, aux)
    want = module.predict(mx.nd.array(images)).asnumpy()
    assert model._pred_exec is None
    np.testing.assert_allclose(model.predict(images), want, rtol=1e-4, atol=1e-5)
    # The executor of the last batch is live.
    assert pickle.loads(pickle.dumps(model))._pred_exec is None
    executor = model._pred_exec
    executor.arg_dict["data"][:] = mx.nd.array(images[:8])
    executor.forward(is_train=False)
    np.testing.assert_allclose(executor.outputs[0].asnumpy(), want[:8], rtol=1e-4, atol=1e-5)
    batches = mx.io.NDArrayIter(images, labels, 8)
    outputs, data, label = model.predict(batches, return_data=True)
    assert (outputs.shape, np.array_equal(data, images), np.array_equal(label, labels)) == ((30, 10), True, True)
    assert model.score(mx.io.NDArrayIter(images, labels, 10)) == (want.argmax(axis=1) == labels).mean()
    with pytest.raises(mx.base.TrainingNotSupportedError):
        model.fit(images, labels)
    with pytest.raises(TypeError, match="X must be"):
        model.predict("images")


# ---- several modules as one ----------------------------------------------------------------------


def bucketing(mx, **settings):
    """A model of sentences: the mean over words of an embedding, and a dense layer."""

    def make(length: int):
        words = mx.sym.var("data")
        mean = mx.sym.mean(mx.sym.Embedding(words, input_dim=20, output_dim=6, name="embed"), axis=1)
        # What one bucket has and another does not is allowed for results, not for parameters.
        net = mx.sym.FullyConnected(mean * length, num_hidden=3, name="fc")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    return mx.mod.BucketingModule(make, default_bucket_key=9, **settings)


def sentence(mx, length: int, seed: int):
    words = np.random.RandomState(seed).randint(0, 20, (2, length))
    return mx.io.DataBatch(
        [mx.nd.array(words)],
        [mx.nd.zeros(2)],
        bucket_key=length,
        provide_data=[("data", (2, length))],
        provide_label=[("softmax_label", (2,))],
    )


def expected(params: dict, batch) -> np.ndarray:
    words = batch.data[0].asnumpy().astype(int)
    values = {name: array.asnumpy() for name, array in params.items()}
    mean = values["embed_weight"][words].mean(axis=1) * words.shape[1]
    raw = mean @ values["fc_weight"].T + values["fc_bias"]
    raised = np.exp(raw - raw.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def test_buckets_share_their_parameters(mx, tmp_path) -> None:
    module = bucketing(mx)
    assert list(module.data_names) == ["data"]
    with pytest.raises(AssertionError, match="bind"):
        module.get_params()
    module.bind([("data", (2, 9))], [("softmax_label", (2,))])
    module.init_params(mx.init.Uniform(1.0))
    for length in (9, 4, 6, 4):
        batch = sentence(mx, length, length)
        module.prepare(batch)
        module.forward(batch)
        np.testing.assert_allclose(
            module.get_outputs()[0].asnumpy(), expected(module.get_params()[0], batch), rtol=1e-4
        )
        assert module.data_shapes[0].shape == (2, length)
    # New values reach buckets that were used before.
    args, aux = module.get_params()
    module.set_params({name: array * 2 for name, array in args.items()}, aux)
    batch = sentence(mx, 4, 1)
    module.forward(batch)
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), expected(module.get_params()[0], batch), rtol=1e-4)
    metric = mx.metric.create("acc")
    module.update_metric(metric, batch.label)
    assert metric.num_inst == 2

    prefix = str(tmp_path / "words")
    module.save_checkpoint(prefix, 1)
    again = mx.mod.BucketingModule.load(prefix, 1, bucketing(mx)._sym_gen, default_bucket_key=9)
    again.bind([("data", (2, 9))], [("softmax_label", (2,))])
    again.forward(batch)
    np.testing.assert_allclose(again.get_outputs()[0].asnumpy(), expected(module.get_params()[0], batch), rtol=1e-4)


def test_buckets_are_used_from_many_threads(mx) -> None:
    module = bucketing(mx)
    module.bind([("data", (2, 9))], [("softmax_label", (2,))])
    module.init_params(mx.init.Uniform(1.0))
    params = module.get_params()[0]

    def call(number: int) -> None:
        for step in range(10):
            batch = sentence(mx, 2 + (number + step) % 8, number * 100 + step)
            module.forward(batch)
            np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), expected(params, batch), rtol=1e-4, atol=1e-6)

    in_threads(16, call)


def test_a_bucket_with_other_parameters_is_refused(mx) -> None:
    def make(length: int):
        net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name=f"fc{length}")
        return net, ("data",), ()

    module = mx.mod.BucketingModule(make, default_bucket_key=3)
    module.bind([("data", (1, 3))])
    module.init_params()
    batch = mx.io.DataBatch([mx.nd.zeros((1, 2))], bucket_key=2, provide_data=[("data", (1, 2))])
    with pytest.raises(mx.base.MXNetError, match="fc2_weight"):
        module.forward(batch)


def test_modules_in_a_row_are_one(mx) -> None:
    first = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc1"), act_type="relu")
    second = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc2"), name="softmax")
    row = mx.mod.SequentialModule()
    row.add(mx.mod.Module(first, label_names=[])).add(mx.mod.Module(second), take_labels=True, auto_wiring=True)
    row.bind([("data", (5, 6))], [("softmax_label", (5,))])
    row.init_params(mx.init.Uniform(1.0))
    x = np.random.RandomState(1).randn(5, 6).astype("float32")
    row.forward(mx.io.DataBatch([mx.nd.array(x)], [mx.nd.zeros(5)]))
    args, _ = row.get_params()
    p = {name: array.asnumpy() for name, array in args.items()}
    hidden = np.maximum(x @ p["fc1_weight"].T + p["fc1_bias"], 0)
    raw = np.exp(hidden @ p["fc2_weight"].T + p["fc2_bias"])
    answers = row.get_outputs()[0].asnumpy()
    np.testing.assert_allclose(answers, raw / raw.sum(axis=1, keepdims=True), rtol=1e-4)
    assert row.output_shapes == [("softmax_output", (5, 3))]
    metric = mx.metric.create("acc")
    row.update_metric(metric, [mx.nd.array(answers.argmax(axis=1))])
    assert metric.get()[1] == 1.0
    with pytest.raises(AssertionError, match='Unknown meta "take_label"'):
        row.add(mx.mod.Module(first, label_names=[]), take_label=True)
    twice = mx.mod.SequentialModule()
    for _ in range(2):
        net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=6, name="same")
        twice.add(mx.mod.Module(net, label_names=[]), auto_wiring=True)
    twice.bind([("data", (5, 6))])
    with pytest.raises(AssertionError, match='Duplicated parameter names: "same_weight"'):
        twice.init_params()


def test_a_module_written_in_python_stands_in_a_row(mx) -> None:
    class Doubled(mx.mod.PythonModule):
        def _compute_output_shapes(self):
            return [("twice_output", self._data_shapes[0][1])]

        def forward(self, data_batch, is_train=None):
            self.result = [data_batch.data[0] * 2]

        def get_outputs(self, merge_multi_context=True):
            return self.result

    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    row = mx.mod.SequentialModule()
    row.add(mx.mod.Module(net, label_names=[]))
    row.add(Doubled(["data"], None, ["twice_output"]), auto_wiring=True)
    row.add(mx.mod.PythonLossModule(), auto_wiring=True, take_labels=True)
    row.bind([("data", (1, 3))], [("softmax_label", (1,))])
    row.init_params(mx.init.One())
    row.forward(mx.io.DataBatch([mx.nd.array([[1, 2, 3]])], [mx.nd.zeros(1)]))
    assert row.get_outputs()[0].asnumpy().tolist() == [[12, 12]]
    assert row.output_names == ["pyloss_output"]


def test_keywords_that_are_no_shapes_are_ignored_by_simple_bind(mx) -> None:
    """MXNet's own tests pass attributes of operators and ``force_rebind``."""
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    executor = symbol.simple_bind(mx.cpu(), data=[2, 3], axis=1, force_rebind=True)
    assert [array.shape for array in executor.arg_arrays] == [(2, 3), (2, 3), (2,)]
    with pytest.raises(mx.base.MXNetError, match="cannot decide shapes"):
        symbol.simple_bind(mx.cpu(), data=3)


def test_shapes_and_types_of_names_that_the_symbol_lacks_are_ignored(mx) -> None:
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    types = {"softmax_label": "float32"}
    executor = symbol.simple_bind(mx.cpu(), data=(2, 4), softmax_label=(2,), type_dict=types)
    assert list(executor.arg_dict) == ["data", "fc_weight", "fc_bias"]
    smaller = executor.reshape(data=(1, 4), softmax_label=(1,))
    assert smaller.arg_dict["data"].shape == (1, 4)


def two_groups(mx):
    with mx.AttrScope(ctx_group="first"):
        first = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, no_bias=True, name="a")
    with mx.AttrScope(ctx_group="second"):
        return mx.sym.FullyConnected(first, num_hidden=2, no_bias=True, name="b")


def test_groups_of_nodes_are_placed_on_contexts_of_the_cpu(mx) -> None:
    contexts = {"first": mx.cpu(1), "second": mx.cpu(2)}
    executor = two_groups(mx).simple_bind(mx.cpu(0), group2ctx=contexts, data=(2, 4))
    placed = {name: array.context for name, array in executor.arg_dict.items()}
    assert placed == {"data": mx.cpu(1), "a_weight": mx.cpu(1), "b_weight": mx.cpu(2)}
    for array in executor.arg_arrays[1:]:
        array[:] = 2
    assert executor.forward(data=mx.nd.ones((2, 4)))[0].asnumpy().tolist() == [[48, 48]] * 2
    executor.arg_dict["b_weight"][:] = 1
    assert executor.reshape(data=(1, 4)).forward()[0].asnumpy().tolist() == [[24, 24]]
    given = {"data": mx.nd.ones((1, 4)), "a_weight": mx.nd.ones((3, 4), ctx=mx.cpu(1)), "b_weight": mx.nd.ones((2, 3))}
    bound = two_groups(mx).bind(mx.cpu(), given, group2ctx=contexts)
    assert bound.forward()[0].asnumpy().tolist() == [[12, 12]]


def test_groups_that_cannot_be_placed_are_refused_by_name(mx) -> None:
    def bind(**contexts) -> None:
        two_groups(mx).simple_bind(mx.cpu(), group2ctx=contexts, data=(2, 4))

    with pytest.raises(mx.base.MXNetError, match=r"not found for group second of node 'b.*group2ctx has first"):
        bind(first=mx.cpu(1))
    with pytest.raises(mx.base.MXNetDeviceError, match=r"group 'second'.*gpu\(7\)"):
        bind(first=mx.cpu(1), second=mx.gpu(7))
    with pytest.raises(TypeError, match="'first' must be a Context"):
        bind(first="cpu", second=mx.cpu())
    # A graph without groups needs none of the contexts.
    (mx.sym.var("x") + 1).bind(mx.cpu(), [mx.nd.ones(1)], group2ctx={"other": mx.gpu(7)}).forward()


def zigzag(mx):
    """A graph that changes between two groups, uses a result of the first in the last part, and has
    outputs in each of them, a variable among them.
    """
    data = mx.sym.var("data")
    with mx.AttrScope(ctx_group="first"):
        a = mx.sym.FullyConnected(data, num_hidden=4, name="a")
        halves = mx.sym.split(a, num_outputs=2, axis=1, name="halves")
    with mx.AttrScope(ctx_group="second"):
        b = mx.sym.BatchNorm(mx.sym.tanh(halves[0]) + halves[1], name="b", fix_gamma=False)
    with mx.AttrScope(ctx_group="first"):
        c = mx.sym.concat(mx.sym.FullyConnected(b, num_hidden=3, name="c"), a, dim=1, name="joined")
    loop, _ = mx.sym.contrib.foreach(lambda row, state: (row * 2, state), c, b)
    return mx.sym.Group([mx.sym.sum(c * c, name="total"), b, mx.sym.identity(a), data, loop])


def zigzag_arrays(mx, executor) -> None:
    random = np.random.RandomState(3)
    for array in [*executor.arg_arrays, *executor.aux_arrays]:
        array[:] = np.abs(random.randn(*array.shape))


def test_groups_on_other_devices_divide_the_graph(mx, sim) -> None:
    symbol = zigzag(mx)
    whole = symbol.simple_bind(mx.cpu(), data=(2, 5))
    zigzag_arrays(mx, whole)
    wanted = [array.asnumpy() for array in whole.forward()]
    for contexts, ctx in (((sim, mx.cpu()), mx.cpu()), ((mx.cpu(), sim), mx.cpu()), ((sim, mx.sim(1)), mx.cpu(1))):
        first, second = contexts
        executor = symbol.simple_bind(ctx, group2ctx={"first": first, "second": second}, data=(2, 5))
        assert (executor.arg_dict["a_weight"].context, executor.aux_dict["b_moving_var"].context) == contexts
        zigzag_arrays(mx, executor)
        for _ in range(2):
            found = executor.forward()
            for array, right in zip(found, wanted, strict=True):
                assert np.allclose(array.asnumpy(), right, rtol=1e-6)
        assert [array.context for array in found[1:3]] == [second, mx.cpu()]
        # Changed parameters and data count, wherever they are.
        executor.arg_dict["b_gamma"][:] = 0
        total = executor.forward(data=np.zeros((2, 5)))[1]
        assert total.asnumpy().tolist() == [executor.arg_dict["b_beta"].asnumpy().tolist()] * 2
        smaller = executor.reshape(data=(1, 5))
        assert smaller.forward()[1].shape == (1, 2)


def test_a_divided_graph_is_called_from_threads_and_keeps_failures_apart(mx, sim) -> None:
    with mx.AttrScope(ctx_group="first"):
        first = mx.sym.take(mx.sym.var("table"), mx.sym.var("data"), mode="raise", name="rows")
    with mx.AttrScope(ctx_group="second"):
        symbol = first * 2
    contexts = {"first": sim, "second": mx.cpu()}
    shapes = {"table": (4, 2), "data": (1,)}

    def run(number: int) -> None:
        executor = symbol.simple_bind(mx.cpu(), group2ctx=contexts, **shapes)
        executor.arg_dict["table"][:] = np.arange(8).reshape(4, 2)
        for _ in range(10):
            if number % 4 == 3:
                with pytest.raises(mx.base.MXNetError, match="rows"):
                    executor.forward(data=np.array([9]))[0].asnumpy()
            else:
                found = executor.forward(data=np.array([number % 4]))[0].asnumpy()
                assert found.tolist() == [[4 * (number % 4), 4 * (number % 4) + 2]]

    in_threads(8, run)


def test_a_module_places_groups_when_it_is_bound(mx, sim) -> None:
    def run(group2ctxs, contexts=None) -> list:
        module = mx.mod.Module(two_groups(mx), label_names=None, context=contexts, group2ctxs=group2ctxs)
        module.bind([("data", (2, 4))], for_training=False)
        module.init_params(mx.init.One())
        module.forward(mx.io.DataBatch([mx.nd.ones((2, 4))]), is_train=False)
        return module.get_outputs()[0].asnumpy().tolist()

    cpus = [mx.cpu(0), mx.cpu(1)]
    assert run({"first": mx.cpu(0), "second": [mx.cpu(1)]}) == [[12, 12]] * 2
    assert run([{"first": one, "second": one} for one in cpus], cpus) == [[12, 12]] * 2
    with pytest.raises(AssertionError, match="length of group2ctxs should be 1"):
        run([{}, {}])
    with pytest.raises(AssertionError, match=r"group2ctxs\[second\] should be 1 or 1"):
        run({"first": mx.cpu(), "second": cpus})
    with pytest.raises(mx.base.MXNetDeviceError, match="group 'second'"):
        run({"first": mx.cpu(), "second": mx.gpu(7)})
    with pytest.raises(NotImplementedError, match=r"'b.*' is on sim\(0\).*bound to cpu\(0\)"):
        run({"first": mx.cpu(), "second": sim})
    buckets = mx.mod.BucketingModule(lambda key: (two_groups(mx), ["data"], None), 1, group2ctxs={"first": mx.cpu()})
    with pytest.raises(mx.base.MXNetError, match="not found for group second"):
        buckets.bind([("data", (2, 4))], for_training=False)


def test_outputs_taken_before_the_first_run_get_the_results_of_later_ones(mx) -> None:
    executor = (mx.sym.var("x") * 2).simple_bind(mx.cpu(), x=(3, 2))
    early = executor.outputs[0]
    assert early.asnumpy().tolist() == [[0, 0]] * 3
    first = executor.forward(x=mx.nd.ones((3, 2)))[0]
    assert early.asnumpy().tolist() == [[2, 2]] * 3
    executor.forward(x=mx.nd.full((3, 2), 5))
    assert early.asnumpy().tolist() == [[10, 10]] * 3 and first.asnumpy().tolist() == [[2, 2]] * 3


def test_an_executor_that_has_not_run_shows_what_a_reshaped_one_computed(mx) -> None:
    executor = (mx.sym.var("x") * 2).simple_bind(mx.cpu(), x=(3, 2))
    smaller = executor.reshape(x=(2, 2))
    smaller.forward(x=mx.nd.ones((2, 2)))
    assert executor.outputs[0].asnumpy().tolist() == [[2, 2], [2, 2], [0, 0]]
    larger = executor.reshape(allow_up_sizing=True, x=(4, 2))
    larger.forward(x=mx.nd.ones((4, 2)))
    assert executor.outputs[0].asnumpy().tolist() == [[2, 2], [2, 2], [0, 0]]
    own = executor.forward(x=mx.nd.full((3, 2), 4))[0]
    smaller.forward(x=mx.nd.ones((2, 2)))
    assert own.asnumpy().tolist() == [[8, 8]] * 3


def test_a_graph_is_described_as_by_mxnet(mx) -> None:
    norm = mx.sym.BatchNorm(mx.sym.var("a"), name="bn", fix_gamma=False)
    lines = mx.sym.Group([norm[0], mx.sym.relu(norm[0], name="r")]).debug_str().splitlines()
    assert lines[:3] == ["Symbol Outputs:", "\toutput[0]=bn(0)", "\toutput[1]=r(0)"]
    assert lines[3:8] == [
        f"Variable:{name}" for name in ("a", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var")
    ]
    assert lines[8:11] == ["-" * 20, "Op:BatchNorm, Name=bn", "Inputs:"]
    assert lines[11] == "\targ[0]=a(0) version=0" and lines[15] == "\targ[4]=bn_moving_var(0) version=1"
    assert lines[16:] == ["Attrs:", "\tfix_gamma=False", "-" * 20, "Op:relu, Name=r", "Inputs:", "\targ[0]=bn(0)"]
    assert mx.sym.var("a").debug_str() == "Variable:a\n"
    assert mx.sym.zeros((2,)).debug_str() == "AtomicFunctor  Op:_zeros\n"
    twice = mx.sym.Group([mx.sym.var("a")] * 2).debug_str()
    assert twice.startswith("Symbol Outputs:\n\toutput[0]=a(0)\n\toutput[1]=a(0)\nVariable:a\n")


def test_a_reshape_that_changes_other_arrays_is_refused(mx) -> None:
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)
    executor = symbol.simple_bind(mx.cpu(), data=(2, 3))
    for kind in (AssertionError, mx.base.MXNetError):
        with pytest.raises(kind, match="partial_shaping=True"):
            executor.reshape(data=(2, 2))


@pytest.mark.filterwarnings("error")
def test_arrays_of_an_executor_can_be_copied_to_itself(mx) -> None:
    args = {"a": mx.nd.array([1, 2]), "b": mx.nd.array([3, 4])}
    executor = (mx.sym.var("a") + mx.sym.var("b")).bind(mx.cpu(), args)
    executor.copy_params_from(args)
    assert executor.forward()[0].asnumpy().tolist() == [4, 6]
