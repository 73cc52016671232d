"""Binding: the arrays of an executor, given or made for the variables of a symbol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._scopes.np_mode import is_np_shape
from .._values.dtypes import dtype_name
from ..base import MXNetShapeError, MXNetTypeError, MXNetValueError
from ..context import Context
from ..executor import Executor
from ..ndarray import NDArray
from ..ndarray.sparse import empty as stored_empty
from .groups import places

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["bind", "check_grad_req", "shared_arrays", "simple_bind", "storage_of_variables"]


class GradReqError(MXNetValueError, KeyError):
    """A word for what to do with gradients is not known."""


def check_grad_req(grad_req: Any) -> None:
    """Checks what is to be done with gradients: a word, or several in a list or dictionary.
    GradReqError for words that MXNet does not know.
    """
    if isinstance(grad_req, str):
        words: list[Any] = [grad_req]
    else:
        words = list(grad_req.values() if isinstance(grad_req, Mapping) else grad_req or ())
    for word in words:
        if word not in ("null", "write", "add"):
            raise GradReqError(f"grad_req must be 'null', 'write' or 'add', got {word!r}")


def _by_name(given: Any, names: list[str], what: str) -> dict[str, NDArray]:
    if isinstance(given, NDArray):
        raise TypeError(f"{what}: Only accept list of NDArrays or dict of str to NDArray, got one NDArray")
    if isinstance(given, Mapping):
        for name in names:
            if name not in given:
                raise ValueError(f"key `{name}` is missing in `{what}`")
        found = {name: given[name] for name in names}
    else:
        listed = list(given or [])
        if len(listed) != len(names):
            raise ValueError(
                f"Length of {what} does not match the number of arguments: {len(listed)} were given, "
                f"{len(names)} are needed: {', '.join(names)}"
            )
        found = dict(zip(names, listed, strict=True))
        for name, array in zip(names, listed, strict=True):
            if array is not found[name]:
                raise MXNetValueError(
                    f"{what}: two variables of the graph are called '{name}', and the list has different arrays for "
                    "them: give the variables different names, or pass one array for both"
                )
    for name, array in found.items():
        if not isinstance(array, NDArray):
            raise TypeError(f"Only accept list of NDArrays or dict of str to NDArray; {name} is {type(array)}")
    return found


def bind(
    symbol: Symbol, ctx: Context, args: Any, aux_states: Any, args_grad: Any = None, group2ctx: Any = None
) -> Executor:
    """An executor over given arrays."""
    if not isinstance(ctx, Context):
        raise TypeError("Context type error")
    arguments = _by_name(args, symbol.list_arguments(), "args")
    states = _by_name({} if aux_states is None else aux_states, symbol.list_auxiliary_states(), "aux_states")
    _check_fit(symbol, {**arguments, **states})
    groups = places(symbol, group2ctx)
    return Executor(symbol, ctx, arguments, states, _gradients(args_grad, list(arguments)), groups)


def _check_fit(symbol: Symbol, arrays: Mapping[str, NDArray]) -> None:
    """Infers shapes and types from those of the arrays; raises where these do not fit the graph."""
    known = {name: array.shape for name, array in arrays.items() if array.shape and 0 not in array.shape}
    arg_shapes, _, aux_shapes = symbol._shapes_known(**known)
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    for name, shape in zip(names, [*arg_shapes, *aux_shapes], strict=True):
        if shape and 0 not in shape and name in known and known[name] != shape:
            raise MXNetShapeError(
                f"bind: '{name}' has shape {known[name]}, and {shape} follows from the other arrays: give arrays that "
                "fit the graph"
            )
    symbol.infer_type_partial(**{name: array.dtype for name, array in arrays.items()})


def _gradients(given: Any, names: list[str]) -> dict[str, NDArray | None]:
    """The arrays for gradients, which a dictionary may leave out and a list may have None for."""
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    if len(given) != len(names):
        raise ValueError(f"Length of args_grad does not match the number of arguments: {len(given)}, {len(names)}")
    return dict(zip(names, given, strict=True))


def simple_bind(
    symbol: Symbol,
    ctx: Context,
    types: Mapping[str, Any],
    shapes: Mapping[str, Any],
    group2ctx: Any = None,
    held: Mapping[str, NDArray] | None = None,
    stypes: Mapping[str, str] | None = None,
    buffer: dict[str, NDArray] | None = None,
    unbuffered: Iterable[str] = (),
) -> Executor:
    """An executor over new arrays, on the contexts of their groups; those `held` stay where their
    shapes fit. Of the keywords those are shapes that are tuples or lists, and the others are
    ignored, as in MXNet, like shapes and types of names that the symbol lacks (a label of a net
    without a loss). Arrays have the storage types of `stypes`, or of their variables.

    Arguments use the memory of the arrays in `buffer` if it is large enough; others are put there,
    except those called `unbuffered`.
    """
    held = held or {}
    storage = {**storage_of_variables(symbol), **(stypes or {})}
    groups = places(symbol, group2ctx)
    names, aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
    has = {*names, *aux_names}
    shapes = {name: shape for name, shape in shapes.items() if name in has and isinstance(shape, (tuple, list))}
    types = {name: dtype for name, dtype in types.items() if name in has}
    arg_shapes, _, aux_shapes = symbol._shapes_known(**shapes)
    arg_types, _, aux_types = symbol.infer_type_partial(**types)
    numpy = is_np_shape()
    unknown = [
        f"{name}: {shape or 'unknown'}"
        for name, shape in zip([*names, *aux_names], [*arg_shapes, *aux_shapes], strict=True)
        if (shape is None or -1 in shape if numpy else not shape or 0 in shape)
    ]
    if unknown:
        raise MXNetShapeError(
            "simple_bind cannot decide shapes for the following arguments "
            f"({-1 if numpy else 0} means unknown dimensions). Please "
            "consider providing them as inputs: " + ", ".join(unknown)
        )

    def zeros(names: list[str], shapes: list[Any], types: list[Any]) -> dict[str, NDArray]:
        rows = zip(names, shapes, types, strict=True)
        return {
            name: held[name]
            if name in held and held[name].shape == shape
            else stored_empty(storage.get(name, "default"), shape, groups.get(name, ctx), dtype_name(dtype))
            for name, shape, dtype in rows
        }

    arguments, states = zeros(names, arg_shapes, arg_types), zeros(aux_names, aux_shapes, aux_types)
    if buffer is not None:
        _use_buffer(arguments, buffer, set(unbuffered))
    return Executor(symbol, ctx, arguments, states, groups=groups)


def shared_arrays(executor: Executor, names: Iterable[str]) -> dict[str, NDArray]:
    """The arrays of an executor that another one can share: arguments of these names, and auxiliary
    states.
    """
    found = {name: executor.arg_dict[name] for name in names if name in executor.arg_dict}
    return {**found, **executor.aux_dict}


def _use_buffer(arguments: dict[str, NDArray], buffer: dict[str, NDArray], unbuffered: set[str]) -> None:
    for name, array in arguments.items():
        if name in unbuffered or array.stype != "default":
            continue
        there = buffer.get(name)
        if there is not None and there.dtype != array.dtype:
            raise MXNetTypeError(
                f"simple_bind: '{name}' is {np.dtype(array.dtype).name}, but the array in shared_buffer is "
                f"{np.dtype(there.dtype).name}"
            )
        if there is not None and there.size >= array.size:
            arguments[name] = there._view(0, list(array.shape))
        else:
            buffer[name] = array


def storage_of_variables(symbol: Symbol) -> dict[str, str]:
    """The storage types that variables ask for, by name."""
    codes = {"1": "row_sparse", "2": "csr"}
    asked = {name: attrs.get("__storage_type__") for name, attrs in symbol._variable_attrs().items()}
    return {name: codes[code] for name, code in asked.items() if code in codes}
