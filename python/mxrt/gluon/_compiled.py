"""A graph with the parameters it reads, compiled: what calls of hybridised blocks and of
SymbolBlocks run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _mxrt
from .._graphs.training import training_form
from .._scopes.mode import mode
from .._system.locks import fork_safe_lock
from ..base import MXNetDeviceError, MXNetError, MXNetTypeError, MXNetValueError
from ..context import Context
from ..ndarray import NDArray, save
from ..symbol import Symbol
from ._publishing import generation, publishing
from ._structure import Format
from .parameter import DeferredInitializationError, Parameter, shape_is_known

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._operators.call_options import CallOptions

__all__ = ["FLAGS", "CompiledGraph", "checked_flags", "finish_deferred", "infer_parameter_shapes"]

# Options of a model that a caller chooses; which inputs are parameters the block knows.
FLAGS = tuple(name for name in _mxrt.model_options() if name not in ("data_indices", "param_indices"))


def checked_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of ``hybridize`` that are set; an unknown one is an error."""
    for name in given:
        if name not in FLAGS:
            raise MXNetTypeError(f"hybridize: there is no keyword '{name}'; known: {', '.join(FLAGS)}")
    flags = {key: value for key, value in given.items() if value is not None}
    # That static_shape needs static_alloc is said at the first call, as in MXNet.
    _mxrt.check_flags({key: value for key, value in flags.items() if key != "static_shape"})
    return flags


class CompiledGraph:
    """A graph over inputs and parameters, as the backend of ``MXNET_SUBGRAPH_BACKEND`` rewrites it.
    Any number of threads may call it.

    Parameters
    ----------
    symbol : the graph
    inputs : names of the arguments of a call, in order; names that the graph does not have are left
        out of it
    params : the parameters by name, at least all that are inputs of the graph and no argument
    flags : keywords of ``hybridize``
    np_arrays : whether results are arrays of ``mx.np``
    """

    def __init__(
        self,
        symbol: Symbol,
        inputs: Sequence[str],
        params: Mapping[str, Parameter],
        flags: Mapping[str, Any],
        np_arrays: bool = False,
    ) -> None:
        self.symbol = symbol
        self.np_arrays = np_arrays
        # What tells the shapes of parameters: in training a graph may leave some of them out.
        self.whole = symbol
        self._training: CompiledGraph | None = None
        self.input_names = list(inputs)
        self.params = params
        self.order = symbol.list_inputs()
        self.places = {name: place for place, name in enumerate(self.input_names)}
        # For each input of the graph, which argument of a call it is; None for parameters.
        self.arguments = [self.places.get(name) for name in self.order]
        self._held = [name for name, place in zip(self.order, self.arguments, strict=True) if place is None]
        # Which arguments the graph takes, in its order; None where that is all of them as they
        # come.
        picks = [place for place in self.arguments if place is not None]
        self._picks = None if picks == list(range(len(self.input_names))) else picks
        self._flags = dict(flags)
        self.precision: str = flags.get("precision") or "default"
        # Structure of the arguments and of the result, and the number of arguments if both are
        # plain, else -1.
        self.in_format: Format = [0] * len(self.input_names)
        self.out_format: Format = 0
        self.flat = -1
        self._op: _mxrt.CachedOp | None = None
        self._lock = fork_safe_lock()
        # For every device the graph with the parameters there, and the generation of parameters
        # that these are of.
        self._bound: tuple[int, dict[tuple[str, int], _mxrt.BoundOp]] = (-1, {})

    def call(self, args: Sequence[NDArray], **options: Unpack[CallOptions]) -> Any:
        """Runs the graph on as many arrays as there are inputs: one array, or a list of the
        outputs.
        """
        if mode.training:
            graph = self.in_training()
            if graph is not self:
                return graph.call(args, **options)
        number, by_device = self._bound
        bound = by_device.get(args[0]._device) if number == generation() else None
        if bound is None:
            bound = self._first_bind(args)
        if self._picks is not None:
            args = [args[place] for place in self._picks]
        return bound(*args, **options)

    def in_training(self) -> CompiledGraph:
        """The graph for calls that compute as in training."""
        if self._training is None:
            form = training_form(self.symbol)
            graph = self
            if form is not self.symbol:
                graph = CompiledGraph(form, self.input_names, self.params, self._flags, self.np_arrays)
                graph.whole, graph._training = self.whole, graph
            self._training = graph
        return self._training

    @property
    def op(self) -> _mxrt.CachedOp:
        """The compiled form."""
        return self._op or self._compile()

    def replace_op(self, op: _mxrt.CachedOp) -> None:
        """Runs another graph with the same inputs from the next call on."""
        with self._lock:
            self._op, self._bound = op, (-1, {})
            self._training = self

    def _compile(self) -> _mxrt.CachedOp:
        with self._lock:
            if self._op is None:
                data = [i for i, place in enumerate(self.arguments) if place is not None]
                params = [i for i, place in enumerate(self.arguments) if place is None]
                flags = {"data_indices": tuple(data), "param_indices": tuple(params), **self._flags}
                symbol = self.symbol
                if "MXNET_SUBGRAPH_BACKEND" in os.environ:
                    from ..subgraph import from_environment

                    symbol = from_environment(symbol)
                self._op = _mxrt.CachedOp(symbol, flags, np_arrays=self.np_arrays)
            return self._op

    def _first_bind(self, args: Sequence[NDArray]) -> _mxrt.BoundOp:
        """The graph with the parameters, of which some may have waited for the shapes of the
        inputs.
        """
        self._check_device(args[0].context)
        try:
            return self._bind(args[0].context)
        except DeferredInitializationError:
            finish_deferred(self.whole, self.params, dict(zip(self.input_names, args, strict=True)))
            return self._bind(args[0].context)

    def _check_device(self, context: Context) -> None:
        """Refuses arrays that are on another device than the parameters."""
        data = next((name for name in self.input_names if name in self.order), None)
        param = next((name for name in self.order if name not in self.places), None)
        held = list(self.params[param]._arrays) if param is not None else []
        if held and context not in held:
            raise MXNetDeviceError(
                f"input '{data}': got an array on {context}, wanted {held[0]}, where the parameters are: pass "
                f"x.as_in_context(mx.{held[0]}), or move the parameters with net.collect_params().reset_ctx(mx."
                f"{context}). Parameter '{param}' was not initialized on context {context}. It was only initialized on "
                f"{held}"
            )

    def _bind(self, context: Context) -> _mxrt.BoundOp:
        """The graph with the parameters of a context."""
        op = self.op
        with publishing:
            number = generation()
            bound = op.bind(self.collect(context))
            if any(self.params[name]._redefines("data", "_check_and_get") for name in self._held):
                return bound
            kept = self._bound[1] if self._bound[0] == number else {}
            self._bound = (number, {**kept, context._device: bound})
            return bound

    def collect(self, context: Context) -> list[NDArray | None]:
        """The arrays of the parameters in the order of the graph's inputs, None where a call's
        argument goes.
        """
        return [
            None if place is not None else self.params[name].data(context)
            for name, place in zip(self.order, self.arguments, strict=True)
        ]

    def every_input(self, args: Sequence[NDArray]) -> list[NDArray | None]:
        """Arguments and parameters in the order of the graph's inputs."""
        with publishing:
            held = self.collect(args[0].context)
        return [array if place is None else args[place] for array, place in zip(held, self.arguments, strict=True)]

    def export(self, path: str, epoch: int, remove_amp_cast: bool) -> None:
        """Writes ``path-symbol.json`` and ``path-%04d.params``."""
        self.symbol.save(f"{path}-symbol.json", remove_amp_cast=remove_amp_cast)
        aux = set(self.symbol.list_auxiliary_states())
        values = {
            f"{'aux' if name in aux else 'arg'}:{name}": self.params[name].list_data()[0]
            for name in self.order
            if name not in self.places
        }
        save(f"{path}-{epoch:04d}.params", values)


def infer_parameter_shapes(symbol: Symbol, params: Mapping[str, Parameter], arrays: Mapping[str, NDArray]) -> None:
    """Works out the shapes of the parameters of a graph from arrays for its inputs."""
    order = set(symbol.list_inputs())
    given = {name: array.shape for name, array in arrays.items() if name in order}
    known = {n: p.shape for n, p in params.items() if p.shape is not None and n in order}
    arguments, _, aux = symbol._shapes_known(**{**known, **given})
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    for name, shape in zip(names, [*arguments, *aux], strict=True):
        if name in params and name not in arrays and shape_is_known(shape):
            params[name].shape = shape


def finish_deferred(symbol: Symbol, params: Mapping[str, Parameter], arrays: Mapping[str, NDArray]) -> None:
    """Gives parameters that waited for the shapes of a graph's inputs their values."""
    start = "Deferred initialization failed because shape cannot be inferred."
    try:
        infer_parameter_shapes(symbol, params, arrays)
    except (MXNetError, AssertionError) as error:
        raise MXNetValueError(f"{start} {error}") from error
    waiting = [params[name] for name in symbol.list_inputs() if name in params and params[name]._deferred is not None]
    unknown = [parameter.name for parameter in waiting if not parameter.shape_known]
    if unknown:
        raise MXNetValueError(f"{start} It does not follow from the inputs for {', '.join(unknown)}")
    for parameter in waiting:
        parameter._finish_deferred_init()
