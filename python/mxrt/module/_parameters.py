"""The parameters of modules: given, made, borrowed, saved."""

from __future__ import annotations

import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import ndarray as nd
from ..base import MXNetError, MXNetShapeError, MXNetTypeError, MXNetValueError, no_training, warn
from ..context import Context
from ..model import save_checkpoint
from ..ndarray import NDArray
from ..symbol import Symbol

if TYPE_CHECKING:
    from .executor_group import ExecutorsOfModule

__all__ = ["ParameterMethods"]


def _fits(needed: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(needed) == len(shape) and all(n in (0, m) for n, m in zip(needed, shape, strict=True))


class ParameterMethods:
    """Methods of :class:`mxrt.mod.Module` for arguments other than inputs, and auxiliary states."""

    _symbol: Symbol
    _first_context: Context
    _arguments: list[str]
    _data_names: list[str]
    _label_names: list[str]
    _param_names: list[str]
    _aux_names: list[str]
    _arg_params: dict[str, NDArray] | None
    _aux_params: dict[str, NDArray] | None
    _values: dict[str, NDArray]
    # Those of the module that the values were borrowed from.
    _lender: dict[str, NDArray] | None
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

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Arguments and auxiliary states by name."""
        self._need_params("get_params")
        values = self._values
        if values:  # arguments and states that belong together, whatever other threads set meanwhile
            return {n: values[n] for n in self._param_names}, {n: values[n] for n in self._aux_names}
        return dict(self._arg_params or {}), dict(self._aux_params or {})

    def set_params(
        self,
        arg_params: Mapping[str, NDArray] | None,
        aux_params: Mapping[str, NDArray] | None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Gives the parameters values. All that are missing or of a wrong shape are listed in one
        error. Values take the types that follow from those of the bound inputs, as in MXNet.

        Values for no argument are left out, but with ``allow_missing=True`` they raise
        MXNetValueError unless `allow_extra` is set too, as in MXNet.
        """
        self._need_bind("set_params")
        if self.params_initialized and not force_init:
            warn("Parameters already initialized and force_init=False. set_params call ignored.")
            return
        given_args, given_aux = dict(arg_params or {}), dict(aux_params or {})
        if allow_missing and not allow_extra:
            self._refuse_extra(given_args, given_aux)
        shapes, missing, wrong = self._shapes_of_params(given_args, given_aux), [], []
        types = self._types_of_params()
        taken: dict[str, NDArray] = {}
        for names, given in ((self._param_names, given_args), (self._aux_names, given_aux)):
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
                taken[name] = value.astype(types.get(name) or value.dtype, copy=False)
        if wrong or (missing and not allow_missing):
            raise self._misfit([] if allow_missing else missing, wrong)
        for name in missing:
            value = self._first_value(name, shapes.get(name) or ())
            taken[name] = value.astype(types.get(name) or value.dtype, copy=False)
        if self._group is not None:
            taken = self._group.write(taken)
        # In one step: a forward of another thread meanwhile uses either all old values or all new
        # ones.
        self._values = taken
        self._arg_params = {n: taken[n] for n in self._param_names}
        self._aux_params = {n: taken[n] for n in self._aux_names}
        self.params_initialized = True

    def _refuse_extra(self, args: Mapping[str, Any], aux: Mapping[str, Any]) -> None:
        for given, known, what in ((args, self._arguments, "arguments"), (aux, self._aux_names, "auxiliary states")):
            extra = [name for name in given if name not in known]
            if extra:
                raise MXNetValueError(
                    f'Find name "{", ".join(extra)}" that is not in the {what}; allow_extra=True leaves them out'
                )

    def _borrow(self, other: ParameterMethods) -> None:
        """Takes over the parameters of another module, which has all of them: the arrays
        themselves.
        """
        if other is self or (self._lender is not None and self._lender is other._values):
            return
        names = [*self._param_names, *self._aux_names]
        missing = [name for name in names if name not in other._values]
        if missing:
            raise self._misfit(missing, [])
        self._values = {name: other._values[name] for name in names}
        if self._group is not None:
            self._group.replace(self._values)
        self._arg_params = {name: self._values[name] for name in self._param_names}
        self._aux_params = {name: self._values[name] for name in self._aux_names}
        self._lender = other._values
        self.params_initialized = True

    def _misfit(self, missing: list[str], wrong: list[str]) -> MXNetError:
        parts = []
        if missing:
            # The form of MXNet for a single one, which programs may look for.
            parts.append(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not presented")
        if wrong:
            parts.append("of the wrong shape: " + "; ".join(wrong))
        return MXNetShapeError("Module.set_params: " + "; ".join(parts))

    def _shapes_of_params(self, args: Mapping[str, Any], aux: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        arg_shapes, _, aux_shapes = self._symbol._shapes_known(**self._input_shapes())
        names = [*self._arguments, *self._aux_names]
        return dict(zip(names, [*arg_shapes, *aux_shapes], strict=True))

    def _first_value(self, name: str, shape: tuple[int, ...]) -> NDArray:
        """The value of a parameter that is not given: its earlier value, else zeros (labels and the
        like do not matter).
        """
        for held in (self._arg_params, self._aux_params):
            if held and name in held:
                return held[name]
        if not shape or 0 in shape:
            raise MXNetShapeError(f"the shape of '{name}' is not known, so that it cannot be left out; give its value")
        return nd.zeros(shape, ctx=self._first_context)

    def init_params(
        self,
        initializer: Any = None,
        arg_params: Mapping[str, NDArray] | None = None,
        aux_params: Mapping[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Gives parameters first values: those given, others as the initializer makes them.

        Parameters and errors are those of ``set_params``; a module that has values keeps them
        unless `force_init` is set.
        """
        self._need_bind("init_params")
        if self.params_initialized and not force_init:
            warn("Parameters already initialized and force_init=False. init_params call ignored.")
            return
        from ..initializer import InitDesc, Uniform, create

        given = {**(arg_params or {}), **(aux_params or {})}
        if (arg_params is not None or aux_params is not None) and not allow_missing:
            self.set_params(arg_params, aux_params)
            return
        make = create(initializer or Uniform(0.01))
        attrs, named = self._symbol.attr_dict(), {*self._param_names, *self._aux_names}
        for name, shape in self._shapes_of_params({}, {}).items():
            if name in given or name not in named:
                continue
            if not shape or 0 in shape:
                raise MXNetShapeError(f"Module.init_params: the shape of '{name}' is not known")
            given[name] = nd.empty(shape, ctx=self._first_context)
            make(InitDesc(name, attrs.get(name)), given[name])
        self.set_params({n: given[n] for n in self._param_names}, {n: given[n] for n in self._aux_names})

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
