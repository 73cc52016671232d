"""Dictionaries of parameters, and how values are loaded into them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any

import numpy as np

from .._values.dtypes import dtype_name
from .._values.extents import extents
from ..base import MXNetError, MXNetValueError
from ..context import Context, contexts_of
from ..ndarray import NDArray, load_frombuffer
from ..ndarray import load as load_arrays
from ..ndarray import save as save_arrays
from ._first_values import initialize_all
from ._publishing import publishing
from .parameter import Constant, Parameter

__all__ = ["ParameterDict", "ParameterMismatchError"]


class ParameterMismatchError(MXNetValueError, AssertionError):
    """A file's parameters and those of a block do not fit; the message lists all that are wrong."""


class ParameterDict:
    """Parameters by name, in order.

    Parameters
    ----------
    prefix : what the names of parameters made by ``get`` begin with
    shared : a dictionary that ``get`` looks into before it makes a parameter
    """

    # What a network says about shapes: which are wrong, by name. Pickles of MXNet lack it.
    _check: Callable[[dict[str, tuple[int, ...]]], dict[str, str]] | None = None

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None) -> None:
        self._prefix = prefix
        self._params: dict[str, Parameter] = {}
        self._shared = shared

    @property
    def prefix(self) -> str:
        """The prefix of the names of parameters made by ``get``."""
        return self._prefix

    def __repr__(self) -> str:
        inner = "\n".join(f"  {parameter!r}" for parameter in self._params.values())
        return f"{self._prefix + ' ' if self._prefix else ''}(\n{inner}\n)"

    def __getitem__(self, name: str) -> Parameter:
        return self._params[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __contains__(self, name: object) -> bool:
        return name in self._params

    def __len__(self) -> int:
        return len(self._params)

    def __bool__(self) -> bool:
        return True

    def items(self) -> ItemsView[str, Parameter]:
        """Names and parameters."""
        return self._params.items()

    def keys(self) -> KeysView[str]:
        """Names."""
        return self._params.keys()

    def values(self) -> ValuesView[Parameter]:
        """Parameters."""
        return self._params.values()

    def _get_impl(self, name: str) -> Parameter | None:
        return self._find(name)

    def _find(self, full: str) -> Parameter | None:
        found = self._params.get(full)
        if found is None and self._shared is not None:
            found = self._shared._params.get(full)
            if found is not None:
                return self._params.setdefault(full, found)
        return found

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """The parameter of this name (with the prefix in front); a new one if there is none.

        The keywords are those of :class:`Parameter`. What an existing parameter has must agree with
        them.
        """
        full = self._prefix + name
        found = self._find(full)
        if found is None:
            made = Parameter(full, **kwargs)
            found = self._params.setdefault(full, made)  # another thread may have made it meanwhile
            if found is made:
                return found
        for key, wanted in kwargs.items():
            _agree(found, key, wanted)
        return found

    def get_constant(self, name: str, value: Any = None) -> Parameter:
        """The constant of this name; a new one if there is none. AssertionError if it has another
        value.
        """
        full = self._prefix + name
        found = self._find(full)
        if found is None:
            if value is None:
                raise KeyError(
                    f"No constant named '{full}'. Please specify value if you want to create a new constant."
                )
            made = Constant(full, value)
            found = self._params.setdefault(full, made)
            if found is made:
                return found
        if value is not None:
            if not isinstance(found, Constant):
                raise AssertionError(f"Parameter '{full}' already exists but it is not a constant.")
            wanted = np.asarray(value.asnumpy() if isinstance(value, NDArray) else value)
            if found.shape != wanted.shape or not (found.value.asnumpy() == wanted).all():
                raise AssertionError(f"Constant '{full}' already exists but its value doesn't match new value")
        return found

    def update(self, other: ParameterDict | Mapping[str, Parameter]) -> None:
        """Takes over all parameters of another dictionary."""
        parameters = dict(other.items())
        for name, parameter in parameters.items():
            if self._params.get(name, parameter) is not parameter:
                raise AssertionError(
                    f"Cannot update self with other because they have different Parameters with the same name '{name}'"
                )
        self._params.update(parameters)

    def select(self, pattern: str) -> ParameterDict:
        """The parameters whose names match a regular expression."""
        expression = re.compile(pattern)
        found = ParameterDict(self._prefix)
        found._params = {n: p for n, p in self._params.items() if expression.match(n)}
        return found

    def initialize(self, init: Any = None, ctx: Any = None, verbose: bool = False, force_reinit: bool = False) -> None:
        """Gives every parameter a first value: by its own initializer, or else by `init`.

        The other arguments are those of :meth:`Block.initialize`.
        """
        if verbose and hasattr(init, "set_verbosity"):
            init.set_verbosity(verbose=verbose)
        parameters = list(self._params.values())
        if not any(one._redefines("initialize") for one in parameters):
            initialize_all(parameters, None, ctx, init, force_reinit)
            return
        # One after the other: random initializers draw in this order.
        for one in parameters:
            one.initialize(None, ctx, init, force_reinit=force_reinit)

    def reset_ctx(self, ctx: Any) -> None:
        """Moves every parameter to other contexts."""
        with publishing:
            for parameter in self._params.values():
                parameter.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """All contexts that hold a parameter."""
        found: dict[Context, None] = {}
        for parameter in self._params.values():
            found.update(dict.fromkeys(parameter.list_ctx()))
        return list(found)

    def setattr(self, name: str, value: Any) -> None:
        """Sets an attribute of every parameter."""
        for parameter in self._params.values():
            setattr(parameter, name, value)

    def zero_grad(self) -> None:
        """Nothing to do: there are no gradients."""

    def save(self, filename: str, strip_prefix: str = "") -> None:
        """Writes all values to a file, `strip_prefix` taken from the front of their names."""
        values = {}
        for parameter in self._params.values():
            name = parameter.name
            if not name.startswith(strip_prefix):
                raise ValueError(
                    f"Prefix '{strip_prefix}' is to be striped before saving, but Parameter's name '{name}' does not "
                    f"start with '{strip_prefix}'. A block that shares parameters of others, or children made outside "
                    "of 'with self.name_scope()', have names like this; save_parameters does not depend on them"
                )
            values[name[len(strip_prefix) :]] = parameter._reduce()
        save_arrays(filename, values)

    def load(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Reads values from a file of any of MXNet's ways to save.

        Parameters
        ----------
        filename : path of the file
        ctx : contexts for parameters that have none yet
        allow_missing : parameters without a value in the file are left alone
        ignore_extra : values for no parameter are left out
        restore_prefix : put in front of the names in the file
        cast_dtype : values of another element type are accepted: cast to that of the parameter with
            ``dtype_source='current'``, or the parameter is cast to theirs with ``'saved'``
        """
        for name in self._params:
            if not name.startswith(restore_prefix):
                raise AssertionError(
                    f"restore_prefix is '{restore_prefix}' but Parameters name '{name}' does not start with "
                    f"'{restore_prefix}'"
                )
        values = {restore_prefix + strip_kind(n): v for n, v in named_arrays(filename).items()}
        self._load(values, f"file: {filename}", ctx, allow_missing, ignore_extra, cast_dtype, dtype_source, own=True)

    def load_dict(
        self,
        param_dict: Mapping[str, NDArray] | Sequence[tuple[str, NDArray]],
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        filename: str | None = None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Takes arrays over, as ``load`` does. Either all of them, or, when something is wrong,
        none.

        Parameters
        ----------
        param_dict : arrays by name, or pairs of both
        filename : where they come from, for error messages

        The other parameters, and the errors, are those of ``load``.
        """
        values = {restore_prefix + strip_kind(name): value for name, value in dict(param_dict).items()}
        where = f"file: {filename}" if filename else "param_dict"
        self._load(values, where, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source)

    def _load(
        self,
        values: Mapping[str, NDArray],
        where: str,
        ctx: Any,
        allow_missing: bool,
        ignore_extra: bool,
        cast_dtype: bool = False,
        dtype_source: str = "current",
        own: bool = False,
        idle: Collection[str] = (),
        hint: str = "",
    ) -> None:
        missing = [] if allow_missing else [name for name in self._params if name not in values]
        extra = [] if ignore_extra else [name for name in values if name not in self._params and name not in idle]
        take_over(
            self._params, values, where, ctx, cast_dtype, dtype_source, missing, extra, own, hint, check=self._check
        )


def _agree(parameter: Parameter, key: str, wanted: Any) -> None:
    """Completes or checks an attribute of a parameter that is asked for again."""
    existing = getattr(parameter, key, None)
    if existing is None:
        setattr(parameter, key, wanted)
        return
    if key == "shape" and wanted is not None:
        wanted = extents(wanted)
        if len(wanted) == len(existing) and all(
            a == b or a <= 0 or b <= 0 for a, b in zip(wanted, existing, strict=True)
        ):
            parameter._shape = tuple(a if a > 0 else b for a, b in zip(wanted, existing, strict=True))
            return
    if key == "dtype" and dtype_name(wanted) == dtype_name(existing):
        return
    if wanted is not None and wanted != existing:
        raise AssertionError(
            f"Cannot retrieve Parameter '{parameter.name}' because desired attribute does not match with stored for "
            f"attribute '{key}': desired '{wanted}' vs stored '{existing}'."
        )


def take_over(
    parameters: Mapping[str, Parameter],
    values: Mapping[str, NDArray],
    where: str,
    ctx: Any,
    cast_dtype: bool,
    dtype_source: str,
    missing: list[str] | None = None,
    extra: list[str] | None = None,
    own: bool = False,
    hint: str = "",
    check: Callable[[dict[str, tuple[int, ...]]], dict[str, str]] | None = None,
    in_turn: bool = True,
) -> None:
    """Checks all values, then publishes those that a parameter has a name for.

    With `own` the caller holds no other reference to the arrays, so they need not be copied.
    `missing` and `extra` are names to complain of. With `in_turn` a parameter whose class has a
    ``_load_init`` of its own is given its value by that.
    """
    if cast_dtype and dtype_source not in ("current", "saved"):
        raise AssertionError(f"dtype_source is 'current' or 'saved', got '{dtype_source}'")
    taken = {name: value for name, value in values.items() if name in parameters}
    wrong = {
        name: f"'{name}' has shape {value.shape}, needs {parameters[name].shape}"
        for name, value in taken.items()
        if not _may_hold(parameters[name].shape, value.shape)
    }
    if check is not None:
        wrong = {**check({name: value.shape for name, value in taken.items()}), **wrong}
    types = [
        f"'{name}' has dtype {dtype_name(value.dtype)}, needs {dtype_name(parameters[name].dtype)}"
        for name, value in taken.items()
        if not cast_dtype and dtype_name(value.dtype) != dtype_name(parameters[name].dtype)
    ]
    if missing or extra or wrong or types:
        raise mismatch(where, missing or [], extra or [], list(wrong.values()), types, list(values), hint)
    ready: list[tuple[Parameter, NDArray, list[Context]]] = []
    seen: set[int] = set()
    for name, value in taken.items():
        parameter = parameters[name]
        if id(parameter) in seen:
            continue  # a shared parameter that the file has under each of its names
        seen.add(id(parameter))
        if in_turn and parameter._redefines("_load_init"):
            parameter._load_init(value, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
            continue
        if cast_dtype and dtype_source == "current":
            value = value.astype(parameter.dtype, copy=False)
        if parameter.stype == "default" and value.stype != "default":
            value = value.tostype("default")
        held = list(parameter._arrays) or (parameter._deferred[2] if parameter._deferred else [])
        ready.append((parameter, value, held if ctx is None and held else contexts_of(ctx)))
    # All at once: a block that collects its arrays meanwhile gets either all old ones or all new
    # ones.
    with publishing:
        for parameter, value, contexts in ready:
            if contexts == list(parameter._arrays) and parameter._redefines("set_data"):
                if cast_dtype and dtype_source == "saved":
                    parameter.dtype = value.dtype
                parameter.set_data(value)
            else:
                parameter._publish(value, contexts, own)


def _may_hold(known: tuple[int, ...] | None, shape: tuple[int, ...]) -> bool:
    return known is None or (
        len(known) == len(shape) and all(a in (0, -1, b) for a, b in zip(known, shape, strict=True))
    )


def _shortened(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:50])
    return shown if len(names) <= 50 else f"{shown} and {len(names) - 50} more"


def mismatch(
    where: str,
    missing: list[str],
    extra: list[str],
    wrong: list[str],
    types: list[str],
    held: list[str],
    hint: str = "",
) -> MXNetError:
    """One error that lists everything that does not fit."""
    lines = [hint] if hint else []
    lines.append(f"The parameters in {where} do not fit the network.")
    if missing:
        lines.append(f"  missing in the file: {_shortened(missing)} (set allow_missing to True to leave them out)")
    if extra:
        lines.append(f"  not present in the network (set ignore_extra to True to ignore): {_shortened(extra)}")
    if wrong:
        lines.append("  of the wrong shape: " + "; ".join(wrong[:50]))
    if types:
        lines.append("  of the wrong dtype (set cast_dtype to True to cast): " + "; ".join(types[:50]))
    if missing:
        # Last, since it can be long.
        lines.append(f"The file contains: {_shortened(held) or 'nothing'}.")
    return ParameterMismatchError("\n".join(lines))


def strip_kind(name: str) -> str:
    """A name without the ``arg:`` or ``aux:`` that exported files put in front."""
    return name[4:] if name.startswith(("arg:", "aux:")) else name


def named_arrays(filename: str | bytes) -> dict[str, NDArray]:
    """The arrays of a file, or of what a file holds, which must have names."""
    found = load_frombuffer(filename) if isinstance(filename, bytes) else load_arrays(filename)
    if isinstance(found, dict):
        return found
    if not found:
        return {}
    said = "param_file" if isinstance(filename, bytes) else filename
    raise MXNetValueError(
        f"'{said}' holds {len(found)} arrays without names, so it is not known which parameter each one is; save a "
        "dictionary of arrays by name instead"
    )
