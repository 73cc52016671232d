"""Texts of blocks and initializers: tables, names and numbers as in MXNet 1.9.1."""

from __future__ import annotations

import logging

import numpy as np
import pytest


def test_a_summary_of_a_graph_counts_parameters_without_values(mx, capsys) -> None:
    data = mx.sym.var("d")
    block = mx.gluon.SymbolBlock(mx.sym.BatchNorm(mx.sym.FullyConnected(data, num_hidden=2)), data)
    block.initialize()
    block.summary(mx.nd.ones((2, 3)))
    before = capsys.readouterr().out
    assert "16 parameters" in before
    block(mx.nd.ones((2, 3)))
    block.summary(mx.nd.ones((2, 3)))
    assert capsys.readouterr().out == before


def test_numbers_of_numpy_look_like_those_of_python(mx) -> None:
    nn, one = mx.gluon.nn, np.int64
    for made, expected in (
        (nn.Conv2D(one(2), one(3), in_channels=one(4)), "Conv2D(4 -> 2, kernel_size=(3, 3), stride=(1, 1))"),
        (nn.Conv1D(one(2), one(3), padding=one(1)), "Conv1D(None -> 2, kernel_size=(3,), stride=(1,), padding=(1,))"),
        (nn.Dense(one(2), in_units=one(3)), "Dense(3 -> 2, linear)"),
        (nn.MaxPool2D(one(2)), "MaxPool2D(size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False"),
        (nn.LayerNorm(epsilon=np.float64(0.5)), "LayerNorm(eps=0.5, axis=-1"),
        (mx.gluon.Parameter("a", shape=(one(2), 3)), "Parameter a (shape=(2, 3), dtype=<class 'numpy.float32'>)"),
    ):
        assert repr(made).startswith(expected)
        assert "np." not in repr(made)


def test_a_synchronised_layer_shows_its_devices_and_key(mx) -> None:
    block = mx.gluon.contrib.nn.SyncBatchNorm(num_devices=2, prefix="q_")
    assert repr(block) == (
        "SyncBatchNorm(eps=1e-05, momentum=0.9, fix_gamma=False, use_global_stats=False, ndev=2, key='q_', "
        "in_channels=None)"
    )


def test_initializers_are_logged_as_they_were_given(mx, caplog: pytest.LogCaptureFixture) -> None:
    block = mx.gluon.nn.Dense(2, in_units=2)
    with caplog.at_level(logging.INFO):
        block.initialize(mx.init.One(), verbose=True)
    assert "bias as zeros: 0.0" in caplog.text


def test_long_lists_are_shortened_as_in_mxnet(mx) -> None:
    shown = mx.gluon.utils._brief_print_list(range(20))
    assert shown == "'0', '1', '2', ..., '16', '17', '18', '19'"


def test_initializers_by_name_take_positional_arguments(mx) -> None:
    assert mx.init.create("uniform", 0.2).dumps() == mx.init.Uniform(0.2).dumps()


def test_weights_of_an_interpolation_have_four_axes(mx) -> None:
    with pytest.raises(ValueError, match=r"'w_weight' has shape \(3,\).* have four axes"):
        mx.init.Bilinear()(mx.init.InitDesc("w_weight"), mx.nd.ones(3))
    with (
        pytest.warns(DeprecationWarning, match="InitDesc"),
        pytest.raises(ValueError, match=r"'upsampling0_weight' has shape \(2, 2\).* have four axes"),
    ):
        mx.init.One()("upsampling0_weight", mx.nd.ones((2, 2)))
