"""The parts of MXNet's Module: executors, one for each context.

A Module of mxrt has none. What looks like them is made when a program asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base import no_training
from ..context import Context
from ..executor import Executor, simple_bind
from ..executor_manager import _load_data, _load_general, _load_label, _split_input_slice

if TYPE_CHECKING:
    from ..ndarray import NDArray
    from .module import Module

__all__ = [
    "DataParallelExecutorGroup",
    "ExecutorsOfModule",
    "_load_data",
    "_load_general",
    "_load_label",
    "_split_input_slice",
]


class DataParallelExecutorGroup:
    """Executors over several devices for training; refused when one is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise no_training("DataParallelExecutorGroup")


class ExecutorOfModule(Executor):
    """One of ``module._exec_group.execs``. A callback set here sees what the module computes."""

    def __init__(self, module: Module, place: int, made: Executor) -> None:
        super().__init__(module.symbol, made._ctx, made.arg_dict, made.aux_dict)
        self._module = module
        self._place = place

    def set_monitor_callback(self, callback: Callable[[bytes, NDArray], Any] | None, monitor_all: bool = False) -> None:
        """Sets the callback of every executor, called after each ``forward`` of the module."""
        super().set_monitor_callback(callback, monitor_all)
        self._module._monitored_executors()[self._place].set_monitor_callback(callback, monitor_all)


class ExecutorsOfModule:
    """A Module as MXNet's ``module._exec_group`` shows it: to be read.

    ``execs`` has an executor for each context, with the parameters of the module and the results of
    its last ``forward``. Its parameters are the module's own: what is written to them, the module
    uses. Its inputs are zeros. ``set_monitor_callback`` shows what the module computes.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self.symbol = module.symbol
        self.contexts: list[Context] = module._context
        self.arg_names = module._arguments
        self.aux_names = module._aux_names
        self.param_names = module._param_names
        self.data_names = module.data_names
        self.label_names = module.label_names
        self.data_shapes = module.data_shapes
        self.label_shapes = module.label_shapes
        self.batch_size = module.data_shapes[0].shape[0]
        self.for_training = False

    @property
    def execs(self) -> list[Executor]:
        """An executor for each context."""
        return [self._executor(place, context) for place, context in enumerate(self.contexts)]

    def _executor(self, place: int, context: Context) -> Executor:
        module = self._module
        module._need_params("_exec_group.execs")
        shapes = module._input_shapes()
        if len(self.contexts) > 1:
            rows = module._rows({description.name: description for description in self.data_shapes})
            part = rows[place].stop - rows[place].start
            shapes = {name: (part, *shape[1:]) for name, shape in shapes.items()}
        made = ExecutorOfModule(module, place, simple_bind(module.symbol, context, {}, shapes))
        values = {name: value.as_in_context(context) for name, value in module._values.items()}
        made.arg_dict.update({name: values[name] for name in made.arg_dict if name in values})
        made.aux_dict.update({name: values[name] for name in made.aux_dict if name in values})
        outputs = getattr(module._mine, "outputs", module._outputs)
        if outputs is not None:
            made._outputs = [of_contexts[place] for of_contexts in outputs]
        return made
