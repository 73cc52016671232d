"""Whole recurrent layers, computed by one operator."""

from __future__ import annotations

import re
import threading
from typing import Any

from ... import _mxrt, ndarray, symbol
from ...base import MXNetNotImplementedError, MXNetValueError
from ...ndarray import NDArray
from .._numpy import as_made_here
from ..hybrid_block import HybridBlock
from ._sequences import is_tensor
from .cells import GRUCell, LSTMCell, RNNCell
from .modifiers import BidirectionalCell, DropoutCell
from .recurrent_cell import make_state
from .sequential import HybridSequentialRNNCell

__all__ = ["GRU", "LSTM", "RNN"]

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
_PARAM = re.compile(r"([lr])(\d+)_(i2h|h2h|h2r)_(weight|bias)")


class _Call(threading.local):
    """The form of this thread's results of a layer: without states only the outputs."""

    skip_states = False


_call = _Call()


class _RNNLayer(HybridBlock):
    """The common part of RNN, LSTM and GRU."""

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        layout: str,
        dropout: float,
        bidirectional: bool,
        input_size: int,
        i2h_weight_initializer: Any,
        h2h_weight_initializer: Any,
        i2h_bias_initializer: Any,
        h2h_bias_initializer: Any,
        mode: str,
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        state_clip: tuple[Any, Any, bool] = (None, None, False),
        dtype: Any = "float32",
        use_sequence_length: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if layout not in ("TNC", "NTC"):
            raise AssertionError(f"Invalid layout {layout}; must be one of ['TNC' or 'NTC']")
        if mode not in _GATES:
            raise AssertionError(f"Invalid activation {mode.removeprefix('rnn_')}; must be relu or tanh")
        self._hidden_size = hidden_size
        self._projection_size = projection_size or None
        self._num_layers = num_layers
        self._mode = mode
        self._layout = layout
        self._dropout = dropout
        self._dir = 2 if bidirectional else 1
        self._input_size = input_size
        self._initializers = {
            "i2h_weight_initializer": i2h_weight_initializer,
            "h2h_weight_initializer": h2h_weight_initializer,
            "i2h_bias_initializer": i2h_bias_initializer,
            "h2h_bias_initializer": h2h_bias_initializer,
        }
        # Names of MXNet that programs read.
        self._i2h_weight_initializer = i2h_weight_initializer
        self._h2h_weight_initializer = h2h_weight_initializer
        self._i2h_bias_initializer = i2h_bias_initializer
        self._h2h_bias_initializer = h2h_bias_initializer
        self._h2r_weight_initializer = h2r_weight_initializer
        self._lstm_state_clip_min, self._lstm_state_clip_max, self._lstm_state_clip_nan = state_clip
        self._state_clip = state_clip
        self._dtype = dtype
        self._use_sequence_length = use_sequence_length
        self._gates = _GATES[mode]
        rows, out = self._gates * hidden_size, self._projection_size or hidden_size
        width = input_size
        for layer in range(num_layers):
            for side in "lr"[: self._dir]:
                self._register(f"{side}{layer}_i2h_weight", (rows, width), i2h_weight_initializer)
                self._register(f"{side}{layer}_h2h_weight", (rows, out), h2h_weight_initializer)
                self._register(f"{side}{layer}_i2h_bias", (rows,), i2h_bias_initializer)
                self._register(f"{side}{layer}_h2h_bias", (rows,), h2h_bias_initializer)
                if self._projection_size:
                    self._register(f"{side}{layer}_h2r_weight", (out, hidden_size), h2r_weight_initializer)
            width = out * self._dir

    def _register(self, name: str, shape: tuple[int, ...], init: Any) -> None:
        setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True, dtype=self._dtype))

    def __repr__(self) -> str:
        rows, width = self._reg_params["l0_i2h_weight"].shape or (0, 0)
        text = f"{type(self).__name__}({width or None} -> {rows // self._gates}, {self._layout}"
        if self._num_layers != 1:
            text += f", num_layers={self._num_layers}"
        if self._dropout:
            text += f", dropout={self._dropout}"
        return text + (", bidirectional)" if self._dir == 2 else ")")

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Any]:
        """Under the names that the cells of the unfused layer would have, as MXNet's files."""
        start = f"{prefix}." if prefix else ""
        found = {}
        for key, parameter in self._reg_params.items():
            side, layer, gate, kind = _PARAM.fullmatch(key).groups()  # type: ignore[union-attr]
            cell = f"{side}_cell." if self._dir == 2 else ""
            found[f"{start}_unfused.{layer}.{cell}{gate}_{kind}"] = parameter
        return found

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape ``(layers * directions, n, width)`` of each state."""
        widths = [self._projection_size or self._hidden_size]
        if self._mode == "lstm":
            widths.append(self._hidden_size)
        layers = self._num_layers * self._dir
        return [{"shape": (layers, batch_size, w), "__layout__": "LNC", "dtype": self._dtype} for w in widths]

    def begin_state(self, batch_size: int = 0, func: Any = None, **kwargs: Any) -> list[Any]:
        """The states before the first step: `func` of shape and name, zeros without it."""
        make = ndarray.zeros if func is None else func
        return as_made_here(
            [
                make_state(make, f"{self.prefix}h0_{i}", {**info, **kwargs})
                for i, info in enumerate(self.state_info(batch_size))
            ]
        )

    def _unfuse(self) -> HybridSequentialRNNCell:
        """The layers as cells with the same parameters, which need no operator RNN."""
        if self._projection_size:
            raise AssertionError("_unfuse does not support projection layer yet!")
        if self._state_clip[0] or self._state_clip[1]:
            raise AssertionError("_unfuse does not support state clipping yet!")
        stack = HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            width = self._input_size
            for layer in range(self._num_layers):
                cells = [self._cell(f"{side}{layer}_", width) for side in "lr"[: self._dir]]
                stack.add(BidirectionalCell(*cells) if self._dir == 2 else cells[0])
                if self._dropout > 0 and layer != self._num_layers - 1:
                    stack.add(DropoutCell(self._dropout))
                width = self._hidden_size * self._dir
        return stack

    def _cell(self, prefix: str, width: int) -> Any:
        options = {"input_size": width, "prefix": prefix, **self._initializers}
        if self._mode.startswith("rnn_"):
            return RNNCell(self._hidden_size, activation=self._mode[4:], **options)
        return (LSTMCell if self._mode == "lstm" else GRUCell)(self._hidden_size, **options)

    def cast(self, dtype: Any) -> None:
        """Changes the element type of all parameters, and of the states that are made."""
        super().cast(dtype)
        self._dtype = dtype

    def __call__(self, inputs: Any, states: Any = None, sequence_length: Any = None, **kwargs: Any) -> Any:
        """Outputs of all steps, and the states after the last one if states were given.

        Parameters
        ----------
        inputs : ``(steps, n, c)`` in layout TNC, ``(n, steps, c)`` in NTC
        states : states before the first step; zeros without them
        sequence_length : ``(n,)``, how many steps of each row count, for layers with
            ``use_sequence_length``
        """
        return super().__call__(*self._complete_arguments(inputs, states, sequence_length), **kwargs)

    def _complete_arguments(self, inputs: Any, states: Any = None, sequence_length: Any = None) -> tuple[Any, ...]:
        _call.skip_states = states is None
        if states is None:
            if isinstance(inputs, NDArray):
                rows = inputs.shape[self._layout.find("N")]
                states = self.begin_state(rows, ctx=inputs.context, dtype=inputs.dtype)
            else:
                states = self.begin_state(0, func=symbol.zeros)
        if is_tensor(states):
            states = [states]
        return inputs, states, *((sequence_length,) if self._use_sequence_length else ())

    def hybrid_forward(  # type: ignore[override]
        self, F: Any, inputs: Any, states: Any, sequence_length: Any = None, **kwargs: Any
    ) -> Any:
        """Outputs, and the states unless they are skipped."""
        skip = _call.skip_states
        wanted = len(self.state_info())
        if len(states) != wanted:
            raise MXNetValueError(
                f"{self.name}: expected a list of {wanted} states, got {len(states)}; begin_state(batch_size) makes "
                "them"
            )
        if self._use_sequence_length and sequence_length is None:
            raise MXNetValueError(
                f"{self.name}: expected sequence_length, as the layer has use_sequence_length=True; pass how many "
                "steps of each row count"
            )
        if F is ndarray:
            rows = inputs.shape[self._layout.find("N")]
            for state, info in zip(states, self.state_info(rows), strict=True):
                if state.shape != info["shape"]:
                    raise ValueError(f"Invalid recurrent state shape. Expecting {info['shape']}, got {state.shape}.")
        if _mxrt.get_operator("RNN") is None or _mxrt.get_operator("_rnn_param_concat") is None:
            raise MXNetNotImplementedError(
                f"{self.name}: the operator RNN is not part of this build of mxrt, and gluon.rnn.{type(self).__name__} "
                "is made of it; the cells of gluon.rnn and their unroll compute the same"
            )
        out = self._forward_kernel(F, inputs, states, sequence_length, kwargs)
        return out[0] if skip else out

    def _forward_kernel(
        self, F: Any, inputs: Any, states: Any, sequence_length: Any, params: dict[str, Any]
    ) -> tuple[Any, list[Any]]:
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, 0, 1)
        gates = ["i2h", "h2h", "h2r"] if self._projection_size else ["i2h", "h2h"]
        flat = [
            params[f"{side}{layer}_{gate}_{kind}"].reshape(-1)
            for kind in ("weight", "bias")
            for layer in range(self._num_layers)
            for side in "lr"[: self._dir]
            for gate in gates
            if gate != "h2r" or kind == "weight"
        ]
        lengths = [sequence_length] if self._use_sequence_length else []
        low, high, nan = self._state_clip
        out = F.RNN(
            inputs,
            F._internal._rnn_param_concat(*flat, dim=0),
            *states,
            *lengths,
            use_sequence_length=self._use_sequence_length,
            state_size=self._hidden_size,
            projection_size=self._projection_size,
            num_layers=self._num_layers,
            bidirectional=self._dir == 2,
            p=self._dropout,
            state_outputs=True,
            mode=self._mode,
            lstm_state_clip_min=low,
            lstm_state_clip_max=high,
            lstm_state_clip_nan=nan,
        )
        outputs = F.swapaxes(out[0], 0, 1) if self._layout == "NTC" else out[0]
        return outputs, [out[1], out[2]] if self._mode == "lstm" else [out[1]]


class RNN(_RNNLayer):
    """Layers of simple recurrent cells.

    Parameters
    ----------
    hidden_size : width of a layer, in each direction
    activation : ``relu`` or ``tanh``
    layout : ``TNC`` or ``NTC``, of inputs and outputs
    dropout : used while training only
    bidirectional : whether the sequence is read in both directions
    input_size : width of the input; 0: known from the first call
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        activation: str = "relu",
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "rnn_" + activation,
            dtype=dtype,
            **kwargs,
        )


class LSTM(_RNNLayer):
    """Layers of long short-term memory cells; the states are outputs and memories.

    Parameters
    ----------
    hidden_size : width of a layer, in each direction
    layout : ``TNC`` or ``NTC``, of inputs and outputs
    dropout : used while training only
    bidirectional : whether the sequence is read in both directions
    input_size : width of the input; 0: known from the first call
    projection_size : width that outputs are projected to
    state_clip_min, state_clip_max, state_clip_nan : bounds of the memories
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        state_clip_min: float | None = None,
        state_clip_max: float | None = None,
        state_clip_nan: bool = False,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "lstm",
            projection_size,
            h2r_weight_initializer,
            (state_clip_min, state_clip_max, state_clip_nan),
            dtype,
            **kwargs,
        )


class GRU(_RNNLayer):
    """Layers of gated recurrent units.

    Parameters
    ----------
    hidden_size : width of a layer, in each direction
    layout : ``TNC`` or ``NTC``, of inputs and outputs
    dropout : used while training only
    bidirectional : whether the sequence is read in both directions
    input_size : width of the input; 0: known from the first call
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "gru",
            dtype=dtype,
            **kwargs,
        )
