"""Loops and branches in graphs: how they are made, what they compute, where they run."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import numpy as np
import pytest


def numbers(*shape: int) -> np.ndarray:
    return np.random.RandomState(sum(shape)).uniform(-1, 1, shape).astype("float32")


def recurrent(mx: Any, hidden: int = 4) -> Any:
    """outputs, last state = tanh(W x + b + state), with weights from outside of the loop."""
    weight, bias = mx.sym.var("w_weight"), mx.sym.var("w_bias")

    def step(row: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        state = mx.sym.tanh(mx.sym.FullyConnected(row, weight, bias, num_hidden=hidden) + states[0])
        return state, [state]

    outputs, states = mx.sym.contrib.foreach(step, mx.sym.var("data"), [mx.sym.var("init")])
    return mx.sym.Group([outputs, *states])


def expected(data: np.ndarray, state: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    rows = []
    for row in data:
        state = np.tanh(row @ weight.T + bias + state)
        rows.append(state)
    return np.stack(rows)


def arrays(mx: Any, rows: int, hidden: int = 4) -> dict[str, Any]:
    shapes = {"data": (rows, 2, 3), "init": (2, hidden), "w_weight": (hidden, 3), "w_bias": (hidden,)}
    return {name: mx.nd.array(numbers(*shape)) for name, shape in shapes.items()}


def test_a_loop_has_the_form_that_mxnet_writes(mx: Any) -> None:
    symbol = recurrent(mx, 3)
    assert symbol.list_arguments() == ["data", "init", "w_weight", "w_bias"]
    loop = json.loads(symbol.tojson())["nodes"][-1]
    assert loop["op"] == "_foreach"
    attrs = {k: v for k, v in loop["attrs"].items() if not k.startswith("__")}
    assert attrs == {
        "in_data_locs": "[0]",
        "in_state_locs": "[3]",
        "num_args": "5",
        "num_out_data": "1",
        "num_outputs": "2",
        "remain_locs": "[1, 2]",
    }
    (graph,) = loop["subgraphs"]
    names = [node["name"] for node in graph["nodes"] if node["op"] == "null"]
    assert names == ["data-0", "w_weight", "w_bias", "init-0"]
    assert [node["op"] for node in graph["nodes"]][-1] == "_copy", "output and state lie in two places"
    # What is inside has the name of the subgraph; what is cut out has not.
    marked = [node["name"] for node in graph["nodes"] if "__subgraph_name__" in node.get("attrs", {})]
    assert "data-0" in marked and "w_weight" not in marked


@pytest.mark.parametrize("rows", [1, 2, 5, 1000])
def test_a_loop_computes_every_row_in_an_executor_and_a_block(mx: Any, rows: int) -> None:
    symbol, given = recurrent(mx), arrays(mx, rows)
    want = expected(*(given[n].asnumpy() for n in ("data", "init", "w_weight", "w_bias")))
    again = mx.sym.load_json(symbol.tojson())
    for graph in symbol, again:
        outputs, last = graph.bind(mx.cpu(), given).forward()
        np.testing.assert_allclose(outputs.asnumpy(), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(last.asnumpy(), outputs.asnumpy()[-1])
    block = mx.gluon.SymbolBlock(symbol, [mx.sym.var("data"), mx.sym.var("init")])
    block.initialize()
    for name in ("w_weight", "w_bias"):
        block.params[name].set_data(given[name])
    outputs, last = block(given["data"], given["init"])
    np.testing.assert_allclose(outputs.asnumpy(), want, rtol=1e-4, atol=1e-5)


def test_a_loop_runs_on_the_simulated_device(mx: Any) -> None:
    given = {name: array.as_in_context(mx.sim(0)) for name, array in arrays(mx, 6).items()}
    outputs, _ = recurrent(mx).bind(mx.sim(0), given).forward()
    want = expected(*(given[n].asnumpy() for n in ("data", "init", "w_weight", "w_bias")))
    np.testing.assert_allclose(outputs.asnumpy(), want, rtol=1e-4, atol=1e-5)


def test_imperative_and_symbolic_loops_agree(mx: Any) -> None:
    data, state = mx.nd.array(numbers(5, 3)), mx.nd.array(numbers(3))

    def step(F: Any) -> Any:
        return lambda row, states: ([row * 2, [row + states[0]]], [states[0] + row, states[1] - row])

    want, want_states = mx.nd.contrib.foreach(step(mx.nd), data, [state, state * 2])
    x, a, b = (mx.sym.var(n) for n in "xab")
    outputs, states = mx.sym.contrib.foreach(step(mx.sym), x, [a, b])
    assert len(outputs) == 2 and isinstance(outputs[1], list) and len(states) == 2
    graph = mx.sym.Group([outputs[0], outputs[1][0], *states])
    got = graph.eval(x=data, a=state, b=state * 2)
    for one, other in zip(got, [want[0], want[1][0], *want_states], strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def test_loops_nest_and_read_what_lies_around_them(mx: Any) -> None:
    scale = mx.sym.var("scale") * 2

    def row(matrix: Any, total: Any) -> tuple[Any, Any]:
        factor = scale + 1

        def element(x: Any, inner: Any) -> tuple[Any, Any]:
            new = inner + mx.sym.broadcast_mul(x, factor)
            return new, new

        _, total = mx.sym.contrib.foreach(element, matrix, total)
        return total, total

    outputs, last = mx.sym.contrib.foreach(row, mx.sym.var("data"), mx.sym.var("init"))
    graph = mx.sym.Group([outputs, last])
    names = [
        n["attrs"]["__subgraph_name__"]
        for n in json.loads(graph.tojson())["nodes"][-1]["subgraphs"][0]["nodes"]
        if "attrs" in n and n["op"] == "_foreach"
    ]
    assert len(names) == 1
    data = numbers(3, 4, 2)
    for one in graph, mx.sym.load_json(graph.tojson()):
        got = one.eval(data=mx.nd.array(data), init=mx.nd.zeros((2,)), scale=mx.nd.array([1.5]))
        want = np.cumsum((data * 4).sum(1), 0)
        np.testing.assert_allclose(got[0].asnumpy(), want, rtol=1e-5)
        np.testing.assert_allclose(got[1].asnumpy(), want[-1], rtol=1e-5)


def test_a_while_loop_pads_its_outputs_with_zeros(mx: Any) -> None:
    i, s, limit = (mx.sym.var(n) for n in ("i", "s", "limit"))
    outputs, states = mx.sym.contrib.while_loop(
        lambda i, s: i < limit, lambda i, s: ([s * 2, i], [i + 1, s + i]), [i, s], max_iterations=5
    )
    graph = mx.sym.Group([*outputs, *states])
    values = {"i": mx.nd.array([0]), "s": mx.nd.array([1])}
    got = [a.asnumpy().ravel().tolist() for a in graph.eval(limit=mx.nd.array([3]), **values)]
    assert got == [[2, 2, 4, 0, 0], [0, 1, 2, 0, 0], [3], [4]]
    got = [a.asnumpy().ravel().tolist() for a in graph.eval(limit=mx.nd.array([99]), **values)]
    assert got == [[2, 2, 4, 8, 14], [0, 1, 2, 3, 4], [5], [11]]
    got = [a.asnumpy().ravel().tolist() for a in graph.eval(limit=mx.nd.array([-1]), **values)]
    assert got == [[0] * 5, [0] * 5, [0], [1]], "without a step the variables stay"


def test_a_branch_runs_one_of_two_graphs(mx: Any) -> None:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    graph = mx.sym.contrib.cond(
        mx.sym.sum(x) > mx.sym.sum(y), lambda: [x * 2 + y, [x]], lambda: [x - y * 3, [mx.sym.log(-y)]]
    )
    graph = mx.sym.Group([graph[0], graph[1][0]])
    small, large = mx.nd.ones((2,)), mx.nd.ones((2,)) * 5
    got = graph.eval(x=large, y=small)
    assert [a.asnumpy().tolist() for a in got] == [[11, 11], [5, 5]]
    got = graph.eval(x=small, y=large)
    assert got[0].asnumpy().tolist() == [-14, -14]


def test_a_loop_of_cells_is_the_rnn_operator(mx: Any) -> None:
    steps, batch, size, hidden = 7, 2, 3, 4
    cell = mx.gluon.rnn.LSTMCell(hidden, input_size=size, prefix="lstm_")
    outputs, states = mx.sym.contrib.foreach(cell, mx.sym.var("data"), [mx.sym.var("h"), mx.sym.var("c")])
    loop = mx.sym.Group([outputs, *states])
    weights = {
        "lstm_i2h_weight": numbers(4 * hidden, size),
        "lstm_h2h_weight": numbers(4 * hidden, hidden),
        "lstm_i2h_bias": numbers(4 * hidden),
        "lstm_h2h_bias": numbers(4 * hidden) * 0.5,
    }
    given = {name: mx.nd.array(value) for name, value in weights.items()}
    data, h, c = (mx.nd.array(numbers(*s)) for s in ((steps, batch, size), (batch, hidden), (batch, hidden)))
    got = loop.eval(data=data, h=h, c=c, **given)
    flat = mx.nd.array(np.concatenate([value.ravel() for value in weights.values()]))
    first = [state.reshape((1, batch, hidden)) for state in (h, c)]
    want = mx.nd.RNN(data, flat, *first, state_size=hidden, num_layers=1, mode="lstm", state_outputs=True)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy().reshape(one.shape), rtol=1e-4, atol=1e-5)


def test_a_hybrid_block_with_a_loop_runs_either_way(mx: Any) -> None:
    class Sums(mx.gluon.HybridBlock):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.dense = mx.gluon.nn.Dense(3, in_units=2, flatten=False)

        def hybrid_forward(self, F: Any, data: Any, state: Any) -> Any:
            outputs, last = F.contrib.foreach(lambda x, s: (self.dense(x) + s, self.dense(x) + s), data, state)
            return outputs, last

    block = Sums()
    block.initialize(mx.init.Normal(1.0))
    data, state = mx.nd.array(numbers(4, 5, 2)), mx.nd.array(numbers(5, 3))
    plain = block(data, state)
    block.hybridize()
    for one, other in zip(plain, block(data, state), strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-6)


def test_64_threads_call_a_loop_with_different_lengths(mx: Any) -> None:
    block = mx.gluon.SymbolBlock(recurrent(mx), [mx.sym.var("data"), mx.sym.var("init")])
    block.initialize()
    given = arrays(mx, 1)
    for name in ("w_weight", "w_bias"):
        block.params[name].set_data(given[name])
    weight, bias, init = (given[n].asnumpy() for n in ("w_weight", "w_bias", "init"))
    wrong: list[str] = []

    def work(thread: int) -> None:
        for length in (1 + thread % 13, 14 + thread % 7):
            data = numbers(length, 2, 3)
            outputs, _ = block(mx.nd.array(data), given["init"])
            if not np.allclose(outputs.asnumpy(), expected(data, init, weight, bias), rtol=1e-4, atol=1e-5):
                wrong.append(f"thread {thread}, {length} rows")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_calls_of_a_loop_leave_no_memory_behind(mx: Any) -> None:
    executor = recurrent(mx).bind(mx.cpu(), arrays(mx, 5))

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def run(calls: int) -> int:
        for _ in range(calls):
            executor.forward()
        mx.nd.waitall()
        return resident()

    before = run(500)
    assert run(3000) - before < 4 << 20


def test_a_failure_names_the_inner_node_and_the_iteration(mx: Any) -> None:
    table = mx.sym.var("table")
    outputs, _ = mx.sym.contrib.foreach(
        lambda row, s: (mx.sym.gather_nd(table, row, name="fetch"), s), mx.sym.var("data"), []
    )
    values = {"table": mx.nd.array([1, 2, 3])}
    with pytest.raises(mx.MXNetError, match=r"in iteration 1 of _foreach '.*foreach\d+'") as error:
        outputs.eval(data=mx.nd.array([[[0]], [[7]]]), **values)[0].asnumpy()
    assert "fetch" in str(error.value)


def test_bodies_that_do_not_fit_are_refused(mx: Any) -> None:
    x, s = mx.sym.var("x"), mx.sym.var("s")
    foreach, while_loop, cond = mx.sym.contrib.foreach, mx.sym.contrib.while_loop, mx.sym.contrib.cond
    with pytest.raises(AssertionError, match="the state arrays have to be used"):
        foreach(lambda row, state: (row, [row * 2]), x, [s])
    with pytest.raises(AssertionError, match="different format"):
        foreach(lambda row, state: (row, [state[0], row]), x, [s])
    with pytest.raises(AssertionError, match="foreach output"):
        foreach(lambda row, state: (3, state), x, [s])
    with pytest.raises(ValueError, match="max_iterations should be specified"):
        while_loop(lambda a: a < 3, lambda a: ([], a + 1), x)
    with pytest.raises(ValueError, match="doesn't involve"):
        while_loop(lambda a, b: a < 3, lambda a, b: ([], [a + 1, a]), [x, s], max_iterations=3)
    with pytest.raises(ValueError, match="Number of outputs differs"):
        cond(x, lambda: [x, x], lambda: x)
    with pytest.raises(mx.MXNetError, match="runs graphs"):
        mx.nd._internal._foreach(
            mx.nd.ones((2,)), num_outputs=1, num_out_data=1, in_data_locs=(0,), in_state_locs=(), remain_locs=()
        )


def _sum_body(row: Any, states: Any) -> tuple[Any, Any]:
    return row, states


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f, x: f.foreach(_sum_body, [[1, 2]], x), TypeError, "foreach: data"),
        (lambda f, x: f.foreach(_sum_body, 3, x), TypeError, "foreach: data"),
        (lambda f, x: f.foreach(_sum_body, None, x), TypeError, "foreach: data"),
        (lambda f, x: f.foreach(_sum_body, x, [1.0]), TypeError, "foreach: init_states"),
        (lambda f, x: f.foreach(_sum_body, x, None), TypeError, "foreach: init_states"),
        (lambda f, x: f.foreach(3, x, x), TypeError, "foreach: body must be a function"),
        (lambda f, x: f.foreach(lambda row, s: row, x, x), ValueError, "foreach: body must return two"),
        (lambda f, x: f.foreach(lambda row, s: (1, s), x, x), TypeError, "foreach: outputs of body"),
        (lambda f, x: f.foreach(_sum_body, [x, x[:1]], x), ValueError, "equally many rows"),
        (lambda f, x: f.foreach(_sum_body, [], x), ValueError, "foreach: data"),
        (lambda f, x: f.foreach(_sum_body, x[:0], x), ValueError, "foreach: data has no rows"),
        (lambda f, x: f.foreach(lambda r, s: (r[: int(s.asscalar())], s + 1), x, x[0, 0]), ValueError, "same shape"),
        (lambda f, x: f.while_loop(lambda a: a.sum() < 9, lambda a: ([], a + 1), [1], 3), TypeError, "loop_vars"),
        (lambda f, x: f.while_loop(lambda a: a.sum() < 9, lambda a: ([], a + 1), None, 3), TypeError, "loop_vars"),
        (lambda f, x: f.while_loop(lambda a: a.sum() < 9, lambda a: ([], a + 1), [], 3), ValueError, "loop_vars"),
        (lambda f, x: f.while_loop(lambda a: True, lambda a: ([], a), x, "no"), ValueError, "max_iterations"),
        (lambda f, x: f.while_loop(lambda a: True, lambda a: ([], a), x, 0), ValueError, "max_iterations"),
        (lambda f, x: f.while_loop(1, lambda a: ([], a), x, 3), TypeError, "while_loop: cond"),
        (lambda f, x: f.while_loop(lambda a: True, 1, x, 3), TypeError, "while_loop: func"),
        (lambda f, x: f.while_loop(lambda a: a, lambda a: ([], a), x, 3), ValueError, "while_loop: cond must be"),
        (lambda f, x: f.while_loop(lambda a: True, lambda a: a, x, 3), ValueError, "while_loop: func must return"),
        (lambda f, x: f.while_loop(lambda a: True, lambda a: ([], [a, a]), x, 3), ValueError, "loop_vars"),
        (lambda f, x: f.while_loop(lambda a: True, lambda a: (1, a), x, 3), TypeError, "outputs of func"),
        (lambda f, x: f.cond(np.ones(2), lambda: x, lambda: x), TypeError, "cond: pred must be a single number"),
        (lambda f, x: f.cond(x, lambda: x, lambda: x), ValueError, "cond: pred must be a single number"),
        (lambda f, x: f.cond(x[0, 0], x, lambda: x), TypeError, "cond: then_func"),
        (lambda f, x: f.cond(x[0, 0], lambda: x, None), TypeError, "cond: else_func"),
    ],
)
def test_wrong_arguments_are_named(mx: Any, call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(mx.nd.contrib, mx.nd.ones((2, 3)))


def test_the_condition_of_cond_may_be_a_number(mx: Any) -> None:
    x, y = mx.nd.ones(2), mx.nd.zeros(2)
    for condition, taken in ((True, x), (1.5, x), (0, y), (np.bool_(False), y), (np.float32(2), x), (None, y)):
        assert mx.nd.contrib.cond(condition, lambda: x, lambda: y) is taken


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f, x: f.foreach(_sum_body, [1], x), TypeError, "foreach input"),
        (lambda f, x: f.foreach(_sum_body, x, 1), TypeError, "foreach states"),
        (lambda f, x: f.foreach(None, x, x), TypeError, "foreach: body"),
        (lambda f, x: f.foreach(lambda r, s: r, x, x), ValueError, "foreach: body must return two"),
        (lambda f, x: f.while_loop(lambda a: a, lambda a: a, x, 3), ValueError, "while_loop: func must return two"),
        (lambda f, x: f.while_loop(lambda a: a, lambda a: ([], a), 3, 3), TypeError, "while loop_vars"),
        (lambda f, x: f.cond(1, lambda: x, lambda: x), TypeError, "cond: pred"),
        (lambda f, x: f.cond(x, lambda: 1, lambda: x), TypeError, "cond outputs"),
        (lambda f, x: f.cond(x, x, lambda: x), TypeError, "cond: then_func"),
    ],
)
def test_wrong_arguments_of_graphs_are_named(mx: Any, call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(mx.sym.contrib, mx.sym.var("x"))


def test_random_numbers_differ_from_row_to_row_and_follow_the_seed(mx: Any) -> None:
    outputs, _ = mx.sym.contrib.foreach(
        lambda row, s: (row + mx.sym.random.uniform(shape=(2,)), s), mx.sym.var("data"), []
    )

    def run() -> np.ndarray:
        mx.random.seed(5)
        made: np.ndarray = outputs.eval(data=mx.nd.zeros((40, 2)))[0].asnumpy()
        return made

    first = run()
    assert len(np.unique(first)) > 75
    np.testing.assert_array_equal(run(), first)


def test_a_loop_ends_when_its_results_are_dropped(mx: Any) -> None:
    # The condition holds for ever, and the steps last for hours.
    _, last = mx.sym.contrib.while_loop(
        lambda x: x > -1, lambda x: (None, mx.sym.abs(x)), mx.sym.var("x"), max_iterations=2**31 - 1
    )
    endless = mx.nd.CachedOp(last)
    started = endless(mx.nd.ones((2000,)).sum(), cancel_on_drop=True)
    time.sleep(0.1)
    del started
    mx.nd.waitall()


def test_a_loop_without_room_fails_alone_and_the_next_call_goes_on(mx: Any) -> None:
    width = 1 << 20
    grown, last = mx.sym.contrib.foreach(
        lambda row, s: (row, s + mx.sym.exp(row)), mx.sym.var("data"), mx.sym.var("init")
    )
    op = mx.nd.CachedOp(mx.sym.Group([grown, last]))
    data, init = mx.nd.ones((3, width)), mx.nd.zeros((width,))
    mx.nd.waitall()
    mx.set_memory_limit(mx.runtime.info()["memory_in_use"] + (1 << 20))
    try:
        refused = op(data, init)
        with pytest.raises(mx.base.MXNetMemoryError):
            refused[1].asnumpy()
    finally:
        mx.set_memory_limit(None)
    np.testing.assert_allclose(op(data, init)[1].asnumpy()[:2], [3 * np.e] * 2, rtol=1e-6)
