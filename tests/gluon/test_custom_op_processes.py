"""Operators written in Python, tested in child processes: engines, signals, exits, forks."""

from __future__ import annotations

from textwrap import dedent

import pytest

from support import KINDS, last_json, run_python

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


def test_ctrl_c_interrupts_a_call_that_waits_for_several_shapes() -> None:
    """The call would wait for the second array after the first wait was interrupted."""
    code = """
    go = threading.Event()

    @operator
    def waits(op, in_data, out_data):
        os.kill(os.getpid(), signal.SIGINT)
        go.wait(60)
        out_data[0][:] = in_data[0]

    net = model("waits")
    places = [mx.nd.zeros(1), mx.nd.zeros(1, dtype="int64"), mx.nd.zeros(1, dtype="int64")]
    try:
        attrs = {"return_index": True, "return_counts": True}
        mx._mxrt.invoke("_npi_unique", (net(mx.nd.ones(1)),), attrs, places)
        found = ["not interrupted"]
    except KeyboardInterrupt:
        found = ["interrupted"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    go.set()
    mx.nd.waitall()
    print(json.dumps(found))
    """
    assert last_json(run_python(OPERATORS + dedent(code))) == ["interrupted"]


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
    """A fork during calls: those that run fail in the child, others and new ones run in both."""
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
        gc.collect()  # without the global lock it also takes back what another thread had made
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
