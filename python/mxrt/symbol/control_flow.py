"""Control flow in graphs: ``mx.sym.contrib.foreach``, ``while_loop`` and ``cond``.

The functions that a caller passes run once, on variables, with the attribute ``__subgraph_name__``
on all symbols that they make. What has the attribute becomes a graph inside the node; values from
outside that it reads become inputs of the node.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .. import attribute
from .._system.locks import fork_safe_lock
from .._values.nested import FormatError, flatten, regroup
from ..base import MXNetTypeError, MXNetValueError
from ._operators import apply
from .symbol import Group, Symbol, var

__all__ = ["cond", "foreach", "while_loop"]

_ATTRIBUTE = "__subgraph_name__"
_counting = fork_safe_lock()


def _unique_name(name: str) -> str:
    """A name for a subgraph; inside of another one with its name in front."""
    around = attribute.current()._attr.get(_ATTRIBUTE, "")
    name = f"{around}${name}" if around else name
    with _counting:
        number = attribute.AttrScope._subgraph_names[name]
        attribute.AttrScope._subgraph_names[name] = number + 1
    return f"{name}{number}"


def _parts(value: Any) -> list[Any] | None:
    return list(value) if isinstance(value, Symbol) else None


def _variable_name(symbol: Symbol) -> str:
    return f"{symbol.name}-{symbol._value_index}"


def _variables(symbols: list[Symbol]) -> list[Symbol]:
    return [var(_variable_name(symbol)) for symbol in symbols]


def _own(outputs: list[Symbol], states: list[Symbol], name: str) -> list[Symbol]:
    """Outputs and states of a subgraph. Values that an outside node or an input provides are
    copied; so is a state that is also an output, since both are stored separately.
    """
    values = [*outputs, *states]
    inputs = set(Group(values).list_inputs()) if values else set()
    stacked = {output.name for output in outputs}

    def own(value: Symbol, others: set[str | None]) -> Symbol:
        if value.name in inputs or value.name in others or value.attr(_ATTRIBUTE) != name:
            return apply("_copy", "identity", [value], {})
        return value

    return [own(value, set()) for value in outputs] + [own(value, stacked) for value in states]


def _function(value: Any, what: str) -> None:
    # Symbols can be called, too: that composes them.
    if isinstance(value, Symbol) or not callable(value):
        raise MXNetTypeError(f"{what} must be a function, got {value!r} of type {type(value)}")


def _pair(made: Any, what: str) -> tuple[Any, Any]:
    """The results of a function, if these are two."""
    if isinstance(made, Symbol) or not isinstance(made, (list, tuple)) or len(made) != 2:
        raise MXNetValueError(f"{what} must return two things, outputs and states, not {made!r} of type {type(made)}")
    return made[0], made[1]


class _Subgraph:
    """A graph inside a node, and what it reads from outside."""

    def __init__(self, outputs: list[Symbol], name: str) -> None:
        self.symbol, cut = Group(outputs)._cut_subgraph(name)
        self.inputs: list[str] = self.symbol.list_inputs()
        if len(set(self.inputs)) != len(self.inputs):
            raise AssertionError(f"The inputs of the subgraph don't have unique names: {self.inputs}")
        self.outside: dict[str, Symbol] = {symbol.list_outputs()[0]: symbol for symbol in cut}
        self._variables = dict(zip(self.inputs, self.symbol._input_symbols(), strict=True))

    def source(self, name: str) -> Symbol:
        """The symbol outside that feeds an input: the value it stands for, or such a variable."""
        found = self.outside.get(name)
        return copy.deepcopy(self._variables[name]) if found is None else found


class _Inputs:
    """Inputs of a node that several graphs share."""

    def __init__(self) -> None:
        self.symbols: list[Symbol] = []

    def place(self, symbol: Symbol) -> int:
        """The number of an input, which is added if it is new."""
        for at, have in enumerate(self.symbols):
            if have is symbol:
                return at
        self.symbols.append(symbol)
        return len(self.symbols) - 1


def foreach(
    body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any, name: str = "foreach"
) -> tuple[Any, Any]:
    """A loop over the first axis of the data: ``outputs, states = body(row, states)`` for every
    row.

    Parameters
    ----------
    body
        Called once, with symbols in the formats of `data` and `init_states`; returns outputs, and
        states in the format of `init_states`.
    data
        A symbol or (nested) lists of symbols, whose values have equally many rows.
    init_states
        A symbol or (nested) lists of symbols: the states of the first row.
    name
        Name of the graph inside.

    Returns
    -------
    tuple
        The outputs of all rows, stacked along a new first axis, and the last states.

    Raises
    ------
    AssertionError
        Where formats differ, or the body does not use all data and states; one that is an
        MXNetTypeError, too, for what is not in (nested) lists of symbols.
    MXNetTypeError, MXNetValueError
        Where `body` is no function, or does not return two things.
    """
    _function(body, "foreach: body")
    rows, data_format = flatten(data, _parts, "foreach input")
    firsts, state_format = flatten(init_states, _parts, "foreach states")
    name = _unique_name(name)
    with attribute.AttrScope(**{_ATTRIBUTE: name}):
        given = regroup(_variables(rows), data_format), regroup(_variables(firsts), state_format)
        made, made_states = _pair(body(*given), "foreach: body")
        outputs, output_format = flatten(made, _parts, "foreach output")
        states, format_of_states = flatten(made_states, _parts, "foreach loop_vars")
        if format_of_states != state_format:
            raise AssertionError("The input and output loop_vars have different format")
        inner_outputs = _own(outputs, states, name)
    graph = _Subgraph(inner_outputs, name)
    places: list[list[int]] = []
    for what, symbols in ("data", rows), ("state", firsts):
        for symbol in symbols:
            if _variable_name(symbol) not in graph.inputs:
                raise AssertionError(f"the {what} arrays have to be used in the loop body")
        places.append([graph.inputs.index(_variable_name(symbol)) for symbol in symbols])
    rest = [at for at in range(len(graph.inputs)) if at not in places[0] and at not in places[1]]
    loop = apply(
        "_foreach",
        "_foreach",
        [*rows, *firsts, *(graph.source(graph.inputs[at]) for at in rest)],
        {
            "num_outputs": len(inner_outputs),
            "num_out_data": len(outputs),
            "in_data_locs": str(places[0]),
            "in_state_locs": str(places[1]),
            "remain_locs": str(rest),
        },
        graphs=[graph.symbol],
    )
    results = list(loop)
    return regroup(results[: len(outputs)], output_format), regroup(results[len(outputs) :], state_format)


def _number(value: Any, what: str) -> int:
    if hasattr(value, "asscalar"):
        value = value.asscalar()
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"Cannot convert {what} to python int") from None


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: int | None = None,
    name: str = "while_loop",
) -> tuple[Any, Any]:
    """A loop: ``outputs, loop_vars = func(*loop_vars)`` while ``cond(*loop_vars)`` is not zero.

    Parameters
    ----------
    cond
        Called once, with symbols; returns a symbol whose value is a single number.
    func
        Called once, with symbols; returns outputs (None for none) and as many variables as there
        are, whose shapes and dtypes stay the same.
    loop_vars
        A symbol or (nested) lists of symbols.
    max_iterations
        Most steps that are taken.
    name
        Name of the graphs inside.

    Returns
    -------
    tuple
        The outputs of all steps, stacked to `max_iterations` rows, of which those of steps that
        were not taken are zero, and the last values of the variables.

    Raises
    ------
    ValueError
        Where `max_iterations` or `loop_vars` is missing, or the functions do not fit.
    TypeError
        Where an argument has a wrong type.
    """
    _function(cond, "while_loop: cond")
    _function(func, "while_loop: func")
    firsts, form = flatten(loop_vars, _parts, "while loop_vars")
    if max_iterations is None:
        raise ValueError("max_iterations should be specified")
    most = _number(max_iterations, "max_iteration")
    if not firsts:
        raise ValueError("loop_vars should contain at least one element")

    def arguments() -> Any:
        given = regroup(_variables(firsts), form)
        return [given] if isinstance(given, Symbol) else given

    cond_name = _unique_name(f"{name}_cond")
    with attribute.AttrScope(**{_ATTRIBUTE: cond_name}):
        result = cond(*arguments())
        if not isinstance(result, Symbol):
            raise ValueError("Return of cond must be a Symbol")
        condition = _Subgraph(_own([result], [], cond_name), cond_name)
    func_name = _unique_name(f"{name}_func")
    with attribute.AttrScope(**{_ATTRIBUTE: func_name}):
        made, new = _pair(func(*arguments()), "while_loop: func")
        outputs, output_format = flatten([] if made is None else made, _parts, "while output")
        states, _ = flatten([] if new is None else new, _parts, "while loop_vars")
        if len(states) != len(firsts):
            raise ValueError("The number of loop_vars should be consistent during the loop")
        inner_outputs = _own(outputs, states, func_name)
        step = _Subgraph(inner_outputs, func_name)
    names = [_variable_name(symbol) for symbol in firsts]
    for number, first in enumerate(names, 1):
        if first not in step.inputs:
            raise ValueError(f"The {number}-th loop_var doesn't involve into the computation")
    variables = dict(zip(names, firsts, strict=True))
    inputs = _Inputs()
    locations = [
        [inputs.place(variables[n] if n in variables else graph.source(n)) for n in graph.inputs]
        for graph in (condition, step)
    ]
    loop = apply(
        "_while_loop",
        "_while_loop",
        list(inputs.symbols),
        {
            "max_iterations": most,
            "cond_input_locs": str(locations[0]),
            "func_input_locs": str(locations[1]),
            "func_var_locs": str([step.inputs.index(n) for n in names]),
            "num_out_data": len(outputs),
            "num_outputs": len(inner_outputs),
        },
        graphs=[condition.symbol, step.symbol],
    )
    results = list(loop)
    return regroup(results[: len(outputs)], output_format), regroup(results[len(outputs) :], form)


def cond(pred: Symbol, then_func: Callable[[], Any], else_func: Callable[[], Any], name: str = "cond") -> Any:
    """One of two computations: that of `then_func` if `pred` is not zero, else that of `else_func`.

    Parameters
    ----------
    pred
        A symbol whose value is a single number.
    then_func, else_func
        Called once each, without arguments; return a symbol or (nested) lists of equally many
        symbols, with the same shapes and dtypes.
    name
        Name of the graphs inside.

    Raises
    ------
    ValueError
        Where the two functions return different numbers of symbols.
    TypeError
        Where an argument has a wrong type.
    """
    _function(then_func, "cond: then_func")
    _function(else_func, "cond: else_func")
    if not isinstance(pred, Symbol):
        raise FormatError(f"cond: pred must be a symbol, got {pred!r} of type {type(pred)}")
    graphs: list[_Subgraph] = []
    counts = []
    forms = []
    for part, function in ("pred", lambda: pred), ("then", then_func), ("else", else_func):
        part_name = _unique_name(f"{name}_{part}")
        with attribute.AttrScope(**{_ATTRIBUTE: part_name}):
            outputs, form = flatten(function(), _parts, "cond outputs")
            graphs.append(_Subgraph(_own(outputs, [], part_name), part_name))
        counts.append(len(outputs))
        forms.append(form)
    if counts[0] != 1:
        raise ValueError("pred should always be a single output")
    if counts[1] != counts[2]:
        raise ValueError("Number of outputs differs between then-branch and else-branch")
    inputs = _Inputs()
    locations = []
    for graph in graphs:
        known = {symbol.name: symbol for symbol in inputs.symbols}
        locations.append([inputs.place(known[n] if n in known else graph.source(n)) for n in graph.inputs])
    chosen = apply(
        "_cond",
        "_cond",
        list(inputs.symbols),
        {
            "cond_input_locs": str(locations[0]),
            "then_input_locs": str(locations[1]),
            "else_input_locs": str(locations[2]),
            "num_outputs": counts[1],
        },
        graphs=[graph.symbol for graph in graphs],
    )
    return regroup(list(chosen), forms[1])
