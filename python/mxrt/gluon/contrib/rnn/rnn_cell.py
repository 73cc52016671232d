"""LSTM with a projection, dropout that stays the same for all steps, and unrolling as one
operator.
"""

from __future__ import annotations

from typing import Any

from ...rnn import BidirectionalCell, HybridRecurrentCell, ModifierCell
from ...rnn._sequences import as_list, first_states, format_sequence, is_tensor, mask_sequence

__all__ = ["LSTMPCell", "VariationalDropoutCell", "dynamic_unroll"]


class VariationalDropoutCell(ModifierCell):
    """A cell whose training drops the same elements in all steps. Here it changes nothing,
    also under ``autograd.train_mode``.

    Parameters
    ----------
    drop_inputs, drop_states, drop_outputs : parts of elements; accepted
    """

    def __init__(
        self, base_cell: Any, drop_inputs: float = 0.0, drop_states: float = 0.0, drop_outputs: float = 0.0
    ) -> None:
        if drop_states and isinstance(base_cell, BidirectionalCell):
            raise AssertionError(
                "BidirectionalCell doesn't support variational state dropout. Please add VariationalDropoutCell to the "
                "cells underneath instead."
            )
        super().__init__(base_cell)
        self.drop_inputs = drop_inputs
        self.drop_states = drop_states
        self.drop_outputs = drop_outputs

    def _alias(self) -> str:
        return "vardrop"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Output and states of the cell inside; nothing is dropped."""
        return self.base_cell(inputs, states)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"

    def _unroll(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None, valid_length: Any
    ) -> tuple[Any, list[Any]]:
        if self.drop_states:
            return super()._unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        self.reset()
        inputs, axis, F, batch = format_sequence(length, inputs, layout, True)
        states = first_states(self, F, begin_state, inputs, batch)
        outputs, states = self.base_cell.unroll(length, inputs, states, layout, True, valid_length)
        merge = is_tensor(outputs) if merge_outputs is None else merge_outputs
        outputs = format_sequence(length, outputs, layout, merge)[0]
        if valid_length is not None:
            outputs = mask_sequence(F, outputs, length, valid_length, axis, merge)
        return outputs, states


class LSTMPCell(HybridRecurrentCell):
    """A long short-term memory cell whose output is projected to another width; its states are
    output and memory.

    Parameters
    ----------
    hidden_size : width of the memory
    projection_size : width of the output
    input_size : width of the input; 0: known from the first call
    """

    def __init__(
        self,
        hidden_size: int,
        projection_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        h2r_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._hidden_size = hidden_size
        self._input_size = input_size
        self._projection_size = projection_size
        rows = 4 * hidden_size
        self.i2h_weight: Any = self._param("i2h_weight", (rows, input_size), i2h_weight_initializer)
        self.h2h_weight: Any = self._param("h2h_weight", (rows, projection_size), h2h_weight_initializer)
        self.h2r_weight: Any = self._param("h2r_weight", (projection_size, hidden_size), h2r_weight_initializer)
        self.i2h_bias: Any = self._param("i2h_bias", (rows,), i2h_bias_initializer)
        self.h2h_bias: Any = self._param("h2h_bias", (rows,), h2h_bias_initializer)

    def _param(self, name: str, shape: tuple[int, ...], init: Any) -> Any:
        return self.params.get(name, shape=shape, init=init, allow_deferred_init=True)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shapes ``(n, projection_size)`` and ``(n, hidden_size)``."""
        widths = (self._projection_size, self._hidden_size)
        return [{"shape": (batch_size, width), "__layout__": "NC"} for width in widths]

    def _alias(self) -> str:
        return "lstmp"

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape
        return f"{type(self).__name__}({shape[1] or None} -> {shape[0]} -> {self._projection_size})"

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: Any,
        i2h_weight: Any,
        h2h_weight: Any,
        h2r_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> Any:
        """Output ``(n, projection_size)``, and the states ``[output, memory]``."""
        step, rows = f"t{self._counter}_", self._hidden_size * 4
        i2h = F.FullyConnected(data=inputs, weight=i2h_weight, bias=i2h_bias, num_hidden=rows, name=step + "i2h")
        h2h = F.FullyConnected(data=states[0], weight=h2h_weight, bias=h2h_bias, num_hidden=rows, name=step + "h2h")
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, name=step + "slice")
        take = F.Activation(gates[0], act_type="sigmoid", name=step + "i")
        keep = F.Activation(gates[1], act_type="sigmoid", name=step + "f")
        new = F.Activation(gates[2], act_type="tanh", name=step + "c")
        show = F.Activation(gates[3], act_type="sigmoid", name=step + "o")
        memory = F.elemwise_add(keep * states[1], take * new, name=step + "state")
        hidden = F.elemwise_mul(show, F.Activation(memory, act_type="tanh"), name=step + "hidden")
        output = F.FullyConnected(
            data=hidden, num_hidden=self._projection_size, weight=h2r_weight, no_bias=True, name=step + "out"
        )
        return output, [output, memory]


def dynamic_unroll(
    cell: Any,
    inputs: Any,
    begin_state: Any,
    drop_inputs: float = 0,
    drop_outputs: float = 0,
    layout: str = "TNC",
    valid_length: Any = None,
) -> tuple[Any, Any]:
    """Runs all steps of a sequence by the operator ``foreach``, whatever their number is.

    Parameters
    ----------
    inputs : one array in `layout`
    begin_state : states before the first step
    drop_inputs, drop_outputs : used while training only
    valid_length : ``(n,)``, how many steps of each row count

    Returns the outputs in `layout` and the states after the last step that counts.
    """
    inputs, axis, F, _ = format_sequence(0, inputs, layout, True)
    axes = list(range(len(layout)))
    axes[0], axes[axis] = axes[axis], axes[0]
    if axis:
        inputs = F.transpose(inputs, axes=axes)
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(axis,))
    if valid_length is None:
        outputs, states = F.contrib.foreach(cell, inputs, begin_state)
    else:

        def step(x: Any, before: Any) -> Any:
            number = before[-1]
            out, after = cell(x, before[:-1])
            counts = F.broadcast_greater(valid_length, number)
            after = [F.where(counts, new, old) for new, old in zip(after, before, strict=False)]
            return out, [*after, number + 1]

        outputs, states = F.contrib.foreach(step, inputs, [*as_list(begin_state), F.zeros(1)])
        states = states[:-1]
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(axis,))
    if axis:
        outputs = F.transpose(outputs, axes)
    if valid_length is not None:
        outputs = F.SequenceMask(outputs, sequence_length=valid_length, use_sequence_length=True, axis=axis)
    return outputs, states
