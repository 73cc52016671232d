"""Calls of single operators, and of graphs, that compute as in training."""

from __future__ import annotations

from typing import Any

from .. import _mxrt
from .._system.locks import fork_safe_lock
from ..base import MXNetValueError

__all__ = ["TrainingOp", "call_operator"]

# Operators with their attributes for which graphs are kept.
_KEPT = 256


class TrainingOp:
    """A graph as in training, which takes the inputs of the graph as in inference."""

    def __init__(self, symbol: Any) -> None:
        from .._graphs.training import training_form

        form = training_form(symbol)
        places = {name: place for place, name in enumerate(symbol.list_inputs())}
        self.places = [places[name] for name in form.list_inputs()]
        self.op = _mxrt.CachedOp(form, {})

    def __call__(self, args: Any, **options: Any) -> Any:
        return self.op(*[args[place] for place in self.places], **options)


_lock = fork_safe_lock()
_ops: dict[Any, TrainingOp] = {}


def call_operator(name: str, inputs: list[tuple[str | None, Any]], attrs: dict[str, Any], out: Any) -> Any:
    """Calls an operator that computes something else in training."""
    names = tuple(argument for argument, _ in inputs)
    key = (name, names, repr(sorted(attrs.items())))
    op = _ops.get(key)
    if op is None:
        op = TrainingOp(_graph_of(name, names, attrs))
        with _lock:
            if len(_ops) >= _KEPT:
                _ops.pop(next(iter(_ops)))
            _ops[key] = op
    arrays = [value for _, value in inputs]
    return op(arrays) if out is None else op(arrays, out=out)


def _graph_of(name: str, names: tuple[str | None, ...], attrs: dict[str, Any]) -> Any:
    """A graph of one operator, whose inputs are those of the call."""
    from ..symbol import var

    pairs = [(argument, var(f"input{place}")) for place, argument in enumerate(names)]
    made = _mxrt.create(name, name.lower(), attrs, pairs, [])
    missing = [one for one in made.list_inputs() if not one.startswith("input")]
    if missing:
        listed = ", ".join(one.removeprefix(f"{name.lower()}_") for one in missing)
        raise MXNetValueError(f"{name}: {len(names)} inputs were given; missing: {listed}")
    return made
