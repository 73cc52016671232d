"""Module: a symbol with its parameters, bound to the shapes of its inputs."""

from __future__ import annotations

import logging
import threading
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import _mxrt
from .._graphs.binding import storage_of_variables
from .._graphs.groups import groups_of_contexts, on_one_device, places
from .._graphs.training import training_form
from .._scopes.mode import mode
from .._system.locks import fork_safe_lock
from ..base import MXNetTypeError, MXNetValueError, no_training
from ..context import Context, contexts_of, cpu
from ..io import DataDesc
from ..model import load_checkpoint
from ..ndarray import CachedOp, NDArray
from ..symbol import Symbol
from ._batches import BatchMethods, NameMismatchError, check_names, descriptions
from ._contexts import ContextMethods
from ._parameters import NotBoundError, ParameterMethods, ParameterStore, check_shared
from ._split import batch_axes, merge, part_of
from .base_module import BaseModule
from .executor_group import ExecutorsOfModule, types_of_variables

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._operators.call_options import CallOptions

__all__ = ["Module"]


# Held while a program's look at ``_exec_group`` makes it.
_grouping = fork_safe_lock()


def _mismatch(kind: str, given: list[DataDesc] | None, names: list[str]) -> NameMismatchError:
    return NameMismatchError(
        f"Data provided by {kind}_shapes don't match names specified by {kind}_names ({given} vs. {names})"
    )


class Module(BatchMethods, ContextMethods, ParameterMethods, BaseModule):
    """A symbol with its parameters.

    ``forward`` and ``get_outputs`` may be used from several threads: each gets the outputs of its
    own ``forward``.

    With a list of contexts, each gets a part of every batch, divided by `work_load_list` (evenly
    without one), and the results are put together. All contexts of the CPU share one memory, and
    their arrays are on the first of them. Arguments named in `state_names` keep their value from
    one ``forward`` to the next: see ``set_states``. `group2ctxs` gives groups of nodes contexts of
    their own, see :meth:`mxrt.sym.Symbol.bind`: contexts by group, or lists with one for each
    context of the module, or a list of dictionaries. It is checked by ``bind``.
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
        contexts = contexts_of(context or cpu(), "Module: context")
        host = next((one for one in contexts if one._is_host()), None)
        self._context: list[Context] = [host if host is not None and one._is_host() else one for one in contexts]
        self._first_context: Context = self._context[0]
        self._work_load_list = list(work_load_list or [1] * len(contexts))
        if len(self._work_load_list) != len(contexts):
            raise MXNetValueError(
                f"Module: work_load_list has {len(self._work_load_list)} numbers for {len(contexts)} contexts"
            )
        if not isinstance(symbol, Symbol):
            raise MXNetTypeError(f"Module: symbol must be a Symbol, got {type(symbol).__name__}")
        self._symbol = symbol
        self._arguments = symbol.list_arguments()
        self._variable_types = types_of_variables(symbol)
        self._storage = storage_of_variables(symbol)
        self._data_names = list(data_names or [])
        self._label_names = list(label_names or [])
        check_names(self._arguments, self._data_names, "data", True)
        check_names(self._arguments, self._label_names, "label", False)
        self._state_names = list(state_names or [])
        check_names(self._arguments, self._state_names, "state", True)
        self._fixed_param_names = list(fixed_param_names or [])
        check_names(self._arguments, self._fixed_param_names, "fixed_param", True)
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in self._arguments if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._order = symbol.list_inputs()
        self._output_names = symbol.list_outputs()
        self._op: CachedOp | None = None
        self._training: dict[tuple[bool, bool], tuple[CachedOp, list[str]]] = {}
        self._store = ParameterStore()
        self._preloaded: tuple[dict[str, NDArray], dict[str, NDArray]] | None = None
        self._without_values: frozenset[str] = frozenset()
        self._values_of_group: dict[str, NDArray] | None = None
        # The graph with the values that a forward has used last, for each context.
        self._bound: tuple[CachedOp, dict[str, NDArray], dict[Context, _mxrt.BoundOp]] | None = None
        self._data_shapes: list[DataDesc] = []
        self._label_shapes: list[DataDesc] | None = None
        # For every state the arrays of all contexts.
        self._states: list[list[NDArray]] = []
        # For every output the arrays of all contexts.
        self._outputs: list[list[NDArray]] | None = None
        self._group2ctxs = group2ctxs
        self._output_axes = batch_axes(symbol) if len(contexts) > 1 else []
        self._mine = threading.local()
        self._group: ExecutorsOfModule | None = None

    def __getstate__(self) -> dict[str, Any]:
        none = dict.fromkeys(("_op", "_bound", "_outputs", "_mine", "_group", "_values_of_group"))
        return {**super().__getstate__(), **none, "_training": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._mine = threading.local()
        self._op = self._compile(self._symbol) if self.binded else None

    def _compile(self, symbol: Symbol) -> CachedOp:
        """The graph, in which what batches bring is no parameter, whatever it is used as."""
        given = {*self._data_names, *self._label_names, *self._state_names}
        indices = [i for i, name in enumerate(symbol.list_inputs()) if name in given]
        return CachedOp(symbol, {"data_indices": indices})

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """A module of ``prefix-symbol.json`` and ``prefix-%04d.params`` with number `epoch`; its
        parameters are set when it is bound. The keywords are those of :class:`Module`.
        """
        if load_optimizer_states:
            raise no_training("Module.load(load_optimizer_states=True)")
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._preloaded = arg_params, aux_params
        module.params_initialized = True
        return module

    # ---- what it is ------------------------------------------------------------------------------

    # Names of MXNet that programs read.

    @property
    def _exec_group(self) -> ExecutorsOfModule | None:
        if not self.binded:
            return None
        with _grouping:
            if self._group is None:
                self._group = ExecutorsOfModule(self)
                self._bound, self._values_of_group = None, self._values
            self._sync_group()
            return self._group

    @_exec_group.setter
    def _exec_group(self, group: ExecutorsOfModule | None) -> None:
        self._group, self._bound = group, None

    def _sync_params_from_devices(self) -> None:
        """There is one copy of the parameters."""

    def _reset_bind(self) -> None:
        self.binded = False
        self._group = None

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
        _, shapes, _ = self._symbol._shapes_known(**self._input_shapes())
        return list(zip(self._output_names, shapes, strict=True))

    def _input_shapes(self) -> dict[str, tuple[int, ...]]:
        known = {d.name: tuple(d.shape) for d in [*self._data_shapes, *(self._label_shapes or [])]}
        return {name: shape for name, shape in known.items() if name in self._arguments}

    def _input_types(self) -> dict[str, Any]:
        return {d.name: self._type_of(d) for d in self._data_shapes if d.name in self._arguments}

    def _type_of(self, data: DataDesc) -> Any:
        """The element type of an input: that of its variable, if it has one, as in MXNet."""
        return self._variable_types.get(data.name, data.dtype)

    def _need_bind(self, what: str) -> None:
        if not self.binded:
            raise NotBoundError(f"Module.{what}: call bind(data_shapes=...) first")

    def _need_params(self, what: str) -> None:
        self._need_bind(what)
        if not self.params_initialized:
            raise NotBoundError(f"Module.{what}: the parameters have no values; call set_params or init_params first")

    # ---- binding ---------------------------------------------------------------------------------

    def _bind(
        self, data_shapes: Any, label_shapes: Any, for_training: bool, force_rebind: bool, shared_module: Any
    ) -> None:
        """Fixes the shapes of the inputs. ``forward`` follows when a batch has another one."""
        for context, groups in zip(
            self._context, groups_of_contexts(self._group2ctxs, len(self._context)), strict=True
        ):
            on_one_device(context, places(self._symbol, groups))
        if shared_module is not None:
            check_shared(shared_module, len(self._context))
        self._group = None
        self._set_shapes(descriptions(data_shapes), descriptions(label_shapes) or None)
        self._op, self._training = self._compile(self._symbol), {}
        if shared_module is not None:
            self._borrow(shared_module)
        elif self._preloaded is not None:
            self._take_preloaded()
        elif self.params_initialized:
            self._take_again()

    def _set_shapes(self, data: list[DataDesc], label: list[DataDesc] | None) -> None:
        if sorted(d.name for d in data) != sorted(self._data_names):
            raise _mismatch("data", data, self._data_names)
        names = {d.name for d in label or []}
        lacking = [name for name in self._label_names if name in self._arguments and name not in names]
        if lacking and not names <= set(self._label_names):
            raise _mismatch("label", label, self._label_names)
        rows = self._rows({d.name: d for d in data})
        before = self._data_shapes, self._label_shapes, self._states
        try:
            self._data_shapes, self._label_shapes = data, label
            self._symbol._shapes_known(**self._input_shapes())
            if self._state_names:
                self._states = self._states_for(rows)
            self._rebind_group()
        except BaseException:
            self._data_shapes, self._label_shapes, self._states = before
            raise

    def _rebind_group(self) -> None:
        """Gives the executors that a program looked at the shapes of now."""
        if self._group is not None:
            self._group.bind_exec(self._data_shapes, self._label_shapes, reshape=True)

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Changes the shapes of the inputs."""
        self._need_bind("reshape")
        self._set_shapes(descriptions(data_shapes), descriptions(label_shapes) or None)

    # ---- running ---------------------------------------------------------------------------------

    def forward(self, data_batch: Any, is_train: bool | None = None, **options: Unpack[CallOptions]) -> None:
        """Runs the model on a batch; ``get_outputs`` gives the results.

        With ``is_train=True`` Dropout drops elements, and BatchNorm takes the statistics of the
        batch; without it that is what ``bind`` was told. ``options`` are those of
        :meth:`mxrt.gluon.SymbolBlock.forward`.
        """
        self._need_params("forward")
        training = self.for_training if is_train is None else is_train
        op, order = self._graph(training)
        inputs = self._inputs_of(data_batch)
        if self._states and not self._fits_bound(inputs):
            self._follow(inputs, data_batch)
            self._states = self._states_for(self._rows({d.name: d for d in self._data_shapes}))
            self._rebind_group()
        made, used = [], []
        for place, given in enumerate(self._parts(inputs)):
            context = self._context[place]
            bound, free = self._bind_values(place, op, order)
            given.update((name, arrays[place]) for name, arrays in zip(self._state_names, self._states, strict=True))
            arrays = {name: given[name] if name in given else self._label(name, given, context) for name in free}
            out = bound(*arrays.values(), **options)
            made.append(out if isinstance(out, list) else [out])
            used.append(arrays)
        self._set_outputs(made)
        if not self._states:
            self._follow(inputs, data_batch)
        if self._group is not None:
            made, seen = self._group.took(used, made, training)
            self._set_outputs(made)
            for one in seen:
                one.tell()

    def _set_outputs(self, made: Sequence[list[NDArray]]) -> None:
        """Takes results of all contexts."""
        self._mine.outputs = self._outputs = [list(of_contexts) for of_contexts in zip(*made, strict=True)]

    def _graph(self, is_train: bool) -> tuple[CachedOp, list[str]]:
        """Returns the graph to run, as while training or not, and the names of its inputs."""
        assert self._op is not None
        if not is_train and not mode.training:
            return self._op, self._order
        key = (bool(is_train), mode.training)
        if key not in self._training:
            form = training_form(self._symbol, *key)
            same = form is self._symbol
            self._training[key] = (self._op, self._order) if same else (self._compile(form), form.list_inputs())
        return self._training[key]

    def _bind_values(self, place: int, op: CachedOp, order: list[str]) -> tuple[_mxrt.BoundOp, list[str]]:
        """The graph with the present values on a context, and the names of its other inputs."""
        context = self._context[place]
        self._sync_group()
        values, held = self._values, self._bound
        free = [name for name in order if name not in values]
        bounds = held[2] if held is not None and held[0] is op and held[1] is values else {}
        if context in bounds:
            return bounds[context], free
        if self._group is None:
            there = {name: values[name].as_in_context(context) for name in order if name in values}
        else:
            there = self._group.values_of(place, [name for name in order if name in values])
        bound = op.bind([there.get(name) for name in order])
        self._bound = (op, values, {**bounds, context: bound})
        return bound, free

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The results of the last ``forward`` of this thread, or, if it made none, of the
        module.

        An array for each output; with ``merge_multi_context=False`` for each a list with the array
        of every context.
        """
        self._need_params("get_outputs")
        outputs: list[list[NDArray]] | None = getattr(self._mine, "outputs", self._outputs)
        if self._group is not None and (outputs is not None or self._group.has_run()):
            outputs = self._group.get_outputs(merge_multi_context=False)
        if outputs is None:
            raise NotBoundError("Module.get_outputs: call forward first")
        if not merge_multi_context:
            return outputs
        if len(self._context) == 1:
            return [arrays[0] for arrays in outputs]
        return [merge(arrays, axis) for arrays, axis in zip(outputs, self._output_axes, strict=True)]

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the results of the last ``forward``, and these labels, to a metric.

        With several contexts the metric gets the results and labels of one after the other. With
        `pre_sliced` the labels are in a list for each context.
        """
        names = [d.name for d in self._label_shapes] if self._label_shapes else self._label_names
        by_context = list(zip(*self.get_outputs(merge_multi_context=False), strict=True))
        if pre_sliced:
            given = [list(of_one) for of_one in labels]
        elif len(by_context) == 1:
            given = [list(labels or [])]
        else:
            found = dict(zip(names, labels or [], strict=False))
            rows = self._rows(found)
            given = [
                [part_of(array, self._axis(name), part, array.context) for name, array in found.items()]
                for part in rows
            ]
        for outputs, own in zip(by_context, given, strict=True):
            eval_metric.update_dict(
                dict(zip(names, own, strict=False)), dict(zip(self._output_names, outputs, strict=True))
            )

    def install_monitor(self, mon: Any) -> None:
        """Shows a monitor what each ``forward`` computes inside, on every context."""
        self._need_bind("install_monitor")
        group = self._exec_group
        assert group is not None
        group.install_monitor(mon)

    def borrow_optimizer(self, shared_module: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.borrow_optimizer")
