"""The Python interface of MXNet that programs rely on: names, signatures, small behaviours."""

from __future__ import annotations

import inspect
import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, block_of, digits, recorded

# Names of MXNet 1.9.1 that inference uses: tier 1 often, tier 2 rarely (tests/recorded/names.json).
NAMES: dict[str, list[str]] = recorded("names")

# Those that are not here, by where they are, and why. A place stands for all below it.
MISSING: dict[str, str] = {
    # Parts that do not exist in this build.
    "nd.sparse": "of sparse arrays; not part of this build",
    "nd._new_empty_handle": "internal to MXNet: a handle of its C interface",
    **dict.fromkeys(
        [f"nd.contrib.backward_{name}" for name in ("gradientmultiplier", "hawkesll", "index_copy", "quadratic")],
        "the operator belongs to training",
    ),
    # Names that Python 3 does not use, or that MXNet's modules have because they import them.
    **dict.fromkeys(
        [f"{kind}.__{name}__" for kind in ("nd.NDArray", "sym.Symbol") for name in ("div", "idiv", "rdiv", "nonzero")],
        "a method of Python 2",
    ),
    **dict.fromkeys(
        [f"sym.Symbol.__i{name}__" for name in ("add", "sub", "mul", "truediv")],
        "MXNet refuses x += y for symbols; here it means x = x + y",
    ),
    "Executor.__del__": "memory is given back without it",
    "profiler.set_kvstore_handle": "there are no servers of parameters",
    **dict.fromkeys(
        ["util.np_ufunc_legal_option", "util.wrap_np_binary_func", "util.wrap_np_unary_func"],
        "internal to MXNet's numpy interface",
    ),
    # Modules at the top.
    **dict.fromkeys(["api", "ndarray_doc", "symbol_doc", "notebook", "tvmop"], "internal to MXNet"),
    **dict.fromkeys(
        ["numpy_op_fallback", "numpy_op_signature"],
        "internal to MXNet's numpy interface",
    ),
    **dict.fromkeys(["th", "torch"], "MXNet's bridge to Torch 7 is not part of this build"),
}


def has(mx, name: str) -> bool:
    thing = mx
    for part in name.split("."):
        if part in getattr(thing, "__annotations__", {}):  # set when an instance is made
            return True
        try:
            thing = getattr(thing, part)
        except AttributeError:
            return False
    return True


def reason(name: str) -> str | None:
    """The reason why a name may be missing: the longest entry that is a parent of it, or one that
    ends with an underscore and begins it.
    """
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        found = MISSING.get(".".join(parts[:end]))
        if found is not None:
            return found
    return next((why for start, why in MISSING.items() if start.endswith("_") and name.startswith(start)), None)


@pytest.mark.parametrize("tier", ["1", "2"])
def test_names_are_there_or_have_a_reason(mx, tier: str) -> None:
    without = [name for name in NAMES[tier] if not has(mx, name) and reason(name) is None]
    assert without == []


def test_what_will_never_be_there_is_not(mx) -> None:
    """Reasons that do not end when a part of MXNet is built are of names that are missing."""
    there = [name for name, why in MISSING.items() if "part of this build" not in why and has(mx, name)]
    assert there == [], "these exist, so that they need no reason to be missing"


def test_how_many_names_are_there_is_reported(mx, final_table) -> None:
    rows = []
    for tier, names in NAMES.items():
        missing = [name for name in names if not has(mx, name)]
        rows.append(f"tier {tier}: {len(names) - len(missing)} of {len(names)}; those missing, by reason:")
        counts = Counter(reason(name) for name in missing)
        rows += [f"  {count:3} {why}" for why, count in counts.most_common()]
    final_table("names of MXNet 1.9.1\n" + "\n".join(rows))


@pytest.mark.parametrize("space", ["nd", "sym"])
def test_operators_of_training_say_so(mx, space: str) -> None:
    functions = getattr(mx, space)
    steps = [
        (functions, "sgd_update"),
        (functions, "IdentityAttachKLSparseReg"),
        (functions.sparse, "adagrad_update"),
        (functions.contrib, "group_adagrad_update"),
        (functions.contrib, "backward_gradientmultiplier"),
        (functions._internal, "_adamw_update"),
    ]
    for module, name in steps:
        with pytest.raises(mx.base.TrainingNotSupportedError, match=f"{name} belongs to training"):
            getattr(module, name)
        assert not hasattr(module, name)


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


@pytest.mark.parametrize("space", ["nd", "sym"])
def test_programs_look_for_operators_in_the_dict_of_a_module(mx, space: str) -> None:
    """GluonCV asks so which operators there are."""
    contrib = getattr(mx, space).contrib
    assert "box_decode" in contrib.__dict__ and "box_nms" in vars(contrib)
    assert "no_such_operator" not in contrib.__dict__
    assert callable(contrib.__dict__["box_decode"]) and contrib.box_decode is contrib.__dict__["box_decode"]
    with pytest.raises(AttributeError, match="did you mean 'box_decode'"):
        _ = contrib.box_decoed


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


def test_names_with_an_underscore_that_programs_import(mx) -> None:
    from mxrt.executor_manager import _load_data, _split_input_slice
    from mxrt.gluon.block import DeferredInitializationError, _flatten, _regroup
    from mxrt.gluon.rnn.rnn_cell import LSTMCell, _cells_begin_state, _cells_state_info
    from mxrt.io.io import CSVIter, PrefetchingIter
    from mxrt.io.utils import _getdata_by_idx, _has_instance, _init_data

    assert (PrefetchingIter, CSVIter) == (mx.io.PrefetchingIter, mx.io.CSVIter)
    named = _init_data({"b": np.arange(3), "a": [1, 2, 3]}, False, "data")
    assert [name for name, _ in named] == ["a", "b"] and _has_instance(named, mx.nd.NDArray)
    assert [values.asnumpy().tolist() for _, values in _getdata_by_idx(named, [2, 0])] == [[3, 1], [2, 0]]
    assert _init_data(None, True, "data") == []
    with pytest.raises(AssertionError):
        _init_data(None, False, "data")
    targets = [[(rows, mx.nd.zeros((2, 1))) for rows in _split_input_slice(4, [1, 1])], mx.nd.zeros(3)]
    batch = mx.io.DataBatch([mx.nd.arange(4).reshape((4, 1)), mx.nd.ones(3)])
    _load_data(batch, targets)
    assert [part.asnumpy().ravel().tolist() for _, part in targets[0]] == [[0, 1], [2, 3]]
    assert targets[1].asnumpy().tolist() == [1, 1, 1]
    with pytest.raises(AssertionError, match="Batch size miss match"):
        _load_data(mx.io.DataBatch([mx.nd.ones((3, 1))]), targets)
    flat, form = _flatten([mx.nd.ones(1), [None, mx.nd.ones(2)]], "input")
    assert form == [0, [-1, 0]] and _regroup(flat, form)[1][1].shape == (2,)
    cells = [LSTMCell(3), LSTMCell(2)]
    assert [info["shape"] for info in _cells_state_info(cells, 4)] == [(4, 3), (4, 3), (4, 2), (4, 2)]
    assert [state.shape for state in _cells_begin_state(cells, batch_size=1)] == [(1, 3), (1, 3), (1, 2), (1, 2)]
    assert issubclass(DeferredInitializationError, mx.base.MXNetError)


def test_methods_with_an_underscore_that_programs_call(mx) -> None:
    array = mx.nd.zeros((2, 2))
    array._sync_copyfrom(np.arange(4).reshape(2, 2))
    assert array.asnumpy().tolist() == [[0, 1], [2, 3]] and array.writable
    assert array._at(1).asnumpy().tolist() == [2, 3] and array._slice(0, 1).asnumpy().tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="Shape inconsistent"):
        array._sync_copyfrom(np.zeros(3))
    assert array._full(7).asnumpy().tolist() == [[7, 7], [7, 7]]
    net = mx.gluon.nn.Dense(3, prefix="net_")
    net.initialize(mx.init.One())
    x = mx.nd.ones((1, 2))
    inputs, out = net._get_graph(x)
    assert [one.name for one in inputs] == ["data"] and out.list_arguments() == ["data", "net_weight", "net_bias"]
    net._deferred_infer_shape(x)
    assert net.weight.shape == (3, 2)
    net.hybridize()
    net._build_cache(x)
    assert net._call_cached_op(x).asnumpy().tolist() == [[2, 2, 2]]
    assert net.weight._grad is None and net.params._get_impl("net_weight") is net.weight
    assert len(net.weight._check_and_get(net.weight._data, list)) == 1
    net.weight._init_impl(mx.nd.zeros((3, 2)), [mx.cpu()])
    assert net(x).asnumpy().tolist() == [[0, 0, 0]]


def test_every_operator_has_all_of_its_names(mx) -> None:
    """Every operator that exists has MXNet's aliases, and its functions in mx.nd and mx.sym."""
    lost = []
    here = 0
    for name, (aliases, functions) in recorded("operator_names").items():
        operator = mx._mxrt.get_operator(name)
        if operator is None:
            continue
        here += 1
        for alias in aliases:
            found = mx._mxrt.get_operator(alias)
            if found is None or found.name != operator.name:
                lost.append(f"{alias}, an alias of {name}")
        lost += [f"mx.{function} of {name}" for function in functions if not has(mx, function)]
    assert here > 300
    assert not lost
