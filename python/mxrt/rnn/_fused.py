"""Several layers as one operator."""

from __future__ import annotations

import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Mapping, Sequence
from typing import Any

from .. import initializer, symbol
from .. import ndarray as nd
from ..base import warn
from ..ndarray import NDArray
from ._base import BaseRNNCell, RNNParams, as_sequence
from ._cells import GRUCell, LSTMCell, RNNCell
from ._modifiers import BidirectionalCell, DropoutCell, SequentialRNNCell

__all__ = ["FusedRNNCell"]

_GATES = {
    "rnn_relu": ("",),
    "rnn_tanh": ("",),
    "lstm": ("_i", "_f", "_c", "_o"),
    "gru": ("_r", "_z", "_o"),
}


class FusedRNNCell(BaseRNNCell):
    """Layers of recurrent cells as one operator ``RNN``, whose parameters are one array.

    `mode` is ``rnn_relu``, ``rnn_tanh``, ``lstm`` or ``gru``. It can only be unrolled, fastest in
    the layout TNC; ``unfuse`` makes single cells of it that take the same weights, once they are
    unpacked.
    """

    def __init__(
        self,
        num_hidden: int,
        num_layers: int = 1,
        mode: str = "lstm",
        bidirectional: bool = False,
        dropout: float = 0.0,
        get_next_state: bool = False,
        forget_bias: float = 1.0,
        prefix: str | None = None,
        params: RNNParams | None = None,
    ) -> None:
        if mode not in _GATES:
            raise ValueError(f"FusedRNNCell: mode is '{mode}', expected one of {', '.join(_GATES)}")
        super().__init__(f"{mode}_" if prefix is None else prefix, params)
        self._num_hidden = num_hidden
        self._num_layers = num_layers
        self._mode: Any = mode
        self._bidirectional = bidirectional
        self._dropout = dropout
        self._get_next_state = get_next_state
        self._directions = ("l", "r") if bidirectional else ("l",)
        fill = initializer.FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self.params.get("parameters", init=fill)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state; an extent of 0 is not known."""
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(2 if self._mode == "lstm" else 1)]

    @property
    def _gate_names(self) -> Sequence[str]:
        return list(_GATES[self._mode])

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

    def _parts(self, num_input: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the weights and biases, in the order in which the one array stores
        them.
        """
        hidden = self._num_hidden
        found: dict[str, tuple[int, ...]] = {}
        sides = [(layer, side) for layer in range(self._num_layers) for side in self._directions]
        for layer, side in sides:
            width = num_input if layer == 0 else hidden * len(self._directions)
            for group, columns in (("i2h", width), ("h2h", hidden)):
                for gate in self._gate_names:
                    found[f"{self._prefix}{side}{layer}_{group}{gate}_weight"] = (hidden, columns)
        for layer, side in sides:
            for group in ("i2h", "h2h"):
                for gate in self._gate_names:
                    found[f"{self._prefix}{side}{layer}_{group}{gate}_bias"] = (hidden,)
        return found

    def _views(self, array: NDArray, num_input: int) -> dict[str, NDArray]:
        """The parts of the one array, by name; they share its memory."""
        found: dict[str, NDArray] = {}
        begin = 0
        for name, shape in self._parts(num_input).items():
            end = begin + shape[0] * (shape[1] if len(shape) == 2 else 1)
            found[name] = array[begin:end].reshape(shape)
            begin = end
        if begin != array.size:
            raise AssertionError(
                f"Invalid parameters size for FusedRNNCell: {array.size} numbers, expected {begin} for "
                f"{num_input} inputs"
            )
        return found

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """The parameters of a model, with the one array of this cell cut into weights and biases of
        gates.
        """
        found = dict(args)
        array = found.pop(f"{self._params._prefix}parameters")
        sides, gates, hidden = len(self._directions), len(self._gate_names), self._num_hidden
        others = (self._num_layers - 1) * (hidden + sides * hidden + 2)
        num_input = array.size // sides // hidden // gates - others - hidden - 2
        found.update({name: view.copy() for name, view in self._views(array, num_input).items()})
        return found

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """The parameters of a model, with the weights and biases of this cell's gates as one
        array.
        """
        found = dict(args)
        first = found[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        parts = [found.pop(name).reshape((-1,)) for name in self._parts(first.shape[1])]
        found[f"{self._params._prefix}parameters"] = nd.concatenate(parts)
        return found

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        raise NotImplementedError("FusedRNNCell cannot be stepped. Please use unroll")

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Any]]:
        """A network of `length` steps: outputs, and the last states if ``get_next_state``."""
        self.reset()
        inputs, axis = as_sequence(length, inputs, layout, True)
        if axis == 1:
            warn("NTC layout detected. Consider using TNC for FusedRNNCell for faster speed")
            inputs = symbol.swapaxes(inputs, dim1=0, dim2=1)
        elif axis != 0:
            raise AssertionError(f"Unsupported layout {layout}")
        states = self.begin_state() if begin_state is None else begin_state
        made = symbol.RNN(
            data=inputs,
            parameters=self._parameter,
            state_size=self._num_hidden,
            num_layers=self._num_layers,
            bidirectional=self._bidirectional,
            p=self._dropout,
            state_outputs=self._get_next_state,
            mode=self._mode,
            name=f"{self._prefix}rnn",
            **dict(zip(("state", "state_cell"), states, strict=False)),
        )
        after = list(made)[1:] if self._get_next_state else []
        # Tells a Module of several contexts which axis their parts are joined along.
        for state in after:
            state._set_attr(__layout__="LNC")
        outputs = made[0]
        if axis == 1:
            outputs = symbol.swapaxes(outputs, dim1=0, dim2=1)
        outputs, _ = as_sequence(length, outputs, layout, merge_outputs)
        return outputs, after

    def unfuse(self) -> SequentialRNNCell:
        """Returns the layers as single cells."""
        kinds: dict[str, Any] = {
            "rnn_relu": lambda prefix: RNNCell(self._num_hidden, activation="relu", prefix=prefix),
            "rnn_tanh": lambda prefix: RNNCell(self._num_hidden, activation="tanh", prefix=prefix),
            "lstm": lambda prefix: LSTMCell(self._num_hidden, prefix=prefix),
            "gru": lambda prefix: GRUCell(self._num_hidden, prefix=prefix),
        }
        make = kinds[self._mode]
        stack = SequentialRNNCell()
        for layer in range(self._num_layers):
            cells = [make(f"{self._prefix}{side}{layer}_") for side in self._directions]
            if self._bidirectional:
                stack.add(BidirectionalCell(cells[0], cells[1], output_prefix=f"{self._prefix}bi_l{layer}_"))
            else:
                stack.add(cells[0])
            if self._dropout > 0 and layer != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{layer}_"))
        return stack
