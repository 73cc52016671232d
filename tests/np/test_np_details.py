"""Details of the numpy interface that programs meet: keys and shapes that are scalars of NumPy,
functions as blocks, states, graphs called directly, kinds of errors. Expected values were read
from MXNet 1.9.1.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as onp
import pytest


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


@pytest.mark.parametrize("kind", [onp.int64, onp.int32, onp.uint8])
def test_a_whole_number_of_numpy_is_a_key(mx: Any, kind: Any) -> None:
    x = mx.np.arange(6).reshape(2, 3)
    assert x[kind(1)].asnumpy().tolist() == [3, 4, 5]
    assert x[kind(1)][kind(2)].item() == 5
    x[kind(0)] = 7
    assert x[kind(0), kind(1)].item() == 7


def test_an_array_without_axes_is_an_extent(mx: Any) -> None:
    three = mx.np.array(3, dtype="int32")
    assert mx.np.ones(three).shape == (3,)
    assert mx.np.full(three, 2).asnumpy().tolist() == [2, 2, 2]
    assert mx.np.broadcast_to(mx.np.array(1.5), three).asnumpy().tolist() == [1.5] * 3
    assert mx.np.random.randint(0, 5, three).shape == (3,)


def test_a_range_can_be_assigned(mx: Any) -> None:
    x = mx.np.zeros((2, 3))
    x[0] = range(3)
    x[:, 2] = range(7, 9)
    assert x.asnumpy().tolist() == [[0, 1, 7], [0, 0, 8]]


@pytest.mark.parametrize("shape", [3.0, (2.0,), None, "ab"])
def test_what_is_no_shape_is_an_error_of_both_kinds(mx: Any, shape: Any) -> None:
    for make in (mx.np.ones, lambda one: mx.np.full(one, 1)):
        with pytest.raises(mx.MXNetError, match="a shape is an integer or a tuple of integers, got") as caught:
            make(shape)
        assert isinstance(caught.value, TypeError)
    if shape == 3.0:
        with pytest.raises(mx.MXNetError, match=r"expected an integer or a tuple of integers, got 3\.0"):
            mx.np.random.uniform(size=shape)


def test_values_and_masks_that_do_not_fit_are_errors_of_mxnet(mx: Any) -> None:
    x = mx.np.arange(6).reshape(2, 3)
    for key, value in ((slice(None), mx.np.arange(5)), (x > 2, mx.np.ones(2))):
        with pytest.raises(mx.MXNetError, match="does not fit") as caught:
            x[key] = value
        assert isinstance(caught.value, ValueError)
    with pytest.raises(mx.MXNetError, match="boolean index did not match") as mask:
        x[onp.array([[True], [False]])] = 0
    assert isinstance(mask.value, IndexError)


def test_elements_of_arrays_of_nd_have_no_axes(mx: Any) -> None:
    x = mx.nd.array([[1, 2], [3, 4]])
    assert x[0, 1].shape == x[0][1].shape == x[onp.int64(0), 1].shape == ()
    assert [one.shape for one in x[1]] == [(), ()]
    assert mx.nd.stack(x[0, 0], x[1, 1]).shape == (2,)
    one = x[1, 0]
    one[:] = 7
    assert x.asnumpy().tolist() == [[1, 2], [7, 4]]
    mx.npx.reset_np()
    assert x[0, 1].shape == x[0][1].shape == (1,)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda F, x: F.np.maximum(x, 0), [[0, 2], [3, 0]]),
        (lambda F, x: F.npx.relu(x), [[0, 2], [3, 0]]),
        (lambda F, x: F.np.sum(x, axis=1), [1, -1]),
        (lambda F, x: x.max(axis=0), [3, 2]),
    ],
)
def test_a_function_as_a_block_gets_what_it_may_use(mx: Any, function: Any, wanted: Any) -> None:
    x = mx.np.array([[-1.0, 2], [3, -4]])
    block = mx.gluon.nn.HybridSequential()
    block.add(mx.gluon.nn.HybridLambda(function))
    for _ in range(2):
        for one in (block, block[0]):
            made = one(x)
            assert type(made) is mx.np.ndarray and made.asnumpy().tolist() == wanted
        block.hybridize()


def test_a_function_as_a_block_may_be_named(mx: Any) -> None:
    block = mx.gluon.nn.HybridLambda("relu")
    for _ in range(2):
        assert block(mx.np.array([-1.0, 2])).asnumpy().tolist() == [0, 2]
        block.hybridize()


@pytest.mark.parametrize("name", ["resnet18_v1", "resnet18_v2", "resnet50_v1", "mobilenetv2_0.25"])
def test_models_with_shortcuts_compute_with_and_without_a_graph(mx: Any, name: str) -> None:
    model = mx.gluon.model_zoo.vision.get_model(name, classes=3)
    model.initialize(mx.init.Constant(0.01))
    x = mx.np.ones((1, 3, 32, 32))
    plain = model(x)
    model.hybridize()
    assert type(plain) is mx.np.ndarray and plain.shape == (1, 3)
    onp.testing.assert_allclose(model(x).asnumpy(), plain.asnumpy(), rtol=1e-4)
    mx.npx.reset_np()
    old = mx.gluon.model_zoo.vision.get_model(name, classes=3)
    old.initialize(mx.init.Constant(0.01))
    onp.testing.assert_allclose(old(x.as_nd_ndarray()).asnumpy(), plain.asnumpy(), rtol=1e-4)


@pytest.mark.parametrize(("name", "count"), [("RNN", 1), ("GRU", 1), ("LSTM", 2)])
def test_states_of_recurrent_layers_are_arrays_of_np(mx: Any, name: str, count: int) -> None:
    layer = getattr(mx.gluon.rnn, name)(3)
    states = layer.begin_state(2)
    assert [(type(one), one.shape) for one in states] == [(mx.np.ndarray, (1, 2, 3))] * count
    assert layer.begin_state(2, dtype="float64")[0].dtype == onp.float64
    layer.initialize()
    for _ in range(2):
        out, after = layer(mx.np.ones((4, 2, 5)), states)
        assert type(out) is type(after[0]) is mx.np.ndarray and out.shape == (4, 2, 3)
        layer.hybridize()


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_a_step_of_a_residual_cell_gives_arrays_of_np(mx: Any, name: str) -> None:
    cell = mx.gluon.rnn.ResidualCell(getattr(mx.gluon.rnn, name)(3))
    cell.initialize(mx.init.Zero())
    x = mx.np.array([[1.0, 2, 3]])
    for _ in range(2):
        out, states = cell(x, cell.begin_state(1))
        assert type(out) is type(states[0]) is mx.np.ndarray and out.asnumpy().tolist() == [[1, 2, 3]]
        cell.hybridize()


@pytest.mark.parametrize("kind", ["plain", "residual", "both ways"])
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("lengths", [None, [2.0, 4.0]])
def test_unrolled_cells_give_arrays_of_np(mx: Any, kind: str, merge: bool, lengths: Any) -> None:
    rnn = mx.gluon.rnn
    cell = rnn.LSTMCell(3)
    if kind == "residual":
        cell = rnn.ResidualCell(cell)
    if kind == "both ways":
        cell = rnn.BidirectionalCell(cell, rnn.LSTMCell(3))
    cell.initialize()
    valid = None if lengths is None else mx.np.array(lengths)
    x = mx.np.ones((4, 2, 3))
    outputs, states = cell.unroll(4, x, layout="TNC", merge_outputs=merge, valid_length=valid)
    found = [outputs] if merge else outputs
    assert len(found) == (1 if merge else 4)
    assert {type(one) for one in [*found, *states]} == {mx.np.ndarray}


def test_missing_states_are_named(mx: Any) -> None:
    layer = mx.gluon.rnn.LSTM(3, prefix="reader_")
    layer.initialize()
    for _ in range(2):
        with pytest.raises(mx.MXNetError, match="reader: expected a list of 2 states, got 1"):
            layer(mx.np.ones((4, 2, 5)), layer.begin_state(2)[0])
        layer.hybridize()
    counting = mx.gluon.rnn.LSTM(3, use_sequence_length=True)
    counting.initialize()
    with pytest.raises(mx.MXNetError, match="expected sequence_length"):
        counting(mx.np.ones((4, 2, 5)))


def test_a_graph_of_np_gives_arrays_of_np(mx: Any) -> None:
    data = mx.sym.var("data").as_np_ndarray()
    one = mx.nd.CachedOp(mx.sym.np.tanh(data))(mx.np.zeros((2,)))
    assert type(one) is mx.np.ndarray
    two = mx.nd.CachedOp(mx.sym.Group([data * 2, data + 1]).as_np_ndarray())(mx.np.zeros((2,)))
    assert [type(part) for part in two] == [mx.np.ndarray] * 2
    old = mx.nd.CachedOp(mx.sym.tanh(mx.sym.var("data")))(mx.nd.zeros((2,)))
    assert type(old) is mx.nd.NDArray


def test_symbols_of_np_show_their_class(mx: Any) -> None:
    data = mx.sym.var("data")
    assert repr(data) == "<Symbol data>" and repr(data.as_np_ndarray()) == "<_Symbol data>"
    assert repr(data.as_np_ndarray() + 1).startswith("<_Symbol add_scalar")


def test_symbols_have_the_names_of_the_functions(mx: Any) -> None:
    with mx.name.NameManager():
        data = mx.sym.var("data").as_np_ndarray()
        np = mx.sym.np
        made = [np.abs(data), np.fabs(data), np.absolute(data), np.amax(data), np.amin(data), np.max(data)]
        assert [one.name for one in made] == ["abs0", "abs1", "absolute0", "amax0", "amin0", "max0"]
    assert ['"op": "_npi_absolute"' in one.tojson() for one in made] == [True, True, True, False, False, False]
    assert '"op": "_np_max"' in made[3].tojson() and '"op": "_np_min"' in made[4].tojson()
    assert made[0].num_outputs == 1 and mx.sym.Group(made).as_np_ndarray().num_outputs == 6
    x = mx.np.array([[-1.0, 2], [3, -4]])
    assert mx.np.abs(x).asnumpy().tolist() == mx.np.fabs(x).asnumpy().tolist() == [[1, 2], [3, 4]]
    assert mx.np.amax(x, axis=1).asnumpy().tolist() == [2, 3] and mx.np.amin(x).item() == -4


# What MXNet makes of calls on one symbol: the operators in the order of the graph, by their names.
# Each function is one operator unless its name differs, as in mxnet/symbol/numpy/_symbol.py.
GRAPHS: list[tuple[Any, str]] = [
    (lambda np, x: x[0], "slice0 reshape0"),
    (lambda np, x: x[1:3], "slice0"),
    (lambda np, x: x[1:3, 0], "slice0 reshape0"),
    (lambda np, x: x[1:3, ::2], "slice0 reshape0"),
    (lambda np, x: -x, "multiply_scalar0"),
    (lambda np, x: 2 - x, "rsubtract_scalar0"),
    (lambda np, x: 2 / x, "rtrue_divide_scalar0"),
    (lambda np, x: x @ x, "matmul0"),
    (lambda np, x: x.T, "transpose0"),
    (lambda np, x: x.flatten(), "reshape0"),
    (lambda np, x: x.astype("int32"), "cast0"),
    (lambda np, x: np.divide(x, x), "true_divide0"),
    (lambda np, x: np.remainder(x, x), "mod0"),
    (lambda np, x: np.invert(x), "bitwise_not0"),
    (lambda np, x: np.product(x), "product0"),
    (lambda np, x: np.sometrue(x), "sometrue0"),
    (lambda np, x: np.ravel(x), "reshape0"),
    (lambda np, x: np.round(x), "around0"),
    (lambda np, x: np.fliplr(x), "flip0"),
    (lambda np, x: np.zeros_like(x), "full_like0"),
    (lambda np, x: np.empty_like(x), "custom0"),
    (lambda np, x: np.row_stack((x, x)), "vstack0"),
    (lambda np, x: np.append(x, x), "concatenate0"),
    (lambda np, x: np.vsplit(x, 2)[0], "split0"),
    (lambda np, x: np.array_split(x, 2)[0], "split0"),
    (lambda np, x: np.hsplit(x, 2)[0], "hsplit0"),
    (lambda np, x: np.dsplit(x, 2)[0], "dsplit0"),
    (lambda np, x: np.inner(x, x), "tensordot0"),
    (lambda np, x: np.outer(x, x), "reshape0 reshape1 tensordot_int_axes0"),
    (lambda np, x: np.where(x, 1, 2), "where_scalar20"),
    (lambda np, x: np.where(x, 1, x), "where_lscalar0"),
    (lambda np, x: np.quantile(x, 0.5), "percentile0"),
    (lambda np, x: np.insert(x, 1, x), "insert_scalar0"),
    (lambda np, x: np.take(x, x), "reshape0 take0"),
    (lambda np, x: np.linalg.norm(x), "norm0"),
    (lambda np, x: np.linalg.norm(x, "inf", (0, 1)), "abs0 sum0 max0"),
    (lambda np, x: np.linalg.norm(x, -1, (0, 1)), "abs0 sum0 min0"),
    (lambda np, x: np.linalg.norm(x, "-inf", 0), "abs0 min0"),
    (lambda np, x: np.random.lognormal(size=2), "normal0 exp0"),
    (lambda np, x: np.random.randint(3, size=2), "random_randint0"),
    (lambda np, x: np.random.power(2.0, size=2), "powerd0"),
]


@pytest.mark.parametrize(("function", "wanted"), GRAPHS, ids=[wanted for _, wanted in GRAPHS])
def test_nodes_of_graphs_have_the_names_of_mxnet(mx: Any, function: Any, wanted: str) -> None:
    with mx.name.NameManager():
        made = function(mx.sym.np, mx.sym.var("data").as_np_ndarray())
    nodes = json.loads(made.tojson())["nodes"]
    assert " ".join(node["name"] for node in nodes if node["op"] != "null") == wanted


# The outputs of one operator. Operators of MXNet that have no names for them count them, those that
# only files see among them.
OUTPUTS: list[tuple[Any, str]] = [
    (lambda np, x: np.matmul(x, x), "matmul0_out"),
    (lambda np, x: np.dot(x, x), "dot0_output"),
    (lambda np, x: np.concatenate((x, x)), "concatenate0_out"),
    (lambda np, x: np.append(x, x), "concatenate0_out"),
    (lambda np, x: np.hstack((x, x)), "hstack0_out"),
    (lambda np, x: np.dstack((x, x)), "dstack0_out"),
    (lambda np, x: np.vstack((x, x)), "vstack0_output"),
    (lambda np, x: np.stack((x, x)), "stack0_output"),
    (lambda np, x: np.column_stack((x, x)), "column_stack0_output"),
    (lambda np, x: np.std(x), "std0_std"),
    (lambda np, x: np.var(x), "var0_var"),
    (lambda np, x: np.mean(x), "mean0_output"),
    (lambda np, x: np.average(x), "average0_output0"),
    (lambda np, x: np.average(x, returned=True), "average0_output0 average0_output1"),
    (lambda np, x: np.sort(x), "sort0_output0"),
    (lambda np, x: np.unique(x), "unique0_output"),
    (lambda np, x: np.linalg.norm(x), "norm0_output0"),
    (lambda np, x: np.linalg.det(x), "det0_output0"),
    (lambda np, x: np.linalg.slogdet(x), "slogdet0_output0 slogdet0_output1"),
    (lambda np, x: np.linalg.svd(x), "svd0_output0 svd0_output1 svd0_output2"),
    (lambda np, x: np.random.uniform(size=2), "uniform0_output"),
    (lambda np, x: np.random.gamma(1.0, size=2), "gamma0_output"),
    (lambda np, x: np.random.normal(size=2), "normal0_output0"),
    (lambda np, x: np.random.exponential(size=2), "exponential0_output0"),
    (lambda np, x: np.random.weibull(1.0, size=2), "weibull0_output0"),
    (lambda np, x: np.random.pareto(1.0, size=2), "pareto0_output0"),
    (lambda np, x: np.random.rayleigh(size=2), "rayleigh0_output0"),
]


@pytest.mark.parametrize(("function", "wanted"), OUTPUTS, ids=[wanted for _, wanted in OUTPUTS])
def test_outputs_of_graphs_have_the_names_of_mxnet(mx: Any, function: Any, wanted: str) -> None:
    with mx.name.NameManager():
        made = function(mx.sym.np, mx.sym.var("data").as_np_ndarray())
    parts = made if isinstance(made, (list, tuple)) else [made]
    assert " ".join(name for part in parts for name in part.list_outputs()) == wanted


def test_parts_of_a_symbol_are_those_of_an_array(mx: Any) -> None:
    values = onp.arange(24, dtype="float32").reshape(2, 3, 4)
    x = mx.sym.var("x").as_np_ndarray()
    for key in (
        1,
        -1,
        slice(1, None),
        (0, 1, 2),
        (slice(None), 2),
        (1, slice(0, 2)),
        (slice(None), -1, None),
        (None, 1),
    ):
        block = mx.gluon.SymbolBlock(x[key], x)
        onp.testing.assert_array_equal(block(mx.np.array(values)).asnumpy(), values[key])
    with pytest.raises(mx.MXNetError):
        mx.gluon.SymbolBlock(x[2], x)(mx.np.array(values)).asnumpy()


def test_norms_of_matrices_are_those_of_numpy(mx: Any) -> None:
    values = onp.arange(24, dtype="float32").reshape(2, 3, 4) - 11
    x = mx.sym.var("x").as_np_ndarray()
    for order in (1, -1, "inf", "-inf"):
        for axis in ((0, 1), (1, 0), (2, 0), (-1, -2), (-2, -1), (-3, -1)):
            for keepdims in (False, True):
                wanted = onp.linalg.norm(values, float(order), axis, keepdims)
                found = mx.np.linalg.norm(mx.np.array(values), order, axis, keepdims)
                onp.testing.assert_array_equal(found.asnumpy(), wanted)
                block = mx.gluon.SymbolBlock(mx.sym.np.linalg.norm(x, order, axis, keepdims), x)
                onp.testing.assert_array_equal(block(mx.np.array(values)).asnumpy(), wanted)
        found = mx.np.linalg.norm(mx.np.array(values), order, (0, -1))
        onp.testing.assert_array_equal(found.asnumpy(), onp.linalg.norm(values, float(order), (0, -1)))


def test_a_symbol_like_another_one_computes(mx: Any) -> None:
    x = mx.sym.var("x").as_np_ndarray()
    for dtype, wanted in ((None, "float16"), ("int32", "int32")):
        made = mx.gluon.SymbolBlock(mx.sym.np.empty_like(x, dtype), x)(mx.np.ones((2, 3), dtype="float16"))
        assert made.shape == (2, 3) and made.dtype == wanted


def test_a_block_that_returns_nothing_is_named(mx: Any) -> None:
    class Forgetful(mx.gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            F.np.tanh(x)

    block = Forgetful()
    block.hybridize()
    with pytest.raises(TypeError, match="Forgetful returned None, expected a list of symbols"):
        block(mx.np.ones((2,)))


def test_whether_a_shape_is_known_depends_on_the_interface(mx: Any) -> None:
    known = mx.gluon.utils.shape_is_known
    shapes = [(2, 3), (2, 0), (2, -1), (), None]
    assert [known(shape) for shape in shapes] == [True, True, False, True, False]
    mx.npx.reset_np()
    assert [known(shape) for shape in [(2, 3), (2, 0), (), None]] == [True, False, False, False]


def test_sums_of_metrics_are_those_of_python(mx: Any) -> None:
    metric = mx.metric.CustomMetric(lambda label, pred: abs(label - pred).sum(dtype=onp.float32))
    for _ in range(3):
        metric.update([mx.np.array([0.0])], [mx.np.array([0.1])])
    assert metric.get()[1] == 0.10000000149011612
    assert metric.sum_metric == 3 * float(onp.float32(0.1))


def test_arrays_of_np_take_attributes_of_programs(mx: Any) -> None:
    sparse = mx.nd.array([[0, 1]]).tostype("csr"), mx.nd.array([[0, 1]]).tostype("row_sparse")
    for one in (mx.np.ones((2,)), *sparse, mx.sym.var("x").as_np_ndarray()):
        one.note = "of the program"
        assert one.note == "of the program"
        del one.note
        assert not hasattr(one, "note")
    # They belong to the object, not to the elements.
    x = mx.np.ones((2,))
    x.note = 1
    for other in (x.copy(), x[:], x.as_nd_ndarray().as_np_ndarray(), pickle.loads(pickle.dumps(x))):
        assert not hasattr(other, "note")
    x += 1
    assert x.note == 1 and mx.np.abs(x, out=x).note == 1
    # As in MXNet, those of the other interface take none.
    for one in (mx.nd.ones((2,)), mx.sym.var("x")):
        with pytest.raises(AttributeError, match="note"):
            one.note = 1


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda mx, x, out: mx.np.negative(x, out=out), [-1, -2]),
        (lambda mx, x, out: mx.np.add(x, x, out=out), [2, 4]),
        (lambda mx, x, out: mx.np.subtract(5, x, out=out), [4, 3]),
        (lambda mx, x, out: mx.np.clip(x, 0, 1.5, out=out), [1, 1.5]),
        (lambda mx, x, out: mx.np.max(mx.np.stack((x, x + 1)), axis=0, out=out), [2, 3]),
        (lambda mx, x, out: mx.np.maximum(0, x, out=out), [1, 2]),
        (lambda mx, x, out: mx.np.full((2,), 3, out=out), [3, 3]),
    ],
)
@pytest.mark.parametrize("kind", [tuple, list])
def test_a_result_is_written_to_the_array_in_a_tuple(mx: Any, call: Any, wanted: Any, kind: type) -> None:
    x, array = mx.np.array([1.0, 2.0]), mx.np.zeros((2,))
    out = kind([array])
    assert call(mx, x, out) is out
    assert array.asnumpy().tolist() == wanted


def test_what_cannot_take_the_result_is_refused(mx: Any) -> None:
    x = mx.np.ones((2,))
    for wrong in ((x, x), [x, x]):
        with pytest.raises(mx.MXNetError):
            mx.np.exp(x, out=wrong)
    for wrong in ((mx.nd.ones((2,)),), (onp.ones(2),), [None], 1):
        with pytest.raises(TypeError, match=r"out must be an array of mx\.np"):
            mx.np.exp(x, out=wrong)


def test_the_symbol_of_a_parameter_is_of_the_interface_that_is_on(mx: Any) -> None:
    parameter = mx.gluon.Parameter("weight", shape=(2, 3))
    assert type(parameter.var()) is mx.symbol.numpy._Symbol
    assert (parameter.var() * 2).name.startswith("multiply_scalar")
    inputs = mx.sym.np.dot(parameter.var(), parameter.var()).list_inputs()
    assert inputs == ["weight"] and parameter.var().attr("__shape__") == "(2, 3)"
    constant = mx.gluon.Constant("one", mx.np.ones((2,)))
    assert type(constant.var()) is mx.symbol.numpy._Symbol
    mx.npx.reset_np()
    assert type(parameter.var()) is mx.sym.Symbol


def test_a_loss_that_needs_the_size_of_the_batch_is_not_for_symbols(mx: Any) -> None:
    # MXNet reads the shape of a symbol, and fails in the same way.
    mx.npx.reset_np()
    loss = mx.gluon.loss.SDMLLoss()
    x = mx.nd.array([[1.0, 2], [3, 4]])
    assert loss(x, x).shape == (2,)
    loss.hybridize()
    with pytest.raises(AttributeError, match="'Symbol' object has no attribute 'shape'"):
        loss(x, x)
    with pytest.raises(AttributeError, match="'Symbol' object has no attribute 'shape'"):
        mx.gluon.loss.SDMLLoss()(mx.sym.var("a"), mx.sym.var("b"))
