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


def test_states_of_operators_in_loops_are_refused(mx: Any, operator: Any) -> None:
    operator("counts", plus_one, list_auxiliary_states=lambda self: ["count"])
    with pytest.raises(NotImplementedError, match="auxiliary states cannot run inside of _foreach"):
        mx.nd.CachedOp(sums(mx, "counts"))


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
        if where == "forward":
            assert other.asnumpy().ravel().tolist() == [2, 4]
        else:
            # Without types there is no plan for what stands behind the mask.
            with pytest.raises(mx.MXNetError, match="two rows"):
                other.asnumpy()


def test_states_beside_a_boolean_mask_are_refused(mx: Any, operator: Any) -> None:
    operator("counts", plus_one, list_auxiliary_states=lambda self: ["count"])
    rows = mx.sym.contrib.boolean_mask(mx.sym.var("data"), mx.sym.var("mask"))
    with pytest.raises(NotImplementedError, match="auxiliary states cannot stand in one graph"):
        mx.nd.CachedOp(mx.sym.Custom(rows, op_type="counts"))


def test_a_mask_in_a_loop_is_refused_as_by_mxnet(mx: Any) -> None:
    body = lambda row, s: (mx.sym.sum(mx.sym.contrib.boolean_mask(row, mx.sym.var("mask"))), s)  # noqa: E731
    outputs, _ = mx.sym.contrib.foreach(body, mx.sym.var("data"), [])
    with pytest.raises(NotImplementedError, match="not possible inside of _foreach"):
        mx.nd.CachedOp(outputs)


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
