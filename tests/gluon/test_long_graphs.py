"""Graphs of many thousand nodes: they load and run, Ctrl-C ends a first call, and services can
bound them.
"""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from support import ROOT, run_python


def chain(length: int) -> tuple[str, list[str]]:
    """The text of a chain of random layers of width 4, and the kinds of its layers in order."""
    nodes: list[dict[str, object]] = [{"op": "null", "name": "data", "inputs": []}]
    arguments, kinds, last, before = [0], [], 0, 0
    rng = random.Random(1)
    for i in range(length):
        kind = rng.choice(["relu", "add", "scale", "dense"])
        if kind == "relu":
            node = {"op": "Activation", "attrs": {"act_type": "relu"}, "inputs": [[last, 0, 0]]}
        elif kind == "add":
            node = {"op": "elemwise_add", "inputs": [[last, 0, 0], [before, 0, 0]]}
        elif kind == "scale":
            node = {"op": "_mul_scalar", "attrs": {"scalar": "0.5"}, "inputs": [[last, 0, 0]]}
        else:
            weight = len(nodes)
            arguments.append(weight)
            nodes.append({"op": "null", "name": f"w{i}", "inputs": []})
            attrs = {"num_hidden": "4", "no_bias": "True"}
            node = {"op": "FullyConnected", "attrs": attrs, "inputs": [[last, 0, 0], [weight, 0, 0]]}
        nodes.append({**node, "name": f"n{i}"})
        kinds.append(kind)
        last, before = len(nodes) - 1, last
    return json.dumps({"nodes": nodes, "arg_nodes": arguments, "heads": [[last, 0, 0]]}), kinds


def expected(kinds: list[str], data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The result of a chain whose layers all have this weight."""
    last = before = data.astype(np.float64)
    for kind in kinds:
        if kind == "relu":
            made = np.maximum(last, 0)
        elif kind == "add":
            made = last + before
        elif kind == "scale":
            made = last * 0.5
        else:
            made = last @ weight.T
        last, before = made, last
    return last


def test_twenty_thousand_nodes_load_and_compute(mx) -> None:
    text, kinds = chain(20_000)
    symbol = mx.sym.load_json(text)
    names = symbol.list_arguments()
    # A rotation halves nothing and blows nothing up: what the other layers do stays visible.
    weight = 0.9 * np.linalg.qr(np.random.RandomState(0).randn(4, 4))[0]
    data = np.random.RandomState(1).rand(2, 4) + 1
    shared = mx.nd.array(weight)
    arrays = dict.fromkeys(names[1:], shared)
    executor = symbol.bind(mx.cpu(), {"data": mx.nd.array(data), **arrays})
    got = executor.forward()[0].asnumpy()
    wanted = expected(kinds, data, weight)
    assert np.allclose(got, wanted, rtol=1e-2, atol=1e-6 * np.abs(wanted).max() + 1e-30)


CTRL_C = """
import os, signal, sys, threading, time
import mxrt as mx

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path[:0] = sys.argv[1:3]
from test_long_graphs import chain

text, _ = chain(60_000)
symbol = mx.sym.load_json(text)
weight = mx.nd.ones((4, 4))
arrays = [mx.nd.ones((2, 4))] + [weight] * (len(symbol.list_arguments()) - 1)
op = mx._mxrt.CachedOp(symbol)
calling = threading.Event()

def interrupt():
    calling.wait()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    calling.set()
    op(*arrays)
    print("answered")
except KeyboardInterrupt:
    print("interrupted", op.plan_cache_info()["built"])
# The process, and the op, can be used afterwards, also by other threads.
small = mx.sym.load_json(chain(50)[0])
own = mx._mxrt.CachedOp(small)
inputs = [mx.nd.ones((2, 4))] + [weight] * (len(small.list_arguments()) - 1)
assert own(*inputs).asnumpy().shape == (2, 4)
thread = threading.Thread(target=lambda: print(op(*arrays).asnumpy().shape))
thread.start()
thread.join()
"""


def test_ctrl_c_ends_a_first_call_and_the_op_stays_usable() -> None:
    result = run_python(CTRL_C, ROOT / "tests", ROOT / "tests" / "gluon", timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["interrupted 0", "(2, 4)"]


HANDLER = """
import os, signal, sys, threading, time
import mxrt as mx

sys.path[:0] = sys.argv[1:3]
from test_long_graphs import chain

text, _ = chain(60_000)
symbol = mx.sym.load_json(text)
weight = mx.nd.ones((4, 4))
arrays = [mx.nd.ones((2, 4))] + [weight] * (len(symbol.list_arguments()) - 1)
op = mx._mxrt.CachedOp(symbol)
small = mx.sym.load_json(chain(50)[0])
own = mx._mxrt.CachedOp(small)
seen = []

def handler(signum, frame):
    inputs = [mx.nd.ones((2, 4))] + [weight] * (len(small.list_arguments()) - 1)
    seen.append(own(*inputs).asnumpy().shape)
    child = os.fork()
    if child == 0:
        own(*inputs).asnumpy()
        os._exit(7)
    seen.append(os.waitpid(child, 0)[1] >> 8)

signal.signal(signal.SIGUSR1, handler)
timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1))
timer.start()
shape = op(*arrays).asnumpy().shape
while len(seen) < 2:  # the timer of a busy machine may be late
    time.sleep(0.01)
print(shape, seen)
"""


def test_a_handler_computes_and_forks_while_its_thread_compiles() -> None:
    result = run_python(HANDLER, ROOT / "tests", ROOT / "tests" / "gluon", timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "(2, 4) [(2, 4), 7]"


def test_a_bound_on_nodes_refuses_larger_symbols_and_names_both_numbers(mx) -> None:
    text, _ = chain(10)
    nodes = len(json.loads(text)["nodes"])
    try:
        mx.set_limits(max_nodes=nodes)
        symbol = mx.sym.load_json(text)
        mx.set_limits(max_nodes=nodes - 1)
        message = rf"has {nodes} nodes and the limit is {nodes - 1}; mxrt.set_limits\(max_nodes=...\)"
        with pytest.raises(mx.base.MXNetValueError, match=message):
            mx.sym.load_json(text)
        assert symbol.list_arguments()[0] == "data", "what is loaded stays"
    finally:
        mx.set_limits(max_nodes=None)
    assert mx.sym.load_json(text).list_arguments()[0] == "data"


def test_the_bound_counts_nodes_of_inner_graphs_and_is_checked(mx) -> None:
    for wrong, kind in [("1", TypeError), (True, TypeError), (-1, ValueError)]:
        with pytest.raises(kind, match="set_limits: max_nodes="):
            mx.set_limits(max_nodes=wrong)


def test_the_environment_sets_the_bound() -> None:
    code = "import sys, mxrt as mx\nmx.sym.load_json(sys.argv[1])"
    result = run_python(code, chain(10)[0], env={"MXRT_MAX_NODES": "5"})
    assert "the limit is 5" in result.stderr and "MXNetValueError" in result.stderr
