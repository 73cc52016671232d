"""Shows what the operators of a block's graph make, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._graphs.watch import show_operators
from .._scopes.mode import mode
from ..ndarray import NDArray
from ._compiled import CompiledGraph, finish_deferred
from .parameter import DeferredInitializationError

__all__ = ["call_and_show"]


def call_and_show(graph: CompiledGraph, args: Sequence[NDArray], callback: Callable[..., Any], inputs_too: bool) -> Any:
    """Runs a graph, calls back with what each operator makes, and returns the graph's outputs."""
    if mode.training:
        graph = graph.in_training()
    try:
        held = graph.every_input(args)
    except DeferredInitializationError:
        finish_deferred(graph.whole, graph.params, dict(zip(graph.input_names, args, strict=True)))
        held = graph.every_input(args)
    given: dict[str, Any] = dict(zip(graph.order, held, strict=True))
    heads = show_operators(graph.symbol, given, callback, inputs_too)
    return heads[0] if len(heads) == 1 else heads
