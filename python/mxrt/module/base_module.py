"""The common part of all modules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

import numpy as np

from .. import ndarray as nd
from ..base import no_training
from ..io import DataBatch, DataIter
from ..model import BatchEndParam
from ..ndarray import NDArray
from ._reading import ReadingAhead, checked_pad

__all__ = ["BaseModule", "Values"]

# Parameters by name, as programs give them.
Values: TypeAlias = Mapping[str, NDArray] | None


class BaseModule:
    """The common part of all modules."""

    # Names of MXNet that programs look at: what training would set.
    _compression_params: Any = None
    _grad_req: Any = "write"
    _kvstore: Any = None
    _optimizer: Any = None
    _params_dirty = False
    _preload_opt_states: Any = None
    _symbol: Any = None
    _total_exec_bytes = 0
    _update_on_kvstore: Any = None
    _updater: Any = None

    def __init__(self, logger: Any = logging) -> None:
        self.logger: Any = logger
        self.binded = False
        self.for_training = False
        self.inputs_need_grad = False
        self.params_initialized = False
        self.optimizer_initialized = False

    def __getstate__(self) -> dict[str, Any]:
        """The state that pickle and copies take: outputs, monitors and compiled forms stay here."""
        state = self.__dict__.copy()
        if state["logger"] is logging:
            state["logger"] = None  # a module, which pickle does not take
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.logger is None:
            self.logger = logging

    # ---- what a kind of module has to provide ----------------------------------------------------

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Runs the model on a batch; ``get_outputs`` gives the results."""
        raise NotImplementedError

    def get_outputs(self, merge_multi_context: bool = True) -> list[NDArray]:
        """The results of the last ``forward``: a list of arrays."""
        raise NotImplementedError

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Arguments and auxiliary states by name."""
        raise NotImplementedError

    def _bind(
        self, data_shapes: Any, label_shapes: Any, for_training: bool, force_rebind: bool, shared_module: Any
    ) -> None:
        """Fixes the shapes of the inputs; see :meth:`bind`."""
        raise NotImplementedError

    def _init_params(
        self, initializer: Any, args: Values, aux: Values, allow_missing: bool, force_init: bool, allow_extra: bool
    ) -> None:
        """Gives parameters first values; see :meth:`init_params`."""
        raise NotImplementedError

    def _set_params(self, args: Values, aux: Values, allow_missing: bool, force_init: bool, allow_extra: bool) -> None:
        """Gives the parameters values; see :meth:`set_params`."""
        self.init_params(None, args, aux, allow_missing, force_init, allow_extra)

    # ---- what follows from it --------------------------------------------------------------------

    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Fixes the shapes of the inputs.

        There are no gradients. Bound for training, as by default, ``forward`` computes what MXNet
        computes then; ``predict``, ``score`` and ``forward(batch, is_train=False)`` infer.

        Parameters
        ----------
        data_shapes : the data: ``DataDesc``, or pairs of name and shape
        label_shapes : the labels, likewise; a Module without them fills labels with zeros
        for_training : what ``forward`` takes for `is_train` where it is not given; give False to
            predict with ``forward(batch)``
        inputs_need_grad : True is refused
        force_rebind : binds a bound module again; without it that is a warning
        shared_module : a Module that has parameters, of which this one has all: both share them, so
            that what either is given later, both have; for Module only
        grad_req : accepted; there are no gradients

        Raises
        ------
        ValueError, or AssertionError of a PythonModule : names that are not those of the module
        MXNetShapeError (a ValueError) : shapes that do not fit the symbol, or the parameters
        AssertionError : a wrong `shared_module`, or one for a module of modules
        TrainingNotSupportedError : training
        """
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad:
            raise no_training(f"{type(self).__name__}.bind(inputs_need_grad=True)")
        self._bind(data_shapes, label_shapes, for_training, force_rebind, shared_module)
        self.for_training = bool(for_training)
        self.binded = True

    def init_params(
        self,
        initializer: Any = None,
        arg_params: Mapping[str, NDArray] | None = None,
        aux_params: Mapping[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Gives parameters first values. A module that has values keeps them.

        Parameters
        ----------
        initializer : for parameters that are not given
        arg_params, aux_params : values by name
        allow_missing : the initializer is for parameters that are missing there
        force_init : parameters that have values get others
        allow_extra : values for no parameter are left out

        Errors are those of ``set_params``, and AssertionError if two modules of a SequentialModule
        have a parameter of one name.
        """
        self._init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)

    @property
    def symbol(self) -> Any:
        """The graph; None for a module without one."""
        return self._symbol

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
        self._set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)

    def load_params(self, fname: str) -> None:
        """Reads values for all parameters from a file."""
        values = nd.load(fname) or {}
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

    def _batches(
        self, eval_data: DataIter, num_batch: int | None, reset: bool, progress: bool
    ) -> Iterator[tuple[int, Any, Callable[[], None]]]:
        """Number and batch, and a function that reads the next batch while this one is computed."""
        from .._output.progress import Progress

        if reset:
            eval_data.reset()
        batches = ReadingAhead(eval_data)
        with Progress("batches", num_batch, shown=progress) as bar:
            for number, batch in enumerate(batches):
                if number == num_batch:
                    return
                yield number, batch, batches.read_ahead
                bar.step()

    def iter_predict(
        self,
        eval_data: DataIter,
        num_batch: int | None = None,
        reset: bool = True,
        sparse_row_id_fn: Any = None,
        *,
        progress: bool = False,
    ) -> Iterator[tuple[list[NDArray], int, Any]]:
        """Outputs, number and batch, for every batch; rows that only fill a batch up are left
        out. `progress` shows a count on a terminal.

        The next batch is read while one is computed, so that `eval_data` itself may be a batch
        ahead; what reading it raises, is raised when it is its turn.
        """
        for number, batch, read_ahead in self._batches(eval_data, num_batch, reset, progress):
            self.forward(batch, is_train=False)
            outputs = self._without_pad(batch)
            read_ahead()
            yield outputs, number, batch

    def _without_pad(self, batch: Any) -> list[NDArray]:
        pad = checked_pad(batch)
        return [out[: out.shape[0] - pad] if pad else out for out in self.get_outputs()]

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Any = None,
        *,
        progress: bool = False,
    ) -> Any:
        """The outputs for all batches, joined along the first axis; a single output as itself.

        Parameters
        ----------
        eval_data : an iterator of batches; an array is taken as one batch, and gives its first
            output
        num_batch : largest number of batches
        merge_batches : False gives a list of outputs for every batch
        reset : begins with the first batch of the iterator
        always_output_list : a list even where there is one output
        sparse_row_id_fn : accepted, as in MXNet
        progress : show a count of batches on a terminal
        """
        if isinstance(eval_data, (NDArray, np.ndarray)):
            array = eval_data if isinstance(eval_data, NDArray) else nd.array(eval_data)
            self.forward(DataBatch([array]), is_train=False)
            return self.get_outputs()[0]
        if not isinstance(eval_data, DataIter):
            raise ValueError("eval_data must be of type NDArray or DataIter")
        lists = []
        for _, batch, _ in self._batches(eval_data, num_batch, reset, progress):
            self.forward(batch, is_train=False)
            lists.append([out.copy() for out in self._without_pad(batch)])
        if not lists or not merge_batches:
            return lists
        if len({len(outputs) for outputs in lists}) != 1:
            raise AssertionError("Cannot merge batches, as num of outputs is not the same in mini-batches.")
        merged = [nd.concatenate([outputs[i] for outputs in lists]) for i in range(len(lists[0]))]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def score(
        self,
        eval_data: DataIter,
        eval_metric: Any,
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        score_end_callback: Any = None,
        reset: bool = True,
        epoch: int = 0,
        sparse_row_id_fn: Any = None,
        *,
        progress: bool = False,
    ) -> list[tuple[str, Any]]:
        """The metric over all batches, as pairs of name and value.

        `eval_metric` is one, or what ``mx.metric.create`` takes. The callbacks, functions or lists
        of them, get ``epoch``, ``nbatch``, ``eval_metric`` and ``locals``: after every batch, and
        at the end. `progress` shows a count of batches on a terminal. The next batch is read while
        one is computed.
        """
        from ..metric import create

        # Callbacks find the variables under MXNet's names.
        eval_metric = create(eval_metric)
        eval_metric.reset()
        actual_num_batch = 0
        for nbatch, eval_batch, read_ahead in self._batches(eval_data, num_batch, reset, progress):
            self.prepare(eval_batch, sparse_row_id_fn)
            self.forward(eval_batch, is_train=False)
            read_ahead()
            if isinstance(eval_batch, list):
                self.update_metric(eval_metric, [one.label for one in eval_batch], pre_sliced=True)
            else:
                self.update_metric(eval_metric, eval_batch.label)
            _call(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            actual_num_batch += 1
        _call(score_end_callback, BatchEndParam(epoch, actual_num_batch, eval_metric, locals()))
        found: list[tuple[str, Any]] = eval_metric.get_name_value()
        return found

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the results of the last ``forward``, and these labels, to a metric."""
        raise NotImplementedError

    def install_monitor(self, mon: Any) -> None:
        """Shows a monitor what the module computes."""
        raise NotImplementedError(f"{type(self).__name__} has no install_monitor")

    # ---- training --------------------------------------------------------------------------------

    def fit(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.fit")

    def backward(self, out_grads: Any = None) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.backward")

    def forward_backward(self, data_batch: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.forward_backward")

    def update(self) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.update")

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The states that stay from call to call; a module of this kind has none.

        AssertionError for ``merge_multi_context=True``, as in MXNet.
        """
        if merge_multi_context:
            raise AssertionError(f"{type(self).__name__}.get_states: pass merge_multi_context=False")
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """AssertionError for any states: a module of this kind has none."""
        if states or value:
            raise AssertionError(f"{type(self).__name__}.set_states: it has no states")

    def save_optimizer_states(self, fname: str) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.save_optimizer_states")

    def load_optimizer_states(self, fname: str) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.load_optimizer_states")

    def init_optimizer(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.init_optimizer")

    def get_input_grads(self, merge_multi_context: bool = True) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("Module.get_input_grads")

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Accepted: there is nothing to prepare."""


def _call(callbacks: Any, param: BatchEndParam) -> None:
    """Calls one callback, or each of a list."""
    for callback in callbacks if isinstance(callbacks, list) else [callbacks]:
        if callback is not None:
            callback(param)
