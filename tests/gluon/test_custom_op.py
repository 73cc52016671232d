"""Operators written in Python: values, threads, failures, recursion."""

from __future__ import annotations

import gc
import json
import threading
import weakref

import numpy as np
import pytest

import custom_cases as cases
from support import in_threads

RECORDED = json.loads(cases.RECORDED.read_text())


@pytest.fixture(scope="module")
def own(mx):
    """The module with the operators of the cases."""
    cases.define(mx)
    return mx


@pytest.fixture
def operator(mx):
    """Registers an operator that runs a function, for a test."""

    class Op(mx.operator.CustomOp):
        def __init__(self, run) -> None:
            self.run = run

        def forward(self, is_train, req, in_data, out_data, aux) -> None:
            self.run(in_data, out_data)

    made = []

    def register(name: str, run, **methods) -> str:
        create = {"create_operator": lambda self, ctx, shapes, dtypes: Op(run)}
        mx.operator.register(name)(type(name, (mx.operator.CustomOpProp,), {**create, **methods}))
        made.append(name)
        return name

    yield register
    for name in made:
        mx.operator._CUSTOM.pop(name)


def close(found, want) -> None:
    """Nested lists of equal structure, with numbers that are close."""
    if isinstance(want, list):
        assert len(found) == len(want)
        for one, other in zip(found, want, strict=True):
            close(one, other)
    elif isinstance(want, dict):
        assert found.keys() == want.keys()
        for name, one in want.items():
            close(found[name], one)
    elif isinstance(want, float):
        assert found == pytest.approx(want, rel=1e-5, abs=1e-6)
    else:
        assert found == want


@pytest.mark.parametrize("name", cases.CASES)
def test_answers_are_those_of_mxnet(own, name: str) -> None:
    close(json.loads(json.dumps(cases.CASES[name](own))), RECORDED[name])


def test_attributes_reach_the_class_as_text(mx, operator) -> None:
    seen = []

    def init(self, **kwargs) -> None:
        mx.operator.CustomOpProp.__init__(self)
        seen.append(kwargs)

    operator("texts", lambda x, y: None, __init__=init)
    given = {"a": 1, "b": (1, 2), "c": None, "d": True, "e": 0.5, "f": "word"}
    want = {name: str(value) for name, value in given.items()}
    mx.nd.Custom(mx.nd.ones(2), op_type="texts", **given)
    with mx.AttrScope(__group__="4"):
        symbol = mx.sym.Custom(mx.sym.var("x"), op_type="texts", **given)
    mx.sym.load_json(symbol.tojson())
    assert seen == [want] * 3


def test_64_threads_over_one_model(own) -> None:
    symbol = cases.network(own)
    args, aux = cases.values(own, symbol, 1)
    aux["running_mean"][:] = 0
    params = {n: v for n, v in args.items() if n not in ("data", "softmax_label")}
    net = own.gluon.SymbolBlock(symbol, [own.sym.var("data"), own.sym.var("softmax_label")])
    for name, parameter in net.collect_params().items():
        parameter.initialize(ctx=own.cpu())
        parameter.set_data({**params, **aux}[name])

    label = own.nd.zeros(1)
    counts = []

    def call(number: int) -> None:
        x = cases.numbers(f"x{number}", (1, 5))
        for _ in range(5):
            out, larger = net(own.nd.array(x), label)
            assert out.shape == (1, 4)
            np.testing.assert_allclose(out.asnumpy().sum(), 1, rtol=1e-5)
            counts.append(int(larger.asscalar()))

    before = float(aux["running_count"].asscalar())
    in_threads(64, call)
    # No update of a state is lost.
    after = net.collect_params()["running_count"].data().asscalar()
    assert after == before + 64 * 5
    assert len(counts) == 64 * 5


def test_each_of_64_threads_gets_its_own_answer(mx, operator) -> None:
    running, most = [], []

    def run(in_data, out_data) -> None:
        running.append(1)
        most.append(len(running))
        x = in_data[0].asnumpy()
        out_data[0][:] = np.sort(x, axis=1)
        running.pop()

    operator("sorts", run)
    net = mx.gluon.SymbolBlock(mx.sym.Custom(mx.sym.var("x") * 2, op_type="sorts") + 1, mx.sym.var("x"))

    def call(number: int) -> None:
        for i in range(10):
            x = cases.numbers(f"{number} {i}", (1 + i % 3, 7))
            np.testing.assert_allclose(net(mx.nd.array(x)).asnumpy(), np.sort(x * 2, axis=1) + 1, rtol=1e-6)

    in_threads(64, call)
    assert len(most) == 640


def test_a_failure_reaches_the_callers_of_its_request_alone(mx, operator) -> None:
    class Mine(Exception):
        pass

    def run(in_data, out_data) -> None:
        number = int(in_data[0].asnumpy()[0])
        if number % 50 == 7:
            raise Mine(f"number {number}")
        out_data[0][:] = in_data[0] + 1

    operator("fails", run)
    x = mx.sym.var("x")
    node = mx.sym.Custom(x, op_type="fails", name="the_node")
    net = mx.gluon.SymbolBlock(mx.sym.Group([node * 1, x * 2]), x)
    failed = []

    def call(number: int) -> None:
        for i in range(50):
            value = number * 50 + i
            out, other = net(mx.nd.array([value]))
            # What does not depend on the operator is there.
            assert other.asscalar() == value * 2
            if value % 50 != 7:
                assert out.asscalar() == value + 1
                continue
            for _ in range(2):
                with pytest.raises(mx.MXNetError, match=f"Custom 'the_node': Mine: number {value}") as raised:
                    out.asnumpy()
                assert isinstance(raised.value.__cause__, Mine)
                assert raised.value.op == "Custom"
                assert raised.value.node == "the_node"
            assert raised.value.__cause__.__traceback__.tb_next is not None
            failed.append(value)

    in_threads(16, call)
    assert len(failed) == 16
    mx.nd.waitall()


def test_operators_use_operators_and_models(mx, operator) -> None:
    """Recursion: a model whose operator calls a model, down to a depth that the data says."""
    nets = {}

    def run(in_data, out_data) -> None:
        depth = int(in_data[0].asnumpy()[0])
        below = nets["net"](in_data[0] - 1) if depth > 0 else mx.nd.zeros(1)
        out_data[0][:] = mx.nd.Custom(below, op_type="adds_one") + 0

    operator("adds_one", lambda x, y: y[0].__setitem__(slice(None), x[0] + 1))
    operator("nested", run)
    nets["net"] = mx.gluon.SymbolBlock(mx.sym.Custom(mx.sym.var("x"), op_type="nested") * 1, mx.sym.var("x"))

    def call(number: int) -> None:
        depth = number % 7
        assert nets["net"](mx.nd.array([depth])).asscalar() == depth + 1

    in_threads(64, call)


def shapes_of(value):
    return {"infer_shape": lambda self, in_shape: value(in_shape) if callable(value) else value}


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (shapes_of(None), "must return 2 or 3 lists"),
        (shapes_of(([[2]], [[2], [2]])), "returned 2 entries for its 1 outputs"),
        (shapes_of(([], [[2]])), "returned 0 entries for its 1 arguments"),
        (shapes_of(([[3]], [[2]])), "has shape"),
        (shapes_of(([[2]], ["ab"])), "expected a shape"),
        (shapes_of(([[2]], [5])), "expected a shape"),
        (shapes_of(([[2]], [[-1]])), "cannot be told"),
        (shapes_of(lambda in_shape: 1 / 0), "ZeroDivisionError"),
        (shapes_of(([[2]], [[1 << 40, 1 << 40]])), "larger than"),
        ({"infer_type": lambda self, in_type: ([np.float32], ["nonsense"])}, "nonsense"),
        ({"infer_type": lambda self, in_type: ([np.float64], [np.float32])}, "float64"),
        ({"list_arguments": lambda self: "data"}, "must return a list of names"),
        ({"list_outputs": lambda self: [1]}, "must return a list of names"),
        ({"list_arguments": lambda self: None}, "list_arguments of 'wrong' .*, not None; is a return missing?"),
        ({"list_auxiliary_states": lambda self: 3}, "list_auxiliary_states of 'wrong' .*, not 3, in"),
        ({"__init__": lambda self, **kwargs: 1 / 0}, "ZeroDivisionError"),
    ],
)
def test_what_the_class_says_wrong_is_an_error_of_the_call(mx, operator, methods, message: str) -> None:
    operator("wrong", lambda x, y: None, **methods)
    with pytest.raises(mx.MXNetError, match=message):
        mx.nd.Custom(mx.nd.ones(2), op_type="wrong").asnumpy()


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda x, y: y[0].__setitem__(slice(None), mx_ones(3)), "Custom 'mine'"),
        (lambda x, y: y[0].__setitem__(5, 1), "Custom 'mine': IndexError"),
        (lambda x, y: x[0].reshape((77,)), "Custom 'mine'"),
        (lambda x, y: exit(), "Custom 'mine': SystemExit"),
    ],
)
def test_what_forward_does_wrong_is_raised_by_the_result(mx, operator, run, message: str) -> None:
    global mx_ones
    mx_ones = mx.nd.ones
    operator("wrong", run)
    net = mx.gluon.SymbolBlock(mx.sym.Custom(mx.sym.var("x"), op_type="wrong", name="mine"), mx.sym.var("x"))
    for _ in range(3):
        out = net(mx.nd.ones(2))
        with pytest.raises(mx.MXNetError, match=message) as raised:
            out.asnumpy()
        assert raised.value.__cause__ is not None


def raise_kind(mx, kind: str) -> None:
    raise mx.MXNetError("no", kind=kind)


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (lambda mx, x: x.reshape((77,)), "shape"),
        (lambda mx, x: mx.nd.ones((2, -1)), "shape"),
        (lambda mx, x: x[[1 << 70]], "index"),
        # Mistakes of the program itself, and what no argument is to blame for.
        (lambda mx, x: [].pop(), "operator"),
        (lambda mx, x: raise_kind(mx, "training"), "operator"),
    ],
)
def test_errors_of_arguments_in_forward_keep_their_class(mx, operator, run, kind: str) -> None:
    operator("known", lambda x, y: run(mx, x[0]))
    out = mx.nd.Custom(mx.nd.ones(2), op_type="known")
    with pytest.raises(mx.MXNetError, match="Custom") as raised:
        out.asnumpy()
    assert raised.value.kind == kind
    assert isinstance(raised.value, {"shape": ValueError, "index": IndexError}.get(kind, mx.MXNetError))


@pytest.mark.parametrize("made", [None, 3, object()])
def test_create_operator_without_an_operator_says_what_it_must_return(mx, operator, made) -> None:
    operator("missing", None, create_operator=lambda self, ctx, shapes, dtypes: made)
    message = (
        f"create_operator of 'missing' must return an object of a subclass of CustomOp.* not .*{type(made).__name__}"
    )
    with pytest.raises(mx.MXNetError, match=message):
        mx.nd.Custom(mx.nd.ones(2), op_type="missing").asnumpy()


def test_what_forward_does_not_write_is_zero(mx, operator) -> None:
    operator("nothing", lambda x, y: None)
    assert mx.nd.Custom(mx.nd.ones((2, 3)), op_type="nothing").asnumpy().tolist() == [[0] * 3] * 2


def test_inputs_are_copies_and_outputs_are_the_calls_own(mx, operator) -> None:
    kept = []

    def run(in_data, out_data) -> None:
        in_data[0][:] = 7
        out_data[0][:] = 1
        kept.append(out_data[0])

    operator("writes", run)
    x = mx.nd.zeros(2)
    out = mx.nd.Custom(x, op_type="writes")
    out.wait_to_read()
    kept[0][:] = 5
    assert (x.asnumpy().tolist(), out.asnumpy().tolist()) == ([0, 0], [1, 1])
    given = mx.nd.zeros(2)
    mx.nd.Custom(x, op_type="writes", out=given)
    assert given.asnumpy().tolist() == [1, 1]


def test_names_that_are_not_known(mx) -> None:
    with pytest.raises(ValueError, match="Cannot find custom operator never"):
        mx.nd.Custom(mx.nd.ones(2), op_type="never")
    with pytest.raises(ValueError, match="op_type"):
        mx.sym.Custom(mx.sym.var("x"))
    with pytest.raises(TypeError):
        mx.operator.register("x")(int)


def test_gradients_are_refused(own) -> None:
    with pytest.raises(own.base.TrainingNotSupportedError):
        own.operator.CustomOp().backward([], [], [], [], [], [])


def test_loops_in_python_and_in_graphs_run_operators(mx, operator) -> None:
    operator("adds", lambda x, y: y[0].__setitem__(slice(None), x[0] + 1))

    def body(space):
        return lambda item, state: (space.Custom(item, op_type="adds"), state)

    found, _ = mx.nd.contrib.foreach(body(mx.nd), mx.nd.array([[1], [2]]), mx.nd.zeros(1))
    assert found.asnumpy().tolist() == [[2], [3]]
    loop, _ = mx.sym.contrib.foreach(body(mx.sym), mx.sym.var("data"), [])
    (found,) = loop.bind(mx.cpu(), {"data": mx.nd.array([[1], [2]])}).forward()
    assert found.asnumpy().tolist() == [[2], [3]]


def test_an_operator_object_serves_one_call_at_a_time(mx) -> None:
    made, beside = [], []

    class Op(mx.operator.CustomOp):
        def __init__(self) -> None:
            made.append(self)
            self.busy = threading.Lock()

        def forward(self, is_train, req, in_data, out_data, aux) -> None:
            beside.append(not self.busy.acquire(blocking=False))
            out_data[0][:] = in_data[0].asnumpy()
            self.busy.release()

    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            assert (ctx, shapes, dtypes) == (mx.cpu(), [[1]], [0])
            return Op()

    mx.operator.register("objects")(Prop)
    net = mx.gluon.SymbolBlock(mx.sym.Custom(mx.sym.var("x"), op_type="objects"), mx.sym.var("x"))
    for i in range(5):
        assert net(mx.nd.array([i])).asscalar() == i
    assert len(made) == 1
    in_threads(32, lambda number: [net(mx.nd.array([number])).asscalar() for _ in range(20)])
    assert not any(beside)
    assert len(made) <= 32


def test_a_rewrite_puts_an_operator_in_the_place_of_a_pattern(mx, operator) -> None:
    """A backend of mx.subgraph replaces relu: 64 threads call it, by name and by environment."""
    operator("my_relu", lambda x, y: y[0].__setitem__(slice(None), np.maximum(x[0].asnumpy(), 0)))

    @mx.subgraph.register("my backend")
    def rewrite(symbol):
        graph = json.loads(symbol.tojson())
        for node in graph["nodes"]:
            if node["op"] == "Activation":
                node.update(op="Custom", attrs={"op_type": "my_relu"})
        return mx.sym.load_json(json.dumps(graph))

    try:
        x = mx.sym.var("x")
        symbol = mx.sym.Activation(x - 0.5, act_type="relu") * 2
        made = symbol.optimize_for("my backend")
        assert "my_relu" in made.tojson()
        net = mx.gluon.SymbolBlock(made, x)

        def call(number: int) -> None:
            values = cases.numbers(str(number), (2, 3))
            want = np.maximum(values - 0.5, 0) * 2
            np.testing.assert_allclose(net(mx.nd.array(values)).asnumpy(), want, rtol=1e-6)

        in_threads(64, call)
    finally:
        mx.subgraph._BACKENDS.pop("my backend")


def test_waiting_for_everything_inside_of_an_operator_is_an_error(mx, operator) -> None:
    def run(inputs, outputs) -> None:
        mx.nd.waitall()

    x = mx.nd.ones((2,))
    with pytest.raises(mx.base.MXNetError, match="would wait for that operator itself"):
        mx.nd.Custom(x, op_type=operator("waits", run)).asnumpy()

    def wait_for_one(inputs, outputs) -> None:
        made = inputs[0] * 2
        made.wait_to_read()
        outputs[0][:] = made

    assert mx.nd.Custom(x, op_type=operator("waits_for_one", wait_for_one)).asnumpy().tolist() == [2, 2]
    mx.nd.waitall()


def test_an_idle_thread_keeps_nothing_of_a_call_that_failed(mx, operator) -> None:
    gone = threading.Event()

    class Held:
        pass

    def run(in_data, out_data) -> None:
        held = Held()
        weakref.finalize(held, gone.set)
        raise ValueError("the frame of this error has what was held")

    operator("fails_and_holds", run)
    with pytest.raises(mx.MXNetError, match="the frame of this error"):
        mx.nd.Custom(mx.nd.ones(3), op_type="fails_and_holds").wait_to_read()
    # The engine holds no error that was raised; the thread has none when it has handed it over.
    mx.nd.waitall()
    gc.collect()
    assert gone.wait(60)
