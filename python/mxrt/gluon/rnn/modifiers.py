"""Cells around other cells, and dropout as a cell."""

from __future__ import annotations

from typing import Any

from ... import ndarray, symbol
from ...base import numeric_types
from .._numpy import as_made_here
from ._sequences import first_states, format_sequence, is_tensor, mask_sequence, reverse_sequence
from .recurrent_cell import CellOfCells, HybridRecurrentCell

__all__ = ["BidirectionalCell", "DropoutCell", "ModifierCell", "ResidualCell", "ZoneoutCell"]


class DropoutCell(HybridRecurrentCell):
    """Dropout as a cell without states: outside of training the values pass unchanged."""

    def __init__(self, rate: float, axes: tuple[int, ...] = (), prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix, params)
        if not isinstance(rate, numeric_types):
            raise AssertionError("rate must be a number")
        self._rate = rate
        self._axes = axes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """No states."""
        return []

    def _alias(self) -> str:
        return "dropout"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """The inputs, after dropout in training, and the states unchanged."""
        if self._rate > 0:
            inputs = F.Dropout(data=inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def _unroll(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None, valid_length: Any
    ) -> tuple[Any, list[Any]]:
        """The sequence, after dropout in training."""
        self.reset()
        inputs, _, F, _ = format_sequence(length, inputs, layout, merge_outputs)
        if is_tensor(inputs):
            out, states = self.hybrid_forward(F, inputs, begin_state or [])
            return out, states
        return super()._unroll(length, inputs, begin_state, layout, merge_outputs, None)


class ModifierCell(HybridRecurrentCell):
    """A cell around another one, whose parameters it has; the other one is not to be called any
    more.
    """

    def __init__(self, base_cell: Any) -> None:
        if base_cell._modified:
            raise AssertionError(f"Cell {base_cell.name} is already modified. One cell cannot be modified twice")
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    @property
    def params(self) -> Any:
        """The parameters of the cell inside."""
        return self.base_cell.params

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shapes of the states of the cell inside."""
        found: list[dict[str, Any]] = self.base_cell.state_info(batch_size)
        return found

    def begin_state(  # type: ignore[override]
        self, func: Any = None, batch_size: int = 0, **kwargs: Any
    ) -> list[Any]:
        """The states of the cell inside before the first step: symbols of zeros, or arrays where
        there is a `batch_size`, unless `func` makes others. A number alone is the `batch_size`.
        """
        self._refuse_modified()
        if isinstance(func, numeric_types):
            func, batch_size = None, func
        if func is None:
            func = ndarray.zeros if batch_size else symbol.zeros
        self.base_cell._modified = False
        try:
            states: list[Any] = self.base_cell.begin_state(batch_size=batch_size, func=func, **kwargs)
        finally:
            self.base_cell._modified = True
        return states

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Output and states of a step; to be defined by the class."""
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell})"


class ZoneoutCell(ModifierCell):
    """Keeps outputs and states of the step before in a graph that computes as in training, with the
    given probabilities. Called with arrays it returns what the cell inside returns.
    """

    def __init__(self, base_cell: Any, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        if isinstance(base_cell, BidirectionalCell):
            raise AssertionError(
                "BidirectionalCell doesn't support zoneout since it doesn't support step. Please add ZoneoutCell to "
                "the cells underneath instead."
            )
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states
        self._prev_output = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, {self.base_cell})"

    def _alias(self) -> str:
        return "zoneout"

    def reset(self) -> None:
        """Forgets the output of the step before."""
        super().reset()
        self._prev_output = None

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Output and states of the cell inside."""
        output, after = self.base_cell(inputs, states)
        if F is ndarray:
            # Nothing is kept back, also in training: threads share no output of a step before.
            return output, after

        def mask(rate: float, like: Any) -> Any:
            return F.Dropout(F.ones_like(like), p=rate)

        if self.zoneout_outputs:
            before = F.zeros_like(output) if self._prev_output is None else self._prev_output
            output = F.where(mask(self.zoneout_outputs, output), output, before)
        if self.zoneout_states:
            after = [F.where(mask(self.zoneout_states, new), new, old) for new, old in zip(after, states, strict=True)]
        self._prev_output = output
        return output, after


class ResidualCell(ModifierCell):
    """Adds the inputs of a cell to its outputs."""

    def __init__(self, base_cell: Any) -> None:
        super().__init__(base_cell)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Input and output of the cell inside added, and its states."""
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def _unroll(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None, valid_length: Any
    ) -> tuple[Any, list[Any]]:
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        finally:
            self.base_cell._modified = True
        merge = is_tensor(outputs) if merge_outputs is None else merge_outputs
        inputs, axis, F, _ = format_sequence(length, inputs, layout, merge)
        if valid_length is not None:
            inputs = mask_sequence(F, inputs, length, valid_length, axis, merge)
        if merge:
            return as_made_here((F.elemwise_add(outputs, inputs), states))
        made = [F.elemwise_add(out, x) for out, x in zip(outputs, inputs, strict=True)]
        return as_made_here((made, states))


class BidirectionalCell(CellOfCells, HybridRecurrentCell):
    """Two cells, one for each direction of a sequence; only for ``unroll``.

    Parameters
    ----------
    l_cell, r_cell : cells for the sequence, and for the reversed sequence
    output_prefix : prefix of the names of the outputs
    """

    def __init__(self, l_cell: Any, r_cell: Any, output_prefix: str = "bi_") -> None:
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs: Any, states: Any) -> Any:
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(forward={self._children['l_cell']}, backward={self._children['r_cell']})"

    def _unroll(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None, valid_length: Any
    ) -> tuple[Any, list[Any]]:
        """Runs all steps of a sequence in both directions; the outputs of both are joined along the
        last axis.
        """
        self.reset()
        steps, axis, F, batch = format_sequence(length, inputs, layout, False)
        states = first_states(self, F, begin_state, steps, batch)
        left, right = self._cells()
        count = len(left.state_info(batch))
        outputs, left_states = left.unroll(length, steps, states[:count], layout, merge_outputs, valid_length)
        turned, right_states = right.unroll(
            length, reverse_sequence(steps, length, valid_length), states[count:], layout, False, valid_length
        )
        backward: Any = reverse_sequence(turned, length, valid_length)
        merge = merge_outputs
        if merge is None:
            merge = is_tensor(outputs)
            outputs = format_sequence(None, outputs, layout, merge)[0]
        joined: Any
        if merge:
            joined = F.concat(outputs, F.stack(*backward, axis=axis), dim=2, name=f"{self._output_prefix}out")
        else:
            joined = [
                F.concat(one, other, dim=1, name=f"{self._output_prefix}t{i}")
                for i, (one, other) in enumerate(zip(outputs, backward, strict=True))
            ]
        if valid_length is not None:
            joined = mask_sequence(F, joined, length, valid_length, axis, merge)
        return as_made_here((joined, left_states + right_states))
