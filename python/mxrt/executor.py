"""Executor: a symbol together with the arrays of its variables."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import _mxrt
from ._graphs.groups import device_of
from ._graphs.training import training_form
from ._graphs.watch import Seen, Watch
from ._scopes.mode import mode
from ._system.locks import fork_safe_lock
from ._values.dtypes import dtype_name
from ._values.overrulable import overrulable
from .base import MXNetShapeError, MXNetTypeError, MXNetValueError, no_training
from .context import Context
from .ndarray import CachedOp, NDArray, empty
from .ndarray import array as make_array
from .ndarray.sparse import empty as stored_empty

if TYPE_CHECKING:
    from .symbol import Symbol

__all__ = ["Executor"]


class UnspecifiedShapeError(MXNetShapeError, AssertionError):
    """``reshape`` would change the shape of an array that it was not told of."""


class Executor:
    """Runs a symbol on arrays that stay with it.

    Every ``forward`` makes new output arrays, so earlier results are never overwritten. Only the
    arrays that ``outputs`` gives before the first ``forward`` are: they get the results of each
    one, and of executors that ``reshape`` made of this one, as far as they fit.
    """

    arg_dict: dict[str, NDArray]
    aux_dict: dict[str, NDArray]
    grad_dict: dict[str, NDArray | None]

    def __init__(
        self,
        symbol: Symbol,
        ctx: Context,
        args: dict[str, NDArray],
        aux: dict[str, NDArray],
        grads: Mapping[str, NDArray | None] | None = None,
        groups: Mapping[str, Context] | None = None,
    ) -> None:
        self._symbol = symbol
        self._ctx = ctx
        # Contexts of the nodes that group2ctx places. Where these are one device, arrays are copied
        # to `ctx` for a call; otherwise the graph is divided.
        self._groups = groups or {}
        self.arg_dict = args
        self.aux_dict = aux
        self.grad_dict = {name: (grads or {}).get(name) for name in args}
        # What computes as while training, and its inputs; made when a program asks for it.
        self._training: dict[tuple[bool, bool], tuple[CachedOp, list[str]]] = {}
        self._watch: Watch | None = None
        # Names of MXNet that programs read.
        self._grad_req: Any = "null"
        self._group2ctx: Any = None
        self._monitor_callback: Any = None
        self._monitor_all = False
        self._names = symbol.list_inputs()
        self._output_names = symbol.list_outputs()
        devices = {device_of(context) for context in self._groups.values()}
        self._divided = not devices <= {device_of(ctx)}
        self._op = CachedOp._over_devices(symbol, ctx, self._groups) if self._divided else CachedOp(symbol)
        # The arrays that the last call held, and the graph with them.
        self._bound: tuple[Any, list[NDArray | None], _mxrt.BoundOp] | None = None
        self._outputs: list[NDArray] | None = None
        # What `outputs` was before the first forward; programs may have kept these arrays.
        self._early: list[NDArray] | None = None
        # The executor that this one was reshaped from, and the last results of one that was
        # reshaped from this one, until this one has its own.
        self._origin: Callable[[], Executor | None] = _nobody
        self._lent: list[NDArray] = []
        self._lock = fork_safe_lock()
        # What a thread computed is what it gets from `outputs`, whatever others do meanwhile.
        self._mine = threading.local()

    @overrulable
    def arg_arrays(self) -> list[NDArray]:
        """The arrays of the arguments, in the order of ``list_arguments()``."""
        return list(self.arg_dict.values())

    @overrulable
    def aux_arrays(self) -> list[NDArray]:
        """The arrays of the auxiliary states, in the order of ``list_auxiliary_states()``."""
        return list(self.aux_dict.values())

    @overrulable
    def grad_arrays(self) -> list[NDArray | None] | None:
        """The arrays given as ``args_grad``, None for others, and None of an executor that ``bind``
        made without ``args_grad``. Nothing is ever written to them.
        """
        return list(self.grad_dict.values())

    @property
    def outputs(self) -> list[NDArray]:
        """The results of the last ``forward``; before the first zeros, which get the results of
        every later one.
        """
        found = self._results()
        return self._early_outputs() if found is None else found

    @outputs.setter
    def outputs(self, value: list[NDArray]) -> None:
        with self._lock:
            self._mine.outputs = self._outputs = value

    def _results(self) -> list[NDArray] | None:
        """Returns what this thread computed last or, if it computed nothing, what another did."""
        mine: list[NDArray] | None = getattr(self._mine, "outputs", None)
        return self._outputs if mine is None else mine

    def _early_outputs(self) -> list[NDArray]:
        found = self._early
        if found is not None:
            return found
        zeros = self._zeros()
        _copy_into(zeros, self._lent)
        with self._lock:  # another thread may have run the graph meanwhile
            if self._outputs is not None:
                return self._outputs
            if self._early is None:
                self._early = zeros
            return self._early

    def _share(self, outputs: list[NDArray]) -> None:
        """Takes the results of an executor that was reshaped from this one."""
        if self._early is not None:
            _copy_into(self._early, outputs)
        elif self._outputs is None:
            self._lent = outputs

    def _zeros(self) -> list[NDArray]:
        _, shapes, _ = self._symbol._shapes_known(**{n: a.shape for n, a in self.arg_dict.items()})
        _, types, _ = self._symbol.infer_type_partial(**{n: a.dtype for n, a in self.arg_dict.items()})
        stypes = ["default"] * len(shapes)
        if any(array.stype != "default" for array in self.arg_dict.values()):
            # The storage of results follows from that of the arrays: the graph tells.
            stypes = [array.stype for array in self._run({}, self._op, self._names)]
        return [
            stored_empty(stype, shape, self._ctx, dtype_name(dtype or "float32"))
            for stype, shape, dtype in zip(stypes, shapes, types, strict=True)
        ]

    @overrulable
    def _arg_dict(self) -> dict[str, NDArray]:
        return self.arg_dict

    @overrulable
    def _aux_dict(self) -> dict[str, NDArray]:
        return self.aux_dict

    @overrulable
    def _grad_dict(self) -> dict[str, NDArray | None]:
        return self.grad_dict

    @overrulable
    def _output_dict(self) -> dict[str, NDArray]:
        return self.output_dict

    @overrulable
    def _optimized_symbol(self) -> Symbol:
        return self.get_optimized_symbol()

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The results of the last ``forward`` by name."""
        return dict(zip(self._output_names, self.outputs, strict=True))

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Runs the graph; arrays given by name, NDArrays or numpy arrays, are copied to the
        arguments first. They are cast to the types of these.

        With ``is_train=True`` Dropout drops elements, and BatchNorm takes the statistics of the
        batch; moving averages stay unchanged. Loops and branches compute as in training
        under ``autograd.train_mode()``, whatever `is_train` says, as in MXNet. A graph that
        ``group2ctx`` divides among devices refuses training: TrainingNotSupportedError.
        """
        op, names = self._in_training(is_train) if is_train or mode.training else (self._op, self._names)
        given = {name: self._given(name, value) for name, value in kwargs.items()}
        for name, value in given.items():
            self.arg_dict[name]._assign(value)
        seen = self._seen(is_train)
        # What a monitor hears is what becomes the results: another run drops other elements. The
        # monitor's graph is not divided among devices.
        outputs = self._run(given, op, names) if seen is None or self._divided else self._stored(given, seen.outputs())
        self._publish(outputs)
        if seen is not None:
            seen.tell()
        return outputs

    def _run(self, given: Mapping[str, NDArray], op: CachedOp, names: list[str]) -> list[NDArray]:
        """The results for arrays that are given, and those there are."""
        made = self._bind(given, op, names)(*[self._here(given[n]) for n in names if n in given])
        return self._stored(given, made if isinstance(made, list) else [made])

    def _stored(self, given: Mapping[str, NDArray], outputs: list[NDArray]) -> list[NDArray]:
        """Results as they are stored."""
        for place, name in enumerate(self._output_names):
            # A variable that is a result itself is stored as its array is.
            array = given.get(name, self.arg_dict.get(name))
            if array is not None and array.stype != outputs[place].stype and self._is_variable(place):
                outputs[place] = array.copy()
        return outputs

    def _is_variable(self, place: int) -> bool:
        return self._symbol[place].get_children() is None

    def _publish(self, outputs: list[NDArray]) -> None:
        """Makes arrays the results."""
        self.outputs = outputs
        self._lent = []
        if self._early is not None:
            _copy_into(self._early, outputs)
        origin = self._origin()
        if origin is not None:
            origin._share(outputs)

    def show(self) -> None:
        """Tells the callback of ``set_monitor_callback``, if there is one, what the present arrays
        give.
        """
        seen = self._seen(False)
        if seen is not None:
            seen.tell()

    def _seen(self, is_train: bool) -> Seen | None:
        """Computes what the callback of ``set_monitor_callback`` is to hear, if there is one."""
        watch = self._watch
        if watch is None:
            return None
        arrays = {name: array.as_in_context(self._ctx) for name, array in {**self.arg_dict, **self.aux_dict}.items()}
        return watch.compute(self._symbol, (bool(is_train), mode.training), arrays)

    def _in_training(self, is_train: bool) -> tuple[CachedOp, list[str]]:
        """Returns the graph that computes as while training, and the names of its inputs."""
        key = (bool(is_train), mode.training)
        if key not in self._training:
            form = training_form(self._symbol, *key)
            if form is self._symbol:
                self._training[key] = self._op, self._names
            elif self._divided:
                raise no_training("Executor.forward(is_train=True) of a graph that group2ctx divides")
            else:
                self._training[key] = CachedOp(form), form.list_inputs()
        return self._training[key]

    def _bind(self, given: Mapping[str, NDArray], op: CachedOp, names: list[str]) -> _mxrt.BoundOp:
        """The graph with the arrays that are not given."""
        arrays = [None if name in given else self._here(self._held(name)) for name in names]
        last = self._bound
        if last is not None and last[0] is op and all(a is b for a, b in zip(last[1], arrays, strict=True)):
            return last[2]
        bound = op.bind(arrays)
        self._bound = (op, arrays, bound)
        return bound

    def _here(self, array: NDArray) -> NDArray:
        """An array that group2ctx may have put on another context of the same device."""
        return array.as_in_context(self._ctx) if self._groups and not self._divided else array

    def _held(self, name: str) -> NDArray:
        return self.arg_dict[name] if name in self.arg_dict else self.aux_dict[name]

    def _given(self, name: str, value: Any) -> NDArray:
        """A value for an argument, as an array of the argument's type."""
        target = self.arg_dict.get(name)
        if target is None:
            from difflib import get_close_matches

            near = get_close_matches(name, self.arg_dict, 1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; the arguments are {', '.join(self.arg_dict)}"
            raise MXNetTypeError(f"Unknown argument {name}{hint}")
        if not isinstance(value, (NDArray, np.ndarray)):
            raise MXNetValueError(
                f"input '{name}': got {type(value).__name__}, but forward can only accept keyword argument of NDArrays "
                "and numpy.ndarray: pass mx.nd.array(x)"
            )
        if tuple(value.shape) != target.shape:
            raise MXNetShapeError(
                f"input '{name}': got {tuple(value.shape)}, wanted {target.shape}, the shape it is bound to: pass an "
                f"array of that shape, or call reshape({name}={tuple(value.shape)}) for a new executor. Shape not "
                f"match! Argument {name}, need: {target.shape}, received: {tuple(value.shape)}"
            )
        made = make_array(value, ctx=target.context, dtype=target.dtype)
        if made.stype != target.stype:
            made = _mxrt.to_storage(made, target.stype)
        return made

    def copy_params_from(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Copies arrays to the arguments and auxiliary states of the same names; ValueError for
        names that the symbol lacks, unless `allow_extra_params` is set.
        """
        for params, held, what in (
            (arg_params, self.arg_dict, "arguments"),
            (aux_params or {}, self.aux_dict, "auxiliary states"),
        ):
            for name, array in params.items():
                target = held.get(name)
                if target is not None:
                    # A program may hand over the arrays that it bound.
                    if array is target:
                        continue
                    array.astype(target.dtype, copy=False).copyto(target)
                elif not allow_extra_params:
                    raise ValueError(f'Find name "{name}" that is not in the {what}')

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> Executor:
        """An executor for inputs of other shapes that shares the memory of all arrays that do not
        grow. Names that the symbol lacks are ignored, as in MXNet.
        """
        kwargs = {name: shape for name, shape in kwargs.items() if name in self.arg_dict or name in self.aux_dict}
        arguments, _, aux = self._symbol._shapes_known(**kwargs)
        if not all(shape and 0 not in shape for shape in [*arguments, *aux]):
            raise MXNetShapeError("Insufficient argument shapes provided.")
        args = {
            name: self._resized(name, array, shape, name in kwargs or partial_shaping, allow_up_sizing)
            for (name, array), shape in zip(self.arg_dict.items(), arguments, strict=True)
        }
        states = {
            name: self._resized(name, array, shape, partial_shaping, allow_up_sizing)
            for (name, array), shape in zip(self.aux_dict.items(), aux, strict=True)
        }
        grads = {
            name: array if array is None else self._resized(name, array, args[name].shape, True, allow_up_sizing)
            for name, array in self.grad_dict.items()
        }
        made = Executor(self._symbol, self._ctx, args, states, grads, self._groups)
        made._origin = weakref.ref(self)
        return made

    def _resized(self, name: str, array: NDArray, shape: tuple[int, ...], may_change: bool, may_grow: bool) -> NDArray:
        if array.shape == shape:
            return array
        if may_change and array.stype != "default":
            return stored_empty(array.stype, shape, array.context, array.dtype)
        if not may_change:
            raise UnspecifiedShapeError(
                f"Shape of unspecified array arg:{name} changed. This can cause the new executor to not share "
                "parameters with the old one. Please check for error in network. If this is intended, set "
                "partial_shaping=True to suppress this warning."
            )
        size = math.prod(shape)
        if size <= array.size:
            begin: NDArray = array._view(0, list(shape))
            return begin
        if not may_grow:
            raise MXNetShapeError(
                f"New shape of arg: {name} is larger than original: {shape} against {array.shape}. First making a big "
                "executor and then down sizing it is more efficient than the reverse. If you really want to up size, "
                "set allow_up_sizing=True"
            )
        return empty(shape, array.context, array.dtype)

    def set_monitor_callback(self, callback: Callable[[bytes, NDArray], Any] | None, monitor_all: bool = False) -> None:
        """Calls `callback` with the name, as bytes, and the array of every operator's result after
        each ``forward``; None ends that. Callbacks that cast the array to an ``NDArrayHandle``, as
        those written for MXNet do, make the array of it by ``NDArray(handle)``.

        With `monitor_all` it is called with the operators' inputs too. As long as there is a
        callback, each ``forward`` computes the graph operator by operator.
        """
        self._monitor_callback, self._monitor_all = callback, monitor_all
        self._watch = None if callback is None else Watch(callback, monitor_all)

    def backward(self, out_grads: Any = None, is_train: bool = True) -> NoReturn:
        """Refused: gradients are for training."""
        raise no_training("Executor.backward")

    def debug_str(self) -> str:
        """The graph as text."""
        return self._symbol.debug_str()

    def get_optimized_symbol(self) -> Symbol:
        """The symbol, as ``MXNET_SUBGRAPH_BACKEND`` rewrites it.

        Other optimising happens in the compiled form, which is no symbol.
        """
        return self._op.sym


def _copy_into(held: list[NDArray], made: list[NDArray]) -> None:
    """Writes results to the beginning of other arrays, where they fit."""
    for target, result in zip(held, made, strict=False):
        if target.stype != "default":
            if target.shape == result.shape and target.dtype == result.dtype:
                _mxrt.to_storage(result, target.stype).copyto(target)
        elif math.prod(result.shape) <= target.size and result.dtype == target.dtype:
            target._view(0, list(result.shape))._assign(result.tostype("default"))


def _nobody() -> None:
    """A placeholder for a reference to an executor."""
