"""Parameters of blocks."""

from __future__ import annotations

import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from .._scopes.np_mode import is_np_shape
from .._system.locks import fork_safe_lock
from .._values.dtypes import dtype_name
from .._values.extents import extents
from .._values.overrulable import overrulable
from ..base import MXNetError, no_training, warn
from ..context import Context, contexts_of, cpu, current_context
from ..initializer import Initializer
from ..ndarray import NDArray, array
from ..symbol import Symbol, var
from ._first_values import FirstValues, initialize_all
from ._numpy import array_here, made_here
from ._publishing import Publish, publishing
from ._redefined import redefines

__all__ = ["Constant", "DeferredInitializationError", "Parameter"]

_STORAGE = ("default", "row_sparse", "csr")


def __getattr__(name: str) -> Any:
    # MXNet has ParameterDict in this module too. Its own module imports this one, hence not before
    # it is asked for.
    if name == "ParameterDict":
        from .parameter_dict import ParameterDict

        return ParameterDict
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class DeferredInitializationError(MXNetError):
    """A parameter whose shape is not known yet has no value."""


class UninitializedParameterError(MXNetError, AssertionError):
    """A parameter that was never initialized cannot be given a value. MXNet asserts this."""


# Held while the symbol of a parameter is made or dropped; no other lock is taken meanwhile.
_naming = fork_safe_lock()


def shape_is_known(shape: tuple[int, ...] | None) -> bool:
    """Whether every extent of a parameter's shape is known. ``()`` is, with NumPy's shapes."""
    return shape is not None and all(n > 0 for n in shape) and (shape != () or is_np_shape())


class Parameter(FirstValues):
    """A named array of a model, with a copy on each of its contexts.

    Parameters
    ----------
    name : name of the parameter, prefixes of blocks included
    grad_req : ``write``, ``add`` or ``null``; gradients are never computed
    shape : extents, 0 where one is not known yet; an int stands for one axis
    dtype : element type
    init : initializer, or its name; without one that of ``initialize`` is used
    allow_deferred_init : whether the value may wait until the shape is known
    """

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
        for kind, given in (("grad_stype", grad_stype), ("stype", stype)):
            if given not in _STORAGE:
                raise AssertionError(
                    f"{kind} for Parameter '{name}' must be one of 'default', 'row_sparse', or 'csr', but got '{given}'"
                )
        self.name = name
        self._differentiable = differentiable
        self.grad_req = grad_req
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.init = init
        self._dtype = dtype
        self._stype = stype
        self._grad_stype = grad_stype
        self._shape: tuple[int, ...] | None = None if shape is None else extents(shape)
        self._allow_deferred_init = allow_deferred_init
        self._arrays: dict[Context, NDArray] = {}
        # Initializer and contexts of a value that waits for the shape.
        self._deferred: tuple[Any, Any, list[Context]] | None = None
        self._var: Symbol | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes what a pickle holds: one of mxrt, or of MXNet."""
        if "_arrays" in state:
            self.__dict__.update(state)
            return
        Parameter.__init__(
            self,
            state["name"],
            state["_grad_req"],
            state["_shape"],
            state["_dtype"],
            state["lr_mult"],
            state["wd_mult"],
            state["init"],
            state["_allow_deferred_init"],
            state["_differentiable"],
            state["_stype"],
            state["_grad_stype"],
        )
        self._data = state["_data"]
        self._deferred_init = state["_deferred_init"]

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    @property
    def grad_req(self) -> str:
        """The use of gradients in training: ``write``, ``add`` or ``null``."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req not in ("write", "add", "null"):
            raise AssertionError(f"grad_req must be one of 'write', 'add', or 'null', but got '{req}'")
        self._grad_req = req if self._differentiable else "null"

    @property
    def dtype(self) -> Any:
        """Element type. Setting it casts the value."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Extents; 0 where one is not known yet, -1 with NumPy's shapes. None when nothing is."""
        if self._shape is not None and is_np_shape():
            return tuple(n or -1 for n in self._shape)
        return self._shape

    @shape.setter
    def shape(self, new: Any) -> None:
        new = tuple(new)
        old = self._shape
        if old is not None and (
            len(old) != len(new) or any(b not in (0, -1, a) for a, b in zip(new, old, strict=True))
        ):
            raise AssertionError(f"Expected shape {new} is incompatible with given shape {old}.")
        self._shape = new

    @property
    def shape_known(self) -> bool:
        """Whether every extent is known."""
        return shape_is_known(self._shape)

    @property
    def stype(self) -> str:
        """Storage type asked for; the value is always stored densely."""
        return self._stype

    # Names of MXNet that programs read.

    @property
    def _data(self) -> list[NDArray] | None:
        return list(self._arrays.values()) or None

    @_data.setter
    def _data(self, arrays: Iterable[NDArray] | None) -> None:
        held = {one.context: one for one in arrays or ()}
        with Publish():
            self._arrays = held
            for one in held.values():
                self._deferred = None
                self._shape = one.shape
                self._take_dtype(one.dtype)

    _grad: Any = None
    _trainer: Any = None

    def _check_and_get(self, arr_list: Any, ctx: Any) -> Any:
        """The arrays on all contexts with ``ctx=list``, else the one on a context."""
        return self._all_held() if ctx is list else self._held(ctx)

    def _init_impl(self, data: NDArray, ctx_list: Any) -> None:
        self._replace(data.astype(dtype_name(self.dtype), copy=False), contexts_of(ctx_list))

    def _redefines(self, *names: str) -> bool:
        return redefines(self, Parameter, *names)

    @property
    def _deferred_init(self) -> tuple[Any, ...]:
        return self._deferred or ()

    @_deferred_init.setter
    def _deferred_init(self, value: tuple[Any, ...]) -> None:
        # MXNet has (init, contexts, default_init, data), this class (init, default_init, contexts).
        if len(value) == 4:
            value = (value[0], value[2], value[1])
        with Publish():
            self._deferred = (value[0], value[1], contexts_of(value[2])) if value else None

    @property
    def _ctx_list(self) -> list[Context] | None:
        return list(self._arrays) or None

    @_ctx_list.setter
    def _ctx_list(self, contexts: Iterable[Context] | None) -> None:
        wanted = list(contexts or ())
        if wanted and self._arrays and wanted != list(self._arrays):
            self.reset_ctx(wanted)

    @overrulable
    def _ctx_map(self) -> list[list[int | None]]:
        """Returns, for each device type and device id, the position of the device's array, or None.

        Device types with equal lowest bits share a row.
        """
        found: list[list[int | None]] = []
        for place, context in enumerate(self._arrays):
            kind = context.device_typeid & 1
            found += [[] for _ in range(kind + 1 - len(found))]
            found[kind] += [None] * (context.device_id + 1 - len(found[kind]))
            found[kind][context.device_id] = place
        return found

    def _reduce(self) -> NDArray:
        """The value on the host."""
        if self._stype == "default" and self._redefines("data", "list_data", "_check_and_get"):
            found = self.list_data()
            return (found[0] if len(found) > 1 else self.data()).copyto(cpu())
        held = self._arrays
        if not held:
            raise self._missing()
        return next(iter(held.values())).as_in_context(cpu())

    def _missing(self) -> RuntimeError:
        # Another thread may have made the value since it was missed: the caller asks again then.
        if self._deferred is not None or self._arrays:
            return DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred. Actual "
                "initialization happens during the first forward pass. Please pass one batch of data through the "
                "network before accessing Parameters. You can also avoid deferred initialization by specifying "
                "in_units, in_channels, etc., for network layers."
            )
        return MXNetError(
            f"Parameter '{self.name}' has not been initialized. Load its value from a file (load_parameters, or "
            "imports with a parameter file), or call initialize() of the outermost block"
        )

    def data(self, ctx: Context | None = None) -> NDArray:
        """The array on `ctx` (without one: on the only, or the current, context).

        MXNetError if the parameter has no value yet, or none on this context.
        """
        if self._stype != "default":
            raise self._sparse("data")
        return self._check_and_get(self._data, ctx) if self._redefines("_check_and_get") else self._held(ctx)

    def _sparse(self, name: str) -> RuntimeError:
        return MXNetError(
            f"Cannot return a copy of Parameter '{self.name}' via {name}() because its storage type is {self._stype}. "
            "Such parameters are for layers like contrib.nn.SparseEmbedding; give the parameter stype='default' to "
            "read it"
        )

    def _held(self, ctx: Context | None) -> NDArray:
        """The array on a context, whatever storage the parameter was asked to have."""
        held = self._arrays
        if ctx is None:
            if len(held) == 1:
                return made_here(next(iter(held.values())))
            ctx = current_context()
        found = held.get(ctx)
        if found is not None:
            return made_here(found)
        if not held:
            raise self._missing()
        raise MXNetError(
            f"Parameter '{self.name}' was not initialized on context {ctx}. It was only initialized on {list(held)}. "
            "Use reset_ctx to move it, or pass inputs that live there"
        )

    def list_data(self) -> list[NDArray]:
        """The arrays on all contexts."""
        if self._stype != "default":
            raise self._sparse("list_data")
        return self._check_and_get(self._data, list) if self._redefines("_check_and_get") else self._all_held()

    def _all_held(self) -> list[NDArray]:
        held = self._arrays
        if not held:
            raise self._missing()
        return [made_here(one) for one in held.values()]

    def list_ctx(self) -> list[Context]:
        """The contexts that hold an array."""
        with publishing:
            if self._arrays:
                return list(self._arrays)
            if self._deferred is not None:
                return self._deferred[2]
        raise MXNetError(f"Parameter '{self.name}' has not been initialized")

    def row_sparse_data(self, row_id: NDArray) -> NoReturn:
        """Refused: parameters are stored densely, and rows are read through a Trainer."""
        raise no_training(f"Cannot return a copy of Parameter '{self.name}' via row_sparse_data(): it")

    def list_row_sparse_data(self, row_id: NDArray) -> NoReturn:
        """Refused: parameters are stored densely."""
        self.row_sparse_data(row_id)

    def _publish(self, value: NDArray, contexts: list[Context], own: bool = False) -> None:
        """Gives every context a first or another array in the way of the parameter's class."""
        if self._redefines("_init_impl"):
            self._init_impl(value, contexts)
        else:
            self._replace(value, contexts, own)

    def _replace(self, value: NDArray, contexts: list[Context], own: bool = False) -> None:
        """Gives every context an array of its own with this value: the array itself where it may be
        kept.
        """
        arrays = {ctx: made_here(value if own and ctx == value.context else value.copyto(ctx)) for ctx in contexts}
        with Publish():
            self._arrays = arrays
            self._deferred = None
            self._shape = value.shape
            self._take_dtype(value.dtype)

    def _take_dtype(self, dtype: Any) -> None:
        """Notes an element type; the symbol, which names it, is made again if it is another one."""
        with _naming:
            if dtype_name(dtype) != dtype_name(self._dtype):
                self._var = None
                self._dtype = dtype

    def set_data(self, data: Any) -> None:
        """Changes the value. Calls that are under way finish with the old one."""
        value = data if isinstance(data, NDArray) else array(data, dtype=self.dtype)
        with publishing:
            self.shape = value.shape
            if self._arrays:
                for held in self._arrays.values():
                    held._assign(value)
            elif self._deferred is not None:
                self._publish(value.astype(self.dtype, copy=False), self._deferred[2])
            else:
                raise UninitializedParameterError(self._missing().args[0])

    def initialize(
        self, init: Any = None, ctx: Any = None, default_init: Any = None, force_reinit: bool = False
    ) -> None:
        """Gives the parameter a first value: later, if its shape is not known yet.

        `init` comes before the initializer of the parameter, and that before `default_init`. `ctx`
        is a context or a list of them; each gets a copy. A parameter that has a value keeps it
        unless `force_reinit` is set.
        """
        initialize_all([self], init, ctx, default_init, force_reinit)

    def _load_init(self, data: NDArray, ctx: Any, cast_dtype: bool = False, dtype_source: str = "current") -> None:
        """Takes over a value that was loaded."""
        from .parameter_dict import take_over

        values = {self.name: data}
        take_over({self.name: self}, values, "saved params", ctx, cast_dtype, dtype_source, in_turn=False)

    def reset_ctx(self, ctx: Any) -> None:
        """Moves the parameter to `ctx`, a context or a list of them; each gets a copy."""
        contexts = contexts_of(ctx)
        with publishing:
            if self._arrays:
                self._publish(next(iter(self._arrays.values())), contexts)
            elif self._deferred is not None:
                self._deferred = (*self._deferred[:2], contexts)
            else:
                raise ValueError(
                    f"Cannot reset context for Parameter '{self.name}' because it has not been initialized."
                )

    def cast(self, dtype: Any) -> None:
        """Changes the element type to `dtype`."""
        name = dtype_name(dtype)
        with publishing:
            if self._arrays:
                contexts = list(self._arrays)
                self._replace(next(iter(self._arrays.values())).astype(name), contexts)
            self._take_dtype(dtype)
            # In the form in which it was given, as in MXNet.
            self._dtype = dtype

    def var(self) -> Symbol:
        """A symbol that stands for the parameter: under ``npx.set_np()`` one of ``mx.sym.np``."""
        found = self._var
        return made_here(self._named_var() if found is None else found)

    def _named_var(self) -> Symbol:
        # All graphs that are made meanwhile must hold the same variable.
        with _naming:
            if self._var is None:
                self._var = var(
                    self.name,
                    shape=self.shape,
                    dtype=self.dtype,
                    lr_mult=self.lr_mult,
                    wd_mult=self.wd_mult,
                    init=self.init,
                    stype=self._stype,
                )
            return self._var

    def grad(self, ctx: Context | None = None) -> NoReturn:
        """Refused: there are no gradients."""
        raise no_training(f"Parameter.grad of '{self.name}'")

    def list_grad(self) -> NoReturn:
        """Refused: there are no gradients."""
        raise no_training(f"Parameter.list_grad of '{self.name}'")

    def zero_grad(self) -> None:
        """Nothing to do: there are no gradients."""


class _ConstantValue(Initializer):
    """The initializer of a Constant."""

    def __init__(self, name: str, value: NDArray) -> None:
        super().__init__()
        self._name = name
        self._value = value

    def dumps(self) -> str:
        """How symbol files refer to it, as in MXNet; the value is in the parameter file."""
        return f"Constant_{self._name}"

    def _init_weight(self, name: str, arr: NDArray) -> None:
        self._value.as_nd_ndarray().copyto(arr.as_nd_ndarray())


class Constant(Parameter):
    """A parameter with a fixed value.

    Parameters
    ----------
    name : name of the parameter
    value : an array, or what ``mx.nd.array`` takes
    """

    def __init__(self, name: str, value: Any) -> None:
        held: Any = value if isinstance(value, NDArray) else array_here(value)
        self.value = held
        self._grad_req = "null"
        super().__init__(name, "null", held.shape, held.dtype, init=_ConstantValue(name, held))

    @property
    def grad_req(self) -> str:
        """Always ``null``."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warn(
                f'Constant parameter "{self.name}" does not support grad_req other than "null", and new value "{req}" '
                "is ignored."
            )
