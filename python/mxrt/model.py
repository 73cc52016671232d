"""Checkpoints: a symbol file and a parameter file side by side; and the oldest kind of model."""

from __future__ import annotations

import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from . import symbol as symbols
from ._output.log import info
from .base import MXNetDeprecationWarning, MXNetValueError, no_training, warn
from .context import Context, cpu
from .ndarray import NDArray, save
from .ndarray import load as load_arrays

if TYPE_CHECKING:
    from .io import DataBatch
    from .module import Module
    from .symbol import Symbol

__all__ = ["BatchEndParam", "FeedForward", "get_updater", "load_checkpoint", "load_params", "save_checkpoint"]


class BatchEndParam(NamedTuple):
    """The argument of callbacks."""

    epoch: int
    nbatch: int
    eval_metric: Any
    locals: dict[str, Any]


# As MXNet shows it.
BatchEndParam.__name__ = "BatchEndParams"


def load_params(prefix: str, epoch: int) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Arguments and auxiliary states of ``prefix-%04d.params``."""
    fname = f"{prefix}-{epoch:04d}.params"
    loaded = load_arrays(fname)
    arg_params: dict[str, NDArray] = {}
    aux_params: dict[str, NDArray] = {}
    if not loaded:
        warn(f"Params file '{fname}' is empty")
        return arg_params, aux_params
    if not isinstance(loaded, dict):
        raise MXNetValueError(
            f"'{fname}' holds {len(loaded)} arrays without names, so it is no checkpoint: names begin with arg: or aux:"
        )
    for full, array in loaded.items():
        kind, colon, name = full.partition(":")
        if not colon:
            raise MXNetValueError(
                f"'{fname}' is no checkpoint: names begin with arg: or aux:, but it holds '{full}'. "
                "Read it with mx.nd.load"
            )
        if kind == "arg":
            arg_params[name] = array
        elif kind == "aux":
            aux_params[name] = array
    return arg_params, aux_params


def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """The symbol of ``prefix-symbol.json``, and arguments and auxiliary states of
    ``prefix-%04d.params``.
    """
    symbol = symbols.load(f"{prefix}-symbol.json")
    return (symbol, *load_params(prefix, epoch))


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Symbol | None,
    arg_params: dict[str, NDArray],
    aux_params: dict[str, NDArray],
    remove_amp_cast: bool = True,
) -> None:
    """Writes both files."""
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast)
    values = {f"arg:{name}": array for name, array in arg_params.items()}
    values.update({f"aux:{name}": array for name, array in aux_params.items()})
    name = f"{prefix}-{epoch:04d}.params"
    save(name, values)
    info('Saved checkpoint to "%s"', name)


def get_updater(optimizer: Any) -> Any:
    """``mx.optimizer.get_updater``: an optimizer with states, which refuses to update."""
    from .optimizer import get_updater

    return get_updater(optimizer)


class FeedForward:
    """A symbol with its parameters, as the oldest programs have it: ``load``, ``predict``,
    ``score``, ``save``.

    Module has taken its place. ``predict`` and ``score`` may be called from several threads. They
    raise MXNetValueError for values in `arg_params` that are for no argument, unless
    `allow_extra_params` is set.
    """

    def __init__(
        self,
        symbol: Symbol,
        ctx: Context | list[Context] | None = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = None,
        numpy_batch_size: int = 128,
        arg_params: Mapping[str, NDArray] | None = None,
        aux_params: Mapping[str, NDArray] | None = None,
        allow_extra_params: bool = False,
        begin_epoch: int = 0,
        **kwargs: Any,
    ) -> None:
        from .initializer import Uniform

        warn(
            "mxnet.model.FeedForward has been deprecated. Please use mxnet.mod.Module instead.", MXNetDeprecationWarning
        )
        self.symbol = symbol
        self.ctx: list[Context] = [ctx] if isinstance(ctx, Context) else list(ctx or [cpu()])
        self.num_epoch = num_epoch
        self.begin_epoch = begin_epoch
        self.epoch_size = epoch_size
        self.optimizer = optimizer
        self.initializer: Any = Uniform(0.01) if initializer is None else initializer
        self.kwargs = kwargs
        self.numpy_batch_size = numpy_batch_size
        # Names of MXNet that programs read.
        self.allow_extra_params = allow_extra_params
        self.argument_checked = False
        self.sym_gen: Any = None
        # The module of the last prediction, or an executor that a program has put there.
        self._last: Any = None
        arguments = set(symbol.list_arguments())
        # Files of whole networks may be used for parts of them.
        self.arg_params: dict[str, NDArray] = {
            n: a for n, a in (arg_params or {}).items() if not allow_extra_params or n in arguments
        }
        self.aux_params: dict[str, NDArray] = dict(aux_params or {})

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """A model from a checkpoint."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs)

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Writes ``prefix-symbol.json`` and ``prefix-%04d.params``."""
        number = self.num_epoch if epoch is None else epoch
        if number is None:
            raise AssertionError("FeedForward.save: give epoch, the number in the file's name")
        save_checkpoint(prefix, number, self.symbol, self.arg_params, self.aux_params, remove_amp_cast)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}

    @property
    def _pred_exec(self) -> Any:
        """The executor of the last prediction; None before the first one."""
        from .module import Module

        if not isinstance(self._last, Module):
            return self._last
        group = self._last._exec_group
        return None if group is None else group.execs[0]

    @_pred_exec.setter
    def _pred_exec(self, executor: Any) -> None:
        self._last = executor

    def _iterator(self, data: Any) -> Any:
        """Batches of an array, or the iterator itself."""
        from .io import DataIter, NDArrayIter

        if isinstance(data, (np.ndarray, NDArray)):
            rows = data.shape[0]
            return NDArrayIter(data, np.zeros(rows, "float32"), min(rows, self.numpy_batch_size))
        if not isinstance(data, DataIter):
            raise TypeError("X must be DataIter, NDArray or numpy.ndarray")
        return data

    def _module(self, batches: Any) -> Module:
        from .module import Module

        data_names = [one[0] for one in batches.provide_data]
        known = {*data_names, *self.arg_params}
        labels = [name for name in self.symbol._labels() if name not in known]
        module = Module(self.symbol, data_names, labels, context=self.ctx)
        if self.arg_params or self.aux_params:
            module._preloaded = dict(self.arg_params), dict(self.aux_params)
            module.params_initialized = True
        module.bind(batches.provide_data, for_training=False)
        if not module.params_initialized:
            module.set_params({}, {})  # an error that names the parameters, if there are some
        return module

    def predict(self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True) -> Any:
        """The outputs for an array, or for the batches of an iterator, as numpy arrays: a list, or
        a single one.

        With `return_data` also data and labels.
        """
        from .module._reading import ReadingAhead, checked_pad

        batches = self._iterator(X)
        if reset:
            batches.reset()
        module = self._last = self._module(batches)
        parts: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        reading = ReadingAhead(batches)
        for number, batch in enumerate(reading):
            if number == num_batch:
                break
            module.forward(_data_of(batch), is_train=False)
            reading.read_ahead()
            rows = batch.data[0].shape[0] - checked_pad(batch)
            for part, arrays in zip(parts, (module.get_outputs(), batch.data, batch.label or []), strict=True):
                part.append([array[:rows].asnumpy() for array in arrays])
        outputs, data, label = (_joined(part) for part in parts)
        return (outputs, data, label) if return_data else outputs

    def score(
        self,
        X: Any,
        eval_metric: Any = "acc",
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        reset: bool = True,
    ) -> Any:
        """The value of a metric over the batches of an iterator."""
        from .metric import create
        from .module._reading import ReadingAhead

        # Callbacks find the variables under MXNet's names.
        data, eval_metric = self._iterator(X), create(eval_metric)
        if reset:
            data.reset()
        module = self._module(data)
        reading = ReadingAhead(data)
        for i, batch in enumerate(reading):
            if i == num_batch:
                break
            module.forward(_data_of(batch), is_train=False)
            reading.read_ahead()
            eval_metric.update(batch.label, module.get_outputs())
            if batch_end_callback is not None:
                callbacks = batch_end_callback if isinstance(batch_end_callback, list) else [batch_end_callback]
                for callback in callbacks:
                    callback(BatchEndParam(0, i, eval_metric, locals()))
        return eval_metric.get()[1]

    def fit(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("FeedForward.fit")

    @staticmethod
    def create(*args: Any, **kwargs: Any) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("FeedForward.create")


def _data_of(batch: Any) -> DataBatch:
    """A batch without its labels, which a graph of FeedForward sees as zeros."""
    from .io import DataBatch

    return DataBatch(batch.data, provide_data=getattr(batch, "provide_data", None))


def _joined(batches: list[list[Any]]) -> Any:
    """Lists of arrays, one for each batch, joined along the first axis; a single array as
    itself.
    """
    joined = [np.concatenate(arrays) for arrays in zip(*batches, strict=True)]
    return joined[0] if len(joined) == 1 else joined
