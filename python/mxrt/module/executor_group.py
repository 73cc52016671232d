"""The parts of a Module: executors, one for each context."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import ndarray as nd
from .._graphs.binding import simple_bind
from .._graphs.groups import groups_of_contexts
from .._graphs.watch import Seen
from ..base import MXNetValueError, no_training
from ..context import Context
from ..executor import Executor
from ..executor_manager import _load_data, _load_general, _load_label, _split_input_slice
from ..io import DataDesc
from ..ndarray import NDArray
from ..ndarray._codes import _DTYPE_MX_TO_NP
from ._split import batch_axes, merge, part_of, pieces

if TYPE_CHECKING:
    from ..symbol import Symbol
    from .module import Module

__all__ = [
    "DataParallelExecutorGroup",
    "ExecutorsOfModule",
    "_load_data",
    "_load_general",
    "_load_label",
    "_split_input_slice",
]

_Parts = list[list[tuple[slice, NDArray]]]


def _descriptions(shapes: Any) -> list[DataDesc]:
    return [one if isinstance(one, DataDesc) else DataDesc(*one) for one in shapes or []]


def types_of_variables(symbol: Symbol) -> dict[str, Any]:
    """The element types that variables ask for, by name."""
    asked = {name: attrs.get("__dtype__", "-1") for name, attrs in symbol._variable_attrs().items()}
    return {name: _DTYPE_MX_TO_NP[int(code)] for name, code in asked.items() if code != "-1"}


class DataParallelExecutorGroup:
    """Executors of a symbol, one for each context, which take a part of every batch each.

    The parameters are MXNet's. The attributes are its own, too: ``execs``, the arrays of inputs
    (``data_arrays``: for each input, rows and array of every context), of labels, parameters,
    states and auxiliary states, and what they were made of. Arrays are live: what is written to
    them is what the next ``forward`` of their executor reads.

    Raises
    ------
    TrainingNotSupportedError : gradients are asked for
    """

    def __init__(
        self,
        symbol: Symbol,
        contexts: list[Context],
        workload: Sequence[float] | None,
        data_shapes: Any,
        label_shapes: Any,
        param_names: list[str],
        for_training: bool,
        inputs_need_grad: bool,
        shared_group: DataParallelExecutorGroup | None = None,
        logger: Any = logging,
        fixed_param_names: list[str] | None = None,
        grad_req: Any = "write",
        state_names: list[str] | None = None,
        group2ctxs: Any = None,
    ) -> None:
        if inputs_need_grad:
            raise no_training("DataParallelExecutorGroup(inputs_need_grad=True)")
        self.symbol = symbol
        self.contexts = contexts
        self.workload: list[float] = list(workload or [1] * len(contexts))
        self.arg_names: list[str] = symbol.list_arguments()
        self.aux_names: list[str] = symbol.list_auxiliary_states()
        self.param_names = param_names
        self.fixed_param_names: list[str] = list(fixed_param_names or [])
        self.state_names: list[str] = list(state_names or [])
        self.output_names: list[str] = symbol.list_outputs()
        self.num_outputs: int = len(self.output_names)
        self.output_layouts: list[int] = batch_axes(symbol)
        self.group2ctxs: list[Any] = groups_of_contexts(group2ctxs, len(contexts))
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self.grad_req: dict[str, str] = dict.fromkeys(self.arg_names, "null")
        self.logger = logger
        # Programs may keep arrays for executors here; there is nothing in it.
        self.shared_data_arrays: list[dict[str, NDArray]] = [{} for _ in contexts]
        self._total_exec_bytes = 0
        self.grad_arrays: None = None
        self.input_grad_arrays: None = None
        self.batch_size: int | None = None
        self.slices: list[slice] | None = None
        self.execs: list[Executor] = []
        self._default_execs: list[Executor] | None = None
        self.label_layouts: list[int] | None = None
        self.label_names: list[str] | None = None
        self.bind_exec(_descriptions(data_shapes), _descriptions(label_shapes) or None, shared_group)

    # ---- binding ---------------------------------------------------------------------------------

    def decide_slices(self, data_shapes: Sequence[DataDesc]) -> list[int]:
        """Works out which rows each context takes; returns the axis of samples of every input.

        AssertionError unless all inputs have as many samples.
        """
        if not data_shapes:
            raise AssertionError("DataParallelExecutorGroup: there is no input to be divided")
        axes = [DataDesc.get_batch_axis(one.layout) for one in data_shapes]
        for one, axis in zip(data_shapes, axes, strict=True):
            if axis < 0:
                continue
            size = one.shape[axis]
            if self.batch_size is None:
                self.batch_size = size
                self.slices = pieces(size, self.workload)
            elif size != self.batch_size:
                raise AssertionError(
                    f"all data must have the same batch size: batch_size = {self.batch_size}, but {one.name} has "
                    f"shape {one.shape}"
                )
        return axes

    def bind_exec(
        self,
        data_shapes: Any,
        label_shapes: Any,
        shared_group: DataParallelExecutorGroup | None = None,
        reshape: bool = False,
    ) -> None:
        """Makes the executors, or with `reshape` such ones for other shapes that share the
        arrays which do not grow.
        """
        if self.execs and not reshape:
            raise AssertionError("bind_exec: there are executors; pass reshape=True for others")
        data, label = _descriptions(data_shapes), _descriptions(label_shapes) or None
        self._labels: list[DataDesc] = label or []
        held = self.batch_size, self.slices
        self.batch_size = self.slices = None
        try:
            layouts = self.decide_slices(data)
            label_layouts = None if label is None else self.decide_slices(label)
            made = []
            for place in range(len(self.contexts)):
                parts = self._sliced_shape(data, place, layouts)
                parts += self._sliced_shape(label or [], place, label_layouts or [])
                made.append(self._made(place, parts, shared_group, reshape))
        except BaseException:
            self.batch_size, self.slices = held
            raise
        if reshape and self._default_execs is None:
            self._default_execs = self.execs
        self.execs = made
        self.data_shapes: list[DataDesc] = data
        self.label_shapes: list[DataDesc] | None = label
        self.data_layouts = layouts
        self.data_names: list[str] = [one.name for one in data]
        if label is not None:
            self.label_layouts = label_layouts
            self.label_names = [one.name for one in label]
        self._collect_arrays()

    def _made(
        self, place: int, inputs: list[DataDesc], shared_group: DataParallelExecutorGroup | None, reshape: bool
    ) -> Executor:
        if reshape:
            origin = (self._default_execs or self.execs)[place]
            shapes: dict[str, Any] = dict(self._known(inputs)[0])
            return origin.reshape(allow_up_sizing=True, **shapes)
        return self._bind_ith_exec(place, inputs, None, shared_group)

    def _bind_ith_exec(
        self, i: int, data_shapes: Any, label_shapes: Any, shared_group: DataParallelExecutorGroup | None
    ) -> Executor:
        shapes, types = self._known([*_descriptions(data_shapes), *_descriptions(label_shapes)])
        made = simple_bind(self.symbol, self.contexts[i], types, shapes, self.group2ctxs[i])
        if shared_group is not None:
            other = shared_group.execs[i]
            made.arg_dict.update({name: other.arg_dict[name] for name in self.param_names if name in other.arg_dict})
            made.aux_dict.update({name: other.aux_dict[name] for name in self.aux_names if name in other.aux_dict})
        return made

    def _known(self, inputs: Iterable[DataDesc]) -> tuple[dict[str, tuple[int, ...]], dict[str, Any]]:
        """Shapes and element types of the inputs that the symbol has."""
        used = [one for one in inputs if one.name in self.arg_names]
        types = {one.name: one.dtype for one in used}
        # The type of a variable is that of the data, but not that of a label, as in MXNet.
        labels = {one.name for one in self._labels}
        types.update((n, t) for n, t in types_of_variables(self.symbol).items() if n in types and n not in labels)
        return {one.name: tuple(one.shape) for one in used}, types

    def _sliced_shape(self, shapes: Sequence[DataDesc], i: int, major_axis: Sequence[int]) -> list[DataDesc]:
        """The descriptions of a context's part of inputs."""
        parts = []
        for one, axis in zip(shapes, major_axis, strict=True):
            shape = list(one.shape)
            if axis >= 0 and self.slices is not None:
                shape[axis] = self.slices[i].stop - self.slices[i].start
            parts.append(DataDesc(one.name, tuple(shape), one.dtype, one.layout))
        return parts

    def _collect_arrays(self) -> None:
        """Lists the arrays of the executors."""

        def inputs(names: Sequence[str]) -> _Parts:
            rows = self.slices or [slice(place, place + 1) for place in range(len(self.execs))]
            return [[(part, one.arg_dict[name]) for part, one in zip(rows, self.execs, strict=True)] for name in names]

        def held(names: Sequence[str]) -> list[list[NDArray]]:
            return [[one.arg_dict[name] for one in self.execs] for name in names]

        known = set(self.arg_names)
        self.data_arrays: _Parts = inputs([name for name in self.data_names if name in known])
        labels = self.label_names if self.label_shapes is not None else None
        self.label_arrays: _Parts | None = (
            None if labels is None else inputs([name for name in labels if name in known])
        )
        self.state_arrays: list[list[NDArray]] = held(self.state_names)
        self.param_arrays: list[list[NDArray]] = held([name for name in self.arg_names if name in self.param_names])
        self.aux_arrays: list[list[NDArray]] = [[one.aux_dict[name] for one in self.execs] for name in self.aux_names]

    def reshape(self, data_shapes: Any, label_shapes: Any) -> None:
        """Changes the shapes of the inputs; ``execs`` has other executors then."""
        data, label = _descriptions(data_shapes), _descriptions(label_shapes) or None
        if data != self.data_shapes or label != self.label_shapes:
            self.bind_exec(data, label, reshape=True)

    # ---- parameters ------------------------------------------------------------------------------

    def set_params(self, arg_params: Any, aux_params: Any, allow_extra: bool = False) -> None:
        """Copies values to the parameters of all executors."""
        for one in self.execs:
            one.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> None:
        """Copies the parameters, the mean of all contexts, to arrays of the same names."""
        params = [name for name in self.arg_names if name in self.param_names]
        for names, arrays, targets in (
            (params, self.param_arrays, arg_params),
            (self.aux_names, self.aux_arrays, aux_params),
        ):
            for name, parts in zip(names, arrays, strict=True):
                target = targets[name]
                there = [part.as_in_context(target.context) for part in parts]
                total = there[0] if len(there) == 1 else nd.add_n(*there) / len(there)
                total.astype(target.dtype, copy=False).copyto(target)

    # ---- running ---------------------------------------------------------------------------------

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Copies a batch to the arrays of the inputs, and runs every executor."""
        is_train = self.for_training if is_train is None else is_train
        _load(data_batch.data, self.data_arrays, self.data_layouts)
        if self.label_arrays is not None and data_batch.label:
            _load(data_batch.label, self.label_arrays, self.label_layouts or [])
        for one in self.execs:
            one.forward(is_train=is_train)

    def get_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of every result, of a whole batch."""
        found = []
        for name, out, axis in zip(self.output_names, self.execs[0].outputs, self.output_layouts, strict=True):
            shape = list(out.shape)
            if axis >= 0 and self.batch_size is not None:
                shape[axis] = self.batch_size
            found.append((name, tuple(shape)))
        return found

    def get_outputs(self, merge_multi_context: bool = True, begin: int = 0, end: int | None = None) -> list[Any]:
        """The last results from number `begin` to `end`: an array for each, or a list with the
        array of every context.
        """
        places = range(begin, self.num_outputs if end is None else end)
        outputs = [[one.outputs[i] for one in self.execs] for i in places]
        if not merge_multi_context:
            return outputs
        return [merge(arrays, self.output_layouts[i]) for i, arrays in zip(places, outputs, strict=True)]

    def get_states(self, merge_multi_context: bool = True) -> list[list[NDArray]]:
        """The states: for each a list with the array of every context."""
        if merge_multi_context:
            raise AssertionError("merge_multi_context=True is not supported for get_states yet.")
        return self.state_arrays

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets the states: to arrays of the form that ``get_states`` gives, or all to a number."""
        if (states is None) == (value is None):
            raise AssertionError("set_states: give either states or value, not both")
        for number, arrays in enumerate(self.state_arrays):
            for place, array in enumerate(arrays):
                if states is None:
                    array[:] = value
                else:
                    states[number][place].copyto(array)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the last results, and labels, to a metric: context by context."""
        rows = self.slices or [slice(None)] * len(self.execs)
        axes = self.label_layouts or [0] * len(labels)
        for place, (one, part) in enumerate(zip(self.execs, rows, strict=True)):
            if pre_sliced:
                own = labels[place]
            else:
                own = [part_of(label, axis, part, label.context) for label, axis in zip(labels, axes, strict=False)]
            eval_metric.update_dict(
                dict(zip(self.label_names or [], own, strict=False)),
                dict(zip(self.output_names, one.outputs, strict=True)),
            )

    def install_monitor(self, mon: Any) -> None:
        """Shows a monitor what every executor computes."""
        for one in self.execs:
            mon.install(one)

    def get_input_grads(self, merge_multi_context: bool = True) -> NoReturn:
        """Refused: gradients are for training."""
        raise no_training("DataParallelExecutorGroup.get_input_grads")

    def backward(self, out_grads: Any = None) -> NoReturn:
        """Refused: gradients are for training."""
        raise no_training("DataParallelExecutorGroup.backward")


def _load(arrays: Any, targets: _Parts, axes: Sequence[int]) -> None:
    """Copies inputs to the arrays of all contexts."""
    for source, parts, axis in zip(arrays, targets, axes, strict=False):
        array = source if isinstance(source, NDArray) else nd.array(source, dtype=source.dtype)
        for rows, target in parts:
            part = part_of(array, axis, rows, target.context) if len(parts) > 1 else array
            if part.shape != target.shape:
                raise MXNetValueError(
                    f"an input has shape {part.shape}, wanted {target.shape}, the shape that is bound: call "
                    "reshape(data_shapes, label_shapes) first"
                )
            part.astype(target.dtype, copy=False).copyto(target)


class ExecutorOfModule(Executor):
    """One of ``module._exec_group.execs``: what it computes, the module gives as its results, and
    what the module computes are its ``outputs``.
    """

    def __init__(self, module: Module, place: int, made: Executor) -> None:
        super().__init__(made._symbol, made._ctx, made.arg_dict, made.aux_dict, made.grad_dict, made._groups)
        self._origin = made._origin
        self._module = module
        self._place = place

    def _results(self) -> list[NDArray] | None:
        # What this thread had from the module before there was an executor is its own, too.
        for found in (
            getattr(self._mine, "outputs", None),
            self._part(getattr(self._module._mine, "outputs", None)),
            self._outputs,
            self._part(self._module._outputs),
        ):
            if found is not None:
                return found
        return None

    def _part(self, outputs: list[list[NDArray]] | None) -> list[NDArray] | None:
        return None if outputs is None else [of_contexts[self._place] for of_contexts in outputs]


class ExecutorsOfModule(DataParallelExecutorGroup):
    """``module._exec_group``: one for a module as long as it is bound.

    Its executors hold the arrays of the module's parameters and states. From the first look at it
    on, every ``forward`` of the module copies its batch to their inputs, and ``set_params`` writes
    to these arrays in place.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        super().__init__(
            module.symbol,
            module._context,
            module._work_load_list,
            module.data_shapes,
            module.label_shapes,
            module._param_names,
            module.for_training,
            False,
            None,
            module.logger,
            module._fixed_param_names,
            state_names=module._state_names,
            group2ctxs=module._group2ctxs,
        )

    def reshape(self, data_shapes: Any, label_shapes: Any) -> None:
        """Changes the shapes that the module is bound to."""
        data, label = _descriptions(data_shapes), _descriptions(label_shapes) or None
        if data != self.data_shapes or label != self.label_shapes:
            self._module._set_shapes(data, label)

    def _made(
        self, place: int, inputs: list[DataDesc], shared_group: DataParallelExecutorGroup | None, reshape: bool
    ) -> Executor:
        states = dict(zip(self.state_names, (arrays[place] for arrays in self._module._states), strict=True))
        values = self._module._values
        # Shapes of parameters need not follow from those of the inputs.
        shapes: dict[str, Any] = {name: array.shape for name, array in {**values, **states}.items()}
        known, types = self._known(inputs)
        if reshape:
            origin = (self._default_execs or self.execs)[place]
            made = origin.reshape(allow_up_sizing=True, **{**shapes, **known})
        else:
            context = self.contexts[place]
            held = {name: value.as_in_context(context) for name, value in values.items()}
            groups = self.group2ctxs[place]
            made = simple_bind(self.symbol, context, types, {**shapes, **known}, groups, {**held, **states})
        made.arg_dict.update(states)
        executor = ExecutorOfModule(self._module, place, made)
        if reshape:
            executor._watch = self.execs[place]._watch  # a monitor goes on watching
        return executor

    def values_of(self, place: int, names: Iterable[str]) -> dict[str, NDArray]:
        """The arrays of parameters that an executor has."""
        held = self.execs[place]
        return {name: held.arg_dict[name] if name in held.arg_dict else held.aux_dict[name] for name in names}

    def write(self, values: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Gives parameters values; returns the arrays that hold them on the first context.

        Arrays stay what they are, and other threads see some of them changed before others.
        """
        for name, value in values.items():
            for one in self._all():
                held = self._dict_of(one, name)
                array = held[name]
                if array is value:
                    continue
                if array.shape == value.shape and array.dtype == value.dtype:
                    value.copyto(array)
                else:
                    held[name] = value.as_in_context(array.context)
        self._collect_arrays()
        return self.values_of(0, values)

    def replace(self, values: Mapping[str, NDArray]) -> None:
        """Takes other arrays for parameters."""
        for name, value in values.items():
            for one in self._all():
                held = self._dict_of(one, name)
                held[name] = value.as_in_context(held[name].context)
        self._collect_arrays()

    def _all(self) -> list[Executor]:
        return [*self.execs, *(self._default_execs or [])]

    def _dict_of(self, one: Executor, name: str) -> dict[str, NDArray]:
        return one.arg_dict if name in one.arg_dict else one.aux_dict

    def has_run(self) -> bool:
        """Whether there are results."""
        return any(one._outputs is not None for one in self.execs)

    def took(
        self, inputs: Sequence[Mapping[str, NDArray]], outputs: Sequence[list[NDArray]], is_train: bool
    ) -> tuple[list[list[NDArray]], list[Seen]]:
        """Shows what a ``forward`` of the module was given and has computed, for each context.
        Returns the results, and what monitors are to be told: what they hear are the results.
        """
        seen, results = [], []
        for one, given, computed in zip(self.execs, inputs, outputs, strict=True):
            made = computed
            fits = all(one.arg_dict[name].shape == array.shape for name, array in given.items())
            for name, array in given.items():
                held = one.arg_dict[name]
                if held is not array and held.shape == array.shape:
                    array.astype(held.dtype, copy=False).copyto(held)
            told = one._seen(is_train)
            if told is not None:
                made = one._stored({}, told.outputs()) if fits and not one._divided else computed
                seen.append(told)
            one._publish(made)
            results.append(made)
        return results, seen
