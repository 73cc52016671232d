"""Cells: single steps of recurrent networks."""

from __future__ import annotations

from typing import Any

from ... import ndarray
from .._numpy import as_made_here
from ..block import Block
from ..hybrid_block import HybridBlock
from ..nn import LeakyReLU
from ._sequences import first_states, format_sequence, mask_sequence

__all__ = ["CellOfCells", "HybridRecurrentCell", "RecurrentCell", "make_state"]


class RecurrentCell(Block):
    """A cell: a call takes the input and the states of a step, and returns its output and the next
    states.
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        # A modifier was put around the cell, and is to be called instead of it.
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Restarts the count of steps; only the names of operators depend on it."""
        self._init_counter = -1
        self._counter = -1
        for cell in self._children.values():
            reset = getattr(cell, "reset", None)
            if reset is not None:
                reset()

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        raise NotImplementedError(f"{type(self).__name__} has no state_info")

    def begin_state(self, batch_size: int = 0, func: Any = None, **kwargs: Any) -> list[Any]:
        """The states before the first step: what `func` makes of shape and name, zeros without it.

        The other keywords are handed on to `func`.
        """
        self._refuse_modified()
        make = ndarray.zeros if func is None else func
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(make_state(make, name, {**info, **kwargs}))
        return states

    def _refuse_modified(self) -> None:
        if self._modified:
            raise AssertionError(
                "After applying modifier cells (e.g. ZoneoutCell) the base cell cannot be called directly. Call the "
                "modifier cell instead."
            )

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Runs all steps of a sequence.

        Parameters
        ----------
        length : number of steps
        inputs : one array in `layout`, or a list of an array ``(n, c)`` for every step
        begin_state : states before the first step; zeros without them
        layout : ``NTC`` or ``TNC``
        merge_outputs : True: outputs as one array, False: as a list, None: as they come
        valid_length : ``(n,)``, number of valid steps of each row: later outputs are zero, and
            states are those of the last valid step

        Returns the outputs and the states after the last step.
        """
        return self._unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)

    def _unroll(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None, valid_length: Any
    ) -> tuple[Any, list[Any]]:
        """The steps of :meth:`unroll`, one after the other."""
        self.reset()
        inputs, axis, F, batch = format_sequence(length, inputs, layout, False)
        states = first_states(self, F, begin_state, inputs, batch)
        outputs: Any = []
        every: list[Any] = []
        for step in range(length):
            output, states = self(inputs[step], states)
            outputs.append(output)
            every.append(states)
        if valid_length is not None:
            states = [
                F.SequenceLast(F.stack(*one, axis=0), sequence_length=valid_length, use_sequence_length=True, axis=0)
                for one in zip(*every, strict=True)
            ]
            outputs = mask_sequence(F, outputs, length, valid_length, axis, True)
        unrolled: tuple[Any, list[Any]] = format_sequence(length, outputs, layout, merge_outputs)[0], states
        return as_made_here(unrolled)

    def _get_activation(self, F: Any, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """An activation: by name, as a layer, or as a function."""
        if activation in ("tanh", "relu", "sigmoid", "softsign"):
            return getattr(F, activation)(inputs, **kwargs)
        if isinstance(activation, str):
            return F.Activation(inputs, act_type=activation, **kwargs)
        if isinstance(activation, LeakyReLU):
            return F.LeakyReLU(inputs, act_type="leaky", slope=activation._alpha, **kwargs)
        return activation(inputs, **kwargs)

    def forward(self, inputs: Any, states: Any, **options: Any) -> Any:
        """Output and states of a step."""
        self._counter += 1
        return super().forward(inputs, states, **options)


def make_state(make: Any, name: str, info: dict[str, Any]) -> Any:
    """A state. Functions that make arrays have no use for names and layouts."""
    if getattr(make, "__module__", "").partition(".")[2].startswith("ndarray"):
        info = {key: value for key, value in info.items() if key != "__layout__"}
        return make(**info)
    return make(name=name, **info)


class CellOfCells(RecurrentCell):
    """A cell that is made of others, its children."""

    def _cells(self) -> list[Any]:
        return list(self._children.values())

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shapes of the states of all cells."""
        return [info for cell in self._cells() for info in cell.state_info(batch_size)]

    def begin_state(self, batch_size: int = 0, func: Any = None, **kwargs: Any) -> list[Any]:
        """The states of all cells before the first step; without `func` each cell makes its own."""
        self._refuse_modified()
        given = kwargs if func is None else {**kwargs, "func": func}
        return [state for cell in self._cells() for state in cell.begin_state(batch_size=batch_size, **given)]


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """A cell that can be hybridised."""

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Output and states of a step; to be defined by the class."""
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")
