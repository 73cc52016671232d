"""The common part of recurrent cells of convolutions over any number of axes."""

from __future__ import annotations

from typing import Any

from ...nn.conv_layers import per_axis
from ...rnn import HybridRecurrentCell

__all__ = ["ConvGRUCell", "ConvLSTMCell", "ConvRNNCell"]


class ConvCell(HybridRecurrentCell):
    """A cell with convolutions from input and state to all gates.

    Parameters
    ----------
    input_shape : of a row of the batch, channels included
    hidden_channels : channels of output and state
    i2h_kernel, h2h_kernel : of the convolutions of input and state, the latter odd
    i2h_pad, i2h_dilate, h2h_dilate : of the convolutions; that of the state is padded so that it
        keeps its extents
    conv_layout : of input and state; without one, channels stand before the spatial axes
    activation : of the new state: a name, or a function of an array

    Kernels, pads and dilations are a number, or one for every axis.
    """

    _gates = 1
    _states = 1
    _layout = ""

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = 0,
        i2h_dilate: Any = 1,
        h2h_dilate: Any = 1,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str | None = None,
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        axes = len(self._layout) - 2
        conv_layout = conv_layout or self._layout
        super().__init__(prefix=prefix, params=params)
        self._hidden_channels = hidden_channels
        self._input_shape = input_shape
        self._conv_layout = conv_layout
        self._activation = activation
        self._stride = (1,) * axes
        self._i2h_kernel = per_axis(i2h_kernel, axes, "i2h_kernel")
        self._i2h_pad = per_axis(i2h_pad, axes, "i2h_pad")
        self._i2h_dilate = per_axis(i2h_dilate, axes, "i2h_dilate")
        self._h2h_kernel = per_axis(h2h_kernel, axes, "h2h_kernel")
        self._h2h_dilate = per_axis(h2h_dilate, axes, "h2h_dilate")
        if not all(k % 2 for k in self._h2h_kernel):
            raise AssertionError(f"Only support odd number, get h2h_kernel= {h2h_kernel}")
        # So that a state keeps its extents.
        self._h2h_pad = tuple(d * (k - 1) // 2 for d, k in zip(self._h2h_dilate, self._h2h_kernel, strict=True))
        self._channel_axis = conv_layout.find("C")
        first = self._channel_axis == 1
        extents = input_shape[1:] if first else input_shape[:-1]
        self._in_channels = input_shape[0 if first else -1]
        out = tuple(
            x + 2 * p - d * (k - 1) if x else 0
            for x, k, p, d in zip(extents, self._i2h_kernel, self._i2h_pad, self._i2h_dilate, strict=True)
        )
        self._state_shape = (hidden_channels, *out) if first else (*out, hidden_channels)
        self._rows = hidden_channels * self._gates
        self.i2h_weight: Any = self._weight("i2h_weight", self._in_channels, self._i2h_kernel, i2h_weight_initializer)
        self.h2h_weight: Any = self._weight("h2h_weight", hidden_channels, self._h2h_kernel, h2h_weight_initializer)
        self.i2h_bias: Any = self._param("i2h_bias", (self._rows,), i2h_bias_initializer)
        self.h2h_bias: Any = self._param("h2h_bias", (self._rows,), h2h_bias_initializer)

    def _weight(self, name: str, channels: int, kernel: tuple[int, ...], init: Any) -> Any:
        first = self._channel_axis == 1
        shape = (self._rows, channels, *kernel) if first else (self._rows, *kernel, channels)
        return self._param(name, shape, init)

    def _param(self, name: str, shape: tuple[int, ...], init: Any) -> Any:
        return self.params.get(name, shape=shape, init=init, allow_deferred_init=True)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape of each state, in the layout of the input."""
        shape = (batch_size, *self._state_shape)
        return [{"shape": shape, "__layout__": self._conv_layout} for _ in range(self._states)]

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape
        channels = shape[1 if self._channel_axis == 1 else -1]
        return f"{type(self).__name__}({channels or None} -> {shape[0]}, {self._activation}, {self._conv_layout})"

    def _convolve(self, F: Any, x: Any, weight: Any, bias: Any, part: str, step: str) -> Any:
        """The convolution of the input (`part` i2h) or of the state (h2h)."""
        return F.Convolution(
            data=x,
            num_filter=self._rows,
            kernel=getattr(self, f"_{part}_kernel"),
            stride=self._stride,
            pad=getattr(self, f"_{part}_pad"),
            dilate=getattr(self, f"_{part}_dilate"),
            weight=weight,
            bias=bias,
            layout=self._conv_layout,
            name=step + part,
        )


class ConvRNNCell(ConvCell):
    """A simple recurrent cell."""

    def _alias(self) -> str:
        return "conv_rnn"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Output, and the same as state."""
        step = f"t{self._counter}_"
        i2h = self._convolve(F, inputs, i2h_weight, i2h_bias, "i2h", step)
        h2h = self._convolve(F, states[0], h2h_weight, h2h_bias, "h2h", step)
        output = self._get_activation(F, i2h + h2h, self._activation, name=step + "out")
        return output, [output]


class ConvLSTMCell(ConvCell):
    """A long short-term memory cell."""

    _gates = 4
    _states = 2

    def _alias(self) -> str:
        return "conv_lstm"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Output, and the states ``[output, memory]``."""
        step = f"t{self._counter}_"
        i2h = self._convolve(F, inputs, i2h_weight, i2h_bias, "i2h", step)
        h2h = self._convolve(F, states[0], h2h_weight, h2h_bias, "h2h", step)
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, name=step + "slice", axis=self._channel_axis)
        take = F.Activation(gates[0], act_type="sigmoid", name=step + "i")
        keep = F.Activation(gates[1], act_type="sigmoid", name=step + "f")
        new = self._get_activation(F, gates[2], self._activation, name=step + "c")
        show = F.Activation(gates[3], act_type="sigmoid", name=step + "o")
        memory = F.elemwise_add(keep * states[1], take * new, name=step + "state")
        output = F.elemwise_mul(show, self._get_activation(F, memory, self._activation), name=step + "out")
        return output, [output, memory]


class ConvGRUCell(ConvCell):
    """A gated recurrent unit."""

    _gates = 3

    def _alias(self) -> str:
        return "conv_gru"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Output, and the same as state."""
        step = f"t{self._counter}_"
        i2h = self._convolve(F, inputs, i2h_weight, i2h_bias, "i2h", step)
        h2h = self._convolve(F, states[0], h2h_weight, h2h_bias, "h2h", step)
        i2h_r, i2h_z, i2h_n = F.SliceChannel(i2h, num_outputs=3, name=step + "i2h_slice", axis=self._channel_axis)
        h2h_r, h2h_z, h2h_n = F.SliceChannel(h2h, num_outputs=3, name=step + "h2h_slice", axis=self._channel_axis)
        reset = F.Activation(i2h_r + h2h_r, act_type="sigmoid", name=step + "r_act")
        update = F.Activation(i2h_z + h2h_z, act_type="sigmoid", name=step + "z_act")
        new = self._get_activation(F, i2h_n + reset * h2h_n, self._activation, name=step + "h_act")
        output = F.elemwise_add((1.0 - update) * new, update * states[0], name=step + "out")
        return output, [output]
