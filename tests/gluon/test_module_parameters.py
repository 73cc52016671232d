"""Parameters of modules: what must be given, who shares them, and their types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def classifier(mx, hidden: int = 3):
    dense = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=hidden, name="fc")
    return mx.sym.SoftmaxOutput(dense, name="softmax")


def outputs(mx, module, rows: np.ndarray) -> list:
    module.forward(mx.io.DataBatch([mx.nd.array(rows)]))
    return module.get_outputs()[0].asnumpy().tolist()


@pytest.fixture
def prefix(mx, tmp_path: Path) -> str:
    """A checkpoint without a value for the label, as every one is."""
    args = {"fc_weight": mx.nd.ones((3, 5)), "fc_bias": mx.nd.array([0, 0, np.log(2)])}
    mx.model.save_checkpoint(str(tmp_path / "model"), 0, classifier(mx), args, {})
    return str(tmp_path / "model")


@pytest.mark.parametrize("names", [None, []])
def test_a_checkpoint_is_bound_without_its_label(mx, prefix: str, names: list | None) -> None:
    module = mx.mod.Module.load(prefix, 0, label_names=names)
    module.bind([("data", (2, 5))], for_training=False)
    rows = np.ones((2, 5), "float32")
    np.testing.assert_allclose(outputs(mx, module, rows), [[0.25, 0.25, 0.5]] * 2, rtol=1e-6)
    np.testing.assert_allclose(outputs(mx, module, rows[:1]), [[0.25, 0.25, 0.5]], rtol=1e-6)
    assert module.predict(mx.io.NDArrayIter(np.ones((5, 5), "float32"), batch_size=2)).shape == (5, 3)
    assert sorted(module.get_params()[0]) == ["fc_bias", "fc_weight"]
    # What was not there when it was loaded, nobody asks for later.
    module.set_params({"fc_weight": mx.nd.zeros((3, 5)), "fc_bias": mx.nd.zeros((3,))}, {})
    np.testing.assert_allclose(outputs(mx, module, rows), [[1 / 3] * 3] * 2, rtol=1e-6)
    assert module._exec_group.execs[0].arg_dict["softmax_label"].shape == (2,)
    with pytest.raises(RuntimeError, match="fc_bias is not presented"):
        module.set_params({"fc_weight": mx.nd.zeros((3, 5))}, {})


def test_values_of_a_checkpoint_that_are_for_nothing_or_do_not_fit_are_named(mx, tmp_path: Path) -> None:
    prefix = str(tmp_path / "model")
    for args, named in (({"fc_weigth": mx.nd.ones((3, 5))}, "fc_weigth"), ({"fc_weight": mx.nd.ones((3, 4))}, "3, 4")):
        mx.model.save_checkpoint(prefix, 0, classifier(mx), args, {})
        module = mx.mod.Module.load(prefix, 0, label_names=None)
        with pytest.raises(mx.base.MXNetError, match=named):
            module.bind([("data", (2, 5))], for_training=False)


def test_states_that_are_not_given_are_initialized(mx) -> None:
    net = mx.sym.BatchNorm(mx.sym.var("data"), name="norm")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (2, 1))], for_training=False)
    module.init_params(arg_params={"norm_gamma": mx.nd.array([3]), "norm_beta": mx.nd.array([1])})
    args, aux = module.get_params()
    values = {name: array.asnumpy().tolist() for name, array in {**args, **aux}.items()}
    assert values == {"norm_gamma": [3], "norm_beta": [1], "norm_moving_mean": [0], "norm_moving_var": [1]}


@pytest.mark.parametrize("looked", [False, True])
def test_modules_share_parameters(mx, looked: bool) -> None:
    net = mx.sym.BatchNorm(mx.sym.var("data"), name="norm", fix_gamma=False, eps=0)
    one, other = mx.mod.Module(net, label_names=None), mx.mod.Module(net, label_names=None)
    one.bind([("data", (2, 1))], for_training=False)
    one.init_params(mx.init.One())
    other.bind([("data", (3, 1))], for_training=False, shared_module=one)
    assert other.params_initialized
    if looked:
        assert one._exec_group.execs and other._exec_group.execs
    for number, module in enumerate((one, other, one)):
        gamma = {"norm_gamma": mx.nd.array([number + 2]), "norm_beta": mx.nd.array([number])}
        module.set_params(gamma, {"norm_moving_mean": mx.nd.array([number]), "norm_moving_var": mx.nd.array([1])})
        for reader, rows in ((one, 2), (other, 3)):
            assert outputs(mx, reader, np.ones((rows, 1))) == [[(1 - number) * (number + 2) + number]] * rows
            assert reader.get_params()[0]["norm_gamma"].asnumpy().tolist() == [number + 2]
            held = reader._exec_group.execs[0].aux_dict["norm_moving_mean"] if looked else None
            assert held is None or held.asnumpy().tolist() == [number]
    # A module that is bound again without the other has parameters of its own.
    other.bind([("data", (3, 1))], for_training=False, force_rebind=True)
    one.init_params(mx.init.One(), force_init=True)
    assert other.get_params()[0]["norm_gamma"].asnumpy().tolist() == [4]


def test_a_module_that_cannot_share_parameters_says_why(mx) -> None:
    one, other = mx.mod.Module(classifier(mx)), mx.mod.Module(classifier(mx))

    def bind(shared, width: int = 5) -> None:
        other.bind([("data", (2, width))], [("softmax_label", (2,))], for_training=False, shared_module=shared)

    with pytest.raises(AssertionError, match="no parameters yet"):
        bind(one)
    one.bind([("data", (2, 5))], [("softmax_label", (2,))], for_training=False)
    with pytest.raises(AssertionError, match="no parameters yet"):
        bind(one)
    one.init_params(mx.init.One())
    with pytest.raises(RuntimeError, match="fc_weight"):
        bind(one, width=4)
    with pytest.raises(AssertionError, match="int"):
        bind(3)
    assert not other.binded
    bind(one)
    assert other.binded


def test_the_type_of_a_variable_is_that_of_the_data(mx) -> None:
    """The type that the iterator says is for labels, which have it whatever their variable says."""
    data, label = mx.sym.var("data", dtype="float16"), mx.sym.var("label", dtype="float16")
    net = mx.sym.Group([mx.sym.broadcast_mul(data, mx.sym.var("weight", shape=(1,))), mx.sym.BlockGrad(label)])
    module = mx.mod.Module(net, label_names=["label"])
    module.bind([("data", (1, 2))], [mx.io.DataDesc("label", (1,), "int32")], for_training=False)
    module.init_params(mx.init.One())
    for _ in range(2):
        module.forward(mx.io.DataBatch([mx.nd.array([[1.0001, 2049]])], [mx.nd.array([1.7])]))
        found, labels = module.get_outputs()
        assert found.dtype == np.float16 and found.asnumpy().tolist() == [[1, 2048]]
        assert labels.dtype == np.int32 and labels.asnumpy().tolist() == [1]
        assert module._exec_group.execs[0].arg_dict["data"].dtype == np.float16
    assert module.get_params()[0]["weight"].dtype == np.float16
    assert module.data_shapes[0].dtype == np.float32


def test_a_module_without_states_asks_for_states_of_every_context(mx) -> None:
    module = mx.mod.Module(classifier(mx))
    module.bind([("data", (2, 5))], [("softmax_label", (2,))], for_training=False)
    module.init_params(mx.init.One())
    assert module.get_states(merge_multi_context=False) == []
    with pytest.raises(AssertionError, match="merge_multi_context"):
        module.get_states()


# ---- files of buckets ----------------------------------------------------------------------------


def averages(mx):
    """Makes the symbol of a bucket: a dense layer on the mean of the data."""

    def make(length):
        mean = mx.sym.mean(mx.sym.var("data"), axis=1, keepdims=True)
        return mx.sym.FullyConnected(mean, num_hidden=2, name="fc"), ("data",), ()

    return make


def run_bucket(mx, module, length: int) -> list:
    batch = mx.io.DataBatch([mx.nd.ones((1, length))], bucket_key=length, provide_data=[("data", (1, length))])
    module.forward(batch)
    return module.get_outputs()[0].asnumpy().tolist()


def test_buckets_are_saved_in_the_files_of_mxnet(mx, tmp_path: Path) -> None:
    module = mx.mod.BucketingModule(averages(mx), 4)
    with pytest.raises(AssertionError, match="bind"):
        module.save_checkpoint(str(tmp_path / "words"), 7)
    module.bind([("data", (1, 4))], for_training=False)
    module.set_params({"fc_weight": mx.nd.array([[1], [2]]), "fc_bias": mx.nd.array([3, 4])}, {})
    assert run_bucket(mx, module, 2) == [[4, 6]]
    prefix = str(tmp_path / "words")
    module.save_checkpoint(prefix, 7)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["words-0007.params", "words-2-symbol.json", "words-4-symbol.json", "words.buckets"]
    (keys,) = mx.nd.load(f"{prefix}.buckets")
    assert keys.dtype == np.int32 and keys.asnumpy().tolist() == [4, 2]
    for make in (averages(mx), None):
        again = mx.mod.BucketingModule.load(prefix, 7, make, default_bucket_key=4)
        again.bind([("data", (1, 4))], for_training=False)
        assert run_bucket(mx, again, 2) == [[4, 6]]
        if make is None:
            with pytest.raises(ValueError, match="bucket 3"):
                run_bucket(mx, again, 3)
        else:
            assert run_bucket(mx, again, 3) == [[4, 6]]


def test_keys_of_buckets_that_no_file_holds_are_named(mx, tmp_path: Path) -> None:
    module = mx.mod.BucketingModule(averages(mx), "long")
    module.bind([("data", (1, 4))], for_training=False)
    module.init_params(mx.init.One())
    with pytest.raises(ValueError, match="long"):
        module.save_checkpoint(str(tmp_path / "words"), 1)
    assert not list(tmp_path.iterdir())
    pairs = mx.mod.BucketingModule(averages(mx), (4, 3))
    pairs.bind([("data", (1, 4))], for_training=False)
    pairs.init_params(mx.init.One())
    pairs.save_checkpoint(str(tmp_path / "pairs"), 1)
    again = mx.mod.BucketingModule.load(str(tmp_path / "pairs"), 1, averages(mx), default_bucket_key=(4, 3))
    again.bind([("data", (1, 4))], for_training=False)
    assert again.get_params()[0]["fc_weight"].asnumpy().tolist() == [[1], [1]]


def test_the_oldest_models_refuse_values_for_no_argument(mx) -> None:
    args = {"fc_weight": mx.nd.ones((3, 5)), "fc_bias": mx.nd.zeros((3,)), "other": mx.nd.ones((1,))}
    rows = np.ones((2, 5), "float32")
    with pytest.warns(DeprecationWarning):
        strict = mx.model.FeedForward(classifier(mx), arg_params=args)
        lenient = mx.model.FeedForward(classifier(mx), arg_params=args, allow_extra_params=True)
        empty = mx.model.FeedForward(classifier(mx))
    with pytest.raises(ValueError, match='Find name "other" that is not in the arguments'):
        strict.predict(rows)
    np.testing.assert_allclose(lenient.predict(rows), [[1 / 3] * 3] * 2, rtol=1e-6)
    with pytest.raises(mx.base.MXNetError, match="fc_weight"):
        empty.predict(rows)


def test_a_composite_metric_is_updated_by_names(mx) -> None:
    metric = mx.metric.CompositeEvalMetric(["acc"])
    metric.update_dict(labels={"l": mx.nd.array([1])}, preds={"p": mx.nd.array([[0, 1]])})
    assert metric.get()[1] == [1.0]


def test_fixed_parameters_must_be_arguments(mx) -> None:
    def network(key):
        return classifier(mx), ("data",), ("softmax_label",)

    assert mx.mod.Module(classifier(mx), fixed_param_names=["fc_bias"])
    with pytest.raises(ValueError, match=r"fixed_param_names=\['fc_bia'\](?s:.*)fc_bias"):
        mx.mod.Module(classifier(mx), fixed_param_names=["fc_bia"])
    with pytest.raises(ValueError, match=r"fixed_param_names=\['fc_bia'\]"):
        mx.mod.BucketingModule(network, 1, fixed_param_names=["fc_bia"])
    with pytest.raises(ValueError, match=r"state_names=\['state'\]"):
        mx.mod.BucketingModule(network, 1, state_names=["state"])
    assert mx.mod.BucketingModule(network, 1).data_names == ("data",)


def test_callbacks_find_the_variables_of_mxnet(mx) -> None:
    module = mx.mod.Module(classifier(mx))
    batches = mx.io.NDArrayIter(np.ones((4, 5)), np.ones(4), 2)
    module.bind(batches.provide_data, batches.provide_label, for_training=False)
    module.init_params()
    seen = []

    def note(param) -> None:
        names = ("nbatch", "actual_num_batch")
        seen.append((param.nbatch, *(param.locals[name] for name in names)))
        assert param.locals["eval_metric"] is param.eval_metric
        assert param.locals["eval_batch"].data[0].shape == (2, 5)

    module.score(batches, "acc", batch_end_callback=note, score_end_callback=note)
    assert seen == [(0, 0, 0), (1, 1, 1), (2, 1, 2)]
    assert str(mx.model.BatchEndParam(1, 2, 3, 4)) == "BatchEndParams(epoch=1, nbatch=2, eval_metric=3, locals=4)"


@pytest.mark.parametrize("described", [("data", (2, 5)), "DataDesc"])
def test_a_description_that_is_in_no_list_is_refused(mx, described: object) -> None:
    module = mx.mod.Module(classifier(mx))
    one = mx.io.DataDesc("data", (2, 5)) if described == "DataDesc" else described
    with pytest.raises(TypeError, match="give a list of them"):
        module.bind(one, for_training=False)
