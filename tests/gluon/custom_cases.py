"""Operators written in Python whose answers are compared with MXNet's: each case runs with either
module.

``python tests/gluon/custom_cases.py``, with a Python that has MXNet 1.9.1, writes
``tests/recorded/custom.json`` again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from gluon_cases import numbers, plain

RECORDED = Path(__file__).parents[1] / "recorded" / "custom.json"


def define(mx) -> None:
    """Registers the operators."""
    op = mx.operator

    class Softmax(op.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            x = in_data[0].asnumpy()
            y = np.exp(x - x.max(axis=1, keepdims=True))
            self.assign(out_data[0], req[0], mx.nd.array(y / y.sum(axis=1, keepdims=True)))

    @op.register("t_softmax")
    class SoftmaxProp(op.CustomOpProp):
        def __init__(self):
            super().__init__(need_top_grad=False)

        def list_arguments(self):
            return ["data", "label"]

        def infer_shape(self, in_shape):
            return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

        def infer_type(self, in_type):
            return [in_type[0]] * 2, [in_type[0]], []

        def create_operator(self, ctx, shapes, dtypes):
            return Softmax()

    class Running(op.CustomOp):
        """Subtracts a running mean, which it moves by a part of the difference."""

        def __init__(self, momentum):
            self.momentum = momentum

        def forward(self, is_train, req, in_data, out_data, aux):
            mean = in_data[0].mean(axis=0)
            self.assign(out_data[0], req[0], in_data[0] - aux[0].reshape((1, -1)))
            aux[0][:] = aux[0] * self.momentum + mean * (1 - self.momentum)
            aux[1][:] = aux[1] + 1

    @op.register("t_running")
    class RunningProp(op.CustomOpProp):
        def __init__(self, momentum="0.5"):
            super().__init__()
            self.momentum = float(momentum)

        def list_auxiliary_states(self):
            return ["mean", "count"]

        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0]], [(in_shape[0][1],), (1,)]

        def create_operator(self, ctx, shapes, dtypes):
            return Running(self.momentum)

    class Parts(op.CustomOp):
        """Sum, difference, and where the first is larger, of another type and shape."""

        def forward(self, is_train, req, in_data, out_data, aux):
            a, b = in_data
            self.assign(out_data[0], req[0], a + b)
            self.assign(out_data[1], req[1], a)
            self.assign(out_data[1], "add", -b)
            self.assign(out_data[1], "null", a)
            self.assign(out_data[2], req[2], (a > b).sum(axis=1).astype("int32"))

    @op.register("t_parts")
    class PartsProp(op.CustomOpProp):
        def list_arguments(self):
            return ["left", "right"]

        def list_outputs(self):
            return ["sum", "difference", "larger"]

        def infer_shape(self, in_shape):
            known = in_shape[0] or in_shape[1]
            return [known, known], [known, known, [known[0]]], []

        def infer_type(self, in_type):
            return in_type, [in_type[0], in_type[0], np.int32], []

        def create_operator(self, ctx, shapes, dtypes):
            return Parts()

    class Step(op.CustomOp):
        """Sum and difference."""

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] + in_data[1])
            self.assign(out_data[1], req[1], mx.nd.array(in_data[0].asnumpy() - in_data[1].asnumpy()))

    @op.register("t_step")
    class StepProp(op.CustomOpProp):
        # MXNet gives the class the name of the graph of a loop as an argument.
        def __init__(self, **kwargs):
            super().__init__()

        def list_arguments(self):
            return ["left", "right"]

        def list_outputs(self):
            return ["sum", "difference"]

        def create_operator(self, ctx, shapes, dtypes):
            return Step()


def network(mx):
    """Operators of the library before, between and after those of this file."""
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=6, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    net = mx.sym.Custom(net, op_type="t_running", momentum=0.25, name="running")
    parts = mx.sym.Custom(net, net * 0.5 + 0.1, op_type="t_parts", name="parts")
    net = mx.sym.FullyConnected(mx.sym.concat(parts[0], parts[1]), num_hidden=4, name="fc2")
    net = mx.sym.Custom(data=net, op_type="t_softmax", name="softmax")
    return mx.sym.Group([net, parts[2]])


def values(mx, symbol, batch: int = 3) -> tuple[dict, dict]:
    shapes, _, aux_shapes = symbol.infer_shape(data=(batch, 5))
    args = {n: mx.nd.array(numbers(n, s)) for n, s in zip(symbol.list_arguments(), shapes, strict=True)}
    aux = {n: mx.nd.array(numbers(n, s)) for n, s in zip(symbol.list_auxiliary_states(), aux_shapes, strict=True)}
    return args, aux


def imperative(mx):
    """``nd.Custom``: one output, several, and states."""
    x, y = mx.nd.array(numbers("x", (3, 4))), mx.nd.array(numbers("y", (3, 4)))
    mean, count = mx.nd.zeros(4), mx.nd.zeros(1)
    out = [mx.nd.Custom(x, mx.nd.zeros(3), op_type="t_softmax")]
    out += mx.nd.Custom(x, y, op_type="t_parts")
    out += [mx.nd.Custom(x, mean, count, op_type="t_running", momentum=0.75) for _ in range(3)]
    return [plain(out), plain([mean, count]), [str(np.dtype(a.dtype)) for a in out]]


def executor(mx):
    """An executor: names, shapes and types, three calls, and the states they leave."""
    symbol = network(mx)
    args, aux = values(mx, symbol)
    bound = symbol.bind(mx.cpu(), args, aux_states=aux)
    out = [plain(list(bound.forward())) for _ in range(3)]
    names = [symbol.list_arguments(), symbol.list_auxiliary_states(), symbol.list_outputs()]
    shapes = [[list(s) for s in part] for part in symbol.infer_shape(data=(3, 5))]
    types = [[np.dtype(t).name for t in part] for part in symbol.infer_type(data="float32")]
    return [names, shapes, types, out, plain([aux[n] for n in symbol.list_auxiliary_states()])]


def text(mx):
    """The nodes in the JSON text, and a graph that was written and read."""
    symbol = network(mx)
    nodes = [n for n in json.loads(symbol.tojson())["nodes"] if n["op"] == "Custom"]
    again = mx.sym.load_json(symbol.tojson())
    args, aux = values(mx, again)
    return [[[n["name"], n["attrs"]] for n in nodes], plain(list(again.bind(mx.cpu(), args, aux_states=aux).forward()))]


def module(mx):
    """A Module that predicts."""
    symbol = network(mx)[0]
    args, aux = values(mx, symbol)
    made = mx.mod.Module(symbol, data_names=["data"], label_names=["softmax_label"])
    made.bind([("data", (3, 5))], [("softmax_label", (3,))], for_training=False)
    made.set_params({n: v for n, v in args.items() if n not in ("data", "softmax_label")}, aux)
    made.forward(mx.io.DataBatch([args["data"]], [args["softmax_label"]]), is_train=False)
    return plain(made.get_outputs())


def block(mx, hybridize: bool):
    """A HybridBlock with such an operator, exported and read as a SymbolBlock."""

    class Net(mx.gluon.nn.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.dense = mx.gluon.nn.Dense(4, in_units=5)

        def hybrid_forward(self, F, x):
            y = self.dense(x)
            return F.Custom(y, y * 2, op_type="t_parts")[0] * 2

    net = Net(prefix="net_")
    net.initialize()
    for name, parameter in net.collect_params().items():
        parameter.set_data(mx.nd.array(numbers(name, parameter.shape)))
    if hybridize:
        net.hybridize()
    x = mx.nd.array(numbers("data", (3, 5)))
    out = net(x)
    found = [plain(out)]
    if hybridize:
        with tempfile.TemporaryDirectory() as folder:
            net.export(f"{folder}/net")
            files = f"{folder}/net-symbol.json", ["data"], f"{folder}/net-0000.params"
            found.append(plain(mx.gluon.SymbolBlock.imports(*files)(x)))
    return found


def step(mx, x, y):
    return mx.sym.Custom(x, y, op_type="t_step")


def loops(mx):
    """Graphs of loops and branches with such an operator inside, and what it is called with."""
    var = mx.sym.var

    def layer(x, state):
        both = step(mx, mx.sym.FullyConnected(x, var("weight"), no_bias=True, num_hidden=4), state)
        return [both[0] * 2, both[1]], mx.sym.tanh(both[0])

    def row(matrix, state):
        _, state = mx.sym.contrib.foreach(lambda x, s: (x, step(mx, x, s)[1]), matrix, state)
        return state + 1, state

    def count(x, n):
        both = step(mx, x, n)
        return both[1], [both[0], n + 1]

    def numbered(limit):
        return mx.sym.contrib.while_loop(
            lambda x, n: step(mx, n, var("limit"))[1] < 0, count, [var("x"), var("n")], max_iterations=5
        )

    shapes = {"data": (5, 3, 2), "weight": (4, 2), "state": (3, 4)}
    yield "foreach", mx.sym.contrib.foreach(layer, var("data"), var("state")), shapes, {}
    yield "no state", mx.sym.contrib.foreach(lambda x, s: (step(mx, x, x)[0], s), var("data"), []), {"data": (3,)}, {}
    shapes = {"data": (3, 4, 2), "state": (2,)}
    yield "nested", mx.sym.contrib.foreach(row, var("data"), var("state")), shapes, {}
    for limit in 0, 3, 9:
        yield f"while {limit}", numbered(limit), {"x": (1,)}, {"n": 0, "limit": limit}
    chosen = mx.sym.contrib.cond(var("n") > 0, lambda: list(step(mx, var("x"), var("y"))), lambda: [var("x"), var("y")])
    for n in 0, 1:
        yield f"cond {n}", (chosen, []), {"x": (2, 3), "y": (2, 3)}, {"n": n}


def flat(values):
    if isinstance(values, (list, tuple)):
        return [one for value in values for one in flat(value)]
    return [values]


def control_flow(mx, block: bool = False):
    """Loops and branches with such operators, in an executor or in a block."""
    found = {}
    for name, made, shapes, given in loops(mx):
        symbol = mx.sym.Group(flat(made))
        args = {n: mx.nd.array(numbers(f"{name} {n}", shape)) for n, shape in shapes.items()}
        args |= {n: mx.nd.array([value]) for n, value in given.items()}
        if block:
            names = symbol.list_arguments()
            outputs = flat(mx.gluon.SymbolBlock(symbol, [mx.sym.var(n) for n in names])(*(args[n] for n in names)))
        else:
            outputs = symbol.bind(mx.cpu(), args).forward()
        if "limit" in given:
            # MXNet does not write the rows after the last step.
            rows = min(given["limit"], 5)
            outputs = [mx.nd.array(outputs[0].asnumpy()[:rows]) if rows else mx.nd.zeros(1), *outputs[1:]]
        found[name] = plain(list(outputs))
    return found


CASES = {
    "imperative": imperative,
    "executor": executor,
    "text": text,
    "module": module,
    "plain block": lambda mx: block(mx, False),
    "hybrid block": lambda mx: block(mx, True),
    "control flow": control_flow,
}


def record() -> None:
    import mxnet as mx

    define(mx)
    found = {name: case(mx) for name, case in CASES.items()}
    RECORDED.write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    record()
