"""Operators written in Python inside loops and branches of graphs, and next to boolean masks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import custom_cases as cases
from support import KINDS, in_threads, last_json, run_python
from test_custom_op import RECORDED, close
from test_custom_op_processes import OPERATORS


@pytest.fixture
def operator(mx: Any) -> Iterator[Callable[..., str]]:
    """Registers an operator that runs a function, for a test."""
    made = []

    def register(name: str, run: Callable[[Any, Any], None], **methods: Any) -> str:
        class Op(mx.operator.CustomOp):  # type: ignore[name-defined, misc]
            def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
                run(in_data, out_data)

        create = {"create_operator": lambda self, ctx, shapes, dtypes: Op()}
        mx.operator.register(name)(type(name, (mx.operator.CustomOpProp,), {**create, **methods}))
        made.append(name)
        return name

    yield register
    for name in made:
        mx.operator._CUSTOM.pop(name)


def test_blocks_answer_as_executors_of_mxnet(mx: Any) -> None:
    cases.define(mx)
    close(json.loads(json.dumps(cases.control_flow(mx, block=True))), RECORDED["control flow"])


def plus_one(in_data: Any, out_data: Any) -> None:
    out_data[0][:] = in_data[0].asnumpy() + 1


def sums(mx: Any, op_type: str) -> Any:
    """A loop whose states and outputs are what the operator makes of row + state."""

    def body(row: Any, state: Any) -> Any:
        state = mx.sym.Custom(row + state, op_type=op_type, name="inner")
        return state * 2, state

    outputs, last = mx.sym.contrib.foreach(body, mx.sym.var("data"), mx.sym.var("state"), name="summing")
    return mx.sym.Group([outputs, last])


def expected(data: np.ndarray) -> np.ndarray:
    return np.cumsum(data + 1, axis=0)


def test_16_threads_call_a_loop_of_different_lengths(mx: Any, operator: Any) -> None:
    operator("plus_one", plus_one)
    names = [mx.sym.var("data"), mx.sym.var("state")]
    net = mx.gluon.SymbolBlock(sums(mx, "plus_one"), names)

    def call(number: int) -> None:
        for i in range(6):
            data = np.random.RandomState(number * 10 + i).uniform(-1, 1, (1 + (number + i) % 7, 3)).astype("float32")
            outputs, last = net(mx.nd.array(data), mx.nd.zeros(3))
            np.testing.assert_allclose(outputs.asnumpy(), 2 * expected(data), rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(last.asnumpy(), expected(data)[-1], rtol=1e-5, atol=1e-5)

    in_threads(16, call)


def test_an_exception_names_node_and_iteration_and_spares_other_calls(mx: Any, operator: Any) -> None:
    class Mine(Exception):
        pass

    def run(in_data: Any, out_data: Any) -> None:
        if float(in_data[0].asnumpy()[0]) > 100:
            raise Mine("too much")
        plus_one(in_data, out_data)

    operator("fails", run)
    data = mx.sym.var("data")
    net = mx.gluon.SymbolBlock(mx.sym.Group([*sums(mx, "fails"), data * 2]), [data, mx.sym.var("state")])

    def call(number: int) -> None:
        for bad in (None, number % 5):
            rows = np.zeros((5, 1), "float32")
            if bad is not None:
                rows[bad] = 1000
            outputs, last, other = net(mx.nd.array(rows), mx.nd.zeros(1))
            np.testing.assert_array_equal(other.asnumpy(), rows * 2)
            if bad is None:
                np.testing.assert_array_equal(outputs.asnumpy(), 2 * expected(rows))
                continue
            for array in outputs, last, outputs:
                message = rf"Custom 'inner': Mine: too much \(in iteration {bad} of _foreach '.*'\)"
                with pytest.raises(mx.MXNetError, match=message) as raised:
                    array.asnumpy()
                assert isinstance(raised.value.__cause__, Mine)
                assert (raised.value.op, raised.value.node) == ("Custom", "inner")

    in_threads(16, call)
    # Nothing is left over: what failed inside has been raised outside.
    mx.nd.waitall()


def test_a_thousand_iterations_and_none(mx: Any, operator: Any) -> None:
    operator("plus_one", plus_one)
    symbol = sums(mx, "plus_one")
    outputs, last = symbol.eval(data=mx.nd.ones((1000, 1)), state=mx.nd.zeros(1))
    np.testing.assert_array_equal(outputs.asnumpy().ravel(), np.arange(1, 1001) * 4)
    assert last.asscalar() == 2000
    outputs, last = symbol.eval(data=mx.nd.array(np.ones((0, 1))), state=mx.nd.array([7]))
    assert (outputs.shape, last.asscalar()) == ((0, 1), 7)


def test_loops_nest_with_weights_and_random_numbers_inside(mx: Any, operator: Any) -> None:
    operator("plus_one", plus_one)
    weight = mx.sym.var("weight") * 2

    def element(x: Any, state: Any) -> Any:
        dense = mx.sym.FullyConnected(x.reshape((1, -1)), weight, no_bias=True, num_hidden=2).reshape((-1,))
        return x, mx.sym.Custom(state + dense, op_type="plus_one") + mx.sym.random.uniform(shape=(2,))

    def row(matrix: Any, state: Any) -> Any:
        _, state = mx.sym.contrib.foreach(element, matrix, state)
        return state, state

    outputs, _ = mx.sym.contrib.foreach(row, mx.sym.var("data"), mx.sym.var("state"))
    data, weights = np.random.RandomState(3).uniform(-1, 1, (3, 4, 2)), np.array([[1.0, 2], [3, 4]])
    op = mx.nd.CachedOp(outputs)
    order = {"data": mx.nd.array(data), "state": mx.nd.zeros(2), "weight": mx.nd.array(weights)}

    def run() -> np.ndarray:
        mx.random.seed(5)
        made: np.ndarray = op(*(order[name] for name in outputs.list_inputs())).asnumpy()
        return made

    first = run()
    want = np.cumsum((data @ (2 * weights.T) + 1).sum(1), 0)
    noise = first - want
    assert ((noise > 0) & (noise < 12)).all()
    assert (np.diff(noise, axis=0) > 0).all()
    assert len(np.unique(noise)) == noise.size
    np.testing.assert_array_equal(run(), first)


@pytest.fixture
def counts(mx: Any) -> Iterator[str]:
    """Registers an operator that adds its state, and then adds one to that."""

    class Op(mx.operator.CustomOp):  # type: ignore[name-defined, misc]
        def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            out_data[0][:] = in_data[0] + aux[0]
            aux[0][:] = aux[0] + 1

    class Prop(mx.operator.CustomOpProp):  # type: ignore[name-defined, misc]
        def list_auxiliary_states(self) -> list[str]:
            return ["count"]

        def infer_shape(self, in_shape: Any) -> Any:
            return in_shape, [in_shape[0]], [(1,)]

        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return Op()

    mx.operator.register("counts")(Prop)
    yield "counts"
    mx.operator._CUSTOM.pop("counts")


def called(op: Any, symbol: Any, **arrays: Any) -> Any:
    return op(*(arrays[name] for name in symbol.list_inputs()))


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_states_of_operators_in_loops_change_in_each_iteration(mx: Any, sim: Any, counts: str, device: str) -> None:
    ctx = mx.cpu() if device == "cpu" else sim

    def body(row: Any, states: Any) -> Any:
        return mx.sym.Custom(row, op_type=counts, name="inner"), states

    outputs, _ = mx.sym.contrib.foreach(body, mx.sym.var("data"), [])
    op = mx.nd.CachedOp(outputs)
    data, state = mx.nd.zeros((4, 1), ctx=ctx), mx.nd.zeros(1, ctx=ctx)
    for call in range(3):
        found = called(op, outputs, data=data, inner_count=state)
        assert found.context == ctx
        assert found.asnumpy().ravel().tolist() == [4 * call + i for i in range(4)]
    assert state.asscalar() == 12


def test_states_stay_as_they_are_when_an_iteration_fails(mx: Any, operator: Any, counts: str) -> None:
    def run(in_data: Any, out_data: Any) -> None:
        if float(in_data[0].asnumpy()[0]) < 0:
            raise LookupError("negative")
        plus_one(in_data, out_data)

    operator("picky", run)

    def body(row: Any, states: Any) -> Any:
        return mx.sym.Custom(mx.sym.Custom(row, op_type=counts, name="inner"), op_type="picky"), states

    outputs, _ = mx.sym.contrib.foreach(body, mx.sym.var("data"), [])
    op, state = mx.nd.CachedOp(outputs), mx.nd.zeros(1)
    bad = called(op, outputs, data=mx.nd.array([[1], [-9]]), inner_count=state)
    with pytest.raises(mx.MXNetError, match=r"negative \(in iteration 1 of _foreach"):
        bad.asnumpy()
    assert state.asscalar() == 0
    good = called(op, outputs, data=mx.nd.array([[1], [2]]), inner_count=state)
    assert (good.asnumpy().ravel().tolist(), state.asscalar()) == ([2, 4], 2)


def test_states_change_in_the_branch_that_runs(mx: Any, counts: str) -> None:
    x = mx.sym.var("x")
    branch = mx.sym.contrib.cond(
        mx.sym.var("pick"), lambda: mx.sym.Custom(x, op_type=counts, name="inner"), lambda: x * 10
    )
    op, state = mx.nd.CachedOp(branch), mx.nd.zeros(1)
    found = [
        called(op, branch, x=mx.nd.ones(1), pick=mx.nd.array([pick]), inner_count=state).asscalar()
        for pick in (1, 0, 1, 1)
    ]
    assert (found, state.asscalar()) == ([1, 10, 2, 3], 3)


def test_an_operator_in_a_loop_calls_a_model_with_a_loop(mx: Any, operator: Any) -> None:
    nets: dict[str, Any] = {}

    def run(in_data: Any, out_data: Any) -> None:
        depth = int(in_data[0].asnumpy()[0])
        if depth > 0:
            _, last = nets["net"](mx.nd.full((2, 1), -1), in_data[0])
            out_data[0][:] = last
        else:
            out_data[0][:] = in_data[0]

    operator("nested", run)
    names = [mx.sym.var("data"), mx.sym.var("state")]
    nets["net"] = mx.gluon.SymbolBlock(sums(mx, "nested"), names)

    def call(number: int) -> None:
        _, last = nets["net"](mx.nd.full((2, 1), -1), mx.nd.array([number % 4]))
        assert last.asscalar() <= 0

    in_threads(16, call)


def test_an_operator_stands_before_and_behind_a_boolean_mask(mx: Any, operator: Any) -> None:
    seen = []

    def infer_shape(self: Any, in_shape: Any) -> Any:
        seen.append(in_shape[0])
        return in_shape, [in_shape[0]], []

    operator("plus_one", plus_one, infer_shape=infer_shape)
    data, mask = mx.sym.var("data"), mx.sym.var("mask")
    before = mx.sym.Custom(data * 2, op_type="plus_one", name="before")
    rows = mx.sym.contrib.boolean_mask(before, mask)
    behind = mx.sym.Custom(rows, op_type="plus_one", name="behind") * 3
    net = mx.gluon.SymbolBlock(mx.sym.Group([behind, before]), [data, mask])
    x = np.arange(12, dtype="float32").reshape(6, 2)

    def call(number: int) -> None:
        for i in range(5):
            picks = np.random.RandomState(number * 5 + i).randint(0, 2, 6) * (i > 0)
            found, all_rows = net(mx.nd.array(x), mx.nd.array(picks))
            np.testing.assert_array_equal(found.asnumpy(), (x[picks != 0] * 2 + 2) * 3)
            np.testing.assert_array_equal(all_rows.asnumpy(), x * 2 + 1)

    in_threads(16, call)
    assert [3, 2] in seen, "the class is asked about the true shapes"


@pytest.mark.parametrize("where", ["forward", "infer_shape"])
def test_a_failure_behind_a_boolean_mask_spares_the_rest(mx: Any, operator: Any, where: str) -> None:
    def run(in_data: Any, out_data: Any) -> None:
        if where == "forward" and in_data[0].shape[0] == 2:
            raise LookupError("two rows")
        plus_one(in_data, out_data)

    def infer_shape(self: Any, in_shape: Any) -> Any:
        if where == "infer_shape" and in_shape[0] == [2, 1]:
            raise LookupError("two rows")
        return in_shape, [in_shape[0]], []

    operator("picky", run, infer_shape=infer_shape)
    data, mask = mx.sym.var("data"), mx.sym.var("mask")
    rows = mx.sym.contrib.boolean_mask(data, mask)
    symbol = mx.sym.Group([mx.sym.Custom(rows, op_type="picky", name="mine"), rows * 2])
    net = mx.gluon.SymbolBlock(symbol, [data, mask])
    x = mx.nd.array([[1], [2], [3]])
    for picks in ([1, 0, 0], [1, 1, 0], [1, 1, 1]):
        made, other = net(x, mx.nd.array(picks))
        if sum(picks) != 2:
            assert made.asnumpy().ravel().tolist() == [2, 3, 4][: sum(picks)]
            assert other.asnumpy().ravel().tolist() == [2, 4, 6][: sum(picks)]
            continue
        with pytest.raises(mx.MXNetError, match="'mine': LookupError: two rows") as raised:
            made.asnumpy()
        assert isinstance(raised.value.__cause__, LookupError)
        assert other.asnumpy().ravel().tolist() == [2, 4]


def test_states_change_beside_a_boolean_mask(mx: Any, counts: str) -> None:
    rows = mx.sym.contrib.boolean_mask(mx.sym.var("data"), mx.sym.var("mask"))
    symbol = mx.sym.Custom(rows, op_type=counts, name="inner")
    op, state = mx.nd.CachedOp(symbol), mx.nd.zeros(1)
    for call, picks in enumerate(([1, 0, 1], [0, 0, 0], [0, 1, 0])):
        found = called(op, symbol, data=mx.nd.array([[1], [2], [3]]), mask=mx.nd.array(picks), inner_count=state)
        assert found.asnumpy().ravel().tolist() == [i + 1 + call for i in range(3) if picks[i]]
    assert state.asscalar() == 3


def test_a_mask_in_a_loop_picks_of_each_row(mx: Any) -> None:
    """The result is that of the loop over arrays. MXNet cannot infer the shapes of such a loop."""

    def body(f: Any, mask: Any) -> Any:
        return lambda row, s: (f.sum(f.broadcast_add(f.contrib.boolean_mask(row, mask), s)), s)

    data, mask = mx.nd.array(np.arange(6).reshape(3, 2)), mx.nd.array([0, 1])
    outputs, _ = mx.sym.contrib.foreach(body(mx.sym, mx.sym.var("mask")), mx.sym.var("data"), mx.sym.var("s"))
    found = called(mx.nd.CachedOp(outputs), outputs, data=data, mask=mask, s=mx.nd.array([5]))
    want, _ = mx.nd.contrib.foreach(body(mx.nd, mask), data, mx.nd.array([5]))
    np.testing.assert_array_equal(found.asnumpy().ravel(), want.asnumpy().ravel())
    assert found.asnumpy().ravel().tolist() == [6, 8, 10]


def test_a_graph_may_have_hundreds_of_masks(mx: Any) -> None:
    rows, mask = mx.sym.var("data"), mx.sym.var("mask")
    for _ in range(150):
        rows = mx.sym.contrib.boolean_mask(rows, mask) + 1
    found = called(mx.nd.CachedOp(rows), rows, data=mx.nd.zeros((2, 1)), mask=mx.nd.ones(2))
    assert found.asnumpy().ravel().tolist() == [150, 150]


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_runs_loops_and_masks_with_operators(kind: str) -> None:
    code = """
    def body(row, state):
        state = mx.sym.Custom(row + state, op_type="triple")
        return state, state

    outputs, last = mx.sym.contrib.foreach(body, mx.sym.var("data"), mx.sym.var("state"))
    outputs, last = mx.nd.CachedOp(mx.sym.Group([outputs, last]))(mx.nd.ones((300, 1)) * 0, mx.nd.zeros(1))
    x, n = mx.sym.var("x"), mx.sym.var("n")
    _, counted = mx.sym.contrib.while_loop(
        lambda x, n: n < 3000, lambda x, n: ([], [mx.sym.Custom(x, op_type="triple") * 0 + n, n + 10]), [x, n], 3000
    )
    counted = mx.nd.CachedOp(mx.sym.Group(counted))(mx.nd.zeros(1), mx.nd.zeros(1))
    rows = mx.sym.Custom(mx.sym.contrib.boolean_mask(x, n), op_type="triple")
    rows = mx.nd.CachedOp(rows)(mx.nd.array([[1], [2], [3]]), mx.nd.array([1, 0, 1]))
    print(json.dumps([outputs.asnumpy().sum().item(), counted[0].asscalar().item(), rows.asnumpy().ravel().tolist()]))
    """
    found = last_json(run_python(OPERATORS + dedent(code), env={"MXNET_ENGINE_TYPE": kind}))
    assert found == [0, 2990, [3, 9]]


def test_a_child_goes_on_after_a_fork_within_a_loop() -> None:
    """The call of the operator that ran is lost in the child, as anywhere, and fails the loop; new
    calls work.
    """
    code = """
    children = []

    @operator
    def forks(op, in_data, out_data):
        out_data[0][:] = in_data[0].asnumpy() + 1

    def body(row, state):
        state = mx.sym.Custom(row + state, op_type="forks")
        return state, state

    _, last = mx.sym.contrib.foreach(body, mx.sym.var("data"), mx.sym.var("state"))
    op = mx.nd.CachedOp(last)
    calls = [op(mx.nd.zeros((200, 1)), mx.nd.zeros(1)) for _ in range(4)]
    pid = os.fork()
    ends = []
    for call in calls:
        try:
            ends.append(call.asscalar().item())
        except mx.MXNetError as error:
            ends.append("forked" in str(error) or str(error))
    again = op(mx.nd.zeros((20, 1)), mx.nd.zeros(1)).asscalar().item()
    good = all(end in (200, True) for end in ends) and again == 20
    if pid == 0:
        os._exit(0 if good else 3)
    print(json.dumps([good, ends, os.waitpid(pid, 0)[1]]))
    """
    found = last_json(run_python(OPERATORS + dedent(code)))
    assert found == [True, [200] * 4, 0]
