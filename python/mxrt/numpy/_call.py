"""Calls of the operators of ``mx.np``, with arrays or with symbols, and the functions that
consist of one such call.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as onp

from .. import _mxrt
from .._values.dtypes import dtype_name
from ..base import is_number
from ..context import current_context
from ..ndarray import NDArray
from ..ndarray.ndarray import _device
from .multiarray import ndarray

__all__ = [
    "LEGACY",
    "Function",
    "binary",
    "call",
    "computed_in_python",
    "create",
    "direct",
    "is_tensor",
    "makes_symbols",
    "unary",
    "wrapped",
]

Function = Callable[..., Any]

_REQUIRED = object()
LEGACY = (
    "an array of mx.nd where one of mx.np is expected: call as_np_ndarray() on it (no copy), or make arrays with mx.np"
)


def is_tensor(value: Any) -> bool:
    """Whether a value is an array of ``mx.np`` or a symbol."""
    return isinstance(value, (ndarray, _mxrt.SymbolBase))


def wrapped(made: Any) -> Any:
    """Arrays of ``mx.np`` over what an operator made."""
    if isinstance(made, list):
        return [ndarray(one) for one in made]
    return ndarray(made)


def call(operator: str, inputs: Sequence[Any], attrs: dict[str, Any] | None = None, out: Any = None) -> Any:
    """The result of an operator: arrays for arrays, symbols where an input is a symbol.

    Raises TypeError for inputs that are neither.
    """
    for value in inputs:
        if not isinstance(value, ndarray):
            if any(isinstance(one, _mxrt.SymbolBase) for one in inputs):
                return _symbol(operator, inputs, attrs)
            raise _wrong(operator, value)
    if out is None:
        return _mxrt.invoke_np(operator, tuple(inputs), attrs)
    check_out(operator, out)
    return _mxrt.invoke_np(operator, tuple(inputs), attrs, out)


class _Creating(threading.local):
    """Whether functions without inputs make symbols in a thread."""

    symbols = False


_creating = _Creating()


@contextmanager
def creating_symbols() -> Iterator[None]:
    """A ``with`` block in which functions without inputs make symbols."""
    before, _creating.symbols = _creating.symbols, True
    try:
        yield
    finally:
        _creating.symbols = before


def makes_symbols() -> bool:
    """Whether functions without inputs make symbols in this thread."""
    return _creating.symbols


def create(operator: str, attrs: dict[str, Any], ctx: Any = None, out: Any = None) -> Any:
    """The result of an operator without inputs, on a context."""
    if _creating.symbols:
        return _symbol(operator, (), attrs)
    device = current_context()._device if ctx is None else _device(ctx)
    if out is None:
        return _mxrt.invoke_np(operator, (), attrs, None, device)
    check_out(operator, out)
    return _mxrt.invoke_np(operator, (), attrs, out, device)


def check_out(operator: str, out: Any) -> None:
    """Refuses as ``out`` what is neither an array of ``mx.np`` nor a tuple or list of them. As in
    MXNet, a call returns what it was given there.
    """
    for array in out if isinstance(out, (tuple, list)) else (out,):
        if not isinstance(array, ndarray):
            raise TypeError(f"{_shown(operator)}: out must be an array of mx.np, got {type(array).__name__}")


def _symbol(operator: str, inputs: Sequence[Any], attrs: dict[str, Any] | None) -> Any:
    from ..symbol.numpy import apply_np

    for value in inputs:
        if not isinstance(value, _mxrt.SymbolBase):
            raise _wrong(operator, value)
    return apply_np(operator, list(inputs), attrs or {})


def computed_in_python(op_type: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """The symbol of a function that MXNet computes in Python: a node ``Custom``."""
    from .. import symbol

    return symbol.Custom(*inputs, op_type=op_type, **attrs).as_np_ndarray()


def _shown(operator: str) -> str:
    for prefix in ("_npi_", "_npx_", "_np_"):
        if operator.startswith(prefix):
            return ("npx." if prefix == "_npx_" else "np.") + operator[len(prefix) :]
    return operator


def _wrong(operator: str, value: Any) -> TypeError:
    name = _shown(operator)
    if isinstance(value, NDArray):
        return TypeError(f"{name}: got {LEGACY}")
    advice = "; make one with mx.np.array(x)" if isinstance(value, (onp.ndarray, list, tuple)) else ""
    return TypeError(f"{name}: type {type(value)} not supported: expected an array of mx.np{advice}")


# ---- options that functions of NumPy have --------------------------------------------------------

_UFUNC_DEFAULTS: dict[str, Any] = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}


def check_ufunc_options(name: str, options: dict[str, Any]) -> None:
    """Refuses options of NumPy's ufuncs, unless they have the value that they have by default."""
    for key, value in options.items():
        if key not in _UFUNC_DEFAULTS:
            raise TypeError(f"{key} is an invalid keyword to function '{name}'")
        plain = isinstance(value, (bool, str, onp.bool_)) or value is None
        if plain and value == _UFUNC_DEFAULTS[key]:
            continue
        if _is_known(key, value):
            raise NotImplementedError(f"{key}={value} is not implemented yet for operator {name}; leave it out")
        raise TypeError(f"{key}={value} not understood for operator {name}; leave it out")


def _is_known(key: str, value: Any) -> bool:
    """Whether NumPy takes this value for an option of ufuncs."""
    if key == "casting":
        return value in ("no", "equiv", "safe", "same_kind", "unsafe")
    if key == "dtype":
        try:
            onp.dtype(value)
        except TypeError:
            return False
        return True
    return key == "where" or isinstance(value, bool if key == "subok" else str)


# ---- functions of one call -----------------------------------------------------------------------


def _named(function: Any, name: str, doc: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "mxrt.numpy"
    function.__doc__ = doc
    made: Function = function
    return made


def _doc(operator: str) -> str:
    found = _mxrt.get_operator(operator)
    return found.doc if found is not None else f"The operator ``{operator}``."


def unary(name: str, operator: str | None = None) -> Function:
    """A function of each element; of numbers, NumPy's."""
    operator = operator or f"_npi_{name}"
    of_number = getattr(onp, name)
    of_array = _mxrt.NumpyUnary(operator).call

    def function(x: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            check_ufunc_options(name, kwargs)
        made = of_array(x, out)
        if made is not None:
            return made
        if is_number(x):
            return of_number(x)
        return call(operator, (x,), None, out)

    return _named(function, name, _doc(operator))


def binary(name: str, operator: str | None = None, reflected: str | None = None) -> Function:
    """A function of two arrays, or an array and a number; of two numbers, NumPy's.

    `reflected` is the operator for a number on the left, where it is another one.
    """
    operator = operator or f"_npi_{name}"
    scalar = f"{operator}_scalar"
    from_left = reflected or scalar
    of_numbers = getattr(onp, name)
    of_arrays = _mxrt.NumpyBinary(operator, scalar, from_left).call

    def function(x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            check_ufunc_options(name, kwargs)
        made = of_arrays(x1, x2, out)
        if made is not None:
            return made
        if is_number(x2):
            if is_number(x1):
                return of_numbers(x1, x2)
            return call(scalar, (x1,), _scalar(x1, x2), out)
        if is_number(x1):
            # A whole number on the left of a symbol counts as none, as in MXNet.
            return call(from_left, (x2,), _scalar(x2, float(x1)), out)
        return call(operator, (x1, x2), None, out)

    return _named(function, name, _doc(operator))


def _scalar(operand: Any, number: Any) -> dict[str, Any]:
    """The attributes of an operator on an operand and a number. MXNet says of symbols alone whether
    the number is whole: of arrays it takes the type of the result from the array.
    """
    if isinstance(operand, _mxrt.SymbolBase):
        return {"scalar": float(number), "is_int": isinstance(number, (int, onp.integer))}
    return {"scalar": float(number)}


def attribute(name: str, value: Any) -> Any:
    """The value of an attribute as operators read it."""
    if name == "dtype":
        return dtype_name(value)
    if isinstance(value, list):
        return tuple(value)
    return value


def direct(signature: str, target: str) -> Function:
    """A function that passes its arguments to an operator.

    `signature` is written as a call: ``"sum(a, axis=None, out=None)"``. `target` names the
    operator, its inputs and its attributes: ``"_np_sum(a)(axis, keepdims=False)"``. An attribute
    without a value has that of the argument of its name. Arguments that are None are left to the
    operator.
    """
    head = ast.parse(signature, mode="eval").body
    body = ast.parse(target, mode="eval").body
    assert isinstance(head, ast.Call) and isinstance(head.func, ast.Name)
    assert isinstance(body, ast.Call) and isinstance(body.func, ast.Call)
    assert isinstance(body.func.func, ast.Name)
    name, operator = head.func.id, body.func.func.id
    names = [arg.id for arg in head.args if isinstance(arg, ast.Name)]
    defaults = {key.arg: ast.literal_eval(key.value) for key in head.keywords if key.arg is not None}
    order = [*names, *defaults]
    inputs = [arg.id for arg in body.func.args if isinstance(arg, ast.Name)]
    passed = [(arg.id, arg.id) for arg in body.args if isinstance(arg, ast.Name)]
    constants: dict[str, Any] = {}
    for key in body.keywords:
        assert key.arg is not None
        if isinstance(key.value, ast.Name):
            passed.append((key.arg, key.value.id))
        else:
            constants[key.arg] = ast.literal_eval(key.value)
    required = len(names)
    # What the operator has by default need not be passed.
    described = _mxrt.get_operator(operator)
    own = {attr[0]: attr[2] for attr in described.attrs} if described is not None else {}
    constants = {key: value for key, value in constants.items() if own.get(key) != _mxrt.attr_text(value)}
    attributes = [
        (attr, argument, usual if own.get(attr) == _mxrt.attr_text(usual) else None)
        for attr, argument, usual in ((attr, argument, defaults.get(argument)) for attr, argument in passed)
    ]
    usual_alone = all(defaults.get(argument) is usual for _, argument, usual in attributes)
    # Most calls have the array alone.
    short = required == 1 and inputs == order[:1] and usual_alone and not constants
    of_array = _mxrt.NumpyUnary(operator).call if short else None

    def function(*args: Any, **kwargs: Any) -> Any:
        if of_array is not None and len(args) == 1 and not kwargs:
            made = of_array(args[0])
            if made is not None:
                return made
        values = bound(name, order, defaults, required, args, kwargs)
        attrs = dict(constants)
        for attr, argument, usual in attributes:
            value = values[argument]
            if value is not None and value is not usual:
                attrs[attr] = attribute(attr, value)
        return call(operator, [values[one] for one in inputs], attrs, values.get("out"))

    from inspect import Parameter, Signature

    kind = Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(one, kind, default=defaults.get(one, Parameter.empty)) for one in order]
    )
    return _named(function, name, _doc(operator))


def bound(
    name: str, order: list[str], defaults: dict[str, Any], required: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name, defaults included; TypeError as Python has it."""
    if len(args) > len(order):
        raise TypeError(f"{name}() takes at most {len(order)} arguments, {len(args)} were given")
    values = {**defaults, **dict(zip(order, args, strict=False))}
    for key, value in kwargs.items():
        if key not in order:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        if key in order[: len(args)]:
            raise TypeError(f"{name}() got multiple values for argument '{key}'")
        values[key] = value
    missing = [one for one in order[:required] if one not in values]
    if missing:
        raise TypeError(f"{name}() missing the argument '{missing[0]}'")
    return values
