"""``module._exec_group`` and its executors, which programs of MXNet feed and read by themselves."""

from __future__ import annotations

import threading

import numpy as np
import pytest


@pytest.fixture
def convolution(mx):
    """A module bound to one image of 4x4, whose weights are ones."""
    net = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=2, no_bias=True, name="c")
    made = mx.mod.Module(net, label_names=None)
    made.bind([("data", (1, 3, 4, 4))], for_training=False)
    made.set_params({"c_weight": mx.nd.ones((2, 3, 3, 3))}, {})
    return made


def scaled(mx, rows: int = 2, contexts=None):
    """A module that multiplies its data, of two columns, by a weight."""
    net = mx.sym.broadcast_mul(mx.sym.var("data"), mx.sym.var("w"), name="out")
    made = mx.mod.Module(net, label_names=None, context=contexts or mx.cpu())
    made.bind([("data", (rows, 2))], for_training=False)
    made.set_params({"w": mx.nd.array([10])}, {})
    return made


def batch(mx, value: float, rows: int = 2):
    return mx.io.DataBatch([mx.nd.full((rows, 2), value)])


def test_what_is_written_to_an_input_is_what_the_executor_computes(mx) -> None:
    module = scaled(mx)
    module.forward(batch(mx, 1))
    held = module._exec_group.execs[0]
    assert held.outputs[0].asnumpy().tolist() == [[10, 10]] * 2
    held.arg_dict["data"][:] = 7
    held.forward(is_train=False)
    assert held.outputs[0].asnumpy().tolist() == [[70, 70]] * 2
    assert module._exec_group.execs[0] is held
    assert module.get_outputs()[0].asnumpy().tolist() == [[70, 70]] * 2


def test_what_the_module_computes_is_what_its_executors_show(mx) -> None:
    module = scaled(mx)
    held = module._exec_group.execs[0]
    module.forward(batch(mx, 3))
    assert held.outputs[0].asnumpy().tolist() == [[30, 30]] * 2
    assert held.arg_dict["data"].asnumpy().tolist() == [[3, 3]] * 2
    assert module._exec_group.data_arrays[0][0][1] is held.arg_dict["data"]


def test_a_group_is_reshaped_filled_and_run_by_its_arrays(mx, convolution) -> None:
    group = convolution._exec_group
    group.reshape([mx.io.DataDesc("data", (1, 3, 6, 6))], None)
    group.data_arrays[0][0][1][:] = np.ones((1, 3, 6, 6), "float32")
    group.execs[0].forward(is_train=False)
    assert group.execs[0].outputs[0].shape == (1, 2, 4, 4)
    assert (group.execs[0].outputs[0].asnumpy() == 27).all()
    assert convolution.data_shapes[0].shape == (1, 3, 6, 6)
    assert convolution.get_outputs()[0].shape == (1, 2, 4, 4)


def test_a_shape_that_does_not_fit_the_parameters_changes_nothing(mx) -> None:
    module = mx.mod.Module(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), label_names=None)
    module.bind([("data", (2, 3))], for_training=False)
    module.init_params(mx.init.One())
    before = module._exec_group.execs[0]
    with pytest.raises(mx.base.MXNetShapeError, match="fc"):
        module.reshape([("data", (2, 5))])
    assert module.data_shapes[0].shape == (2, 3) and module._exec_group.execs[0] is before


def test_parameters_that_are_set_are_those_of_the_executors(mx) -> None:
    module = scaled(mx)
    weight = module._exec_group.execs[0].arg_dict["w"]
    module.set_params({"w": mx.nd.array([2])}, {})
    assert weight.asnumpy().tolist() == [2], "the array that the program holds is the one that was set"
    module._exec_group.execs[0].forward(data=mx.nd.ones((2, 2)))
    assert module.get_outputs()[0].asnumpy().tolist() == [[2, 2]] * 2
    weight[:] = 5
    module.forward(batch(mx, 1))
    assert module.get_outputs()[0].asnumpy().tolist() == [[5, 5]] * 2
    assert module.get_params()[0]["w"].asnumpy().tolist() == [5]
    taken = {"w": mx.nd.zeros((1,))}
    module._exec_group.get_params(taken, {})
    assert taken["w"].asnumpy().tolist() == [5]


def test_parameters_of_executors_are_there_before_the_module_has_any(mx) -> None:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (1, 3))], for_training=False)
    held = module._exec_group.execs[0]
    held.copy_params_from({"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.ones((2,))})
    assert held.forward(data=mx.nd.ones((1, 3)))[0].asnumpy().tolist() == [[4, 4]]
    module.init_params(mx.init.One())
    assert held.arg_dict["fc_weight"].asnumpy().tolist() == [[1, 1, 1]] * 2


def test_each_context_has_an_executor_with_its_rows(mx) -> None:
    module = scaled(mx, 4, [mx.cpu(0), mx.cpu(1)])
    group = module._exec_group
    assert group.slices == [slice(0, 2), slice(2, 4)] and group.batch_size == 4
    module.forward(mx.io.DataBatch([mx.nd.arange(8).reshape((4, 2))]))
    assert group.execs[1].arg_dict["data"].asnumpy().tolist() == [[4, 5], [6, 7]]
    group.execs[1].arg_dict["data"][:] = 1
    group.execs[1].forward()
    assert module.get_outputs()[0].asnumpy().tolist() == [[0, 10], [20, 30], [10, 10], [10, 10]]


def test_a_batch_of_another_size_gives_the_group_other_executors(mx) -> None:
    module = scaled(mx)
    group = module._exec_group
    module.forward(batch(mx, 1, rows=3))
    assert module._exec_group is group and group.batch_size == 3
    assert group.execs[0].arg_dict["data"].shape == (3, 2)
    assert group.execs[0].outputs[0].asnumpy().tolist() == [[10, 10]] * 3


def test_each_thread_gets_the_results_that_it_computed_before_anyone_looked(mx) -> None:
    module = scaled(mx)
    turn, found = [threading.Event(), threading.Event()], []

    def other() -> None:
        module.forward(batch(mx, 4))
        turn[0].set()
        turn[1].wait()
        found.append(module.get_outputs()[0].asnumpy().tolist())

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    turn[0].wait()
    module.forward(batch(mx, 1))
    assert module._exec_group.execs[0].outputs[0].asnumpy().tolist() == [[10, 10]] * 2
    turn[1].set()
    thread.join()
    assert found == [[[40, 40]] * 2]


def test_a_module_that_is_bound_again_has_another_group(mx) -> None:
    module = scaled(mx)
    group = module._exec_group
    module.bind([("data", (1, 2))], for_training=False, force_rebind=True)
    assert module._exec_group is not group and module._exec_group.batch_size == 1
    module._reset_bind()
    assert module._exec_group is None


def test_a_group_can_be_made_without_a_module(mx) -> None:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="out")
    made = mx.module.executor_group.DataParallelExecutorGroup(
        net, [mx.cpu()], [1], [("data", (2, 2))], None, ["out_weight"], for_training=False, inputs_need_grad=False
    )
    made.execs[0].arg_dict["out_weight"][:] = 3
    made.forward(batch(mx, 2))
    assert made.get_outputs()[0].asnumpy().tolist() == [[12, 12]] * 2
    assert made.get_output_shapes() == [("out_output", (2, 2))]
    with pytest.raises(mx.base.MXNetValueError, match="reshape"):
        made.forward(batch(mx, 2, rows=3))
    with pytest.raises(mx.base.TrainingNotSupportedError):
        made.backward()
