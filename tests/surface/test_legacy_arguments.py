"""Arguments of MXNet's functions that programs give by position, or that little code uses."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import numpy as np
import pytest


def test_results_are_written_to_an_array_that_is_given_by_position(mx) -> None:
    x = mx.nd.array([[4, 2], [2, 5]])
    for call, want in (
        (lambda out: mx.nd.negative(x, out), [[-4, -2], [-2, -5]]),
        (lambda out: mx.nd.clip(x, 3, 4, out, "name"), [[4, 3], [3, 4]]),
        (lambda out: mx.nd.broadcast_add(x, x, out), [[8, 4], [4, 10]]),
        (lambda out: mx.nd.linalg.potrf(x, out), [[2, 0], [1, 2]]),
    ):
        out = mx.nd.zeros((2, 2))
        assert call(out) is out
        assert out.asnumpy().tolist() == want
    with pytest.raises(TypeError, match="multiple values for argument 'out'"):
        mx.nd.abs(x, None, out=x)
    with pytest.raises(TypeError, match="at most 3 positional arguments but 4"):
        mx.nd.abs(x, None, None, 1)
    assert mx.nd.linalg.potrf(x, lower=False).asnumpy().tolist() == [[2, 1], [0, 2]]


def test_symbols_take_a_name_and_attributes_by_position(mx) -> None:
    made = mx.sym.abs(mx.sym.var("x"), "size", {"__unit__": "m"})
    assert made.name == "size" and made.attr("__unit__") == "m"
    assert mx.sym.linalg.potrf(mx.sym.var("x"), "root").name == "root"


def test_storage_is_cast_into_an_array(mx) -> None:
    x = mx.nd.array([[0, 1], [2, 0]])
    assert mx.nd.cast_storage(x, "csr", None).stype == "csr"
    out = mx.nd.sparse.zeros("csr", (2, 2))
    assert mx.nd.cast_storage(x, "csr", out=out) is out
    assert out.asnumpy().tolist() == x.asnumpy().tolist()
    dense = mx.nd.zeros((2, 2))
    mx.nd.cast_storage(out, "default", out=dense)
    assert dense.asnumpy().tolist() == x.asnumpy().tolist()
    with pytest.raises(TypeError, match="out is a default array"):
        mx.nd.cast_storage(x, "csr", out=dense)


def test_numpy_arrays_become_arrays_of_either_interface(mx) -> None:
    for kind in (mx.nd.NDArray, mx.np.ndarray):
        made = mx.nd.from_numpy(np.ones((2,), "float32"), False, kind)
        assert type(made) is kind and made.asnumpy().tolist() == [1, 1]


def test_methods_of_symbols_take_inplace(mx) -> None:
    x = mx.sym.var("x")
    for made, op in (
        (x.expand_dims(0, True), "expand_dims"),
        (x.squeeze((0, 1), True), "squeeze"),
        (x.flatten(True), "Flatten"),
        (x.expand_dims(axis=0, inplace=False), "expand_dims"),
    ):
        assert f'"op": "{op}"' in made.tojson() and "inplace" not in made.tojson()


def test_groups_are_made_of_a_class(mx) -> None:
    x = mx.sym.var("x")
    assert type(mx.sym.Group([x, x], create_fn=mx.sym.Symbol)) is mx.sym.Symbol
    found = mx.sym.Group([x], mx.symbol.numpy._Symbol)
    assert type(found) is mx.symbol.numpy._Symbol and found.list_outputs() == ["x"]


def test_attributes_are_those_of_one_node(mx) -> None:
    made = mx.sym.exp(mx.sym.var("x", attr={"__unit__": "m"}), attr={"__other__": "s"})
    assert made.list_attr() == made.list_attr(recursive=False) == {"__other__": "s"}
    with pytest.raises(DeprecationWarning, match="attr_dict"):
        made.list_attr(recursive=True)


def test_the_default_context_is_read_and_set_by_a_context(mx) -> None:
    here = mx.current_context()
    with mx.cpu(0), pytest.warns(DeprecationWarning):
        assert mx.cpu(1).default_ctx == mx.cpu(0)
        mx.cpu(1).default_ctx = mx.cpu(2)
        assert mx.current_context() == mx.cpu(2)
    assert mx.current_context() == here


def test_arrays_that_cannot_be_split_evenly_are_refused(mx) -> None:
    with pytest.raises(ValueError, match="equal division"):
        mx.nd.split_v2(mx.nd.arange(6), 4)
    assert [part.shape for part in mx.nd.split_v2(mx.nd.arange(6), 3)] == [(2,)] * 3
    assert '"indices": "[0, 1, 2]"' in mx.sym.split_v2(mx.sym.var("x"), (1, 2)).tojson()


def test_reshape_needs_a_shape(mx) -> None:
    x = mx.nd.ones((2, 2))
    for call in (x.reshape, lambda: x.reshape(shape=())):
        with pytest.raises(AssertionError, match="Shape must be provided"):
            call()
    with pytest.raises(TypeError, match="tuple of integers"):
        x.reshape("a")


def test_a_parameter_keeps_the_type_that_it_was_cast_to(mx) -> None:
    dense = mx.gluon.nn.Dense(2, in_units=2)
    dense.initialize()
    for dtype in ("float16", np.float32, "float32"):
        dense.cast(dtype)
        assert dense.weight.dtype is dtype
        assert dense.weight.data().dtype == np.dtype(dtype)


def test_files_of_embeddings_are_listed(mx) -> None:
    names = mx.contrib.text.embedding.get_pretrained_file_names
    assert "glove.6B.50d.txt" in names("glove") and len(names("glove")) >= 10
    assert names()["fasttext"][:2] == ["crawl-300d-2M.vec", "wiki.aa.vec"] and "wiki.en.vec" in names("fasttext")


def test_a_folder_of_images_that_does_not_exist_is_a_file_not_found(mx, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        mx.gluon.data.vision.ImageFolderDataset(str(tmp_path / "absent"))


def test_a_checkpoint_is_logged(mx, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (1, 1))], for_training=False)
    module.init_params(mx.init.One())
    prefix = str(tmp_path / "model")
    with caplog.at_level(logging.INFO):
        mx.callback.do_checkpoint(prefix)(0, net, *module.get_params())
        mx.callback.module_checkpoint(module, prefix)(1)
    said = [record.getMessage() for record in caplog.records]
    assert said == [f'Saved checkpoint to "{prefix}-{number:04d}.params"' for number in (1, 2)]


def test_monitors_write_numbers_of_float32(mx) -> None:
    executor = (mx.sym.var("x") * 1).bind(mx.cpu(), {"x": mx.nd.array([0.631468])})
    monitor = mx.mon.Monitor(1, lambda array: array)
    monitor.install(executor)
    monitor.tic()
    executor.forward()
    assert {text for _, _, text in monitor.toc()} == {"0.631468\t"}


# ---- binding -------------------------------------------------------------------------------------


def test_arrays_that_do_not_fit_the_graph_are_refused_when_they_are_bound(mx) -> None:
    dense = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    fitting = {"x": mx.nd.ones((1, 3)), "fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.ones((2,))}
    assert dense.bind(mx.cpu(), fitting).forward()[0].asnumpy().tolist() == [[4, 4]]
    for name, array in (("fc_weight", mx.nd.ones((2, 4))), ("fc_bias", mx.nd.ones((2,), dtype="float64"))):
        with pytest.raises(mx.base.MXNetError, match="fc"):
            dense.bind(mx.cpu(), {**fitting, name: array})


def test_executors_share_a_buffer(mx) -> None:
    product, buffer = mx.sym.var("x") * mx.sym.var("y"), {}
    first = product.simple_bind(mx.cpu(), "null", shared_buffer=buffer, x=(2, 2), y=(2, 2))
    assert sorted(buffer) == ["x", "y"] and buffer["x"] is first.arg_dict["x"]
    smaller = product.simple_bind(mx.cpu(), "null", shared_buffer=buffer, x=(1, 2), y=(1, 2))
    first.arg_dict["x"][:] = 7
    assert smaller.arg_dict["x"].asnumpy().tolist() == [[7, 7]]
    larger = product.simple_bind(mx.cpu(), "null", shared_buffer=buffer, x=(4, 2), y=(4, 2))
    assert buffer["x"] is larger.arg_dict["x"] and first.arg_dict["x"].asnumpy().tolist() == [[7, 7]] * 2
    with pytest.raises(ValueError, match="dict"):
        product.simple_bind(mx.cpu(), shared_buffer=3, x=(1, 2), y=(1, 2))


def test_executors_share_arguments_and_states(mx) -> None:
    net = mx.sym.BatchNorm(mx.sym.var("x"), name="norm")

    def bind(rows: int, width: int, **shared):
        return net.simple_bind(mx.cpu(), "null", shared_arg_names=["norm_gamma"], x=(rows, width), **shared)

    one = bind(1, 3, shared_buffer={})
    other = bind(2, 3, shared_exec=one, shared_buffer={})
    one.arg_dict["norm_gamma"][:], one.arg_dict["norm_beta"][:], one.aux_dict["norm_moving_mean"][:] = 2, 3, 4
    assert other.arg_dict["norm_gamma"].asnumpy().tolist() == [2] * 3
    assert other.aux_dict["norm_moving_mean"].asnumpy().tolist() == [4] * 3
    assert other.arg_dict["norm_beta"].asnumpy().tolist() == [0] * 3
    with pytest.raises(ValueError, match="norm_gamma"):
        bind(2, 4, shared_exec=one, shared_buffer={})


def test_a_reader_of_records_is_pickled_at_the_beginning(mx, tmp_path: Path) -> None:
    path = str(tmp_path / "r.rec")
    writer = mx.recordio.MXRecordIO(path, "w")
    for text in (b"first", b"second"):
        writer.write(text)
    writer.close()
    reader = mx.recordio.MXRecordIO(path, "r")
    assert reader.read() == b"first"
    assert pickle.loads(pickle.dumps(reader)).read() == b"first"
    assert reader.read() == b"second"


def test_an_element_type_of_none_is_that_of_numpy(mx) -> None:
    # MXNet passes numpy.dtype(None), float64, to operators. Its functions that make arrays in
    # Python, and those of NumPy's interface, take None for an argument that is left out.
    x = mx.nd.array([[1, 2], [3, 4]])
    for call, absent in (
        (lambda **more: mx.nd.random.uniform(shape=2, **more), np.float32),
        (lambda **more: mx.nd.random.randn(2, **more), np.float32),
        (lambda **more: mx.nd.random.normal(x, x, **more), np.float32),
        (lambda **more: mx.nd.random.multinomial(mx.nd.array([0.5, 0.5]), **more), np.int32),
        (lambda **more: mx.nd.random_exponential(shape=2, **more), np.float32),
        (lambda **more: mx.nd.one_hot(x, 5, **more), np.float32),
        (lambda **more: mx.nd.softmax(x, **more), np.float32),
        (lambda **more: mx.nd.arange(3, **more), np.float32),
        (lambda **more: mx.nd.linspace(0, 1, 3, **more), np.float32),
    ):
        assert call().dtype is absent
        assert call(dtype=None).dtype is np.float64
        assert call(dtype="float64").dtype is np.float64
        with pytest.raises(TypeError, match="None"):
            call(dtype="None")
    for symbol in (mx.sym.random.uniform(shape=2, dtype=None), mx.sym.random_normal(shape=2, dtype=None)):
        assert symbol.infer_type()[1] == [np.float64]
    for made in (mx.nd.zeros(2, dtype=None), mx.nd.full(2, 1, dtype=None), mx.nd.eye(2, dtype=None)):
        assert made.dtype is np.float32
    assert mx.nd.random.randint(0, 9).dtype is np.int32
    with pytest.raises(mx.MXNetError, match="dtype"):
        mx.nd.random.randint(0, 9, dtype=None)


def test_an_element_type_of_none_is_none_in_the_interface_of_numpy(mx) -> None:
    x = mx.np.ones((2, 2))
    for made, wanted in (
        (mx.np.random.uniform(size=2, dtype=None), "float32"),
        (mx.np.random.gamma(1, size=2, dtype=None), "float32"),
        (mx.np.random.beta(1, 1, size=2, dtype=None), "float32"),
        (mx.np.random.randint(9, size=2, dtype=None), "int64"),
        (mx.npx.random.bernoulli(0.5, size=2, dtype=None), "float32"),
        (mx.npx.softmax(x, dtype=None), "float32"),
        (mx.npx.one_hot(x, 3, dtype=None), "float32"),
    ):
        assert made.dtype == wanted
    for call in (mx.np.random.uniform, mx.np.random.normal, lambda **more: mx.np.random.randint(9, **more)):
        with pytest.raises(TypeError, match="None"):
            call(dtype="None")


def test_a_stream_of_random_numbers_belongs_to_a_context(mx) -> None:
    for context in ("all", "cpu", mx.cpu(0), mx.cpu(3)):
        mx.random.seed(3, ctx=context)
        drawn = mx.nd.random.uniform(shape=3).asnumpy().tolist()
        mx.random.seed(3)
        assert mx.nd.random.uniform(shape=3).asnumpy().tolist() == drawn
    for seed in (mx.random.seed, mx.npx.random.seed):
        for wrong in ("bogus", None, 0):
            with pytest.raises(KeyError, match=repr(wrong)):
                seed(3, ctx=wrong)
    with pytest.raises(ValueError, match="seed_state must be int"):
        mx.random.seed(1.5)


def test_an_output_type_of_none_is_that_of_the_input(mx) -> None:
    """MXNet makes a dtype of the attribute `dtype` alone, so `norm` gets the text None."""
    for dtype in ("float16", "float32", "float64"):
        x = mx.nd.array([3, 4], dtype=dtype)
        for none in (None, "None"):
            found = [mx.nd.norm(x, out_dtype=none), x.norm(out_dtype=none)]
            found += mx.sym.norm(mx.sym.var("x"), out_dtype=none).eval(x=x)
            assert [(one.dtype, one.asscalar()) for one in found] == [(x.dtype, 5)] * 3
    assert mx.nd.norm(x, out_dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize(("text", "shape"), [("(2,)", (2,)), ("[2, 3]", (2, 3)), (" (2,3) ", (2, 3)), ("2", (2,))])
def test_shapes_may_be_text_as_operators_take_it(mx, text: str, shape: tuple[int, ...]) -> None:
    random, sym = mx.nd.random, mx.sym
    assert random.uniform(0, 1, shape=text).shape == shape
    assert random.normal(mx.nd.zeros(3), mx.nd.ones(3), shape=text).shape == (3, *shape)
    assert random.randint(0, 3, shape=text).shape == shape
    assert random.multinomial(mx.nd.array([0.5, 0.5]), shape=text).shape == shape
    assert mx.nd.zeros(text).shape == mx.nd.ones(text).shape == shape
    for symbol in (sym.random.uniform(0, 1, shape=text), sym.zeros(text), sym.var("x", shape=text) * 2):
        assert symbol.infer_shape()[1] == [shape]


@pytest.mark.parametrize("text", ["(2", "a", "(2.5,)", "(2,)x", "(True,)", ""])
def test_text_that_is_no_shape_is_refused(mx, text: str) -> None:
    for function in (mx.nd.random.uniform, mx.sym.random.normal, mx.sym.zeros):
        with pytest.raises(mx.base.MXNetValueError, match=r"tuple of integers, such as '\(2, 3\)', got"):
            function(shape=text)
    with pytest.raises(mx.base.MXNetTypeError, match="_zeros: a shape is an integer or a tuple of integers, got"):
        mx.nd.zeros(text)
