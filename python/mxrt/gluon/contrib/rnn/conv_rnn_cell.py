"""Recurrent cells whose layers are convolutions."""

from __future__ import annotations

from typing import Any

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
    """A simple recurrent cell of convolutions over 1 axis.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = (0,),
        i2h_dilate: Any = (1,),
        h2h_dilate: Any = (1,),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            1,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
            prefix,
            params,
        )


class Conv2DRNNCell(ConvRNNCell):
    """A simple recurrent cell of convolutions over 2 axes.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = (0, 0),
        i2h_dilate: Any = (1, 1),
        h2h_dilate: Any = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCHW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            2,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
            prefix,
            params,
        )


class Conv3DRNNCell(ConvRNNCell):
    """A simple recurrent cell of convolutions over 3 axes.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = (0, 0, 0),
        i2h_dilate: Any = (1, 1, 1),
        h2h_dilate: Any = (1, 1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCDHW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            3,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
            prefix,
            params,
        )


class Conv1DLSTMCell(ConvLSTMCell):
    """A long short-term memory cell of convolutions over 1 axis.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = (0,),
        i2h_dilate: Any = (1,),
        h2h_dilate: Any = (1,),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            1,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
            prefix,
            params,
        )


class Conv2DLSTMCell(ConvLSTMCell):
    """A long short-term memory cell of convolutions over 2 axes.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = (0, 0),
        i2h_dilate: Any = (1, 1),
        h2h_dilate: Any = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCHW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            2,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
            prefix,
            params,
        )


class Conv3DLSTMCell(ConvLSTMCell):
    """A long short-term memory cell of convolutions over 3 axes.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = (0, 0, 0),
        i2h_dilate: Any = (1, 1, 1),
        h2h_dilate: Any = (1, 1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCDHW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            3,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
            prefix,
            params,
        )


class Conv1DGRUCell(ConvGRUCell):
    """A gated recurrent unit of convolutions over 1 axis.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = (0,),
        i2h_dilate: Any = (1,),
        h2h_dilate: Any = (1,),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            1,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
            prefix,
            params,
        )


class Conv2DGRUCell(ConvGRUCell):
    """A gated recurrent unit of convolutions over 2 axes.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = (0, 0),
        i2h_dilate: Any = (1, 1),
        h2h_dilate: Any = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCHW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            2,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
            prefix,
            params,
        )


class Conv3DGRUCell(ConvGRUCell):
    """A gated recurrent unit of convolutions over 3 axes.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = (0, 0, 0),
        i2h_dilate: Any = (1, 1, 1),
        h2h_dilate: Any = (1, 1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCDHW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            3,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
            prefix,
            params,
        )
