"""Blocks that can be expressed as a graph: run operator by operator, or compiled as a whole."""

from __future__ import annotations

import inspect
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import ndarray, symbol
from .._scopes.np_mode import is_np_array
from .._system.locks import fork_safe_lock
from ..base import MXNetTypeError, warn
from ..ndarray import NDArray
from ..symbol import Group, Symbol, var
from ._compiled import CompiledGraph, checked_flags, finish_deferred, infer_parameter_shapes
from ._graph_names import GraphNames, Traced
from ._inputs import arrays_of, has_numpy, in_order, options_and_inputs, type_of_parameters
from ._numpy import converted, makes_np, run_forward
from ._plans import PlanMethods
from ._redefined import redefines
from ._structure import Format, flatten, regroup, same_structure, survey
from .block import Block
from .parameter import DeferredInitializationError, Parameter

if TYPE_CHECKING:
    from .._operators.call_options import CallOptions

__all__ = ["HybridBlock", "Traced", "flat_result"]

# Graphs are made by one thread at a time; what they hold is shared by all.
_tracing = fork_safe_lock()
# Held while a graph is put into a block or taken out of it; no other lock is taken meanwhile.
_keeping = fork_safe_lock()


class HybridBlock(Block, GraphNames, PlanMethods):
    """A block that can be expressed as a graph.

    The class defines ``hybrid_forward(F, x, *args, **params)`` with ``F`` being ``mx.nd`` or
    ``mx.sym``; under ``npx.set_np()`` it uses ``F.np`` and ``F.npx``. After ``hybridize()`` the
    first call makes a graph of it; from then on any number of threads may call the block at the
    same time, and each call runs the compiled graph. A block that is not hybridised runs operator
    by operator.
    """

    # How often the block has changed: a graph that was begun before a change does not stay.
    _changes = 0
    # Whether parameters are passed to operators only, so that their class does not matter.
    _takes_parameters_as_they_are = False
    # Whether hybrid_forward hands its arguments to a function of the program.
    _calls_the_program = False

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._active = False
        self._flags: list[tuple[str, Any]] = []
        self._backend: str | None = None
        self._backend_opts: dict[str, Any] = {}
        self._callback: Callable[..., Any] | None = None
        self._monitor_all = False
        self._clear_cached_op()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, HybridBlock):
            self._clear_cached_op()

    def __getstate__(self) -> dict[str, Any]:
        # What was compiled is made again where the copy is used.
        return {key: None if isinstance(value, CompiledGraph) else value for key, value in list(self.__dict__.items())}

    def _clear_cached_op(self) -> None:
        """Forgets the graph: the next call builds it again."""
        with _keeping:
            self._changes += 1
            self._traced: Traced | None = None
            # Parameters that a rewrite of the graph added.
            self._added: dict[str, Parameter] = {}
            self._drop_compiled()

    def _drop_compiled(self) -> None:
        self._compiled: CompiledGraph | None = None

    def _known_trace(self) -> Traced | None:
        """The graph, where there is one without arguments."""
        return self._traced

    def _retrace(self, traced: Traced) -> None:
        """Takes another graph in the place of the one there is."""
        with _keeping:
            self._changes += 1
            self._traced = traced
            self._drop_compiled()

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Makes a block, which must be a HybridBlock, one of those inside."""
        if not isinstance(block, HybridBlock):
            raise ValueError(
                f"Children of HybridBlock must also be HybridBlock, but {block} has type {type(block)}. If you are "
                "using Sequential, please try HybridSequential instead."
            )
        super().register_child(block, name)
        self._clear_cached_op()

    def hybridize(
        self,
        active: bool = True,
        backend: str | None = None,
        clear: bool = True,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Compiles the block at the next call, so that it runs as one graph, as do the blocks
        inside if they are called alone.

        Parameters
        ----------
        active : False goes back to running operator by operator
        backend : a rewrite of graphs to be applied, by name; other keywords are then its options
        clear : an existing graph is built again
        precision : ``exact``, ``bf16``, ``w8`` and ``auto``, see
            :meth:`SymbolBlock.hybridize`
        fallback : True runs operators for which a GPU has no kernel on the CPU, with copies around
            them; False refuses such a graph; as ``MXRT_GPU_FALLBACK`` says if not given

        The other keywords are MXNet's, accepted for compatibility; memory is planned in any case.
        """
        flags = {
            "static_alloc": static_alloc,
            "static_shape": static_shape,
            "inline_limit": inline_limit,
            "forward_bulk_size": forward_bulk_size,
            "backward_bulk_size": backward_bulk_size,
        }
        if backend is not None:
            self._backend_opts, kwargs = kwargs, {}
        flags = checked_flags({**flags, **kwargs})
        if (active and self._forward_hooks) or self._forward_pre_hooks:
            warn(
                f'"{self}" is being hybridized while still having forward hook/pre-hook. If "{self}" is a child of '
                "HybridBlock, the hooks will not take effect."
            )
        with _tracing:
            self._backend = backend
            self._active = active
            self._flags = list(flags.items())
            self._drop_compiled()
            if clear:
                self._clear_cached_op()
        super().hybridize(active, **flags)

    def cast(self, dtype: Any) -> None:
        """Changes the element type of all parameters."""
        super().cast(dtype)
        self._clear_cached_op()

    # ---- graphs ----------------------------------------------------------------------------------

    def _trace(self, args: tuple[Any, ...]) -> Traced:
        """The block as a graph over inputs with the structure of `args`."""
        flat, form = flatten(args, "input")
        count = sum(value is not None for value in flat)
        if count == 0:
            raise ValueError(f"All args are None and we do not support such a case. Received args={args}")
        names = iter(["data"] if count == 1 else [f"data{i}" for i in range(count)])
        stand_ins = [None if value is None else var(next(names)) for value in flat]
        params = {name: parameter.var() for name, parameter in self._reg_params.items()}
        with self.name_scope():
            out = run_forward(self, symbol, tuple(regroup(stand_ins, form)), params)
        outputs, out_form = flatten(out, "output")
        if len(outputs) == 1 and outputs[0] is None:
            raise TypeError(
                f"{self.name}: hybrid_forward of {type(self).__name__} returned None, expected a list of symbols, or "
                "one; return the result"
            )
        inputs = [stand_in for stand_in in stand_ins if stand_in is not None]
        made = outputs[0] if len(outputs) == 1 else Group(outputs)
        return Traced(inputs, converted(made, True) if is_np_array() else made, form, out_form)

    def _restore_graph(self, inputs: list[Symbol], out: Symbol, in_format: list[Format], out_format: Format) -> None:
        """Takes a graph from a file instead of making one."""
        self._clear_cached_op()
        self._traced = Traced(inputs, out, in_format, out_format)
        self._active = True

    def _compile(self, args: tuple[Any, ...]) -> CompiledGraph:
        """The compiled graph, made if there is none."""
        early = self._backend is not None or self._redefines("infer_shape", "_deferred_infer_shape")
        if early and any(one._deferred is not None for one in self.collect_params().values()):
            # Initializers may be code of the program: they run without a lock.
            self._finish_deferred(args)
        with _tracing:
            found = self._compiled
            if found is not None:
                return found
            changes = self._changes
            traced = self._traced or self._graph_of(args)
            names = [str(one.name) for one in traced.inputs]
            params = {**self.collect_params()._params, **self._added}
            self._check_inputs(traced.out, names, params)
            if self._backend is not None:
                traced, params = self._rewritten(traced, params, args)
            found = CompiledGraph(traced.out, names, params, dict(self._flags), makes_np(traced.out))
            found.in_format, found.out_format = traced.in_format, traced.out_format
            plain = traced.in_format == [0] * len(names) and flat_result(traced.out_format) and self._callback is None
            found.flat = len(names) if plain and not self._redefines("_call_cached_op") else -1
            with _keeping:
                if self._changes == changes:
                    self._traced = traced
                    self._compiled = found
            return found

    def _complete_arguments(self, *args: Any) -> tuple[Any, ...]:
        """The arguments of ``hybrid_forward`` that a call with these arguments has."""
        return args

    def _graph_for_plan(self, args: tuple[Any, ...]) -> tuple[CompiledGraph, list[NDArray]]:
        if not self._active and self._compiled is None:
            raise RuntimeError(f"{self.name} is not compiled: call hybridize() first")
        args = self._complete_arguments(*args)
        graph = self._compile(args)
        arrays = [value for value in flatten(args, "input")[0] if value is not None]
        try:
            graph.collect(arrays[0].context)
        except DeferredInitializationError:
            finish_deferred(graph.symbol, graph.params, dict(zip(graph.input_names, arrays, strict=True)))
        return graph, arrays

    def _compiled_graph(self) -> CompiledGraph:
        graph = self._compiled
        if graph is None:
            raise RuntimeError(f"{self.name} is not compiled yet: call hybridize(), and then the block once")
        return graph

    def _check_inputs(self, out: Symbol, names: list[str], params: dict[str, Parameter]) -> None:
        """Every input of the graph must be an argument or a parameter; what is neither used is
        warned of.
        """
        inputs = out.list_inputs()
        for name in inputs:
            if name not in params and name not in names:
                raise AssertionError(f"Unknown input to HybridBlock: {name}")
        used = set(inputs)
        unused = [(place, name) for place, name in enumerate(names) if name not in used]
        if unused:
            places = ", ".join(f"{place}-th" for place, _ in unused)
            warn(
                f"The {places} input to HybridBlock is not used by any computation "
                f"({', '.join(name for _, name in unused)}). Is this intended?"
            )
        idle = ", ".join(name for name in params if name not in used)
        if idle:
            warn(f"Parameter {idle} is not used by any computation. Is this intended?")

    def _rewritten(
        self, traced: Traced, params: dict[str, Parameter], args: tuple[Any, ...]
    ) -> tuple[Traced, dict[str, Parameter]]:
        """The graph as the backend asked for makes it, and the parameters, of which it may add
        some.
        """
        named = _named(traced, args)
        order = traced.out.list_inputs()
        context = next(iter(named.values())).context
        values = {**named, **{name: params[name].data(context) for name in order if name in params}}
        aux = {name: values.pop(name) for name in traced.out.list_auxiliary_states() if name in values}
        out = traced.out.optimize_for(str(self._backend), values, aux, context, **self._backend_opts)
        added = {name: value for name, value in {**values, **aux}.items() if name not in params and name not in named}
        for name, value in added.items():
            params[name] = self._added[name] = Parameter(name, dtype=value.dtype)
            params[name]._load_init(value, value.context)
        return traced._replace(out=out), params

    def optimize_for(
        self,
        x: Any,
        *args: Any,
        backend: str | None = None,
        clear: bool = False,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Hybridises with a rewrite of graphs, and makes the graph for inputs like these; the
        keywords are those of ``hybridize``.
        """
        if not backend:
            raise ValueError('Must specify "backend" to optimize_for')
        self.hybridize(
            True,
            backend,
            clear,
            static_alloc,
            static_shape,
            inline_limit,
            forward_bulk_size,
            backward_bulk_size,
            **kwargs,
        )
        self._compiled_for((x, *args))

    def _redefines(self, *names: str) -> bool:
        return redefines(self, HybridBlock, *names)

    def _compiled_for(self, args: tuple[Any, ...]) -> CompiledGraph:
        """The compiled graph, made in the way of the block's class if there is none."""
        if self._compiled is None and self._redefines("_build_cache"):
            self._build_cache(*args)
        return self._compiled or self._compile(args)

    def _finish_deferred(self, args: tuple[Any, ...]) -> None:
        """Gives parameters that waited for the shapes of the inputs their values."""
        if not self._redefines("infer_shape", "_deferred_infer_shape"):
            traced = self._graph_of(args)
            finish_deferred(traced.out, self.collect_params()._params, _named(traced, args))
            return
        self._deferred_infer_shape(*args)
        for parameter in {**self.params._params, **self._reg_params}.values():
            parameter._finish_deferred_init()

    def _graph_of(self, args: tuple[Any, ...]) -> Traced:
        """The graph that exists, or one that is made for these arguments."""
        if self._redefines("_get_graph"):
            inputs, out = self._get_graph(*args)
            return Traced(list(inputs), out, flatten(args, "input")[1], len(out) if len(out) > 1 else 0)
        return self._own_graph(args)

    def _own_graph(self, args: tuple[Any, ...]) -> Traced:
        with _tracing:
            changes = self._changes
            traced = self._traced or self._trace(args)
            with _keeping:
                if self._changes == changes:
                    self._traced = traced
            return traced

    def infer_shape(self, *args: Any) -> None:
        """Works out the shapes of the parameters from inputs."""
        traced = self._graph_of(args)
        infer_parameter_shapes(traced.out, self.collect_params()._params, _named(traced, args))

    def infer_type(self, *args: Any) -> None:
        """Works out the element types of the parameters from inputs."""
        self._infer_attrs("infer_type", "dtype", *args)

    def _infer_attrs(self, infer_fn: str, attr: str, *args: Any) -> None:
        """Sets an attribute of the parameters to what a method of the graph infers from that of
        inputs.
        """
        traced = self._graph_of(args)
        used = set(traced.out.list_inputs())
        given = {name: getattr(array, attr) for name, array in _named(traced, args).items() if name in used}
        arguments, _, aux = getattr(traced.out, infer_fn)(**given)
        if arguments is None:
            raise ValueError(f"{infer_fn}: the {attr} of the parameters does not follow from that of the inputs")
        params = self.collect_params()
        names = [*traced.out.list_arguments(), *traced.out.list_auxiliary_states()]
        for name, value in zip(names, [*arguments, *aux], strict=True):
            if name in params:
                setattr(params[name], attr, value)

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Writes ``path-symbol.json`` and ``path-%04d.params``, which MXNet and
        ``SymbolBlock.imports`` read.

        One input is called ``data``, several ``data0``, ``data1`` and so on. RuntimeError while
        there is no graph: before the first call after ``hybridize()``.
        """
        graph = self._compiled
        traced = self._known_trace()
        if graph is None and traced is not None:
            names = [str(one.name) for one in traced.inputs]
            params = {**self.collect_params()._params, **self._added}
            self._check_inputs(traced.out, names, params)
            graph = CompiledGraph(traced.out, names, params, {})
        if graph is None:
            raise RuntimeError(
                "Please first call block.hybridize() and then run forward with this block at least once before calling "
                "export."
            )
        graph.export(path, epoch, remove_amp_cast)

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """Has a function called with what each operator made: :meth:`Block.register_op_hook`."""
        with _tracing:
            self._callback = callback
            self._monitor_all = monitor_all
            self._drop_compiled()
        super().register_op_hook(callback, monitor_all)

    # ---- calls -----------------------------------------------------------------------------------

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """Runs the block on arrays, or makes a larger graph of symbols.

        Arguments are NDArrays, numpy arrays, None, or nested lists of them, all on one context, in
        the order of ``hybrid_forward`` or by the names they have there. A numpy array becomes what
        ``mx.nd.array`` makes of it, of the parameters' element type. Options of the
        call are for hybridised blocks, see :meth:`SymbolBlock.forward`.
        """
        options: CallOptions = {}
        if keywords:
            options, named = options_and_inputs(keywords)
            if named:
                args = in_order(type(self).__name__, self._argument_names(), args, named)
        graph = self._compiled
        if graph is not None and graph.flat == len(args):
            for value in args:
                if not isinstance(value, NDArray):
                    break
            else:
                return graph.call(args, **options)
        if has_numpy(args):
            names, held = self._argument_names(), list(self.collect_params().values())
            args = arrays_of(args, names, held, dict.fromkeys(names, type_of_parameters(held)))
        if not args:
            raise TypeError(f"{type(self).__name__}.forward() missing 1 required positional argument: 'x'")
        symbols, arrays, contexts = survey(args)
        if symbols and arrays:
            raise ValueError(
                "In HybridBlock, we do not support mixed NDArrays and Symbols types for the input. Please check the "
                "type of the args."
            )
        if not symbols and not arrays:
            raise ValueError(
                "In HybridBlock, there must be one NDArray or one Symbol in the input. Please check the type of the "
                "args."
            )
        if symbols:
            params: dict[str, Any] = {name: parameter.var() for name, parameter in self._reg_params.items()}
            with self.name_scope():
                return run_forward(self, symbol, args, params)
        if self._active:
            if len(contexts) > 1:
                raise ValueError(
                    "Find multiple contexts in the input, After hybridized, the HybridBlock only supports one input "
                    f"context. Find all contexts = {contexts}"
                )
            with contexts[0]:
                return self._call_hybrid(args, options)
        if options:
            raise MXNetTypeError(
                f"{', '.join(options)}: options of a call need a hybridised block; call hybridize() first"
            )
        with contexts[0]:
            try:
                params = {name: parameter.data(contexts[0]) for name, parameter in self._reg_params.items()}
            except DeferredInitializationError:
                self._finish_deferred(args)
                params = {name: parameter.data(contexts[0]) for name, parameter in self._reg_params.items()}
            return run_forward(self, ndarray, args, params)

    def _argument_names(self) -> list[str]:
        """The names of the arguments of ``hybrid_forward`` that are no parameters."""
        places = list(inspect.signature(type(self).hybrid_forward).parameters.values())[2:]
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [place.name for place in places if place.kind in plain and place.name not in self._reg_params]

    def _call_hybrid(self, args: tuple[Any, ...], options: CallOptions) -> Any:
        """Runs the compiled graph in the way of the block's class."""
        if self._redefines("_call_cached_op"):
            return self._call_cached_op(*args, **options)
        return self._call_compiled(args, options)

    def _call_compiled(self, args: tuple[Any, ...], options: CallOptions) -> Any:
        graph = self._compiled_for(args)
        flat, form = flatten(args, "input")
        if not same_structure(form, graph.in_format):
            raise ValueError(
                "The argument structure of HybridBlock does not match the cached version. Stored format = "
                f"{graph.in_format}, input format = {form}. Call hybridize() again to make the graph again"
            )
        arrays = [value for value in flat if value is not None]
        if self._callback is not None:
            from ._monitor import call_and_show

            out = call_and_show(graph, arrays, self._callback, self._monitor_all)
        else:
            out = graph.call(arrays, **options)
        return regroup([out] if isinstance(out, NDArray) else list(out), graph.out_format)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The computation of the block with the operators of `F`; to be defined by the class.

        `kwargs` are its own parameters, arrays or symbols, under the names of the attributes.
        """
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")


def _named(traced: Traced, args: tuple[Any, ...]) -> dict[str, NDArray]:
    """The arrays in arguments by the names of the graph's inputs."""
    arrays = [value for value in flatten(args, "input")[0] if value is not None]
    # Fewer are given to infer_shape of a recurrent layer, which makes its states itself.
    return dict(zip([str(one.name) for one in traced.inputs], arrays, strict=False))


def flat_result(form: Format) -> bool:
    """Whether a graph's result, an array or a list of several, is already what the format says."""
    if isinstance(form, int):
        return form >= 0
    return len(form) > 1 and all(part == 0 for part in form)
