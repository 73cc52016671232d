"""Checks whether parameters fit a graph."""

from __future__ import annotations

from .._scopes.np_mode import is_np_shape
from ..base import MXNetError
from ..symbol import Symbol
from .parameter import shape_is_known

__all__ = ["wrong_shapes"]


def wrong_shapes(graph: Symbol, shapes: dict[str, tuple[int, ...]]) -> dict[str, str]:
    """The parameters that contradict the graph or one another, each with the needed shape.

    Much of a graph can only be checked when the number of axes of its inputs is known. It is not,
    so for each input the number is taken under which most parameters fit.
    """
    known = {name: shape for name, shape in shapes.items() if shape_is_known(shape)}
    wrong = _contradictions(graph, known, {})
    unknown = -1 if is_np_shape() else 0
    for name in graph.list_inputs():
        if name in shapes:
            continue
        found: list[dict[str, str]] = []
        for axes in (4, 2, 3, 5, 1):
            hint = {name: (unknown,) * axes}
            if _consistent(graph, hint):
                found.append(_contradictions(graph, known, hint))
                if not found[-1]:
                    break
        if found:
            fewest = min(found, key=len)
            wrong.update(fewest)
    return wrong


def _consistent(graph: Symbol, shapes: dict[str, tuple[int, ...]]) -> bool:
    try:
        graph._shapes_known(**shapes)
        return True
    except MXNetError:
        return False


def _contradictions(
    graph: Symbol, known: dict[str, tuple[int, ...]], hint: dict[str, tuple[int, ...]]
) -> dict[str, str]:
    """Parameters that do not fit, by name, each with the words for it."""
    if _consistent(graph, {**known, **hint}):
        return {}
    # Some parameter is wrong: they are added one after the other, in the order of the graph.
    good = dict(hint)
    bad: list[str] = []
    for name in graph.list_inputs():
        if name in known:
            if _consistent(graph, {**good, name: known[name]}):
                good[name] = known[name]
            else:
                bad.append(name)
    arguments, _, aux = graph._shapes_known(**good)
    names = [*graph.list_arguments(), *graph.list_auxiliary_states()]
    needed = dict(zip(names, [*arguments, *aux], strict=True))
    return {name: f"'{name}' has shape {known[name]}, needs {_shown(needed.get(name) or ())}" for name in bad}


def _shown(shape: tuple[int, ...]) -> str:
    if not shape:
        return "another one"
    inner = ", ".join("?" if n <= 0 else str(n) for n in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
