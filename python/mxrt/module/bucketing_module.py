"""BucketingModule: one set of parameters, and a symbol for each length of input."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import ndarray as nd
from .._system.locks import fork_safe_lock
from ..model import load_checkpoint, load_params
from ..name import NameManager
from ..ndarray import NDArray
from ..symbol import Symbol
from ..symbol import load as load_symbol
from ._batches import check_names
from ._buckets import GivenSymbols, keys_as_numbers, saved_keys
from ._parameters import NotBoundError
from .base_module import BaseModule, Values
from .module import Module

__all__ = ["BucketingModule"]

_Made = tuple[Symbol, Sequence[str], Sequence[str]]


class BucketingModule(BaseModule):
    """Modules by bucket, a key such as the length of a sentence, that share their parameters.

    ``forward`` takes the module of the batch's ``bucket_key``, and may be used from several
    threads: each gets the outputs of its own ``forward``. What needs a bound module raises
    MXNetError before ``bind``.

    Parameters
    ----------
    sym_gen : makes symbol, names of data and names of labels for a key
    default_bucket_key : key of the largest bucket, whose symbol has all parameters; AssertionError
        without it
    logger : what warnings go to: ``logging``, or a logger
    context : context or contexts, see :class:`Module`
    state_names : inputs that keep their values from call to call
    work_load_list : how much of a batch each context gets
    group2ctxs : contexts of groups of nodes, see :class:`Module`
    fixed_param_names, compression_params : accepted, as in MXNet
    """

    def __init__(
        self,
        sym_gen: Callable[[Any], _Made],
        default_bucket_key: Any = None,
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Any = None,
        state_names: Any = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:
        super().__init__(logger)
        if default_bucket_key is None:
            raise AssertionError("BucketingModule: give default_bucket_key, the key of the largest bucket")
        self._sym_gen = sym_gen
        self._default_bucket_key = default_bucket_key
        self._settings = {
            "logger": logger,
            "context": context,
            "work_load_list": work_load_list,
            "state_names": state_names,
            "group2ctxs": group2ctxs,
        }
        # Names of MXNet that programs read.
        self._context = context
        self._work_load_list = work_load_list
        self._fixed_param_names = fixed_param_names
        self._state_names = state_names
        self._group2ctxs = group2ctxs
        self._compression_params = compression_params
        self._monitor: Any = None
        self._buckets: dict[Any, Module] = {}
        self._lock = fork_safe_lock()
        # The module that a thread used last, for what it asks afterwards.
        self._mine = threading.local()
        self._current: Module | None = None
        self._held: tuple[dict[str, NDArray], dict[str, NDArray]] | None = None
        symbol, data_names, label_names = self._call_sym_gen(default_bucket_key)
        arguments = symbol.list_arguments()
        check_names(arguments, list(data_names or []), "data", True)
        check_names(arguments, list(label_names or []), "label", False)
        check_names(arguments, list(state_names or []), "state", True)
        check_names(arguments, list(fixed_param_names or []), "fixed_param", True)

    def __getstate__(self) -> dict[str, Any]:
        settings = {**self._settings, "logger": None if self._settings["logger"] is logging else self.logger}
        return {**super().__getstate__(), "_settings": settings, "_lock": None, "_mine": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._settings["logger"] = self._settings["logger"] or logging
        self._lock, self._mine = fork_safe_lock(), threading.local()

    @staticmethod
    def load(
        prefix: str,
        epoch: int,
        sym_gen: Callable[[Any], _Made] | None = None,
        default_bucket_key: Any = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """A module from a checkpoint; its parameters are set when it is bound.

        Parameters
        ----------
        prefix, epoch : which checkpoint: ``prefix.buckets`` with the keys, for every key
            ``prefix-KEY-symbol.json``, and ``prefix-%04d.params``. Without ``prefix.buckets`` all
            buckets have the symbol of ``prefix-symbol.json``.
        sym_gen : makes what a bucket runs that is not in the checkpoint, and says the names of
            inputs; without it these are ``data`` and ``softmax_label``
        default_bucket_key : key of the largest bucket

        The other keywords are those of the class.
        """
        if os.path.exists(f"{prefix}.buckets"):
            symbols = {key: load_symbol(f"{prefix}-{key}-symbol.json") for key in saved_keys(f"{prefix}.buckets")}
            arg_params, aux_params = load_params(prefix, epoch)
            key = next(iter(symbols)) if default_bucket_key is None else default_bucket_key
            return BucketingModule.load_dict(symbols, sym_gen, key, arg_params, aux_params, **kwargs)
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return BucketingModule._loaded(
            sym_gen or _same(symbol), default_bucket_key, arg_params, aux_params, default_bucket_key or 0, kwargs
        )

    @staticmethod
    def load_dict(
        sym_dict: Mapping[Any, Symbol] | None = None,
        sym_gen: Callable[[Any], _Made] | None = None,
        default_bucket_key: Any = None,
        arg_params: Mapping[str, NDArray] | None = None,
        aux_params: Mapping[str, NDArray] | None = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """A module from symbols by key, or a function that makes them, and parameters.

        Parameters
        ----------
        sym_dict : symbols by key
        sym_gen : makes what other buckets run, and says the names of inputs. Without it these are
            ``data`` and ``softmax_label``, and a key that is not there raises MXNetValueError when
            it is used; AssertionError without either
        default_bucket_key : key of the largest bucket
        arg_params, aux_params : values of the parameters by name

        The other keywords are those of the class.
        """
        if sym_gen is None and not sym_dict:
            raise AssertionError("BucketingModule.load_dict: give sym_dict or sym_gen")
        sym_gen = GivenSymbols(dict(sym_dict or {}), sym_gen, default_bucket_key)
        return BucketingModule._loaded(
            sym_gen, default_bucket_key, dict(arg_params or {}), dict(aux_params or {}), None, kwargs
        )

    @staticmethod
    def _loaded(
        sym_gen: Callable[[Any], _Made],
        key: Any,
        args: dict[str, NDArray],
        aux: dict[str, NDArray],
        otherwise: Any,
        kwargs: dict[str, Any],
    ) -> BucketingModule:
        module = BucketingModule(sym_gen, otherwise if key is None else key, **kwargs)
        module._held = (args, aux)
        module.params_initialized = True
        return module

    # ---- what it is ------------------------------------------------------------------------------

    def _call_sym_gen(self, key: Any) -> _Made:
        """The result of `sym_gen` for a key. Names count from the beginning for each key, so that
        the parameters of all buckets have the same names.
        """
        with NameManager():
            return self._sym_gen(key)

    # Names of MXNet that programs read.

    @property
    def _curr_module(self) -> Module:
        return self._module

    @_curr_module.setter
    def _curr_module(self, module: Module) -> None:
        self._mine.module = self._current = module

    @property
    def _curr_bucket_key(self) -> Any:
        module = getattr(self._mine, "module", self._current)
        return next((key for key, one in list(self._buckets.items()) if one is module), None)

    @_curr_bucket_key.setter
    def _curr_bucket_key(self, key: Any) -> None:
        if key in self._buckets:
            self._curr_module = self._buckets[key]

    @property
    def _module(self) -> Module:
        """The module that this thread used last."""
        found: Module | None = getattr(self._mine, "module", self._current)
        if found is None:
            raise NotBoundError("BucketingModule: call bind(data_shapes=...) first")
        return found

    @property
    def data_names(self) -> Sequence[str]:
        """Names of the inputs."""
        if self.binded:
            return self._module.data_names
        return self._call_sym_gen(self._default_bucket_key)[1]

    @property
    def output_names(self) -> list[str]:
        """Names of the results."""
        return (
            self._module.output_names if self.binded else self._call_sym_gen(self._default_bucket_key)[0].list_outputs()
        )

    @property
    def data_shapes(self) -> Any:
        """Descriptions of the inputs of the present bucket."""
        return self._module.data_shapes

    @property
    def label_shapes(self) -> Any:
        """Descriptions of the labels of the present bucket."""
        return self._module.label_shapes

    @property
    def output_shapes(self) -> Any:
        """Name and shape of every result of the present bucket."""
        return self._module.output_shapes

    @property
    def symbol(self) -> Symbol:
        """The graph of the present bucket."""
        return self._module.symbol

    # ---- buckets ---------------------------------------------------------------------------------

    def _bind(
        self, data_shapes: Any, label_shapes: Any, for_training: bool, force_rebind: bool, shared_module: Any
    ) -> None:
        if shared_module is not None:
            raise AssertionError("shared_module for BucketingModule is not supported")
        module = self._made(self._default_bucket_key)
        module.bind(data_shapes, label_shapes, for_training)
        if self._buckets and self.params_initialized:
            self._held = self.get_params()
        self._buckets = {self._default_bucket_key: module}
        self._current, self._mine = module, threading.local()
        if self._held is not None:
            module.set_params(*self._held)
            self._held = None

    def _made(self, key: Any) -> Module:
        symbol, data_names, label_names = self._call_sym_gen(key)
        return Module(symbol, data_names, label_names, **self._settings)

    def switch_bucket(self, bucket_key: Any, data_shapes: Any, label_shapes: Any = None) -> None:
        """Makes a bucket the present one of this thread; binds it if this is the first time.

        Parameters
        ----------
        bucket_key : key of the bucket
        data_shapes, label_shapes : ``DataDesc``, or pairs of name and shape
        """
        self._mine.module = self._current = self._bucket(bucket_key, data_shapes, label_shapes)

    def _bucket(self, key: Any, data_shapes: Any, label_shapes: Any) -> Module:
        if not self.binded:
            raise NotBoundError("BucketingModule: call bind(data_shapes=...) before switching buckets")
        with self._lock:
            module = self._buckets.get(key)
            if module is None:
                module = self._made(key)
                module.bind(data_shapes, label_shapes, self.for_training)
                self._buckets[key] = module
                if self._monitor is not None:
                    module.install_monitor(self._monitor)
            if self.params_initialized:
                module._borrow(self._buckets[self._default_bucket_key])
            return module

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Binds the bucket of a batch that comes later."""
        self._bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)

    # ---- parameters ------------------------------------------------------------------------------

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Arguments and auxiliary states by name."""
        return self._default().get_params()

    def _default(self) -> Module:
        if not self.binded:
            raise NotBoundError("BucketingModule: call bind(data_shapes=...) first")
        return self._buckets[self._default_bucket_key]

    def _set_params(self, args: Values, aux: Values, allow_missing: bool, force_init: bool, allow_extra: bool) -> None:
        self._default().set_params(args, aux, allow_missing, force_init, allow_extra)
        self.params_initialized = True

    def _init_params(
        self, initializer: Any, args: Values, aux: Values, allow_missing: bool, force_init: bool, allow_extra: bool
    ) -> None:
        if self.params_initialized and not force_init:
            return
        self._default().init_params(initializer, args, aux, allow_missing, force_init, allow_extra)
        self.params_initialized = True

    def load_params(self, fname: str) -> None:
        """Reads values for all parameters from a file."""
        self._default().load_params(fname)
        self.params_initialized: bool = True

    def save_params(self, fname: str) -> None:
        """Writes the values of all parameters to a file."""
        self._default().save_params(fname)

    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Writes the symbols of all buckets to ``prefix-KEY-symbol.json``, their keys to
        ``prefix.buckets``, and ``prefix-%04d.params``. Keys must be whole numbers, or tuples of as
        many.
        """
        default = self._default()
        keys = keys_as_numbers(list(self._buckets))
        default.save_params(f"{prefix}-{epoch:04d}.params")
        for key, module in list(self._buckets.items()):
            module.symbol.save(f"{prefix}-{key}-symbol.json", remove_amp_cast=remove_amp_cast)
        nd.save(f"{prefix}.buckets", nd.array(keys, dtype="int32"))

    # ---- running ---------------------------------------------------------------------------------

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Runs the module of the batch's ``bucket_key``; ``get_outputs`` gives the results."""
        key = getattr(data_batch, "bucket_key", None)
        self.switch_bucket(
            self._default_bucket_key if key is None else key,
            data_batch.provide_data or self._default().data_shapes,
            data_batch.provide_label,
        )
        self._module.forward(data_batch, is_train)

    def get_outputs(self, merge_multi_context: bool = True) -> list[NDArray]:
        """The results of the last ``forward`` of this thread, or, if it made none, of the
        module.
        """
        return self._module.get_outputs(merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The states of the present bucket, see :meth:`Module.get_states`."""
        return self._module.get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets the states of the present bucket, see :meth:`Module.set_states`."""
        self._module.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the results of the last ``forward``, and these labels, to a metric."""
        self._module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Shows a monitor what the buckets compute, those that are bound later too."""
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)


def _same(symbol: Symbol) -> Callable[[Any], _Made]:
    """A function that returns the same symbol for every bucket."""
    return lambda key: (symbol, ("data",), ("softmax_label",))
