"""Cells made of cells: one after another, both ways, and with something added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import symbol
from ..ndarray import NDArray
from ..symbol import Symbol
from ._base import BaseRNNCell, RNNParams, as_sequence

__all__ = [
    "BidirectionalCell",
    "DropoutCell",
    "ModifierCell",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
]


class _Several(BaseRNNCell):
    """A cell that consists of several; their states follow each other."""

    def __init__(self, params: RNNParams | None) -> None:
        super().__init__("", params)
        self._override_cell_params = params is not None
        self._cells: list[BaseRNNCell] = []

    def _take(self, cell: BaseRNNCell) -> None:
        self._cells.append(cell)
        if self._override_cell_params:
            if not cell._own_params:
                raise AssertionError(f"Either specify params for {type(self).__name__} or child cells, not both.")
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state; an extent of 0 is not known."""
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, func: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Any]:
        """The first states of all cells."""
        self._check_unmodified()
        return [state for cell in self._cells for state in cell.begin_state(func=func, **kwargs)]

    def _own(self, states: list[Any]) -> list[list[Any]]:
        """The states of each cell."""
        found, begin = [], 0
        for cell in self._cells:
            end = begin + len(cell.state_info)
            found.append(list(states[begin:end]))
            begin = end
        return found

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """The parameters of a model, with those of all cells cut into gates."""
        found = dict(args)
        for cell in self._cells:
            found = cell.unpack_weights(found)
        return found

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """The parameters of a model, with the gates of all cells joined."""
        found = dict(args)
        for cell in self._cells:
            found = cell.pack_weights(found)
        return found


class SequentialRNNCell(_Several):
    """Cells one after another."""

    def __init__(self, params: RNNParams | None = None) -> None:
        super().__init__(params)

    def add(self, cell: BaseRNNCell) -> None:
        """Adds a cell after the others."""
        self._take(cell)

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        self._counter += 1
        after: list[Any] = []
        for cell, own in zip(self._cells, self._own(states), strict=True):
            if isinstance(cell, BidirectionalCell):
                raise AssertionError("a bidirectional cell cannot be stepped: unroll the whole")
            inputs, new = cell(inputs, own)
            after += new
        return inputs, after

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Any]]:
        """A network of `length` steps, cell by cell: outputs and last states."""
        self.reset()
        states = self._own(self.begin_state() if begin_state is None else begin_state)
        after: list[Any] = []
        for place, (cell, own) in enumerate(zip(self._cells, states, strict=True)):
            merge = merge_outputs if place == len(self._cells) - 1 else None
            inputs, new = cell.unroll(length, inputs, own, layout, merge)
            after += new
        return inputs, after


class BidirectionalCell(_Several):
    """Two cells, one of which goes through the sequence backwards; their outputs are joined."""

    def __init__(
        self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None, output_prefix: str = "bi_"
    ) -> None:
        super().__init__(params)
        self._output_prefix = output_prefix
        self._take(l_cell)
        self._take(r_cell)

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Any]]:
        """A network of `length` steps: outputs, and the last states of either cell."""
        self.reset()
        steps, axis = as_sequence(length, inputs, layout, False)
        states = self._own(self.begin_state() if begin_state is None else begin_state)
        left, left_states = self._cells[0].unroll(length, steps, states[0], layout, merge_outputs)
        right, right_states = self._cells[1].unroll(length, steps[::-1], states[1], layout, merge_outputs)
        merge = merge_outputs
        if merge is None:
            merge = isinstance(left, Symbol) and isinstance(right, Symbol)
            if not merge:
                as_written: Any = 1  # MXNet's files show it so
                left, right = (
                    list(symbol.SliceChannel(one, axis=axis, num_outputs=length, squeeze_axis=as_written))
                    if isinstance(one, Symbol)
                    else one
                    for one in (left, right)
                )
        if merge:
            back = symbol.reverse(right, axis=axis)
            outputs: Any = symbol.Concat(left, back, dim=2, name=f"{self._output_prefix}out")
        else:
            pairs = enumerate(zip(left, right[::-1], strict=True))
            outputs = [symbol.Concat(*pair, dim=1, name=f"{self._output_prefix}t{step}") for step, pair in pairs]
        return outputs, [left_states, right_states]


class DropoutCell(BaseRNNCell):
    """Dropout between cells: at inference it hands on what it gets."""

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None) -> None:
        super().__init__(prefix, params)
        if not isinstance(dropout, (int, float)):
            raise AssertionError("dropout probability must be a number")
        self.dropout = dropout

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """The states: there are none."""
        return []

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        if self.dropout > 0:
            inputs = symbol.Dropout(data=inputs, p=self.dropout)
        return inputs, states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Any]]:
        """All steps at once where they are one symbol, else step by step."""
        self.reset()
        inputs, _ = as_sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs)


class ModifierCell(BaseRNNCell):
    """A cell around another one, whose parameters and states are its own."""

    def __init__(self, base_cell: BaseRNNCell) -> None:
        self.base_cell = base_cell
        base_cell._modified = True
        super().__init__()

    @property
    def params(self) -> RNNParams:
        """The variables of the inner cell's parameters."""
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state of the inner cell."""
        return self.base_cell.state_info

    def begin_state(self, func: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Any]:
        """The first states of the inner cell."""
        self._check_unmodified()
        func = kwargs.pop("init_sym", func)
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=func, **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """The parameters of a model, with those of the inner cell cut into gates."""
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """The parameters of a model, with the gates of the inner cell joined."""
        return self.base_cell.pack_weights(args)


class ZoneoutCell(ModifierCell):
    """Zoneout: while training, outputs and states sometimes stay what they were; at inference they
    do not.
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        from ._fused import FusedRNNCell

        if isinstance(base_cell, FusedRNNCell):
            raise AssertionError("FusedRNNCell doesn't support zoneout. Please unfuse first.")
        if isinstance(base_cell, BidirectionalCell):
            raise AssertionError(
                "BidirectionalCell doesn't support zoneout since it doesn't support step. Please add ZoneoutCell to "
                "the cells underneath instead."
            )
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states
        self.prev_output: Any = None

    def reset(self) -> None:
        """Begins again, before the cell is used for another network."""
        super().reset()
        self.prev_output = None

    @staticmethod
    def _mixed(part: float, new: Any, old: Any) -> Any:
        """The new value where Dropout leaves a one, as it does everywhere at inference."""
        if part == 0:
            return new
        return symbol.where(symbol.Dropout(symbol.ones_like(new), p=part), new, old)

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        output, after = self.base_cell(inputs, states)
        before = symbol.zeros((0, 0)) if self.prev_output is None else self.prev_output
        output = self._mixed(self.zoneout_outputs, output, before)
        after = [self._mixed(self.zoneout_states, new, old) for new, old in zip(after, states, strict=True)]
        self.prev_output = output
        return output, after


class ResidualCell(ModifierCell):
    """Adds the inputs of a cell to its outputs."""

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        output, after = self.base_cell(inputs, states)
        return self._sum(output, inputs), after

    @staticmethod
    def _sum(output: Any, inputs: Any) -> Any:
        return symbol.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Any]]:
        """A network of `length` steps: outputs and last states."""
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs, begin_state, layout, merge_outputs)
        finally:
            self.base_cell._modified = True
        merge = isinstance(outputs, Symbol) if merge_outputs is None else merge_outputs
        steps, _ = as_sequence(length, inputs, layout, merge)
        if merge:
            return self._sum(outputs, steps), states
        return [self._sum(output, step) for output, step in zip(outputs, steps, strict=True)], states
