"""The cells themselves: simple, LSTM and GRU, with dense or convolutional layers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .. import initializer, symbol
from ..symbol import Symbol, _internal
from ._base import BaseRNNCell, RNNParams

__all__ = [
    "BaseConvRNNCell",
    "ConvGRUCell",
    "ConvLSTMCell",
    "ConvRNNCell",
    "GRUCell",
    "LSTMCell",
    "RNNCell",
]


class _Gates(BaseRNNCell):
    """A cell that is a function of two layers, of its inputs and of its states."""

    _gates: Sequence[str] = ("",)
    _states = 1
    _layout = "NC"
    _activation: Any = "tanh"
    # Where the gates lie in what the layers give; None: where split takes them by itself.
    _axis: int | None = None

    @property
    def _gate_names(self) -> Sequence[str]:
        return self._gates if self._gates == ("",) else list(self._gates)

    @property
    def _one_state(self) -> tuple[int, ...]:
        return (0, self._num_hidden)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state; an extent of 0 is not known."""
        return [{"shape": self._one_state, "__layout__": self._layout} for _ in range(self._states)]

    def _layers(self, inputs: Any, state: Any, name: str) -> tuple[Symbol, Symbol]:
        raise NotImplementedError


class _Simple(_Gates):
    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        name = self._step_name()
        i2h, h2h = self._layers(inputs, states[0], name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class _Lstm(_Gates):
    _gates = ("_i", "_f", "_c", "_o")
    _states = 2

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        name = self._step_name()
        i2h, h2h = self._layers(inputs, states[0], name)
        where: dict[str, Any] = {} if self._axis is None else {"axis": self._axis}
        parts = symbol.SliceChannel(i2h + h2h, num_outputs=4, name=f"{name}slice", **where)
        into = symbol.Activation(parts[0], act_type="sigmoid", name=f"{name}i")
        forget = symbol.Activation(parts[1], act_type="sigmoid", name=f"{name}f")
        change = self._get_activation(parts[2], self._activation, name=f"{name}c")
        out = symbol.Activation(parts[3], act_type="sigmoid", name=f"{name}o")
        cell = _internal._plus(forget * states[1], into * change, name=f"{name}state")
        hidden = _internal._mul(out, self._get_activation(cell, self._activation), name=f"{name}out")
        return hidden, [hidden, cell]


class _Gru(_Gates):
    _gates = ("_r", "_z", "_o")

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        name = self._step_name()
        # As in MXNet, names of this cell have two underscores.
        i2h, h2h = self._layers(inputs, states[0], f"{name}_" if self._layout == "NC" else name)
        in_r, in_z, in_o = symbol.SliceChannel(i2h, num_outputs=3, name=f"{name}_i2h_slice")
        of_r, of_z, of_o = symbol.SliceChannel(h2h, num_outputs=3, name=f"{name}_h2h_slice")
        reset = symbol.Activation(in_r + of_r, act_type="sigmoid", name=f"{name}_r_act")
        update = symbol.Activation(in_z + of_z, act_type="sigmoid", name=f"{name}_z_act")
        new = self._get_activation(in_o + reset * of_o, self._activation, name=f"{name}_h_act")
        hidden = _internal._plus((1.0 - update) * new, update * states[0], name=f"{name}out")
        return hidden, [hidden]


class _Dense(_Gates):
    """Dense layers."""

    def _take_params(self, num_hidden: int, i2h_bias: Any = None) -> None:
        self._num_hidden = num_hidden
        self._iW = self.params.get("i2h_weight")
        self._iB = self.params.get("i2h_bias", init=i2h_bias)
        self._hW = self.params.get("h2h_weight")
        self._hB = self.params.get("h2h_bias")

    def _layers(self, inputs: Any, state: Any, name: str) -> tuple[Symbol, Symbol]:
        width = self._num_hidden * len(self._gates)
        i2h = symbol.FullyConnected(inputs, self._iW, self._iB, num_hidden=width, name=f"{name}i2h")
        h2h = symbol.FullyConnected(state, self._hW, self._hB, num_hidden=width, name=f"{name}h2h")
        return i2h, h2h


class RNNCell(_Simple, _Dense):
    """``h' = activation(W x + b + R h + c)``."""

    def __init__(
        self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_", params: RNNParams | None = None
    ) -> None:
        super().__init__(prefix, params)
        self._activation = activation
        self._take_params(num_hidden)


class LSTMCell(_Lstm, _Dense):
    """Long short-term memory; `forget_bias` is the first value of the forget gates' bias."""

    def __init__(
        self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None, forget_bias: float = 1.0
    ) -> None:
        super().__init__(prefix, params)
        self._take_params(num_hidden, initializer.LSTMBias(forget_bias=forget_bias))


class GRUCell(_Gru, _Dense):
    """Gated recurrent unit."""

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None) -> None:
        super().__init__(prefix, params)
        self._take_params(num_hidden)


_LEAKY = functools.partial(symbol.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(_Gates):
    """Convolutions over images; `input_shape` is that of the inputs of a step."""

    def __init__(
        self,
        input_shape: Sequence[int],
        num_hidden: int,
        h2h_kernel: Sequence[int] = (3, 3),
        h2h_dilate: Sequence[int] = (1, 1),
        i2h_kernel: Sequence[int] = (3, 3),
        i2h_stride: Sequence[int] = (1, 1),
        i2h_pad: Sequence[int] = (1, 1),
        i2h_dilate: Sequence[int] = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        activation: Any = _LEAKY,
        prefix: str = "",
        params: RNNParams | None = None,
        conv_layout: str = "NCHW",
    ) -> None:
        super().__init__(prefix, params)
        if any(extent % 2 == 0 for extent in h2h_kernel):
            raise AssertionError(f"Only support odd number, get h2h_kernel= {h2h_kernel}")
        self._num_hidden = num_hidden
        self._layout = conv_layout
        self._activation = activation
        self._i2h: dict[str, Any] = {"kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate}
        pad = tuple(d * (k - 1) // 2 for k, d in zip(h2h_kernel, h2h_dilate, strict=True))
        self._h2h: dict[str, Any] = {"kernel": h2h_kernel, "stride": (1, 1), "pad": pad, "dilate": h2h_dilate}
        data = symbol.Variable("data")
        layer = symbol.Convolution(data=data, **{"num_filter": num_hidden, "layout": conv_layout, **self._i2h})
        self._state = (0, *layer.infer_shape(data=tuple(input_shape))[1][0][1:])
        self._iW = self.params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self.params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self.params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self.params.get("h2h_bias", init=h2h_bias_initializer)

    @property
    def _one_state(self) -> tuple[int, ...]:
        return self._state

    def _layers(self, inputs: Any, state: Any, name: str) -> tuple[Symbol, Symbol]:
        common: dict[str, Any] = {"num_filter": self._num_hidden * len(self._gates), "layout": self._layout}
        i2h = symbol.Convolution(inputs, self._iW, self._iB, name=f"{name}i2h", **self._i2h, **common)
        h2h = symbol.Convolution(state, self._hW, self._hB, name=f"{name}h2h", **self._h2h, **common)
        return i2h, h2h


class ConvRNNCell(_Simple, BaseConvRNNCell):
    """The simple cell, with convolutions."""

    def __init__(self, input_shape: Sequence[int], num_hidden: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(input_shape, num_hidden, *args, **{"prefix": "ConvRNN_", **kwargs})


class ConvLSTMCell(_Lstm, BaseConvRNNCell):
    """LSTM with convolutions."""

    def __init__(self, input_shape: Sequence[int], num_hidden: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(input_shape, num_hidden, *args, **{"prefix": "ConvLSTM_", **kwargs})
        self._axis = self._layout.find("C")


class ConvGRUCell(_Gru, BaseConvRNNCell):
    """GRU with convolutions."""

    def __init__(self, input_shape: Sequence[int], num_hidden: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(input_shape, num_hidden, *args, **{"prefix": "ConvGRU_", **kwargs})
