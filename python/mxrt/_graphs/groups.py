"""Groups of nodes, named by the attribute ``ctx_group``, and the contexts that a program gives
them by ``group2ctx``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _mxrt
from ..base import MXNetDeviceError, MXNetNotImplementedError, MXNetTypeError, MXNetValueError
from ..context import Context, checked_context

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["device_of", "groups_of_contexts", "on_one_device", "places"]


def device_of(context: Context) -> Context:
    """The device of a context. All contexts of the CPU are one."""
    return Context("cpu", 0) if checked_context(context)._is_host() else context


def places(symbol: Symbol, group2ctx: Any) -> dict[str, Context]:
    """The contexts of the nodes that belong to a group, by the names of the nodes.

    Parameters
    ----------
    group2ctx : contexts by the names of groups; None or an empty dictionary is no grouping

    Raises
    ------
    MXNetTypeError : not a dictionary of contexts
    MXNetValueError (a ValueError) : a group of the graph that has no context
    MXNetDeviceError : a context whose device is absent
    """
    if not group2ctx:
        return {}
    if not isinstance(group2ctx, Mapping):
        raise MXNetTypeError(f"group2ctx: expected a dictionary of contexts by group, got {type(group2ctx).__name__}")
    for group, context in group2ctx.items():
        if not isinstance(context, Context):
            raise MXNetTypeError(f"group2ctx: '{group}' must be a Context, got {type(context).__name__}")
    attributes = symbol.attr_dict()
    of_nodes = {name: own["__ctx_group__"] for name, own in attributes.items() if "__ctx_group__" in own}
    for name, group in of_nodes.items():
        if group not in group2ctx:
            raise MXNetValueError(
                f"group2ctx: The device assignment not found for group {group} of node '{name}'; group2ctx has "
                f"{', '.join(group2ctx)}"
            )
    for group in dict.fromkeys(of_nodes.values()):
        _check(group, group2ctx[group])
    return {name: group2ctx[group] for name, group in of_nodes.items()}


def _check(group: str, context: Context) -> None:
    if not context._is_host():
        try:
            _mxrt.device_stats(context._device)
        except MXNetDeviceError as error:
            raise MXNetDeviceError(f"group2ctx: group '{group}': {error}") from None


def on_one_device(ctx: Context, placed: Mapping[str, Context]) -> None:
    """MXNetNotImplementedError if a node is on another device than `ctx`: an executor divides
    graphs, a module does not.
    """
    for name, context in placed.items():
        if context != ctx and not (context._is_host() and ctx._is_host()):
            raise MXNetNotImplementedError(
                f"group2ctxs: '{name}' is on {context} and the module is bound to {ctx}. A module runs on one device: "
                "bind the symbol with group2ctx, which divides it over devices"
            )


def groups_of_contexts(group2ctxs: Any, count: int) -> list[Any]:
    """The argument of a Module as one `group2ctx` for each of its `count` contexts. The argument is
    a list of them, or a dictionary whose values are a context, or a list of one or `count`
    contexts.
    """
    if group2ctxs is None:
        return [None] * count
    if isinstance(group2ctxs, Mapping):
        of_groups = {group: _repeated(group, given, count) for group, given in group2ctxs.items()}
        return [{group: given[place] for group, given in of_groups.items()} for place in range(count)]
    if not isinstance(group2ctxs, (list, tuple)):
        raise AssertionError(
            "group2ctxs should be list of dict of str to context, or dict of str to context or list of context"
        )
    if len(group2ctxs) != count:
        raise AssertionError(f"length of group2ctxs should be {count}")
    return list(group2ctxs)


def _repeated(group: str, given: Any, count: int) -> Sequence[Any]:
    contexts = [given] if isinstance(given, Context) else list(given)
    if len(contexts) == 1:
        return contexts * count
    if len(contexts) != count:
        raise AssertionError(f"length of group2ctxs[{group}] should be {count} or 1")
    return contexts
