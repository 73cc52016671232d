"""Module: a symbol with its parameters, bound to the shapes of its inputs."""

from __future__ import annotations

import difflib
import logging
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from .. import _mxrt
from .. import ndarray as nd
from ..base import (
    MXNetError,
    MXNetNotImplementedError,
    MXNetShapeError,
    MXNetTypeError,
    no_training,
)
from ..context import Context, cpu
from ..executor import Executor
from ..io import DataDesc
from ..model import load_checkpoint, save_checkpoint
from ..ndarray import CachedOp, NDArray
from ..symbol import Symbol
from .base_module import BaseModule

__all__ = ["Module"]


class NotBoundError(MXNetError, AssertionError):
    """A call that needs ``bind``, ``set_params`` or ``forward`` first."""


class NameMismatchError(MXNetError, ValueError):
    """Names of inputs do not fit the symbol."""


def _descriptions(shapes: Any) -> list[DataDesc]:
    return [one if isinstance(one, DataDesc) else DataDesc(*one) for one in shapes or []]


def _fits(needed: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(needed) == len(shape) and all(n in (0, m) for n, m in zip(needed, shape, strict=True))


class Module(BaseModule):
    """A symbol with its parameters.

    ``forward`` and ``get_outputs`` may be used from several threads: each gets the outputs of its
    own ``forward``.
    """

    def __init__(
        self,
        symbol: Symbol,
        data_names: Sequence[str] | None = ("data",),
        label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Any = None,
        state_names: Any = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:
        super().__init__(logger)
        contexts = [context] if isinstance(context, Context) else list(context or [cpu()])
        if len(set(contexts)) != 1 and not all(one._is_host() for one in contexts):
            raise MXNetNotImplementedError(
                "a Module over several devices is not part of this build of mxrt; several cpu contexts are one"
            )
        if state_names:
            raise MXNetNotImplementedError("state_names of Module are not part of this build of mxrt")
        self._context: Context = contexts[0]
        self._symbol = symbol
        self._arguments = symbol.list_arguments()
        self._data_names = list(data_names or [])
        self._label_names = list(label_names or [])
        self._check_names(self._data_names, "data", True)
        self._check_names(self._label_names, "label", False)
        inputs = {*self._data_names, *self._label_names}
        self._param_names = [name for name in self._arguments if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._order = symbol.list_inputs()
        self._output_names = symbol.list_outputs()
        self._op: CachedOp | None = None
        self._arg_params: dict[str, NDArray] | None = None
        self._aux_params: dict[str, NDArray] | None = None
        self._values: dict[str, NDArray] = {}
        # Those of the module that the values were borrowed from.
        self._lender: dict[str, NDArray] | None = None
        # The graph with the values that a forward has used last.
        self._bound: tuple[CachedOp, dict[str, NDArray], _mxrt.BoundOp] | None = None
        self._data_shapes: list[DataDesc] = []
        self._label_shapes: list[DataDesc] | None = None
        self._outputs: list[NDArray] | None = None
        self._mine = threading.local()
        self._monitored: Executor | None = None

    def _check_names(self, names: list[str], kind: str, required: bool) -> None:
        for name in names:
            if name in self._arguments:
                continue
            parameters = ("weight", "bias", "gamma", "beta")
            others = [n for n in self._arguments if not n.endswith(parameters)]
            close = difflib.get_close_matches(name, others, 5, 0.1) or others
            message = (
                f"You created Module with Module(..., {kind}_names={names}) but input with name '{name}' is not found "
                f"in symbol.list_arguments(). Did you mean one of:\n\t" + "\n\t".join(close)
            )
            if required:
                raise NameMismatchError(message)
            if name != "softmax_label":
                warnings.warn(message, stacklevel=4)

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """A module from a checkpoint; its parameters are set when it is bound."""
        if load_optimizer_states:
            raise no_training("Module.load(load_optimizer_states=True)")
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._arg_params, module._aux_params = arg_params, aux_params
        module.params_initialized = True
        return module

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def symbol(self) -> Symbol:
        """The graph."""
        return self._symbol

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs."""
        return self._data_names

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self._label_names

    @property
    def output_names(self) -> list[str]:
        """Names of the results."""
        return self._output_names

    @property
    def data_shapes(self) -> list[DataDesc]:
        """Descriptions of the inputs, as bound or as the last batch had them."""
        self._need_bind("data_shapes")
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """Descriptions of the labels; None when there are none."""
        self._need_bind("label_shapes")
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of every result."""
        self._need_bind("output_shapes")
        _, shapes, _ = self._symbol.infer_shape_partial(**self._input_shapes())
        return list(zip(self._output_names, shapes, strict=True))

    def _input_shapes(self) -> dict[str, tuple[int, ...]]:
        known = {d.name: tuple(d.shape) for d in [*self._data_shapes, *(self._label_shapes or [])]}
        return {name: shape for name, shape in known.items() if name in self._arguments}

    def _need_bind(self, what: str) -> None:
        if not self.binded:
            raise NotBoundError(f"Module.{what}: call bind(data_shapes=...) first")

    def _need_params(self, what: str) -> None:
        self._need_bind(what)
        if not self.params_initialized:
            raise NotBoundError(f"Module.{what}: the parameters have no values; call set_params or init_params first")

    # ---- binding ---------------------------------------------------------------------------------

    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool | None = None,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Fixes the shapes of the inputs. ``forward`` follows when a batch has another one.

        Where MXNet binds for training unless told otherwise, this binds for inference, which is all
        there is.
        """
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if for_training or inputs_need_grad:
            raise no_training(f"Module.bind({'for_training' if for_training else 'inputs_need_grad'}=True)")
        self._set_shapes(_descriptions(data_shapes), _descriptions(label_shapes) or None)
        self._op = CachedOp(self._symbol)
        self.binded = True
        if shared_module is not None and shared_module.params_initialized:
            self.set_params(*shared_module.get_params())
        elif self._arg_params is not None:
            self.set_params(self._arg_params, self._aux_params or {})

    def _set_shapes(self, data: list[DataDesc], label: list[DataDesc] | None) -> None:
        if sorted(d.name for d in data) != sorted(self._data_names):
            raise NameMismatchError(
                f"Data provided by data_shapes don't match names specified by data_names "
                f"({data} vs. {self._data_names})"
            )
        self._data_shapes, self._label_shapes = data, label
        self._symbol.infer_shape_partial(**self._input_shapes())

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Changes the shapes of the inputs."""
        self._need_bind("reshape")
        self._set_shapes(_descriptions(data_shapes), _descriptions(label_shapes) or None)

    # ---- parameters ------------------------------------------------------------------------------

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Arguments and auxiliary states by name."""
        self._need_params("get_params")
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
        error.
        """
        self._need_bind("set_params")
        if self.params_initialized and not force_init:
            warnings.warn("Parameters already initialized and force_init=False. set_params call ignored.", stacklevel=2)
            return
        given_args, given_aux = dict(arg_params or {}), dict(aux_params or {})
        shapes, missing, wrong = self._shapes_of_params(given_args, given_aux), [], []
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
                taken[name] = value.copyto(self._context)
        if wrong or (missing and not allow_missing):
            raise self._misfit([] if allow_missing else missing, wrong)
        for name in missing:
            taken[name] = self._first_value(name, shapes.get(name) or ())
        # In one step: a forward of another thread meanwhile uses either all old values or all new
        # ones.
        self._values = taken
        self._arg_params = {n: taken[n] for n in self._param_names}
        self._aux_params = {n: taken[n] for n in self._aux_names}
        self.params_initialized = True

    def _borrow(self, other: Module) -> None:
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
        arg_shapes, _, aux_shapes = self._symbol.infer_shape_partial(**self._input_shapes())
        names = [*self._arguments, *self._aux_names]
        return dict(zip(names, [*arg_shapes, *aux_shapes], strict=True))

    def _first_value(self, name: str, shape: tuple[int, ...]) -> NDArray:
        """For a parameter that is not given: its earlier value, else zeros (labels and the like do
        not matter).
        """
        for held in (self._arg_params, self._aux_params):
            if held and name in held:
                return held[name]
        if not shape or 0 in shape:
            raise MXNetShapeError(f"the shape of '{name}' is not known, so that it cannot be left out; give its value")
        return nd.zeros(shape, ctx=self._context)

    def init_params(
        self,
        initializer: Any = None,
        arg_params: Mapping[str, NDArray] | None = None,
        aux_params: Mapping[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Gives parameters first values: those given, others as the initializer makes them."""
        self._need_bind("init_params")
        if self.params_initialized and not force_init:
            warnings.warn(
                "Parameters already initialized and force_init=False. init_params call ignored.", stacklevel=2
            )
            return
        from ..initializer import InitDesc, Uniform, create

        given = {**(arg_params or {}), **(aux_params or {})}
        if (arg_params is not None or aux_params is not None) and not allow_missing:
            self.set_params(arg_params, aux_params)
            return
        make = create(initializer or Uniform(0.01))
        attrs = self._symbol.attr_dict()
        for name, shape in self._shapes_of_params({}, {}).items():
            if name in given or name in self._data_names or name in self._label_names:
                continue
            if not shape or 0 in shape:
                raise MXNetShapeError(f"Module.init_params: the shape of '{name}' is not known")
            given[name] = nd.empty(shape, ctx=self._context)
            make(InitDesc(name, attrs.get(name)), given[name])
        self.set_params({n: given[n] for n in self._param_names}, {n: given[n] for n in self._aux_names})

    def load_params(self, fname: str) -> None:
        """Reads values for all parameters from a file."""
        values = nd.load(fname)
        parts: dict[str, dict[str, NDArray]] = {"arg": {}, "aux": {}}
        for full, value in values.items():
            kind, _, name = full.partition(":")
            if kind not in parts or not name:
                raise ValueError(f"Invalid param file {fname}: '{full}' does not begin with arg: or aux:")
            parts[kind][name] = value
        self.set_params(parts["arg"], parts["aux"])

    def save_params(self, fname: str) -> None:
        """Writes the values of all parameters to a file."""
        arg_params, aux_params = self.get_params()
        values = {f"arg:{name}": value for name, value in arg_params.items()}
        values.update({f"aux:{name}": value for name, value in aux_params.items()})
        nd.save(fname, values)

    def save_checkpoint(
        self, prefix: str, epoch: int, save_optimizer_states: bool = False, remove_amp_cast: bool = True
    ) -> None:
        """Writes ``prefix-symbol.json`` and ``prefix-%04d.params``."""
        if save_optimizer_states:
            raise no_training("Module.save_checkpoint(save_optimizer_states=True)")
        save_checkpoint(prefix, epoch, self._symbol, *self.get_params(), remove_amp_cast)

    # ---- running ---------------------------------------------------------------------------------

    def forward(
        self,
        data_batch: Any,
        is_train: bool | None = None,
        *,
        priority: int = 0,
        deadline: float | None = None,
        cancel_on_drop: bool = False,
    ) -> None:
        """Runs the model on a batch; ``get_outputs`` gives the results.

        ``priority``, ``deadline`` and ``cancel_on_drop`` are those of
        :meth:`mxrt.gluon.SymbolBlock.forward`.
        """
        self._need_params("forward")
        if is_train:
            raise no_training("Module.forward(is_train=True)")
        inputs = self._inputs_of(data_batch)
        bound, free = self._bind_values()
        arrays = [inputs[name] if name in inputs else self._label(name, inputs) for name in free]
        made = bound(*arrays, priority=priority, deadline=deadline, cancel_on_drop=cancel_on_drop)
        outputs = made if isinstance(made, list) else [made]
        self._mine.outputs = self._outputs = outputs
        if self._monitored is not None:
            self._show(dict(zip(free, arrays, strict=True)))
        self._follow(inputs, data_batch)

    def _bind_values(self) -> tuple[_mxrt.BoundOp, list[str]]:
        """The graph with the present values, and the names of its other inputs."""
        op, values, held = self._op, self._values, self._bound
        assert op is not None
        free = [name for name in self._order if name not in values]
        if held is not None and held[0] is op and held[1] is values:
            return held[2], free
        bound = op.bind([values.get(name) for name in self._order])
        self._bound = (op, values, bound)
        return bound, free

    def _inputs_of(self, batch: Any) -> dict[str, NDArray]:
        names = [d.name for d in self._data_shapes]
        provided = getattr(batch, "provide_data", None)
        if provided:
            names = [d.name if isinstance(d, DataDesc) else d[0] for d in provided]
        data = list(batch.data)
        if len(data) < len(names):
            raise NameMismatchError(
                f"Data provided by the batch don't match names specified by data_names ({len(data)} arrays vs. {names})"
            )
        found = dict(zip(names, data, strict=False))
        inputs: dict[str, NDArray] = {}
        for description in self._data_shapes:
            value = found.get(description.name)
            if not isinstance(value, NDArray):
                raise MXNetTypeError(
                    f"Module.forward: '{description.name}' must be an NDArray, got {type(value)}; "
                    "make one with mx.nd.array"
                )
            inputs[description.name] = value.astype(description.dtype, copy=False).as_in_context(self._context)
        for name, value in zip(self._label_names, getattr(batch, "label", None) or [], strict=False):
            if name in self._arguments and isinstance(value, NDArray):
                inputs[name] = value.as_in_context(self._context)
        return inputs

    def _follow(self, inputs: dict[str, NDArray], batch: Any) -> None:
        """Where a batch that ran has other shapes than the module was bound to, the module is bound
        anew.
        """
        if all(inputs[d.name].shape == tuple(d.shape) for d in self._data_shapes):
            return
        self._data_shapes = [DataDesc(d.name, inputs[d.name].shape, d.dtype, d.layout) for d in self._data_shapes]
        provided = getattr(batch, "provide_label", None)
        if provided:
            self._label_shapes = _descriptions(provided)
        elif self._label_shapes and not getattr(batch, "label", None):
            rows = self._data_shapes[0].shape[0]
            self._label_shapes = [DataDesc(d.name, (rows, *d.shape[1:]), d.dtype) for d in self._label_shapes]

    def _label(self, name: str, inputs: Mapping[str, NDArray]) -> NDArray:
        """A label that is not given: zeros, since at inference its value does not matter.

        Its shape is worked out from the other inputs of the same call: other threads may use other
        batch sizes.
        """
        shapes, _, _ = self._symbol.infer_shape_partial(**{n: a.shape for n, a in inputs.items()})
        shape = dict(zip(self._arguments, shapes, strict=True)).get(name) or ()
        if not shape or 0 in shape:
            raise MXNetShapeError(
                f"Module.forward: the shape of '{name}' is not known; give it in label_shapes or the batch"
            )
        return nd.zeros(shape, ctx=self._context)

    def get_outputs(self, merge_multi_context: bool = True) -> list[NDArray]:
        """The results of the last ``forward`` of this thread, or, if it made none, of the
        module.
        """
        self._need_params("get_outputs")
        outputs: list[NDArray] | None = getattr(self._mine, "outputs", self._outputs)
        if outputs is None:
            raise NotBoundError("Module.get_outputs: call forward first")
        return outputs

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the results of the last ``forward``, and these labels, to a metric.

        With `pre_sliced` the labels are in a list for each context, of which there is one here.
        """
        given = labels[0] if pre_sliced else labels
        names = [d.name for d in self._label_shapes] if self._label_shapes else self._label_names
        outputs = dict(zip(self._output_names, self.get_outputs(), strict=True))
        eval_metric.update_dict(dict(zip(names, given or [], strict=False)), outputs)

    def install_monitor(self, mon: Any) -> None:
        """Shows a monitor what each ``forward`` computes inside."""
        self._need_bind("install_monitor")
        self._monitored = Executor(self._symbol, self._context, {}, {})
        mon.install(self._monitored)

    def _show(self, inputs: Mapping[str, NDArray]) -> None:
        """Tells the monitor what was computed for these inputs and the present parameters."""
        held, values = self._monitored, {**self._values, **inputs}
        assert held is not None
        held.arg_dict = {name: values[name] for name in self._arguments}
        held.aux_dict = {name: values[name] for name in self._aux_names}
        held.show()

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The states: there are none."""
        return []

    def borrow_optimizer(self, shared_module: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.borrow_optimizer")
