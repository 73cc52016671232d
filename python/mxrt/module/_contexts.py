"""Modules over several contexts: which samples each takes, and the states that stay there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import ndarray as nd
from ..base import MXNetShapeError, MXNetValueError
from ..context import Context
from ..io import DataDesc
from ..ndarray import NDArray
from ..symbol import Symbol
from ._split import part_of, pieces

__all__ = ["ContextMethods"]


class ContextMethods:
    """Methods of :class:`mxrt.mod.Module` that divide batches and keep states."""

    _symbol: Symbol
    _arguments: list[str]
    _context: list[Context]
    _first_context: Context
    _work_load_list: list[float]
    _state_names: list[str]
    # For every state the arrays of all contexts.
    _states: list[list[NDArray]]
    _data_shapes: list[DataDesc]
    _label_shapes: list[DataDesc] | None

    def _input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes that are bound, by name."""
        raise NotImplementedError

    def _need_params(self, what: str) -> None:
        """NotBoundError if there are no parameters yet."""
        raise NotImplementedError

    def _parts(self, inputs: dict[str, NDArray]) -> list[dict[str, NDArray]]:
        """The inputs of every context."""
        if len(self._context) == 1:
            return [{name: array.as_in_context(self._first_context) for name, array in inputs.items()}]
        axes = {name: self._axis(name) for name in inputs}
        return [
            {name: part_of(array, axes[name], part, context) for name, array in inputs.items()}
            for part, context in zip(self._rows(inputs), self._context, strict=True)
        ]

    def _axis(self, name: str) -> int:
        """The axis of an input that counts samples."""
        for description in [*self._data_shapes, *(self._label_shapes or [])]:
            if description.name == name:
                return DataDesc.get_batch_axis(description.layout)
        return 0

    def _rows(self, shaped: Mapping[str, Any]) -> list[slice]:
        """The samples of inputs that each context takes; ValueError unless all have as many."""
        if len(self._context) == 1:
            return [slice(None)]
        counts = {}
        for name, value in shaped.items():
            axis = DataDesc.get_batch_axis(value.layout) if isinstance(value, DataDesc) else self._axis(name)
            if axis >= 0:
                counts[name] = value.shape[axis]
        if len(set(counts.values())) > 1:
            raise MXNetValueError(f"Module: all inputs must have the same batch size, got {counts}")
        return pieces(next(iter(counts.values()), len(self._context)), self._work_load_list)

    def _states_for(self, rows: list[slice]) -> list[list[NDArray]]:
        """Arrays for the states: those there are where their shapes fit, else zeros."""
        made: list[list[NDArray]] = [[] for _ in self._state_names]
        for place, (context, part) in enumerate(zip(self._context, rows, strict=True)):
            known = {}
            for name, shape in self._input_shapes().items():
                axis = self._axis(name)
                if len(rows) > 1 and axis >= 0:
                    shape = (*shape[:axis], part.stop - part.start, *shape[axis + 1 :])
                known[name] = shape
            shapes = dict(zip(self._arguments, self._symbol._shapes_known(**known)[0], strict=True))
            for number, name in enumerate(self._state_names):
                shape = shapes[name]
                if not shape or 0 in shape:
                    raise MXNetShapeError(f"Module.bind: the shape of the state '{name}' does not follow from the data")
                held = self._states[number][place] if self._states else None
                fits = held is not None and held.shape == shape
                made[number].append(held if fits else nd.zeros(shape, ctx=context))  # type: ignore[arg-type]
        return made

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets the states: to arrays, for every state a list with one for each context (what
        ``get_outputs(merge_multi_context=False)`` gives), or all to one number.
        """
        self._need_params("set_states")
        if (states is None) == (value is None):
            raise AssertionError("set_states: give either states or value, not both")
        for number, arrays in enumerate(self._states):
            for place, array in enumerate(arrays):
                if states is None:
                    array[:] = value
                else:
                    states[number][place].copyto(array)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The states: for each a list with the array of every context.

        AssertionError for ``merge_multi_context=True``, as in MXNet.
        """
        self._need_params("get_states")
        if merge_multi_context:
            raise AssertionError("merge_multi_context=True is not supported for get_states yet.")
        return self._states
