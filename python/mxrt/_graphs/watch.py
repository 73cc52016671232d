"""Results in between: running every operator of a graph for its own sake, and telling them to a
callback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import _mxrt
from ..ndarray import NDArray
from ..ndarray._handles import handled
from ..symbol import Symbol
from .training import training_form

__all__ = ["Seen", "Watch", "show_operators"]


class _Everything:
    """A graph that is computed operator by operator: compiled graphs have no results in between."""

    def __init__(self, symbol: Symbol, hook: bool, inputs_too: bool) -> None:
        everything, self.values, self.heads = _mxrt.watched(symbol, hook, inputs_too)
        self._inputs = everything.list_inputs()
        self._op = _mxrt.CachedOp(everything, {})

    def compute(self, given: Mapping[str, NDArray]) -> Callable[[tuple[bool, int]], NDArray]:
        """Computes everything for the arrays of the variables; returns what finds a value by its
        source.
        """
        inputs = [given[name] for name in self._inputs]
        made = self._op(*inputs)
        results = made if isinstance(made, list) else [made]
        return lambda source: (inputs if source[0] else results)[source[1]]


class Seen:
    """Everything that a graph computed for a callback."""

    def __init__(self, graph: _Everything, arrays: Mapping[str, NDArray], callback: Callable[[bytes, NDArray], Any]):
        self._graph = graph
        self._callback = callback
        self._found = graph.compute(arrays)

    def outputs(self) -> list[NDArray]:
        """The results of the graph. One that is a variable, or is there twice, is copied."""
        taken: set[tuple[bool, int]] = set()
        outputs = []
        for source in self._graph.heads:
            array = self._found(source)
            outputs.append(array.copy() if source[0] or source in taken else array)
            taken.add(source)
        return outputs

    def tell(self) -> None:
        """Calls the callback with name and array of each value."""
        for name, _, source in self._graph.values:
            # Named, so that its handle is valid until the callback returns: the callback may drop
            # what it was given.
            shown = handled(self._found(source))
            self._callback(name.encode(), shown)


class Watch:
    """Tells a callback the results of all operators of a graph, in order, for arrays of its
    variables; with `monitor_all` their inputs too.
    """

    def __init__(self, callback: Callable[[bytes, NDArray], Any], monitor_all: bool) -> None:
        self._callback = callback
        self._monitor_all = monitor_all
        # By mode: what computes as in training is another graph.
        self._graphs: dict[tuple[bool, bool], _Everything] = {}

    def compute(self, symbol: Symbol, mode: tuple[bool, bool], arrays: Mapping[str, NDArray]) -> Seen:
        """Computes everything in a mode: what trains outside of loops and branches, and inside."""
        graph = self._graphs.get(mode)
        if graph is None:
            graph = _Everything(training_form(symbol, *mode), hook=False, inputs_too=self._monitor_all)
            self._graphs[mode] = graph
        return Seen(graph, arrays, self._callback)


def show_operators(
    symbol: Symbol, given: Mapping[str, NDArray], callback: Callable[..., Any], inputs_too: bool
) -> list[NDArray]:
    """Runs a graph operator by operator, calls back with name, operator and array of each value,
    and returns the results of the graph.
    """
    graph = _Everything(symbol, hook=True, inputs_too=inputs_too)
    found = graph.compute(given)
    for name, operator, source in graph.values:
        shown = handled(found(source))  # named: see Seen.tell
        callback(name.encode(), operator.encode(), shown)
    return [found(source) for source in graph.heads]
