"""Operators written in Python: values, threads, failures, recursion, signals, exits and forks."""

from __future__ import annotations

import json
import threading
from textwrap import dedent

import numpy as np
import pytest

import custom_cases as cases
from support import KINDS, in_threads, last_json, run_python

RECORDED = json.loads(cases.RECORDED.read_text())

#: For children: operators that are named by what they do.
OPERATORS = """
import json, os, signal, sys, threading, time
import numpy as np
import mxrt as mx

class Op(mx.operator.CustomOp):
    def __init__(self, run):
        self.run = run
    def forward(self, is_train, req, in_data, out_data, aux):
        self.run(self, in_data, out_data)

def operator(run, **methods):
    def create_operator(self, ctx, shapes, dtypes):
        return Op(run)
    space = {"create_operator": create_operator, **methods}
    mx.operator.register(run.__name__)(type(run.__name__, (mx.operator.CustomOpProp,), space))
    return run

def model(op_type):
    net = mx.sym.Custom(mx.sym.var("data") * 2, op_type=op_type, name="mine") + 1
    return mx.gluon.SymbolBlock(net, mx.sym.var("data"))

@operator
def triple(op, in_data, out_data):
    out_data[0][:] = in_data[0].asnumpy() * 3
"""


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


def test_training_is_refused(own) -> None:
    symbol = cases.network(own)
    args, aux = cases.values(own, symbol)
    bound = symbol.bind(own.cpu(), args, aux_states=aux)
    with pytest.raises(own.base.TrainingNotSupportedError):
        bound.forward(is_train=True)
    with pytest.raises(own.base.TrainingNotSupportedError):
        own.operator.CustomOp().backward([], [], [], [], [], [])


def test_loops_in_python_run_operators_and_loops_in_graphs_refuse_them(mx, operator) -> None:
    operator("adds", lambda x, y: y[0].__setitem__(slice(None), x[0] + 1))

    def body(space):
        return lambda item, state: (space.Custom(item, op_type="adds"), state)

    found, _ = mx.nd.contrib.foreach(body(mx.nd), mx.nd.array([[1], [2]]), mx.nd.zeros(1))
    assert found.asnumpy().tolist() == [[2], [3]]
    loop, _ = mx.sym.contrib.foreach(body(mx.sym), mx.sym.var("data"), mx.sym.var("state"))
    with pytest.raises(NotImplementedError, match="cannot run inside of _foreach"):
        loop.bind(mx.cpu(), {"data": mx.nd.array([[1], [2]]), "state": mx.nd.zeros(1)}).forward()


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


def test_the_environment_rewrites_hybridised_blocks() -> None:
    code = """
    calls = []

    @operator
    def my_relu(op, in_data, out_data):
        calls.append(1)
        out_data[0][:] = np.maximum(in_data[0].asnumpy(), 0)

    @mx.subgraph.register("mine")
    def rewrite(symbol):
        text = symbol.tojson().replace('"op": "Activation"', '"op": "Custom"')
        return mx.sym.load_json(text.replace('"act_type": "relu"', '"op_type": "my_relu"'))

    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Activation("relu"))
    net.hybridize()
    found = [net(mx.nd.array([-1, 2])).asnumpy().tolist() for _ in range(2)]
    print(json.dumps([found, len(calls)]))
    """
    found = last_json(run_python(OPERATORS + dedent(code), env={"MXNET_SUBGRAPH_BACKEND": "mine"}))
    assert found == [[[0, 2]] * 2, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_engine(kind: str) -> None:
    code = """
    @operator
    def fails(op, in_data, out_data):
        raise KeyError("no")

    @operator
    def deeper(op, in_data, out_data):
        out_data[0][:] = model("triple")(in_data[0]) + mx.nd.Custom(in_data[0], op_type="triple")

    net, bad, deep = model("triple"), model("fails"), model("deeper")
    found = [net(mx.nd.array([i])).asscalar() for i in range(3)]
    def work(i):
        for _ in range(5):
            found.append(float(deep(mx.nd.array([i])).asscalar()) == (i * 2 * 6 + 1 + i * 2 * 3) + 1)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    [t.start() for t in threads]; [t.join() for t in threads]
    try:
        bad(mx.nd.ones(1)).asnumpy()
        found.append("no error")
    except mx.MXNetError as error:
        found.append(repr(error.__cause__))
    mx.nd.waitall()
    print(json.dumps([str(x) for x in found[:3]] + [all(found[3:-1]), len(found), found[-1]]))
    """
    found = last_json(run_python(OPERATORS + dedent(code), env={"MXNET_ENGINE_TYPE": kind}))
    assert found == ["1.0", "7.0", "13.0", True, 84, "KeyError('no')"]


def test_ctrl_c_interrupts_the_wait_and_nothing_else() -> None:
    code = """
    go, called = threading.Event(), threading.Event()

    @operator
    def waits(op, in_data, out_data):
        called.wait()
        os.kill(os.getpid(), signal.SIGINT)
        go.wait()
        out_data[0][:] = in_data[0] + 1

    net = model("waits")
    out = net(mx.nd.ones(1))
    try:
        called.set()
        out.asnumpy()
        found = ["not interrupted"]
    except KeyboardInterrupt:
        found = ["interrupted"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    go.set()
    print(json.dumps(found + [out.asscalar().item(), net(mx.nd.ones(1)).asscalar().item()]))
    """
    assert last_json(run_python(OPERATORS + dedent(code))) == ["interrupted", 4, 4]


@pytest.mark.parametrize(
    "where", ["time.sleep(1000)", "[i * i for i in range(99)]", "mx.nd.ones(10**6).asnumpy()", "inner()"]
)
def test_the_interpreter_ends_with_calls_in_flight(where: str) -> None:
    code = """
    inside = threading.Semaphore(0)

    def inner():
        model("triple")(mx.nd.ones(1)).asnumpy()

    @operator
    def endless(op, in_data, out_data):
        inside.release()
        while True:
            WHERE

    net = model("endless")
    pending = [net(mx.nd.ones(1)) for _ in range(8)]
    waiter = threading.Thread(target=lambda: net(mx.nd.ones(1)).asnumpy(), daemon=True)
    waiter.start()
    for _ in range(9):
        inside.acquire()
    print(json.dumps("over"))
    """
    result = run_python(OPERATORS + dedent(code).replace("WHERE", where))
    assert last_json(result) == "over"
    assert "panicked" not in result.stderr


def test_forks() -> None:
    """A fork beside calls: those that run fail in the child, others and new ones run in both."""
    code = """
    go, inside = threading.Event(), threading.Event()

    @operator
    def waits(op, in_data, out_data):
        inside.set()
        go.wait()
        out_data[0][:] = in_data[0] + 1

    @operator
    def forks(op, in_data, out_data):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            out_data[0][:] = 5
            go.set()
            os.write(writing, b"%d" % model("triple")(mx.nd.ones(1)).asscalar())
            os._exit(0)
        os.waitpid(child, 0)
        out_data[0][:] = int(os.read(reading, 10))

    net, fine = model("waits"), model("triple")
    running = net(mx.nd.ones(1))
    inside.wait()
    fine(mx.nd.ones(1)).wait_to_read()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        found = []
        try:
            running.asnumpy()
        except mx.MXNetError as error:
            found.append("forked" in str(error))
        results = []
        def work(i):
            results.append(fine(mx.nd.array([i])).asscalar() == i * 6 + 1)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        found.append(results == [True] * 8)
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.waitpid(child, 0)
    found = json.loads(os.read(reading, 100))
    go.set()
    found.append(running.asscalar().item())
    found.append(fine(mx.nd.ones(1)).asscalar().item())
    found.append(mx.nd.Custom(mx.nd.ones(1), op_type="forks").asscalar().item())
    print(json.dumps(found))
    """
    assert last_json(run_python(OPERATORS + dedent(code))) == [True, True, 4, 7, 7]


def test_forks_beside_calls_without_end() -> None:
    code = """
    net = model("triple")
    right = net(mx.nd.ones(1)).asscalar()
    stop = False
    def work():
        while not stop:
            net(mx.nd.ones(1)).asnumpy()
    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    [t.start() for t in threads]
    codes = []
    for _ in range(10):
        child = os.fork()
        if child == 0:
            os._exit(0 if net(mx.nd.ones(1)).asscalar() == right else 1)
        codes.append(os.waitpid(child, 0)[1])
        time.sleep(0.01)
    stop = True
    [t.join() for t in threads]
    print(json.dumps(codes))
    """
    assert last_json(run_python(OPERATORS + dedent(code))) == [0] * 10


def test_memory_and_threads_stay_flat() -> None:
    code = """
    import gc

    @operator
    def every_third(op, in_data, out_data):
        if int(in_data[0].asnumpy()[0, 0]) % 3 == 0:
            raise ValueError("third")
        out_data[0][:] = in_data[0]

    net = model("every_third")
    def run(n):
        for i in range(n):
            try:
                net(mx.nd.full((1, 20000), i)).asnumpy()
            except mx.MXNetError:
                pass
            mx.nd.Custom(mx.nd.ones((1, 1000)), op_type="triple").asnumpy()
    def use():
        gc.collect()
        mx.nd.waitall()
        return mx._mxrt.info()["memory_in_use"]
    run(100)
    before, objects = use(), len(gc.get_objects())
    run(600)
    after = use()
    print(json.dumps([after - before, len(gc.get_objects()) - objects, threading.active_count()]))
    """
    more, objects, threads = last_json(run_python(OPERATORS + dedent(code), timeout=120))
    assert more < 1 << 20
    assert objects < 1000
    assert threads < 10
