"""Parameters of blocks, and dictionaries of them."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Collection, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, NoReturn

import numpy as np

from ..base import MXNetError, MXNetValueError, dtype_name, no_training
from ..context import Context, current_context
from ..ndarray import NDArray, array, empty
from ..ndarray import load as load_arrays
from ..ndarray import save as save_arrays
from ..symbol import Symbol, var

__all__ = ["Constant", "DeferredInitializationError", "Parameter", "ParameterDict", "ParameterMismatchError"]


class DeferredInitializationError(MXNetError):
    """A parameter whose shape is not known yet has no value."""


class ParameterMismatchError(MXNetValueError, AssertionError):
    """A file's parameters and those of a block do not fit; the message lists all that are wrong."""


# Which arrays the parameters of the process hold: changed whenever one is replaced, so that blocks notice.
publishing = threading.RLock()
_generation = 0


def generation() -> int:
    """A number that changes when any parameter gets another array."""
    return _generation


class _Publish:
    """Replaces the arrays of parameters: whoever collects arrays under the same lock sees all changes or none."""

    def __enter__(self) -> None:
        publishing.acquire()

    def __exit__(self, *exception: Any) -> None:
        global _generation
        _generation += 1
        publishing.release()


def _contexts(ctx: Any) -> list[Context]:
    if ctx is None:
        return [current_context()]
    return [ctx] if isinstance(ctx, Context) else list(ctx)


class Parameter:
    """A named array of a model, with a copy on each of its contexts."""

    def __init__(
        self,
        name: str,
        grad_req: str = "write",
        shape: Any = None,
        dtype: Any = np.float32,
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Any = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
    ) -> None:
        self.name = name
        self.grad_req = grad_req if differentiable else "null"
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.init = init
        self.dtype = dtype
        self._shape: tuple[int, ...] | None = (shape,) if isinstance(shape, int) else shape and tuple(shape)
        self._allow_deferred_init = allow_deferred_init
        self._data: dict[Context, NDArray] = {}
        self._deferred: tuple[Any, list[Context]] | None = None
        self._var: Symbol | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Extents; 0 where one is not known yet, None when nothing is."""
        return self._shape

    @shape.setter
    def shape(self, new: Any) -> None:
        new = tuple(new)
        old = self._shape
        if old is not None and (
            len(old) != len(new) or any(a not in (0, -1, b) for a, b in zip(old, new, strict=True))
        ):
            raise AssertionError(f"Expected shape {new} is incompatible with given shape {old}.")
        self._shape = new

    @property
    def shape_known(self) -> bool:
        return self._shape is not None and all(n > 0 for n in self._shape)

    @property
    def stype(self) -> str:
        """Storage type; always ``default``, that is, dense."""
        return "default"

    def _missing(self) -> RuntimeError:
        if self._deferred is not None:
            return DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred. Actual "
                "initialization happens during the first forward pass. Please pass one batch of data through the "
                "network before accessing Parameters."
            )
        return MXNetError(
            f"Parameter '{self.name}' has not been initialized. Load its value from a file (load_parameters, or "
            "imports with a parameter file), or call initialize()"
        )

    def data(self, ctx: Context | None = None) -> NDArray:
        """The array on a context (without one: on the only, or the current, context)."""
        held = self._data
        if ctx is None:
            if len(held) == 1:
                return next(iter(held.values()))
            ctx = current_context()
        found = held.get(ctx)
        if found is not None:
            return found
        if not held:
            raise self._missing()
        raise MXNetError(
            f"Parameter '{self.name}' was not initialized on context {ctx}. It was only initialized on {list(held)}. "
            "Use reset_ctx to move it, or pass inputs that live there"
        )

    def list_data(self) -> list[NDArray]:
        """The arrays on all contexts."""
        if not self._data:
            raise self._missing()
        return list(self._data.values())

    def list_ctx(self) -> list[Context]:
        """The contexts that hold an array."""
        if self._data:
            return list(self._data)
        if self._deferred is not None:
            return self._deferred[1]
        raise MXNetError(f"Parameter '{self.name}' has not been initialized")

    def _publish(self, value: NDArray, contexts: list[Context], own: bool = False) -> None:
        """Gives every context an array of its own with this value: the array itself where it may be kept."""
        arrays = {ctx: value if own and ctx == value.context else value.copyto(ctx) for ctx in contexts}
        with _Publish():
            self._data = arrays
            self._deferred = None
            self._shape = value.shape
            self.dtype = value.dtype

    def set_data(self, data: Any) -> None:
        """Changes the value. Calls that are under way finish with the old one."""
        value = data if isinstance(data, NDArray) else array(data, dtype=self.dtype)
        self.shape = value.shape
        if not self._data:
            if self._deferred is None:
                raise self._missing()
            self._publish(value.astype(self.dtype, copy=False), self._deferred[1])
            return
        for held in self._data.values():
            held[:] = value

    def initialize(
        self, init: Any = None, ctx: Any = None, default_init: Any = None, force_reinit: bool = False
    ) -> None:
        """Gives the parameter a first value: later, if its shape is not known yet."""
        if self._data and not force_reinit:
            warnings.warn(
                f"Parameter '{self.name}' is already initialized, ignoring. Set force_reinit=True to re-initialize.",
                stacklevel=2,
            )
            return
        from ..initializer import Uniform, create

        chosen = create(init or self.init or default_init or Uniform())
        contexts = _contexts(ctx)
        if not self.shape_known:
            if not self._allow_deferred_init:
                raise MXNetValueError(
                    f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self._shape}."
                )
            self._deferred = (chosen, contexts)
            return
        self._make(chosen, contexts)

    def _make(self, init: Any, contexts: list[Context]) -> None:
        value = empty(self._shape, contexts[0], self.dtype)
        init(self.name, value)
        self._publish(value, contexts, True)

    def _finish_deferred(self) -> None:
        """Makes the value of a parameter whose shape has become known."""
        if self._deferred is not None and self.shape_known:
            self._make(*self._deferred)

    def reset_ctx(self, ctx: Any) -> None:
        """Moves the parameter to other contexts."""
        contexts = _contexts(ctx)
        if self._data:
            self._publish(next(iter(self._data.values())), contexts)
        elif self._deferred is not None:
            self._deferred = (self._deferred[0], contexts)
        else:
            raise ValueError(f"Cannot reset context for Parameter '{self.name}' because it has not been initialized.")

    def cast(self, dtype: Any) -> None:
        """Changes the element type."""
        name = dtype_name(dtype)
        if self._data:
            contexts = list(self._data)
            self._publish(next(iter(self._data.values())).astype(name), contexts)
        self.dtype = dtype

    def var(self) -> Symbol:
        """A symbol that stands for the parameter."""
        if self._var is None:
            self._var = var(self.name, shape=self._shape, dtype=self.dtype)
        return self._var

    def grad(self, ctx: Context | None = None) -> NoReturn:
        """Refused: there are no gradients."""
        raise no_training(f"Parameter.grad of '{self.name}'")

    def list_grad(self) -> NoReturn:
        """Refused: there are no gradients."""
        raise no_training(f"Parameter.list_grad of '{self.name}'")

    def zero_grad(self) -> None:
        """Nothing to do: there are no gradients."""


class Constant(Parameter):
    """A parameter with a fixed value."""

    def __init__(self, name: str, value: Any) -> None:
        held = value if isinstance(value, NDArray) else array(value)
        super().__init__(name, grad_req="null", shape=held.shape, dtype=held.dtype)
        self.value = held
        self._publish(held, [held.context])


class ParameterDict:
    """Parameters by name, in order."""

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None) -> None:
        self._prefix = prefix
        self._params: dict[str, Parameter] = {}
        self._shared = shared
        # What a network says about shapes: which are wrong, by name.
        self._check: Callable[[dict[str, tuple[int, ...]]], dict[str, str]] | None = None

    @property
    def prefix(self) -> str:
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

    def items(self) -> ItemsView[str, Parameter]:
        """Names and parameters."""
        return self._params.items()

    def keys(self) -> KeysView[str]:
        """Names."""
        return self._params.keys()

    def values(self) -> ValuesView[Parameter]:
        """Parameters."""
        return self._params.values()

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """The parameter of this name (with the prefix in front); a new one if there is none."""
        full = self._prefix + name
        found = self._params.get(full)
        if found is None and self._shared is not None:
            found = self._shared._params.get(full)
        if found is None:
            found = Parameter(full, **kwargs)
        elif kwargs.get("shape") is not None:
            found.shape = kwargs["shape"]
        self._params[full] = found
        return found

    def get_constant(self, name: str, value: Any = None) -> Parameter:
        """The constant of this name; a new one if there is none."""
        full = self._prefix + name
        if full not in self._params:
            if value is None:
                raise KeyError(
                    f"No constant named '{full}'. Please specify value if you want to create a new constant."
                )
            self._params[full] = Constant(full, value)
        return self._params[full]

    def update(self, other: ParameterDict | Mapping[str, Parameter]) -> None:
        """Takes over all parameters of another dictionary."""
        for name, parameter in other.items():
            if self._params.setdefault(name, parameter) is not parameter:
                raise ValueError(
                    f"Cannot update self with other because they have different Parameters with the same name '{name}'"
                )

    def select(self, pattern: str) -> ParameterDict:
        """The parameters whose names match a regular expression."""
        expression = re.compile(pattern)
        found = ParameterDict(self._prefix)
        found._params = {n: p for n, p in self._params.items() if expression.match(n)}
        return found

    def initialize(self, init: Any = None, ctx: Any = None, verbose: bool = False, force_reinit: bool = False) -> None:
        """Gives every parameter a first value."""
        with publishing:
            for parameter in self._params.values():
                parameter.initialize(None, ctx, init, force_reinit)

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
        """Writes all values to a file."""
        values = {}
        for name, parameter in self._params.items():
            if not name.startswith(strip_prefix):
                raise ValueError(
                    f"Prefix '{strip_prefix}' is to be striped before saving, but Parameter's name '{name}' does not "
                    "start with it."
                )
            values[name[len(strip_prefix) :]] = parameter.list_data()[0]
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
        """Reads values from a file of any of MXNet's ways to save."""
        values = {restore_prefix + strip_kind(n): v for n, v in named_arrays(filename).items()}
        current = cast_dtype and dtype_source == "current"
        self._load(values, f"file: {filename}", ctx, allow_missing, ignore_extra, cast=current, own=True)

    def load_dict(
        self,
        param_dict: Mapping[str, NDArray],
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        filename: str | None = None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Takes values over. Either all of them, or, when something is wrong, none."""
        values = {restore_prefix + strip_kind(name): value for name, value in param_dict.items()}
        where = f"file: {filename}" if filename else "param_dict"
        current = cast_dtype and dtype_source == "current"
        self._load(values, where, ctx, allow_missing, ignore_extra, cast=current)

    def _load(
        self,
        values: Mapping[str, NDArray],
        where: str,
        ctx: Any,
        allow_missing: bool,
        ignore_extra: bool,
        cast: bool = False,
        own: bool = False,
        idle: Collection[str] = (),
        hint: str = "",
    ) -> None:
        """Checks all values, then publishes all of them.

        With `own` nobody else holds the arrays, so that they need not be copied. Names in `idle` may have a value that
        nobody needs.
        """
        taken = {name: value for name, value in values.items() if name in self._params}
        missing = [] if allow_missing else [name for name in self._params if name not in values]
        extra = [] if ignore_extra else [name for name in values if name not in self._params and name not in idle]
        wrong = {
            name: f"'{name}' has shape {value.shape}, needs {self._params[name].shape}"
            for name, value in taken.items()
            if not _may_hold(self._params[name].shape, value.shape)
        }
        if self._check is not None:
            wrong = {**self._check({name: value.shape for name, value in taken.items()}), **wrong}
        if missing or extra or wrong:
            raise mismatch(where, missing, extra, list(wrong.values()), list(values), hint)
        ready: list[tuple[Parameter, NDArray, list[Context]]] = []
        for name, value in taken.items():
            parameter = self._params[name]
            if cast:
                value = value.astype(parameter.dtype, copy=False)
            held = list(parameter._data) or (parameter._deferred[1] if parameter._deferred else [])
            ready.append((parameter, value, held if ctx is None and held else _contexts(ctx)))
        # All at once: a block that collects its arrays meanwhile gets either all old ones or all new ones.
        with publishing:
            for parameter, value, contexts in ready:
                parameter._publish(value, contexts, own)


def _may_hold(known: tuple[int, ...] | None, shape: tuple[int, ...]) -> bool:
    return known is None or (
        len(known) == len(shape) and all(a in (0, -1, b) for a, b in zip(known, shape, strict=True))
    )


def _shortened(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:50])
    return shown if len(names) <= 50 else f"{shown} and {len(names) - 50} more"


def mismatch(
    where: str, missing: list[str], extra: list[str], wrong: list[str], held: list[str], hint: str = ""
) -> ParameterMismatchError:
    """One error that lists everything that does not fit."""
    lines = [f"The parameters in {where} do not fit the network."]
    if missing:
        lines.append(f"  missing in the file: {_shortened(missing)}")
    if extra:
        lines.append(f"  not present in the network (set ignore_extra to True to ignore): {_shortened(extra)}")
    if wrong:
        lines.append("  of the wrong shape: " + "; ".join(wrong[:50]))
    if hint:
        lines.append(hint)
    if missing:
        # Last, since it can be long.
        lines.append(f"The file contains: {_shortened(held) or 'nothing'}.")
    return ParameterMismatchError("\n".join(lines))


def strip_kind(name: str) -> str:
    """A name without the ``arg:`` or ``aux:`` that exported files put in front."""
    return name[4:] if name.startswith(("arg:", "aux:")) else name


def named_arrays(filename: str) -> dict[str, NDArray]:
    """The arrays of a file, which must have names."""
    found = load_arrays(filename)
    if isinstance(found, dict):
        return found
    if not found:
        return {}
    raise MXNetValueError(
        f"'{filename}' holds {len(found)} arrays without names, so it is not known which parameter each one is; save a "
        "dictionary of arrays by name instead"
    )
