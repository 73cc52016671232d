"""Cells one after the other."""

from __future__ import annotations

from typing import Any

from ..utils import _indent
from ._sequences import first_states, format_sequence
from .modifiers import BidirectionalCell
from .recurrent_cell import CellOfCells, HybridRecurrentCell, RecurrentCell

__all__ = ["HybridSequentialRNNCell", "SequentialRNNCell"]


class _Stack(CellOfCells):
    """The common part of both classes."""

    def __repr__(self) -> str:
        inner = "\n".join(f"({name}): {_indent(repr(cell), 2)}" for name, cell in self._children.items())
        return f"{type(self).__name__}(\n{inner}\n)"

    def add(self, cell: Any) -> None:
        """Adds a cell after the present ones."""
        self.register_child(cell)

    def __call__(self, inputs: Any, states: Any) -> Any:
        self._counter += 1
        after: list[Any] = []
        for cell in self._cells():
            if isinstance(cell, BidirectionalCell):
                raise AssertionError("a BidirectionalCell cannot be stepped. Please use unroll")
            count = len(cell.state_info())
            inputs, state = cell(inputs, states[:count])
            states = states[count:]
            after += state
        return inputs, after

    def _unroll(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None, valid_length: Any
    ) -> tuple[Any, list[Any]]:
        """Runs all steps of a sequence through one cell after the other."""
        self.reset()
        inputs, _, F, batch = format_sequence(length, inputs, layout, None)
        states = first_states(self, F, begin_state, inputs, batch)
        after: list[Any] = []
        cells = self._cells()
        for cell in cells:
            count = len(cell.state_info())
            merge = merge_outputs if cell is cells[-1] else None
            inputs, state = cell.unroll(length, inputs, states[:count], layout, merge, valid_length)
            states = states[count:]
            after += state
        return inputs, after

    def __getitem__(self, i: int) -> Any:
        return self._children[str(i)]

    def __len__(self) -> int:
        return len(self._children)


class SequentialRNNCell(_Stack, RecurrentCell):
    """Cells one after the other: each takes the outputs of the one before it."""


class HybridSequentialRNNCell(_Stack, HybridRecurrentCell):
    """Cells that can be hybridised one after the other."""

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Output of the last cell, and the states of all."""
        return self(inputs, states)
