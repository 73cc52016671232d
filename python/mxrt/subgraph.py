"""Rewrites of graphs by name: what ``Symbol.optimize_for`` and ``MXNET_SUBGRAPH_BACKEND`` choose.

A backend is a function that takes a symbol and returns one::

    @mx.subgraph.register("no_dropout")
    def no_dropout(symbol):
        ...
        return another

    net = net.optimize_for("no_dropout")

A rewritten graph is compiled as any other, and called from any number of threads.
"""

from __future__ import annotations

import inspect
import os
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Callable
from typing import Any, TypeVar

from ._imports import load
from .base import MXNetKeyError, MXNetTypeError, MXNetValueError, warn
from .context import Context, current_context
from .symbol import Symbol

__all__ = ["backends", "from_environment", "optimize", "register"]

_Function = TypeVar("_Function", bound=Callable[..., Symbol])


def _fused(symbol: Symbol) -> Symbol:
    """Layers fused as MXNet's backend MKLDNN fuses them; they run on the kernels of plain ones."""
    load("mxrt.contrib")
    from .contrib import _fuse_graph, _quantize_graph

    return _quantize_graph.write(_fuse_graph.fuse(_quantize_graph.read(symbol), quantize=False))


def _fused_for_integers(symbol: Symbol) -> Symbol:
    """Layers fused as MXNet's backend MKLDNN_QUANTIZE fuses them, before and after quantization."""
    load("mxrt.contrib")
    from .contrib import _fuse_graph, _quantize_graph

    return _quantize_graph.write(_fuse_graph.finish(_fuse_graph.fuse(_quantize_graph.read(symbol))))


_BACKENDS: dict[str, Callable[..., Symbol]] = {"MKLDNN": _fused, "MKLDNN_QUANTIZE": _fused_for_integers}


def register(name: str) -> Callable[[_Function], _Function]:
    """A decorator that makes a function the backend of this name.

    The function takes a symbol and returns one; it must not change the one it gets. It may also
    take ``args`` and ``aux``, dictionaries of parameters by name, to which it adds what the new
    graph needs; ``ctx``; and the options given to ``optimize_for``, all by keyword.
    """
    if not isinstance(name, str) or not name:
        raise MXNetTypeError(f"subgraph.register: the name must be a string, got {name!r}")

    def decorate(function: _Function) -> _Function:
        _BACKENDS[name] = function
        return function

    return decorate


def backends() -> list[str]:
    """The names of all backends."""
    return sorted(_BACKENDS)


def _backend(name: str) -> Callable[..., Symbol]:
    found = _BACKENDS.get(name)
    if found is None:
        raise MXNetKeyError(f"SubgraphProperty {name} is not found; the backends are {', '.join(backends())}")
    return found


def optimize(
    symbol: Symbol,
    backend: str,
    args: dict[str, Any] | None = None,
    aux: dict[str, Any] | None = None,
    ctx: Context | None = None,
    **options: Any,
) -> Symbol:
    """The graph that a backend makes of a symbol.

    Parameters that the new graph does not have are taken out of `args` and `aux`.

    Raises MXNetKeyError for an unknown name, MXNetTypeError if the backend returns something else
    than a symbol or does not take an option. An exception of the backend itself is passed on.
    """
    function = _backend(backend)
    offered = {"args": args, "aux": aux, "ctx": ctx or current_context()}
    taken = inspect.signature(function).parameters
    anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    unknown = [] if anything else [name for name in options if name not in taken]
    if unknown:
        raise MXNetTypeError(f"optimize_for: the backend '{backend}' has no option {', '.join(unknown)}")
    given = {name: value for name, value in offered.items() if name in taken}
    made = function(symbol, **given, **options)
    if not isinstance(made, Symbol):
        raise MXNetTypeError(f"optimize_for: the backend '{backend}' returned {type(made)}, expected a Symbol")
    _drop(symbol.list_arguments(), made.list_arguments(), args)
    _drop(symbol.list_auxiliary_states(), made.list_auxiliary_states(), aux)
    return made


def _drop(before: list[str], after: list[str], values: dict[str, Any] | None) -> None:
    """Takes out of a dictionary what a rewritten graph does not have any more."""
    gone = set(before) - set(after)
    if gone and values is None:
        warn(
            f"optimize_for: the new graph has no {', '.join(sorted(gone))}, and no dictionary was given to take the "
            "values out of. Please ensure that your parameters match the newly optimized model."
        )
    for name in gone:
        (values or {}).pop(name, None)


def from_environment(symbol: Symbol) -> Symbol:
    """The graph that the backend named by ``MXNET_SUBGRAPH_BACKEND`` makes of a symbol; without it,
    the symbol itself.

    Such a rewrite must keep the inputs and their order, since a caller goes by those:
    MXNetValueError otherwise.
    """
    name = os.environ.get("MXNET_SUBGRAPH_BACKEND", "NONE")
    if name in ("", "NONE", "MKLDNN"):
        return symbol
    made = optimize(symbol, name)
    if made.list_inputs() != symbol.list_inputs():
        raise MXNetValueError(
            f"MXNET_SUBGRAPH_BACKEND: the backend '{name}' changes the inputs of the graph from {symbol.list_inputs()} "
            f"to {made.list_inputs()}; call optimize_for, which tells the new ones"
        )
    return made
