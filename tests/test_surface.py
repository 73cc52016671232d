"""The Python interface of MXNet that programs rely on: names, signatures, small behaviours."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, block_of, digits

NAMES = """
nd.array nd.zeros nd.ones nd.NDArray nd.save nd.load nd.waitall nd.random_normal nd.CachedOp
nd.NDArray.asnumpy nd.NDArray.asscalar nd.NDArray.shape nd.NDArray.dtype nd.NDArray.context nd.NDArray.ctx
nd.NDArray.size nd.NDArray.ndim nd.NDArray.wait_to_read nd.NDArray.astype nd.NDArray.copyto nd.NDArray.reshape
nd.NDArray.as_in_context nd.NDArray.copy nd.NDArray.__getitem__ nd.NDArray.__setitem__
cpu Context __version__ install_as_mxnet base.MXNetError
sym.load sym.load_json sym.Symbol sym.Variable sym.var sym.Group
sym.Symbol.list_arguments sym.Symbol.list_auxiliary_states sym.Symbol.list_inputs sym.Symbol.list_outputs
sym.Symbol.infer_shape sym.Symbol.tojson sym.Symbol.save sym.Symbol.get_internals sym.Symbol.__getitem__
sym.Symbol.attr sym.Symbol.attr_dict
gluon.SymbolBlock gluon.SymbolBlock.imports gluon.SymbolBlock.hybridize gluon.SymbolBlock.collect_params
gluon.SymbolBlock.forward gluon.SymbolBlock.__call__
model.load_checkpoint mod.Module mod.Module.bind mod.Module.set_params mod.Module.forward mod.Module.get_outputs
mod.Module.predict io.NDArrayIter io.DataBatch io.DataDesc io.CSVIter
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists(mx, name: str) -> None:
    thing = mx
    for part in name.split("."):
        assert hasattr(thing, part), f"mx.{name}: no {part}"
        thing = getattr(thing, part)


@pytest.mark.parametrize("space", ["nd", "sym"])
def test_operators_have_real_signatures_and_docstrings(mx, space: str) -> None:
    functions = getattr(mx, space)
    for name, arguments in {
        "Convolution": {"data", "weight", "bias", "kernel", "num_filter", "stride", "pad", "no_bias"},
        "FullyConnected": {"data", "weight", "num_hidden", "flatten"},
        "Pooling": {"data", "kernel", "pool_type", "global_pool"},
        "Activation": {"data", "act_type"},
        "softmax": {"data", "axis"},
    }.items():
        function = getattr(functions, name)
        assert arguments <= set(inspect.signature(function).parameters), f"{space}.{name}{inspect.signature(function)}"
        assert len(function.__doc__ or "") > 40, f"{space}.{name} has no docstring"
        assert function.__name__ == name
    assert inspect.signature(functions.Convolution).parameters["stride"].default == ()


def test_arrays_print_as_mxnet_prints_them(mx) -> None:
    assert repr(mx.nd.array([[1, 2], [3, 4]])) == "\n[[1. 2.]\n [3. 4.]]\n<NDArray 2x2 @cpu(0)>"


def test_arrays_survive_saving_and_loading(mx, tmp_path: Path) -> None:
    path = str(tmp_path / "arrays")
    rng = np.random.RandomState(3)
    arrays = {
        dtype: mx.nd.array((rng.rand(3, 4) * 100).astype(dtype), dtype=dtype)
        for dtype in ("float32", "float64", "float16", "uint8", "int8", "int32", "int64")
    }
    mx.nd.save(path, arrays)
    loaded = mx.nd.load(path)
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        assert np.array_equal(loaded[name].asnumpy(), array.asnumpy())
    mx.nd.save(path, list(arrays.values())[:2])
    assert isinstance(mx.nd.load(path), list)


def test_a_symbol_survives_tojson_and_load_json(mx) -> None:
    symbol = mx.sym.load(str(DIGITS / "digits_cnn-symbol.json"))
    again = mx.sym.load_json(symbol.tojson())
    assert again.list_inputs() == symbol.list_inputs()
    assert again.list_outputs() == symbol.list_outputs()
    assert again.infer_shape(data=(5, 1, 8, 8))[1] == [(5, 10)]
    inner = symbol.get_internals()
    assert inner[len(inner.list_outputs()) - 1].list_outputs() == symbol.list_outputs()


def test_a_network_composed_in_python_answers(mx) -> None:
    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(data, num_hidden=3, name="fc")
    net = mx.sym.Activation(net, act_type="relu", name="act")
    assert net.list_arguments() == ["data", "fc_weight", "fc_bias"]
    op = mx.nd.CachedOp(net, [("static_alloc", True)])
    x, w, b = (mx.nd.array(np.random.RandomState(i).randn(*s)) for i, s in enumerate([(2, 4), (3, 4), (3,)]))
    want = np.maximum(x.asnumpy() @ w.asnumpy().T + b.asnumpy(), 0)
    np.testing.assert_allclose(op(x, w, b).asnumpy(), want, rtol=1e-5, atol=1e-6)


def test_a_block_can_be_made_of_any_inner_output(mx) -> None:
    symbol = mx.sym.load(str(DIGITS / "digits_cnn-symbol.json"))
    inner = symbol.get_internals()
    names = [name for name in inner.list_outputs() if name.endswith("_output")]
    both = mx.sym.Group([inner[names[0]], inner[names[-1]]])
    net = mx.gluon.SymbolBlock(both, mx.sym.var("data"))
    net.collect_params().load(str(DIGITS / "digits_cnn-0000.params"), ctx=mx.cpu(), ignore_extra=True)
    x = mx.nd.array(digits(2)[0])
    first, last = net(x)
    assert first.shape[0] == 2
    np.testing.assert_allclose(last.asnumpy(), block_of(mx)(x).asnumpy(), rtol=1e-5, atol=1e-5)


def test_the_thread_safe_block_is_the_ordinary_one(mx) -> None:
    assert mx.gluon.SymbolBlockThreadSafe is mx.gluon.SymbolBlock
    net = block_of(mx)
    x = mx.nd.array(digits(2)[0])
    want = net(x).asnumpy()
    net.hybridize(static_alloc=True, static_shape=True)
    assert np.array_equal(net(x).asnumpy(), want)


def test_errors_carry_facts_and_can_be_pickled(mx) -> None:
    net = block_of(mx)
    with pytest.raises(mx.base.MXNetError) as caught:
        net(mx.nd.zeros((1, 3, 8, 8))).wait_to_read()
    error = caught.value
    assert isinstance(error, RuntimeError)
    assert error.op == "Convolution"
    assert "digitsnet_conv0" in error.node
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.op, again.node) == (str(error), error.op, error.node)
    for hint in (".rs", ".cc", "Traceback", "panicked"):
        assert hint not in str(error)
