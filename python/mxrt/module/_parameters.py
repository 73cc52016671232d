"""The parameters of modules: given, made, borrowed, saved."""

from __future__ import annotations

import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import _mxrt
from .. import ndarray as nd
from ..base import MXNetError, MXNetShapeError, MXNetTypeError, MXNetValueError, no_training, warn
from ..context import Context
from ..model import save_checkpoint
from ..ndarray import NDArray
from ..symbol import Symbol
from .base_module import Values

if TYPE_CHECKING:
    from .executor_group import ExecutorsOfModule

__all__ = ["NotBoundError", "ParameterMethods", "ParameterStore", "check_shared"]


class NotBoundError(MXNetError, AssertionError):
    """A call that needs ``bind``, ``set_params`` or ``forward`` first."""


def _fits(needed: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(needed) == len(shape) and all(n in (0, m) for n, m in zip(needed, shape, strict=True))


class ParameterStore:
    """Values of parameters by name, for one module or several that share them."""

    def __init__(self) -> None:
        # Replaced as a whole, never changed: a call that began with it keeps it.
        self.values: dict[str, NDArray] = {}


class ParameterMethods:
    """Methods of :class:`mxrt.mod.Module` for arguments other than inputs, and auxiliary states."""

    binded: bool
    _symbol: Symbol
    _context: list[Context]
    _first_context: Context
    _arguments: list[str]
    _data_names: list[str]
    _label_names: list[str]
    _param_names: list[str]
    _aux_names: list[str]
    # The values by name, shared with the modules that were bound with this one as `shared_module`.
    _store: ParameterStore
    # Values that are there before the first ``bind``, as ``Module.load`` gives them.
    _preloaded: tuple[dict[str, NDArray], dict[str, NDArray]] | None
    # Names of parameters that may stay without a value, which is then zero.
    _without_values: frozenset[str]
    # The values that the executors have, if they have other arrays than the module.
    _values_of_group: dict[str, NDArray] | None
    # The storage types that variables ask for, by name.
    _storage: dict[str, str]
    params_initialized: bool
    # What a program sees as ``_exec_group``, once it has looked.
    _group: ExecutorsOfModule | None

    def _input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes that are bound, by name."""
        raise NotImplementedError

    def _input_types(self) -> dict[str, Any]:
        """The types of the inputs that are bound, by name."""
        raise NotImplementedError

    def _need_bind(self, what: str) -> None:
        """NotBoundError if there are no shapes yet."""
        raise NotImplementedError

    def _need_params(self, what: str) -> None:
        """NotBoundError if there are no parameters yet."""
        raise NotImplementedError

    @property
    def _values(self) -> dict[str, NDArray]:
        return self._store.values

    @_values.setter
    def _values(self, values: dict[str, NDArray]) -> None:
        self._store.values = values

    # Names of MXNet that programs read and set.

    @property
    def _arg_params(self) -> dict[str, NDArray] | None:
        held = self._held_params()
        return None if held is None else held[0]

    @_arg_params.setter
    def _arg_params(self, params: dict[str, NDArray] | None) -> None:
        self._preloaded = None if params is None else (params, self._aux_params or {})

    @property
    def _aux_params(self) -> dict[str, NDArray] | None:
        held = self._held_params()
        return None if held is None else held[1]

    @_aux_params.setter
    def _aux_params(self, params: dict[str, NDArray] | None) -> None:
        self._preloaded = None if params is None else (self._arg_params or {}, params)

    def _held_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]] | None:
        """Arguments and states that belong together, whatever other threads set meanwhile."""
        values = self._values
        if self._preloaded is not None or not values:
            return self._preloaded
        return (
            {name: values[name] for name in self._param_names if name in values},
            {name: values[name] for name in self._aux_names if name in values},
        )

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Arguments and auxiliary states by name."""
        self._need_params("get_params")
        args, aux = self._held_params() or ({}, {})
        return dict(args), dict(aux)

    def _set_params(self, args: Values, aux: Values, allow_missing: bool, force_init: bool, allow_extra: bool) -> None:
        self._need_bind("set_params")
        if self.params_initialized and not force_init:
            warn("Parameters already initialized and force_init=False. set_params call ignored.")
            return
        given_args, given_aux = dict(args or {}), dict(aux or {})
        if allow_missing and not allow_extra:
            self._refuse_extra(given_args, given_aux)
        taken, missing, wrong = self._fitting(given_args, given_aux)
        missing = [name for name in missing if name not in self._without_values]
        if wrong or (missing and not allow_missing):
            raise self._misfit([] if allow_missing else missing, wrong)
        shapes, types = self._shapes_of_params(), self._types_of_params()
        for name in missing:
            value = self._first_value(name, shapes.get(name) or ())
            taken[name] = value.astype(types.get(name) or value.dtype, copy=False)
        self._take(taken)

    def _fitting(
        self, args: Mapping[str, Any], aux: Mapping[str, Any]
    ) -> tuple[dict[str, NDArray], list[str], list[str]]:
        """Copies of the values, of the types of the parameters; the names of those that are not
        given, and what is wrong with others.
        """
        shapes, types = self._shapes_of_params(), self._types_of_params()
        taken: dict[str, NDArray] = {}
        missing, wrong = [], []
        for names, given in ((self._param_names, args), (self._aux_names, aux)):
            for name in names:
                value = given.get(name)
                if value is None:
                    missing.append(name)
                    continue
                if not isinstance(value, NDArray):
                    raise MXNetTypeError(f"set_params: '{name}' must be an NDArray, got {type(value)}")
                need = shapes.get(name) or ()
                if need and not _fits(need, value.shape):
                    wrong.append(f"'{name}' has shape {value.shape}, needs {need}")
                value = value.copyto(self._first_context)
                value = value.astype(types.get(name) or value.dtype, copy=False)
                stype = self._storage.get(name, value.stype)
                taken[name] = value if stype == value.stype else _mxrt.to_storage(value, stype)
        return taken, missing, wrong

    def _take(self, taken: dict[str, NDArray]) -> None:
        """Makes arrays the values, of this module and of those that share them."""
        if self._group is not None:
            taken = self._group.write(taken)
        # In one step: a forward of another thread meanwhile uses either all old values or all new
        # ones.
        self._values = {**self._values, **taken}
        self._preloaded = None
        if self._group is not None:
            self._values_of_group = self._values
        self.params_initialized = True

    def _take_preloaded(self) -> None:
        """Takes the values that were there before ``bind``. As in MXNet, they need not be all:
        parameters without a value, such as labels that are not in `label_names`, are zeros.
        """
        assert self._preloaded is not None
        args, aux = self._preloaded
        self._refuse_extra(args, aux)
        taken, missing, wrong = self._fitting(args, aux)
        if wrong:
            raise self._misfit([], wrong)
        self._without_values = frozenset(missing)
        self._take(taken)

    def _refuse_extra(self, args: Mapping[str, Any], aux: Mapping[str, Any]) -> None:
        for given, known, what in ((args, self._arguments, "arguments"), (aux, self._aux_names, "auxiliary states")):
            extra = [name for name in given if name not in known]
            if extra:
                raise MXNetValueError(
                    f'Find name "{", ".join(extra)}" that is not in the {what}; allow_extra=True leaves them out'
                )

    def _take_again(self) -> None:
        """Takes copies of the values for what was bound again; they are no longer shared."""
        args, aux = self._held_params() or ({}, {})
        taken, _, wrong = self._fitting(args, aux)
        if wrong:
            raise self._misfit([], wrong)
        self._store = ParameterStore()
        self._take(taken)

    def _borrow(self, other: ParameterMethods) -> None:
        """Shares the parameters of another module, which has all of them: what either is given
        later, both have.
        """
        if self._store is other._store:
            return
        missing, wrong = [], []
        shapes = self._shapes_of_params()
        for name in [*self._param_names, *self._aux_names]:
            held, need = other._values.get(name), shapes.get(name) or ()
            if held is None and name not in other._without_values:
                missing.append(name)
            elif held is not None and need and not _fits(need, held.shape):
                wrong.append(f"'{name}' has shape {held.shape}, needs {need}")
        if missing or wrong:
            raise self._misfit(missing, wrong)
        self._store, self._without_values, self._preloaded = other._store, other._without_values, None
        self.params_initialized = True

    def _sync_group(self) -> None:
        """Shows executors that a program looked at the values that another module was given."""
        values = self._values
        if self._group is not None and self._values_of_group is not values:
            self._group.replace({name: values[name] for name in self._own_names() if name in values})
            self._values_of_group = values

    def _own_names(self) -> list[str]:
        return [*self._param_names, *self._aux_names]

    def _misfit(self, missing: list[str], wrong: list[str]) -> MXNetError:
        parts = []
        if missing:
            # The form of MXNet for a single one, which programs may look for.
            parts.append(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not presented")
        if wrong:
            parts.append("of the wrong shape: " + "; ".join(wrong))
        return MXNetShapeError("Module.set_params: " + "; ".join(parts))

    def _shapes_of_params(self) -> dict[str, tuple[int, ...]]:
        arg_shapes, _, aux_shapes = self._symbol._shapes_known(**self._input_shapes())
        names = [*self._arguments, *self._aux_names]
        return dict(zip(names, [*arg_shapes, *aux_shapes], strict=True))

    def _first_value(self, name: str, shape: tuple[int, ...]) -> NDArray:
        """The value of a parameter that is not given: its earlier value, else zeros (labels and the
        like do not matter).
        """
        held = self._values.get(name)
        if held is not None:
            return held
        if not shape or 0 in shape:
            raise MXNetShapeError(f"the shape of '{name}' is not known, so that it cannot be left out; give its value")
        return nd.zeros(shape, ctx=self._first_context)

    def _init_params(
        self, initializer: Any, args: Values, aux: Values, allow_missing: bool, force_init: bool, allow_extra: bool
    ) -> None:
        self._need_bind("init_params")
        if self.params_initialized and not force_init:
            warn("Parameters already initialized and force_init=False. init_params call ignored.")
            return
        from ..initializer import InitDesc, Uniform, create

        make = create(initializer or Uniform(0.01))
        attrs, shapes = self._symbol.attr_dict(), self._shapes_of_params()
        found_args, found_aux = dict(args or {}), dict(aux or {})
        for names, given, found in ((self._param_names, args, found_args), (self._aux_names, aux, found_aux)):
            if given is not None and not allow_missing:
                continue
            for name in names:
                if name in found or name in self._without_values:
                    continue
                shape = shapes.get(name)
                if not shape or 0 in shape:
                    raise MXNetShapeError(f"Module.init_params: the shape of '{name}' is not known")
                found[name] = nd.empty(shape, ctx=self._first_context)
                make(InitDesc(name, attrs.get(name)), found[name])
        self._set_params(found_args, found_aux, allow_missing=False, force_init=True, allow_extra=False)

    def _types_of_params(self) -> dict[str, Any]:
        """Types of arguments and auxiliary states, where those of the bound inputs tell them."""
        arg_types, _, aux_types = self._symbol.infer_type_partial(**self._input_types())
        names = [*self._symbol.list_arguments(), *self._aux_names]
        found = zip(names, [*(arg_types or []), *(aux_types or [])], strict=False)
        return {name: dtype for name, dtype in found if dtype is not None}

    def save_checkpoint(
        self, prefix: str, epoch: int, save_optimizer_states: bool = False, remove_amp_cast: bool = True
    ) -> None:
        """Writes ``prefix-symbol.json`` and ``prefix-%04d.params``."""
        if save_optimizer_states:
            raise no_training("Module.save_checkpoint(save_optimizer_states=True)")
        save_checkpoint(prefix, epoch, self._symbol, *self.get_params(), remove_amp_cast)


def check_shared(other: Any, contexts: int) -> None:
    """NotBoundError, an AssertionError, unless a module can share its parameters."""
    if not isinstance(other, ParameterMethods):
        raise NotBoundError(f"Module.bind: shared_module must be a Module, got {type(other).__name__}")
    if not other.binded or not other.params_initialized:
        raise NotBoundError("Module.bind: shared_module has no parameters yet; call its bind and init_params first")
    if len(other._context) < contexts:
        raise NotBoundError(f"Module.bind: shared_module has {len(other._context)} contexts, this module {contexts}")
