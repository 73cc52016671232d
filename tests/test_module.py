"""Module and checkpoints beyond the ways that the recorded models are called."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from support import in_threads


@pytest.fixture
def checkpoint(mx, tmp_path: Path) -> str:
    """A dense layer that adds up its five inputs, as files."""
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    prefix = str(tmp_path / "sum")
    mx.model.save_checkpoint(prefix, 3, fc, {"fc_weight": mx.nd.ones((2, 5)), "fc_bias": mx.nd.zeros((2,))}, {})
    return prefix


@pytest.fixture
def module(mx, checkpoint: str):
    mod = mx.mod.Module.load(checkpoint, 3, data_names=["x"], label_names=None)
    mod.bind([("x", (2, 5))], for_training=False)
    return mod


def test_a_module_follows_the_shape_of_the_batch(mx, module) -> None:
    for rows in (2, 7, 1):
        module.forward(mx.io.DataBatch([mx.nd.ones((rows, 5))]), is_train=False)
        assert module.get_outputs()[0].asnumpy().tolist() == [[5, 5]] * rows
        assert module.data_shapes[0].shape == (rows, 5)
    assert module.output_shapes == [("fc_output", (1, 2))]


def test_predict_leaves_out_what_only_fills_a_batch_up(mx, module) -> None:
    rows = np.arange(35, dtype=np.float32).reshape(7, 5)
    batches = mx.io.NDArrayIter({"x": rows}, batch_size=3)
    got = module.predict(batches)
    assert np.array_equal(got.asnumpy()[:, 0], rows.sum(axis=1))
    lists = module.predict(batches, merge_batches=False)
    assert [part[0].shape[0] for part in lists] == [3, 3, 1]
    assert isinstance(module.predict(batches, always_output_list=True), list)
    assert module.predict(batches, num_batch=1).shape == (3, 2)
    assert np.array_equal(module.predict(rows).asnumpy()[:, 0], rows.sum(axis=1))
    assert [number for _, number, _ in module.iter_predict(batches)] == [0, 1, 2]


def test_parameters_that_are_missing_or_misshapen_are_all_named(mx, module) -> None:
    with pytest.raises(RuntimeError, match="fc_bias is not presented"):
        module.set_params({"fc_weight": mx.nd.ones((2, 5))}, {})
    with pytest.raises(mx.base.MXNetError) as caught:
        module.set_params({"fc_weight": mx.nd.ones((4, 4))}, {})
    assert "fc_bias" in str(caught.value)
    assert "(4, 4)" in str(caught.value)
    module.set_params({"fc_weight": mx.nd.ones((2, 5)), "fc_bias": mx.nd.ones((2,)), "extra": mx.nd.ones((1,))}, {})
    assert sorted(module.get_params()[0]) == ["fc_bias", "fc_weight"]


def test_names_that_do_not_fit_are_named(mx, module) -> None:
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    with pytest.raises(ValueError, match="'data' is not found"):
        mx.mod.Module(fc)
    with pytest.raises(ValueError, match="data_names"):
        module.bind([("y", (2, 5))], force_rebind=True)
    with pytest.raises(mx.base.MXNetError, match="x"):
        module.forward(mx.io.DataBatch([np.ones((2, 5))]))
    with pytest.raises(mx.base.MXNetError):
        module.forward(mx.io.DataBatch([]))


def test_steps_in_the_wrong_order_say_what_comes_first(mx) -> None:
    fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    mod = mx.mod.Module(fc, data_names=["x"], label_names=None)
    for call, first in (
        (mod.get_outputs, "bind"),
        (lambda: mod.forward(mx.io.DataBatch([mx.nd.ones((1, 5))])), "bind"),
    ):
        with pytest.raises(AssertionError, match=first):
            call()
    mod.bind([("x", (2, 5))])
    with pytest.raises(AssertionError, match="set_params"):
        mod.forward(mx.io.DataBatch([mx.nd.ones((1, 5))]))
    mod.init_params(mx.init.One())
    with pytest.raises(AssertionError, match="forward"):
        mod.get_outputs()
    mod.forward(mx.io.DataBatch([mx.nd.ones((1, 5))]))
    assert mod.get_outputs()[0].asnumpy().tolist() == [[5, 5]]


def test_files_that_are_no_checkpoint_are_refused(mx, checkpoint: str) -> None:
    mx.nd.save(f"{checkpoint}-0004.params", {"fc_weight": mx.nd.ones((2, 5))})
    with pytest.raises(ValueError, match="fc_weight"):
        mx.model.load_checkpoint(checkpoint, 4)
    mx.nd.save(f"{checkpoint}-0005.params", [mx.nd.ones((2, 5))])
    with pytest.raises(mx.base.MXNetError, match="names"):
        mx.model.load_params(checkpoint, 5)


def test_each_thread_gets_the_outputs_of_its_own_forward(mx, module, eager_switching) -> None:
    wrong = []

    def work(number: int) -> None:
        for n in range(200):
            rows = 1 + (number + n) % 4
            module.forward(mx.io.DataBatch([mx.nd.full((rows, 5), number)]), is_train=False)
            got = module.get_outputs()[0].asnumpy()
            if got.tolist() != [[5.0 * number] * 2] * rows:
                wrong.append(got)

    in_threads(8, work)
    assert not wrong, wrong[:3]


def test_rolling_over_begins_the_next_epoch_with_what_was_left(mx) -> None:
    batches = mx.io.NDArrayIter(np.arange(7, dtype=np.float32), batch_size=3, last_batch_handle="roll_over")
    seen = []
    for _ in range(3):
        seen.append([(batch.data[0].asnumpy().tolist(), batch.pad) for batch in batches])
        batches.reset()
    assert seen == [
        [([0, 1, 2], 0), ([3, 4, 5], 0)],
        [([6, 0, 1], 1), ([2, 3, 4], 0)],
        [([5, 6, 0], 2), ([1, 2, 3], 0), ([4, 5, 6], 0)],
    ]


def test_a_batch_needs_data_and_nothing_else(mx, module) -> None:
    """As in MXNet's own examples, which make batches of ``namedtuple("Batch", ["data"])``."""
    batch = namedtuple("Batch", ["data"])
    for rows in (2, 5):
        module.forward(batch([mx.nd.ones((rows, 5))]))
        assert module.get_outputs()[0].asnumpy().tolist() == [[5, 5]] * rows


def test_a_batch_that_does_not_fit_leaves_the_module_as_it_was(mx, module) -> None:
    with pytest.raises(mx.base.MXNetError):
        module.forward(mx.io.DataBatch([mx.nd.ones((2, 6))]))
    assert module.data_shapes[0].shape == (2, 5)
    module.set_params({"fc_weight": mx.nd.ones((2, 5)) * 2, "fc_bias": mx.nd.zeros((2,))}, {})
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 5))]))
    assert module.get_outputs()[0].asnumpy().tolist() == [[10, 10]] * 2


def test_labels_that_nobody_gives_fit_the_batch_of_their_own_thread(mx, eager_switching) -> None:
    graph = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    mod = mx.mod.Module(graph)
    mod.bind([("data", (1, 3))], [("softmax_label", (1,))], for_training=False)
    mod.set_params({"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros((2,))}, {})
    wrong = []

    def work(number: int) -> None:
        for n in range(400):
            rows = 1 + (number + n) % 5
            mod.forward(mx.io.DataBatch([mx.nd.ones((rows, 3))]))
            if mod.get_outputs()[0].asnumpy().tolist() != [[0.5, 0.5]] * rows:
                wrong.append(rows)

    in_threads(8, work)
    assert not wrong, wrong[:3]
