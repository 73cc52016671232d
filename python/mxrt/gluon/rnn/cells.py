"""The cells of simple recurrent networks, LSTM and GRU."""

from __future__ import annotations

from typing import Any

from .recurrent_cell import HybridRecurrentCell

__all__ = ["GRUCell", "LSTMCell", "RNNCell"]


class _GateCell(HybridRecurrentCell):
    """A cell with dense layers from input and state to all gates."""

    _gates = 1
    _states = 1

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any,
        h2h_weight_initializer: Any,
        i2h_bias_initializer: Any,
        h2h_bias_initializer: Any,
        input_size: int,
        prefix: str | None,
        params: Any,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._hidden_size = hidden_size
        self._input_size = input_size
        rows = self._gates * hidden_size
        self.i2h_weight: Any = self._param("i2h_weight", (rows, input_size), i2h_weight_initializer)
        self.h2h_weight: Any = self._param("h2h_weight", (rows, hidden_size), h2h_weight_initializer)
        self.i2h_bias: Any = self._param("i2h_bias", (rows,), i2h_bias_initializer)
        self.h2h_bias: Any = self._param("h2h_bias", (rows,), h2h_bias_initializer)

    def _param(self, name: str, shape: tuple[int, ...], init: Any) -> Any:
        return self.params.get(name, shape=shape, init=init, allow_deferred_init=True)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape ``(n, hidden_size)`` of each state."""
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"} for _ in range(self._states)]

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape or (None, None)
        return f"{type(self).__name__}({shape[1] or None} -> {shape[0]}{self._extra()})"

    def _extra(self) -> str:
        return ""

    def _dense(self, F: Any, x: Any, weight: Any, bias: Any, name: str) -> Any:
        rows = self._gates * self._hidden_size
        return F.FullyConnected(data=x, weight=weight, bias=bias, num_hidden=rows, name=name)


class RNNCell(_GateCell):
    """A simple recurrent cell: ``activation(W x + R h + b)``.

    Parameters
    ----------
    hidden_size : width of output and state
    activation : name of an activation function, a layer, or a function
    input_size : width of the input; 0: known from the first call
    """

    def __init__(
        self,
        hidden_size: int,
        activation: Any = "tanh",
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            prefix,
            params,
        )
        self._activation = activation

    def _alias(self) -> str:
        return "rnn"

    def _extra(self) -> str:
        return f", {self._activation}"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Output ``(n, hidden_size)``, and the same as state."""
        step = f"t{self._counter}_"
        i2h = self._dense(F, inputs, i2h_weight, i2h_bias, step + "i2h")
        h2h = self._dense(F, states[0], h2h_weight, h2h_bias, step + "h2h")
        both = F.elemwise_add(i2h, h2h, name=step + "plus0")
        output = self._get_activation(F, both, self._activation, name=step + "out")
        return output, [output]


class LSTMCell(_GateCell):
    """A long short-term memory cell; its states are the output and the memory.

    Parameters
    ----------
    hidden_size : width of output and states
    input_size : width of the input; 0: known from the first call
    activation, recurrent_activation : of memory and output, and of the gates
    """

    _gates = 4
    _states = 2

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
    ) -> None:
        super().__init__(
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            prefix,
            params,
        )
        self._activation = activation
        self._recurrent_activation = recurrent_activation

    def _alias(self) -> str:
        return "lstm"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Output ``(n, hidden_size)``, and the states ``[output, memory]``."""
        step = f"t{self._counter}_"
        i2h = self._dense(F, inputs, i2h_weight, i2h_bias, step + "i2h")
        h2h = self._dense(F, states[0], h2h_weight, h2h_bias, step + "h2h")
        gates = F.SliceChannel(F.elemwise_add(i2h, h2h, name=step + "plus0"), num_outputs=4, name=step + "slice")
        gate, value = self._recurrent_activation, self._activation
        take = self._get_activation(F, gates[0], gate, name=step + "i")
        keep = self._get_activation(F, gates[1], gate, name=step + "f")
        new = self._get_activation(F, gates[2], value, name=step + "c")
        show = self._get_activation(F, gates[3], gate, name=step + "o")
        memory = F.elemwise_add(
            F.elemwise_mul(keep, states[1], name=step + "mul0"),
            F.elemwise_mul(take, new, name=step + "mul1"),
            name=step + "state",
        )
        shown = F.Activation(memory, act_type=value, name=step + "activation0")
        output = F.elemwise_mul(show, shown, name=step + "out")
        return output, [output, memory]


class GRUCell(_GateCell):
    """A gated recurrent unit, in the form that cuDNN has.

    Parameters
    ----------
    hidden_size : width of output and state
    input_size : width of the input; 0: known from the first call
    """

    _gates = 3

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            prefix,
            params,
        )

    def _alias(self) -> str:
        return "gru"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Output ``(n, hidden_size)``, and the same as state."""
        step = f"t{self._counter}_"
        before = states[0]
        i2h = self._dense(F, inputs, i2h_weight, i2h_bias, step + "i2h")
        h2h = self._dense(F, before, h2h_weight, h2h_bias, step + "h2h")
        i2h_r, i2h_z, i2h_n = F.SliceChannel(i2h, num_outputs=3, name=step + "i2h_slice")
        h2h_r, h2h_z, h2h_n = F.SliceChannel(h2h, num_outputs=3, name=step + "h2h_slice")
        reset = F.Activation(F.elemwise_add(i2h_r, h2h_r, name=step + "plus0"), act_type="sigmoid", name=step + "r_act")
        update = F.Activation(
            F.elemwise_add(i2h_z, h2h_z, name=step + "plus1"), act_type="sigmoid", name=step + "z_act"
        )
        remembered = F.elemwise_mul(reset, h2h_n, name=step + "mul0")
        new = F.Activation(F.elemwise_add(i2h_n, remembered, name=step + "plus2"), act_type="tanh", name=step + "h_act")
        rest = F.elemwise_sub(F.ones_like(update, name=step + "ones_like0"), update, name=step + "minus0")
        output = F.elemwise_add(
            F.elemwise_mul(rest, new, name=step + "mul1"),
            F.elemwise_mul(update, before, name=step + "mul20"),
            name=step + "out",
        )
        return output, [output]
