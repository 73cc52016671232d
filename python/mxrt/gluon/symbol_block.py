"""SymbolBlock: a model loaded from files."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from typing import Any, NoReturn

from .. import _mxrt
from .. import symbol as symbols
from ..base import MXNetError, MXNetTypeError, MXNetValueError, dtype_name
from ..context import Context
from ..ndarray import NDArray, save
from ..symbol import Symbol
from . import parameter as parameters
from ._shapes import wrong_shapes
from .block import HybridBlock
from .parameter import ParameterDict, named_arrays, strip_kind

__all__ = ["SymbolBlock", "SymbolBlockThreadSafe"]

_FLAGS = ("static_alloc", "static_shape", "inline_limit", "forward_bulk_size", "backward_bulk_size", "precision")


class InputTypeError(MXNetTypeError, AssertionError):
    """Something that is no NDArray was passed to a block."""


class SymbolBlock(HybridBlock):
    """A model made of a symbol: what ``export`` and ``save_checkpoint`` wrote.

    Any number of threads may call one block at the same time, with inputs of any shapes; parameters are shared.
    """

    def __init__(self, outputs: Any, inputs: Any, params: ParameterDict | None = None) -> None:
        super().__init__(prefix="", params=None)
        if isinstance(outputs, (list, tuple)):
            outputs = outputs[0] if len(outputs) == 1 else symbols.Group(list(outputs))
        if not isinstance(outputs, Symbol):
            raise MXNetTypeError(f"SymbolBlock: outputs must be a Symbol or a list of them, got {type(outputs)}")
        self._symbol = outputs
        self._input_names = _input_names(inputs)
        self._order = outputs.list_inputs()
        self._flags: dict[str, Any] = {}
        self._op: _mxrt.CachedOp | None = None
        self._lock = threading.Lock()
        # For every device the graph with the parameters there, and the generation of parameters that these are of.
        self._bound: tuple[int, dict[tuple[str, int], _mxrt.BoundOp]] = (-1, {})
        self._places = {name: place for place, name in enumerate(self._input_names)}
        # For each input of the graph, which argument of a call it is; None for parameters.
        self._arguments = [self._places.get(name) for name in self._order]
        # Which arguments the graph takes, in its order; None where that is all of them as they come.
        picks = [place for place in self._arguments if place is not None]
        self._picks = None if picks == list(range(len(self._input_names))) else picks
        self._make_params(params)
        self._warned = False

    def _make_params(self, given: ParameterDict | None) -> None:
        if given is not None:
            if not isinstance(given, ParameterDict):
                raise MXNetTypeError(
                    f"SymbolBlock: params must be a ParameterDict, got {type(given)}; for arrays by name use "
                    "block.collect_params().load_dict(...)"
                )
            self._params = ParameterDict("", given)
        aux = self._symbol.list_auxiliary_states()
        hints = self._symbol._variable_attrs()
        # Arguments, then auxiliary states: the order that programs and saved files of MXNet have.
        for name in [*self._symbol.list_arguments(), *aux]:
            if name in self._places:
                continue
            kwargs: dict[str, Any] = {"allow_deferred_init": True, "grad_req": "null" if name in aux else "write"}
            dtype = hints.get(name, {}).get("__dtype__")
            if dtype is not None and dtype not in ("-1",):
                kwargs["dtype"] = _mxrt.dtype_of_code(dtype)
            self._params.get(name, **kwargs)
        graph = self._symbol  # not self: a block that is dropped gives its memory back at once
        self._params._check = lambda shapes: wrong_shapes(graph, shapes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n{self._symbol!r} : {len(self._input_names)} -> {len(self._symbol)}\n)"

    @staticmethod
    def imports(
        symbol_file: str,
        input_names: str | Iterable[str],
        param_file: str | None = None,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> SymbolBlock:
        """The model of a symbol file and a parameter file, as MXNet of any age wrote them.

        If parameters are missing, are not part of the symbol, or have the wrong shape, one error lists all of them.
        """
        return _imports(SymbolBlock, symbol_file, input_names, param_file, ctx, allow_missing, ignore_extra)

    # ---- calls -------------------------------------------------------------------------------------------------

    def forward(
        self, *args: Any, priority: int = 0, deadline: float | None = None, cancel_on_drop: bool = False
    ) -> Any:
        """Runs the model: one array, or a list when it has several outputs. Returns before they are computed.

        While others wait for the cores too, calls with a higher ``priority`` are served first. A call that has not
        started ``deadline`` seconds from now does not run; reading its result raises an
        :class:`mxrt.base.MXNetTimeoutError`. With ``cancel_on_drop`` a call does not run if its result was dropped
        before it started; an ordinary call runs anyhow.
        """
        if len(args) != len(self._input_names):
            raise self._wrong_count(args)
        for value in args:
            if not isinstance(value, NDArray):
                return self._not_all_arrays(args)
        number, by_device = self._bound
        bound = by_device.get(args[0]._device) if number == parameters.generation() else None
        if bound is None:
            bound = self._first_bind(args)
        if not self._warned:
            self._warn_unused()
        if self._picks is not None:
            args = tuple(args[place] for place in self._picks)
        return bound(*args, priority=priority, deadline=deadline, cancel_on_drop=cancel_on_drop)

    def _compile(self) -> _mxrt.CachedOp:
        with self._lock:
            if self._op is None:
                data = [i for i, place in enumerate(self._arguments) if place is not None]
                params = [i for i, place in enumerate(self._arguments) if place is None]
                flags = {"data_indices": tuple(data), "param_indices": tuple(params), **self._flags}
                self._op = _mxrt.CachedOp(self._symbol, flags)
            return self._op

    def _first_bind(self, args: tuple[NDArray, ...]) -> _mxrt.BoundOp:
        """The graph with the parameters, of which some may have waited for the shapes of the inputs."""
        try:
            return self._bind(args[0].context)
        except parameters.DeferredInitializationError:
            self.infer_shape(*args)
            for parameter in self._params.values():
                parameter._finish_deferred()
            return self._bind(args[0].context)

    def _bind(self, context: Context) -> _mxrt.BoundOp:
        """The graph with the parameters of a context."""
        while True:
            op = self._op or self._compile()
            with parameters.publishing:
                number = parameters.generation()
                bound = op.bind(self._collect(context))
                if op is not self._op:
                    continue  # hybridize was called meanwhile.
                kept = self._bound[1] if self._bound[0] == number else {}
                self._bound = (number, {**kept, context._device: bound})
                return bound

    def _collect(self, context: Context) -> list[NDArray | None]:
        """The arrays of the parameters in the order of the graph's inputs, None where a call's argument goes."""
        return [
            None if place is not None else self._params[name].data(context)
            for name, place in zip(self._order, self._arguments, strict=True)
        ]

    def _wrong_count(self, args: tuple[Any, ...]) -> MXNetError:
        names = self._input_names
        if not args:
            return MXNetTypeError(
                f"{type(self).__name__}.forward() was called without input; it takes {len(names)}: {', '.join(names)}"
            )
        if len(args) == 1 and not isinstance(args[0], (NDArray, Symbol)):
            return self._wrong_type(args[0])
        return MXNetValueError(
            f"{type(self).__name__}.forward() takes {len(names)} input{'s' if len(names) != 1 else ''} "
            f"({', '.join(names)}), but {len(args)} were given"
        )

    def _wrong_type(self, value: Any) -> InputTypeError:
        return InputTypeError(
            f"HybridBlock requires the arguments of forward to be NDArrays or Symbols, but got {type(value)}; "
            "make an array with mx.nd.array(...)"
        )

    def _not_all_arrays(self, args: tuple[Any, ...]) -> Any:
        """Symbols make a larger graph; anything else is refused."""
        for value in args:
            if not isinstance(value, (NDArray, Symbol)):
                raise self._wrong_type(value)
        if not all(isinstance(value, Symbol) for value in args):
            raise MXNetValueError("inputs are NDArrays or Symbols, not a mixture of both")
        used = {n: v for n, v in zip(self._input_names, args, strict=True) if n in self._order}
        out = self._symbol(**used) if used else self._symbol
        return out if len(out) == 1 else list(out)

    def _warn_unused(self) -> None:
        self._warned = True
        for place, name in enumerate(self._input_names):
            if name not in self._order:
                warnings.warn(
                    f"The {place}-th input to HybridBlock ('{name}') is not used by any computation. Is this intended?",
                    stacklevel=4,
                )

    def hybridize(
        self,
        active: bool = True,
        backend: str | None = None,
        clear: bool = True,
        **kwargs: Any,
    ) -> None:
        """Sets flags. A SymbolBlock is always compiled, so that there is nothing to be turned on.

        ``precision="exact"`` computes convolutions without the algorithms of Winograd and Strassen, whose rounding
        errors are larger.
        ``precision="bf16"`` lets convolutions and dense layers round what they multiply to bf16 where that is faster,
        with errors of about 0.5 % of the largest answer of a resnet18, more in deeper networks; arrays stay float32. It
        needs a processor with AVX512-BF16; on others everything is computed in float32, and the text of :meth:`plan`
        says so. MXNet's own keywords are accepted; an unknown one is an error, as in MXNet.
        """
        for name in kwargs:
            if name not in _FLAGS:
                raise MXNetTypeError(f"hybridize: there is no keyword '{name}'; known: {', '.join(_FLAGS)}")
        flags = {key: value for key, value in kwargs.items() if value is not None}
        with parameters.publishing, self._lock:
            self._flags = flags
            self._op = None
            self._bound = (-1, {})

    def optimize_for(self, x: Any, *args: Any, backend: str | None = None, **kwargs: Any) -> None:
        """Accepted for compatibility: every graph is optimised when it is compiled."""
        self.forward(x, *args)

    def plan(self, *args: NDArray, measure: bool = True) -> str:
        """The compiled form for inputs like these, as text.

        A line for every step: operator, name, what it makes, the kernel chosen, bytes of scratch memory it works on,
        bytes of packed weights, and the time it is estimated to take on one core. The network is run a few times on the
        inputs, and each line ends with the shortest time its step took on the cores that were idle; not so with
        ``measure=False``, which runs nothing.
        """
        op = self._op or self._compile()
        return op.plan(*self._every_input(args), measure=measure)

    def plan_report(self, *args: NDArray, measure: bool = True) -> dict[str, Any]:
        """What :meth:`plan` says as data.

        ``steps`` has a dictionary for every step: its number ``step``, ``operator``, ``node``, ``output``, ``kernel``,
        ``arena_bytes``, ``packed_bytes``, ``estimated_us`` and ``measured_us`` (None with ``measure=False``). Beside it
        stand ``title``, ``parts`` (``rows``, ``rows_of_a_part``, ``side_by_side`` where a large batch is run in parts;
        the steps are then those of one part), ``notes``, ``constants``, the totals under the names they have in a step,
        and the ``text``.
        """
        op = self._op or self._compile()
        return op.plan_report(*self._every_input(args), measure=measure)

    def convolutions(self, *args: NDArray) -> list[str]:
        """The distinct convolutions of the compiled form for inputs like these, a line of text each.

        It holds all that the choice of a kernel depends on; ``mxrt tune`` measures what they name.
        """
        op = self._op or self._compile()
        return op.convolutions(*self._every_input(args))

    def _every_input(self, args: tuple[NDArray, ...]) -> list[NDArray | None]:
        """Arguments and parameters in the order of the graph's inputs."""
        if len(args) != len(self._input_names):
            raise self._wrong_count(args)
        for value in args:
            if not isinstance(value, NDArray):
                raise self._wrong_type(value)
        with parameters.publishing:
            held = self._collect(args[0].context)
        return [array if place is None else args[place] for array, place in zip(held, self._arguments, strict=True)]

    def plan_cache_info(self) -> dict[str, int]:
        """State of the compiled forms kept, one for every combination of input shapes and dtypes.

        ``plans`` are kept now, ``built`` so many so far and ``evicted`` so many given up: those unused for longest,
        above ``max_plans`` or ``max_bytes``. ``plan_bytes`` and ``constant_bytes`` (folded and packed weights) is what
        they hold.

        Packed weights of other input sizes may take 1.5 times the parameters beside those of the size with most. Where
        the fastest methods for one more size would take more, its large layers make do with a packing that all sizes
        share, and its plan (``net.plan``) says so. Its results then differ in rounding from those of the same size
        called first.
        """
        op = self._op or self._compile()
        return op.plan_cache_info()

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the graph is fixed."""
        raise NotImplementedError("a SymbolBlock has no hybrid_forward: its graph is fixed")

    # ---- parameters --------------------------------------------------------------------------------------------

    def cast(self, dtype: Any) -> None:
        """Changes the element type of all parameters; those of BatchNorm stay float32 under float16, as in MXNet."""
        with parameters.publishing:
            super().cast(dtype)
            if dtype_name(dtype) != "float16":
                return
            for name in self._order:
                for variance, mean in (("running_var", "running_mean"), ("moving_var", "moving_mean")):
                    if name.endswith(variance):
                        prefix = name[: -len(variance)]
                        group = [prefix + part for part in (variance, mean, "gamma", "beta")]
                        if all(part in self._params for part in group):
                            for part in group:
                                self._params[part].cast("float32")

    def reset_ctx(self, ctx: Any) -> None:
        """Moves all parameters to other contexts."""
        self.collect_params().reset_ctx(ctx)

    def infer_shape(self, *args: NDArray) -> None:
        """Works out the shapes of the parameters from inputs."""
        given = {n: a.shape for n, a in zip(self._input_names, args, strict=True) if n in self._order}
        known = {n: p.shape for n, p in self._params.items() if p.shape is not None and n in self._order}
        arguments, _, aux = self._symbol.infer_shape_partial(**{**known, **given})
        names = [*self._symbol.list_arguments(), *self._symbol.list_auxiliary_states()]
        for name, shape in zip(names, [*arguments, *aux], strict=True):
            if name not in self._places and shape and 0 not in shape:
                self._params[name].shape = shape

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Writes ``path-symbol.json`` and ``path-%04d.params``."""
        self._symbol.save(f"{path}-symbol.json")
        aux = set(self._symbol.list_auxiliary_states())
        values = {
            f"{'aux' if name in aux else 'arg'}:{name}": self._params[name].list_data()[0]
            for name in self._order
            if name not in self._places
        }
        save(f"{path}-{epoch:04d}.params", values)

    def summary(self, *inputs: Any) -> NoReturn:
        """Refused, as MXNet refuses it for compiled blocks."""
        raise AssertionError(f'"{self.name}" must not be hybridized to print summary.')


SymbolBlockThreadSafe = SymbolBlock


def _input_names(inputs: Any) -> list[str]:
    listed = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    names = []
    for one in listed:
        if not isinstance(one, Symbol):
            raise MXNetTypeError(f"SymbolBlock: inputs must be Symbols, got {type(one)}")
        for part in one:
            if not part._is_variable:
                raise AssertionError(f"Input symbols must be variable, but {part!r} is an output of operators")
            names.append(part.name or "")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise MXNetValueError(f"SymbolBlock: the inputs {', '.join(repeated)} are named more than once")
    return names


def _imports(
    cls: type[SymbolBlock],
    symbol_file: str,
    input_names: str | Iterable[str],
    param_file: str | None,
    ctx: Any,
    allow_missing: bool,
    ignore_extra: bool,
) -> SymbolBlock:
    graph = symbols.load(symbol_file)
    names = [input_names] if isinstance(input_names, str) else list(input_names)
    block = cls(graph, [symbols.var(name) for name in names])
    if param_file is None:
        return block
    values = {strip_kind(name): value for name, value in named_arrays(param_file).items()}
    params = block.collect_params()
    # A value for something that is an input of this block is of no use, and does no harm.
    params._load(
        values, f"file: {param_file}", ctx, allow_missing, ignore_extra, own=True, idle=names, hint=_hint(graph, names)
    )
    return block


def _hint(graph: Symbol, names: list[str]) -> str:
    """What to look at when parameters do not fit."""
    unknown = [repr(name) for name in names if name not in graph.list_inputs()]
    if not unknown:
        return ""
    return f"The symbol has no input called {', '.join(unknown)}: are input_names right?"
