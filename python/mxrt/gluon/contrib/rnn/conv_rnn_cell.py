"""Recurrent cells whose layers are convolutions. Their parameters are those of ``ConvCell``."""

from __future__ import annotations

from ._conv_cell import ConvGRUCell, ConvLSTMCell, ConvRNNCell

__all__ = [
    "Conv1DGRUCell",
    "Conv1DLSTMCell",
    "Conv1DRNNCell",
    "Conv2DGRUCell",
    "Conv2DLSTMCell",
    "Conv2DRNNCell",
    "Conv3DGRUCell",
    "Conv3DLSTMCell",
    "Conv3DRNNCell",
]


class Conv1DRNNCell(ConvRNNCell):
    """A simple recurrent cell of convolutions over 1 axis."""

    _layout = "NCW"


class Conv2DRNNCell(ConvRNNCell):
    """A simple recurrent cell of convolutions over 2 axes."""

    _layout = "NCHW"


class Conv3DRNNCell(ConvRNNCell):
    """A simple recurrent cell of convolutions over 3 axes."""

    _layout = "NCDHW"


class Conv1DLSTMCell(ConvLSTMCell):
    """A long short-term memory cell of convolutions over 1 axis."""

    _layout = "NCW"


class Conv2DLSTMCell(ConvLSTMCell):
    """A long short-term memory cell of convolutions over 2 axes."""

    _layout = "NCHW"


class Conv3DLSTMCell(ConvLSTMCell):
    """A long short-term memory cell of convolutions over 3 axes."""

    _layout = "NCDHW"


class Conv1DGRUCell(ConvGRUCell):
    """A gated recurrent unit of convolutions over 1 axis."""

    _layout = "NCW"


class Conv2DGRUCell(ConvGRUCell):
    """A gated recurrent unit of convolutions over 2 axes."""

    _layout = "NCHW"


class Conv3DGRUCell(ConvGRUCell):
    """A gated recurrent unit of convolutions over 3 axes."""

    _layout = "NCDHW"
