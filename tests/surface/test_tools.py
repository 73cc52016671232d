"""Tools around a model: initializers, schedules, drawings, callbacks, vocabularies, test tools."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from support import DIGITS, block_of, digits, recorded, run_python

# ---- initializers --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", recorded("initializers"), ids=lambda c: c["dumps"])
def test_an_initializer_fills_as_in_mxnet(mx, case: dict) -> None:
    made = mx.init.create(case["name"], **case["arguments"])
    assert made.dumps() == case["dumps"]
    assert mx.init.create(case["dumps"]) == made
    if "array" in case:
        array = mx.nd.empty(case["array"]["shape"])
        made._init_weight("w", array)
        want = np.array(case["array"]["values"]).reshape(case["array"]["shape"])
        np.testing.assert_allclose(array.asnumpy(), want, rtol=1e-6)
        return
    array = mx.nd.empty((40, 20, 3, 3))
    made(mx.init.InitDesc("some_weight"), array)
    values = array.asnumpy()
    # 7200 random values: their deviation is known to 2 %.
    np.testing.assert_allclose(values.std(), case["spread"]["deviation"], rtol=0.03)
    assert np.abs(values).max() < 1.5 * case["spread"]["largest"]


def test_orthogonal_rows_are_orthogonal(mx) -> None:
    for shape, rand_type in (((6, 10), "uniform"), ((10, 2, 3), "normal")):
        array = mx.nd.empty(shape)
        mx.init.Orthogonal(scale=2.0, rand_type=rand_type)(mx.init.InitDesc("a_weight"), array)
        matrix = array.asnumpy().reshape(shape[0], -1)
        square = matrix @ matrix.T if matrix.shape[0] < matrix.shape[1] else matrix.T @ matrix
        np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-5)


@pytest.mark.parametrize("case", recorded("named_values"), ids=lambda c: f"{c['kind']} {c['name']}")
def test_a_name_decides_as_in_mxnet(mx, case: dict) -> None:
    array = mx.nd.empty((6,) if case["name"].endswith("bias") else (1, 1, 4, 4))

    def fill() -> list[float]:
        if case["kind"] == "variable":
            mx.init.Constant(7.0)(mx.init.InitDesc(case["name"]), array)
        else:
            with pytest.warns(DeprecationWarning, match="Calling initializer with"):
                mx.init.Constant(7.0)(case["name"], array)
        return array.asnumpy().ravel().tolist()

    if case["values"] == "ValueError":
        with pytest.raises(ValueError, match=f"Unknown initialization pattern for {case['name']}"):
            fill()
    elif case["name"] == "x_weight_quantize":
        values = fill()  # one random number
        assert set(values) == {values[0]} and -127 <= values[0] <= 126
    else:
        assert fill() == case["values"]


def test_what_a_variable_says_comes_before_its_name(mx) -> None:
    array = mx.nd.empty((2,))
    own = mx.init.InitDesc("a_bias", {"__init__": '["constant", {"value": 5}]'})
    mx.init.Constant(7.0)(own, array)
    assert array.asnumpy().tolist() == [5, 5]


def test_a_subclass_fills_names_that_no_pattern_knows(mx) -> None:
    class Own(mx.init.Xavier):
        def _init_default(self, name, arr):
            arr[:] = 5

        def _init_loc_bias(self, name, arr):
            arr[:] = 9

    scaled = mx.sym.broadcast_mul(mx.sym.var("data"), mx.sym.var("alpha", shape=(1, 3)))
    module = mx.mod.Module(scaled, label_names=None)
    module.bind([("data", (2, 3))], for_training=False)
    with pytest.raises(ValueError, match="Unknown initialization pattern for alpha"):
        module.init_params(mx.init.Xavier())
    module.init_params(Own())
    assert module.get_params()[0]["alpha"].asnumpy().tolist() == [[5, 5, 5]]
    array = mx.nd.empty((6,))
    with pytest.warns(DeprecationWarning, match="Calling initializer with"):
        Own()("stn_loc_bias", array)
    assert array.asnumpy().tolist() == [9] * 6


def test_states_of_a_module_need_no_initializer(mx) -> None:
    net = mx.sym.var("memory") + mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    module = mx.mod.Module(net, label_names=None, state_names=["memory"])
    module.bind([("data", (1, 3))], for_training=False)
    module.init_params(mx.init.One())
    assert sorted(module.get_params()[0]) == ["fc_bias", "fc_weight"]


def test_initializers_by_pattern_and_from_a_file(mx, tmp_path: Path) -> None:
    mixed = mx.init.Mixed(["fc.*", ".*"], [mx.init.One(), mx.init.Zero()])
    arrays = {name: mx.nd.empty((2,)) for name in ("fc_weight", "other_weight")}
    for name, array in arrays.items():
        mixed(mx.init.InitDesc(name), array)
    assert [a.asnumpy().tolist() for a in arrays.values()] == [[1, 1], [0, 0]]
    with pytest.raises(ValueError, match="x did not match"):
        mx.init.Mixed(["fc.*"], [mx.init.One()])("x", arrays["fc_weight"])

    path = str(tmp_path / "values")
    mx.nd.save(path, {"arg:fc_weight": mx.nd.array([3, 4])})
    load = mx.init.Load(path, default_init=mx.init.Zero())
    for name, want in (("fc_weight", [3, 4]), ("new_weight", [0, 0])):
        array = mx.nd.empty((2,))
        load(mx.init.InitDesc(name), array)
        assert array.asnumpy().tolist() == want
    with pytest.raises(AssertionError, match="Shape mismatch"):
        load("fc_weight", mx.nd.empty((3,)))
    with pytest.raises(AssertionError, match="Not found in loaded param"):
        mx.init.Load({})("w", mx.nd.empty((3,)))


def test_a_program_adds_an_initializer_and_hears_what_was_filled(mx, caplog: pytest.LogCaptureFixture) -> None:
    @mx.init.register
    class Sevens(mx.init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = 7

        def _init_bias(self, name, arr):
            arr[:] = -7

    made = mx.init.create("sevens").set_verbosity(True, lambda array: str(array.asnumpy().tolist()))
    weight, bias = mx.nd.empty((1,)), mx.nd.empty((1,))
    with caplog.at_level(logging.INFO):
        made(mx.init.InitDesc("a_weight"), weight)
        made(mx.init.InitDesc("a_bias"), bias)
    assert (weight.asscalar(), bias.asscalar()) == (7, -7)
    assert "Initialized a_bias as bias: [-7.0]" in caplog.text


def test_module_parameters_begin_as_their_operators_prescribe(mx) -> None:
    net = mx.sym.LeakyReLU(mx.sym.var("data"), act_type="prelu", name="slope")
    own = mx.sym.var("own_weight", init=mx.init.Constant(3.0))
    net = mx.sym.FullyConnected(net, own, num_hidden=2, name="fc")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (1, 4))])
    module.init_params(mx.init.One())
    values = {name: set(array.asnumpy().ravel()) for name, array in module.get_params()[0].items()}
    assert values == {"slope_gamma": {0.25}, "own_weight": {3.0}, "fc_bias": {0.0}}


# ---- what belongs to training, as far as it computes nothing -------------------------------------


@pytest.mark.parametrize("case", recorded("schedules"), ids=lambda c: f"{c['name']}-{c['arguments']}")
def test_learning_rates_are_those_of_mxnet(mx, case: dict) -> None:
    schedule = getattr(mx.lr_scheduler, case["name"])(**case["arguments"])
    np.testing.assert_allclose([schedule(n) for n in range(50)], case["rates"], rtol=1e-12)


def test_optimizers_are_made_but_update_nothing(mx) -> None:
    made = mx.optimizer.create("adam", learning_rate=0.1, beta1=0.5, wd=1e-4)
    assert (made.lr, made.beta1, made.beta2, made.wd, made.learning_rate) == (0.1, 0.5, 0.999, 1e-4, 0.1)
    assert mx.optimizer.SGD(0.9, lr_scheduler=mx.lr_scheduler.FactorScheduler(3)).momentum == 0.9
    with pytest.raises(ValueError, match=r"Cannot find optimizer nonsense; known: .*adam"):
        mx.optimizer.create("nonsense")
    with pytest.raises(TypeError):
        mx.optimizer.SGD(nonsense=1)
    for call in (
        lambda: made.update(0, mx.nd.zeros(1), mx.nd.zeros(1), None),
        lambda: mx.optimizer.get_updater(made)(0, mx.nd.zeros(1), mx.nd.zeros(1)),
        lambda: mx.kv.create("local").push(0, mx.nd.zeros(1)),
        mx.contrib.amp.init,
    ):
        with pytest.raises(mx.base.TrainingNotSupportedError, match="belongs to training"):
            call()

    @mx.optimizer.register
    class Mine(mx.optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            weight[:] = weight - grad

    assert isinstance(mx.optimizer.create("mine"), Mine)
    store = mx.kv.create("device")
    assert (store.type, store.rank, store.num_workers) == ("device", 0, 1)
    with pytest.raises(NotImplementedError, match="spans machines"):
        mx.kv.create("dist_sync")


def test_all_that_mxrt_logs_goes_through_one_logger(mx, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mxrt"):
        speed = mx.callback.ProgressBar(total=2)
        speed(mx.model.BatchEndParam(epoch=0, nbatch=1, eval_metric=None, locals=None))
        mx.sym.load_json(mx.sym.var("a").tojson().replace("10900", "10500"))
    assert caplog.records and {record.name for record in caplog.records} == {"mxrt"}
    with caplog.at_level(logging.WARNING, "mxrt"):
        caplog.clear()
        speed(mx.model.BatchEndParam(epoch=0, nbatch=2, eval_metric=None, locals=None))
    assert caplog.records == []


def test_a_program_that_only_sets_the_level_sees_what_mxnet_showed(mx) -> None:
    program = """
        import logging
        import mxrt as mx
        logging.getLogger().setLevel(logging.INFO)
        mx.callback.ProgressBar(total=2)(mx.model.BatchEndParam(epoch=0, nbatch=1, eval_metric=None, locals=None))
    """
    assert "INFO:mxrt:[" in run_python(program).stderr


def test_callbacks_log_as_in_mxnet(mx, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1, 100))
    monkeypatch.setattr(mx.callback.time, "time", lambda: float(next(clock)))
    metric = mx.metric.create("acc")
    metric.update([mx.nd.array([1, 1])], [mx.nd.array([[0, 1], [1, 0]])])
    with caplog.at_level(logging.INFO):
        speed = mx.callback.Speedometer(batch_size=8, frequent=2, auto_reset=False)
        bar = mx.callback.ProgressBar(total=4, length=8)
        for number in range(5):
            speed(SimpleNamespace(epoch=3, nbatch=number, eval_metric=metric))
        bar(SimpleNamespace(nbatch=1))
        mx.callback.LogValidationMetricsCallback()(SimpleNamespace(epoch=2, eval_metric=metric))
        mx.callback.log_train_metric(1, auto_reset=True)(SimpleNamespace(epoch=1, nbatch=4, eval_metric=metric))
    assert caplog.messages == [
        "Epoch[3] Batch [0-2]\tSpeed: 16.00 samples/sec\taccuracy=0.500000",
        "Epoch[3] Batch [0-4]\tSpeed: 16.00 samples/sec\taccuracy=0.500000",
        "[==------] 25%\r",
        "Epoch[2] Validation-accuracy=0.500000",
        "Iter[1] Batch[4] Train-accuracy=0.500000",
    ]
    assert metric.num_inst == 0


# ---- graphs as text ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["image", "text"])
def test_summaries_and_drawings_are_those_of_mxnet(mx, name: str, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    case = recorded("drawings")[name]
    symbol = mx.sym.load_json(case["json"])
    for summary in case["summaries"]:
        mx.viz.print_summary(symbol, **summary["arguments"])
        assert capsys.readouterr().out == summary["text"]
    monkeypatch.setitem(sys.modules, "graphviz", None)
    for drawing in case["drawings"]:
        assert mx.viz.plot_network(symbol, **drawing["arguments"]).source == drawing["source"]


def test_a_drawing_is_saved_and_says_what_it_needs_to_be_drawn(mx, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    symbol = mx.sym.load(str(DIGITS / "digits_cnn-symbol.json"))
    drawing = mx.viz.plot_network(symbol, title="digits")
    path = drawing.save(str(tmp_path / "digits.gv"))
    assert Path(path).read_text().startswith("digraph digits {\n\tdata [label=data")
    with pytest.raises(mx.base.MXNetError, match=r"pip install 'mxrt\[viz\]'"):
        drawing.render()
    with pytest.raises(TypeError, match="must be Symbol"):
        mx.viz.print_summary("digits")


def test_operators_tell_their_arguments(mx) -> None:
    found = mx.operator.get_operator_arguments("FullyConnected")
    assert (found.narg, found.names) == (6, ["data", "weight", "bias", "num_hidden", "no_bias", "flatten"])
    assert found.types[:4] == ["NDArray-or-Symbol"] * 3 + ["int, required"]
    assert found.types[4].startswith("boolean, optional, default=")
    assert mx.operator.get_operator_arguments("Concat").types[0] == "NDArray-or-Symbol[]"
    names = mx.operator.get_all_registered_operators()
    assert {"FullyConnected", "Convolution", "_plus_scalar"} <= set(names)
    assert names == sorted(names)
    with pytest.raises(mx.base.MXNetError, match="nonsense is not registered"):
        mx.operator.get_operator_arguments("nonsense")


# ---- words ---------------------------------------------------------------------------------------


def test_vocabularies_number_words_as_mxnet_does(mx) -> None:
    case = recorded("vocabularies")
    counts = mx.contrib.text.utils.count_tokens_from_str(case["text"], to_lower=True)
    assert counts == Counter(case["counts"])
    for one in case["vocabularies"]:
        made = mx.contrib.text.vocab.Vocabulary(counts, **one["arguments"])
        assert made.idx_to_token == one["tokens"]
        assert made.to_indices(["life", "nothing", "is"]) == one["of"]
        assert made.to_tokens(list(range(len(made)))) == one["tokens"]
    with pytest.raises(ValueError, match="Token index 99"):
        made.to_tokens(99)


def test_embeddings_come_from_local_files(mx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = mx.contrib.text
    folder = tmp_path / "embeddings" / "glove"
    folder.mkdir(parents=True)
    (folder / "tiny.txt").write_text("3 2\ncat 1 2\ndog 3 4\ncat 9 9\n<unk> 0.5 0.25\n")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    with pytest.warns(UserWarning) as warned:
        glove = text.embedding.create("glove", pretrained_file_name="tiny.txt")
    assert [str(w.message).split(": ", 1)[1].split(",")[0] for w in warned] == [
        "one number after 3 is likely a header",
        "token cat has a vector already",
    ]
    assert glove.idx_to_token == ["<unk>", "cat", "dog"]
    assert glove.idx_to_vec.asnumpy().tolist() == [[0.5, 0.25], [1, 2], [3, 4]]
    assert glove.get_vecs_by_tokens(["DOG", "cow"]).asnumpy().tolist() == [[0.5, 0.25]] * 2
    assert glove.get_vecs_by_tokens("DOG", lower_case_backup=True).asnumpy().tolist() == [3, 4]
    assert text.embedding.get_pretrained_file_names("glove")[-1] == "tiny.txt"

    path = tmp_path / "more"
    path.write_text("dog,7,8,9\ncow,1,1,1\n")
    words = text.vocab.Vocabulary(Counter(["dog", "cow", "cow"]))
    assert text.vocab.Vocabulary(letters := Counter("aab"), most_freq_count=1).idx_to_token == ["<unk>", "a"]
    assert text.vocab.Vocabulary(letters, most_freq_count=-1).idx_to_token == ["<unk>", "a", "b"]
    custom = text.embedding.CustomEmbedding(str(path), ",", vocabulary=words)
    both = text.embedding.CompositeEmbedding(words, [glove, custom])
    assert both.idx_to_token == ["<unk>", "cow", "dog"]
    assert both.idx_to_vec.asnumpy().tolist() == [[0.5, 0.25, 0, 0, 0], [0.5, 0.25, 1, 1, 1], [3, 4, 7, 8, 9]]
    custom.update_token_vectors("cow", mx.nd.array([4, 5, 6]))
    assert custom.get_vecs_by_tokens("cow").asnumpy().tolist() == [4, 5, 6]
    with pytest.raises(ValueError, match="Token goat is unknown"):
        custom.update_token_vectors(["goat"], mx.nd.zeros((1, 3)))
    for wrong in ([1, 1, 1], np.ones(3), mx.nd.ones((2, 3))):
        with pytest.raises(AssertionError):
            custom.update_token_vectors("cow", wrong)
    with pytest.raises(mx.base.MXNetError, match="mxrt downloads nothing") as missing:
        text.embedding.create("fasttext")
    assert not isinstance(missing.value, KeyError)
    with pytest.raises(KeyError, match="mxrt downloads nothing"):
        text.embedding.create("glove", pretrained_file_name="no_such_file.txt")


# ---- test utilities ------------------------------------------------------------------------------


def test_a_data_loader_feeds_a_module(mx) -> None:
    images, labels = digits(10)
    batches = [(mx.nd.array(images[i : i + 4]), mx.nd.array(labels[i : i + 4])) for i in range(0, 10, 4)]
    found = mx.contrib.io.DataLoaderIter(batches)
    pads, rows = [], []
    want = block_of(mx)(mx.nd.array(images)).asnumpy()
    net = block_of(mx)
    for batch in found:
        pads.append(batch.pad)
        rows.append(net(batch.data[0]).asnumpy()[: 4 - batch.pad])
    assert pads == [0, 0, 2]
    np.testing.assert_allclose(np.concatenate(rows), want, rtol=1e-4, atol=1e-5)


# ---- images and operators of programs ------------------------------------------------------------


def test_images_are_cut_and_normalised(mx) -> None:
    image = mx.nd.arange(7 * 9 * 3).reshape((7, 9, 3))
    cut, place = mx.img.center_crop(image, (4, 3))
    assert place == (2, 2, 4, 3)
    assert np.array_equal(cut.asnumpy(), image.asnumpy()[2:5, 2:6])
    cut, (x, y, width, height) = mx.img.random_crop(image, (4, 3))
    assert np.array_equal(cut.asnumpy(), image.asnumpy()[y : y + 3, x : x + 4])
    assert (width, height) == (4, 3)
    assert mx.img.scale_down((640, 480), (720, 120)) == (640, 106)
    assert mx.img.scale_down((360, 1000), (480, 500)) == (360, 375)
    assert [mx.img.image._get_interp_method(9, (8, 8, new, new)) for new in (9, 7, 8)] == [2, 3, 1]
    found = mx.img.color_normalize(mx.nd.ones((2, 2, 3)), mx.nd.array([0, 1, 2]), mx.nd.array([1, 1, 2]))
    assert found.asnumpy()[0, 0].tolist() == [1, 0, -0.5]

    class Brighter(mx.image.Augmenter):
        def __init__(self, by):
            super().__init__(by=by)

    assert Brighter(mx.nd.array([1, 2])).dumps() == '["brighter", {"by": [1.0, 2.0]}]'


def test_operators_of_programs_say_what_they_take(mx) -> None:
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("twice_of_a_test")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Twice()

    prop = TwiceProp()
    assert (prop.list_arguments(), prop.list_outputs(), prop.infer_shape([(2, 3)])[1]) == (
        ["data"],
        ["output"],
        ((2, 3),),
    )
    out = mx.nd.ones(2)
    for req, want in (("null", 1), ("write", 6), ("add", 12)):
        prop.create_operator(mx.cpu(), [(2,)], ["float32"]).forward(False, [req], [mx.nd.array([3, 3])], [out], [])
        assert out.asnumpy().tolist() == [want, want]
    with pytest.raises(mx.base.MXNetTypeError, match="expected a subclass of CustomOpProp"):
        mx.operator.register("wrong")(Twice)


def test_numpy_asks_arrays_for_all_and_any(mx) -> None:
    array = mx.nd.array([[1, 0], [2, 3]])
    assert not np.all(array)
    assert np.any(array)
    assert np.all(array == array)
    assert np.all(array, axis=1).tolist() == [False, True]


def test_codes_of_mxnets_interface_are_where_programs_import_them(mx) -> None:
    codes = mx.nd.ndarray
    assert codes._DTYPE_NP_TO_MX[np.float16] == 2
    assert codes._DTYPE_MX_TO_NP[6] is np.int64
    assert codes._STORAGE_TYPE_STR_TO_ID == {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
    assert codes.py_slice is slice
    assert codes.ones((2,)).asnumpy().tolist() == [1, 1]
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(codes, "nonsense")  # noqa: B009


def test_an_array_as_initial_value_is_written_as_numbers(mx) -> None:
    for value in (mx.nd.ones((2, 1)), np.ones((2, 1))):
        made = mx.init.Constant(value)
        assert made.dumps() == '["constant", {"value": [[1.0], [1.0]]}]'
        array = mx.nd.zeros((2, 1))
        mx.init.create(made.dumps())(mx.init.InitDesc("a_weight"), array)
        assert array.asnumpy().tolist() == [[1], [1]]


def test_features_are_told_under_mxnets_names(mx) -> None:
    features = mx.runtime.Features()
    assert features is mx.runtime.Features()
    assert {"CUDA", "MKLDNN", "OPENCV", "DEBUG", "PROFILER", "CXX14", "CPU_SSE4A", "SSE"} <= set(features)
    with open("/proc/cpuinfo") as file:
        flags = set(file.read().replace("_", "").split())
    for name in ("CPU_SSE", "CPU_SSE2", "CPU_SSE4_1", "CPU_SSE4_2", "CPU_SSE4A", "CPU_AVX", "CPU_AVX2", "F16C"):
        flag = name.removeprefix("CPU_").lower().replace("_", "")
        assert features.is_enabled(name) == (flag in flags), name
    assert features["CPU_AVX2"] in mx.runtime.feature_list()
    assert features.is_enabled("cuda") == (mx.num_gpus() > 0)
    assert features.is_enabled("PROFILER")
    with pytest.raises(RuntimeError, match="NONSENSE"):
        features.is_enabled("nonsense")
