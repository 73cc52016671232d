"""Blocks, compiled symbols and executors over the same parameters share their packed weights."""

from __future__ import annotations

from support import run_python

SHARING = """
import numpy as np
import mxrt as mx

def used():
    mx.nd.waitall()
    return mx.runtime.info()["memory_in_use"]

data = mx.sym.Variable("data")
graph = data
for i in range(6):
    graph = mx.sym.Convolution(graph, num_filter=128, kernel=(3, 3), pad=(1, 1), name=f"c{i}")
    graph = mx.sym.Activation(mx.sym.BatchNorm(graph, fix_gamma=False, name=f"n{i}"), act_type="relu")
random = np.random.RandomState(0)
net = mx.gluon.SymbolBlock(graph, [data])
net.initialize(mx.init.Uniform(0.05))
image = mx.nd.array(random.rand(1, 128, 14, 14))
net(image).wait_to_read()
for name, parameter in net.collect_params().items():
    if name.endswith(("gamma", "var")):
        parameter.set_data(mx.nd.ones(parameter.shape))
expected = net(image).asnumpy()
of_one = used()
values = {name: parameter.data() for name, parameter in net.collect_params().items()}
inputs = [image if name == "data" else values[name] for name in graph.list_inputs()]
states = set(graph.list_auxiliary_states())
held = []
for _ in range(2):
    op = mx._mxrt.CachedOp(graph)
    assert np.array_equal(op(*inputs).asnumpy(), expected)
    arguments = {"data": image, **{name: value for name, value in values.items() if name not in states}}
    auxiliary = {name: value for name, value in values.items() if name in states}
    executor = graph.bind(mx.cpu(), arguments, aux_states=auxiliary)
    assert np.array_equal(executor.forward()[0].asnumpy(), expected)
    held += [op, executor]
of_five = used()
assert of_five <= 1.3 * of_one, (of_one, of_five)

# A new value reaches all of them.
net.collect_params()["c3_bias"].set_data(mx.nd.ones((128,)))
changed = net(image).asnumpy()
assert not np.array_equal(changed, expected)
for op, executor in zip(held[::2], held[1::2]):
    assert np.array_equal(op(*inputs).asnumpy(), changed)
    assert np.array_equal(executor.forward()[0].asnumpy(), changed)
print(of_one, of_five)
"""


def test_blocks_ops_and_executors_over_the_same_arrays_hold_their_weights_once() -> None:
    result = run_python(SHARING)
    assert result.returncode == 0, result.stderr
