"""Results in between: running every operator of a graph for its own sake, and telling them to a
callback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _mxrt
from .ndarray import NDArray
from .symbol import Symbol

__all__ = ["Watch", "show_operators"]


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


class Watch:
    """Tells a callback the results of all operators of a graph, in order, for arrays of its
    variables; with `monitor_all` their inputs too.
    """

    def __init__(self, symbol: Symbol, callback: Callable[[str, NDArray], Any], monitor_all: bool) -> None:
        self._callback = callback
        self._graph = _Everything(symbol, hook=False, inputs_too=monitor_all)

    def run(self, arrays: Mapping[str, NDArray]) -> None:
        """Computes everything, and calls the callback with name and array of each value."""
        found = self._graph.compute(arrays)
        for name, _, source in self._graph.values:
            self._callback(name, found(source))


def show_operators(
    symbol: Symbol, given: Mapping[str, NDArray], callback: Callable[..., Any], inputs_too: bool
) -> list[NDArray]:
    """Runs a graph operator by operator, calls back with name, operator and array of each value,
    and returns the results of the graph.
    """
    graph = _Everything(symbol, hook=True, inputs_too=inputs_too)
    found = graph.compute(given)
    for name, operator, source in graph.values:
        callback(name.encode(), operator.encode(), found(source))
    return [found(source) for source in graph.heads]
