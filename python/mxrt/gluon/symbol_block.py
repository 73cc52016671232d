"""SymbolBlock: a model loaded from files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from .. import _mxrt
from .. import symbol as symbols
from .._values.dtypes import dtype_name
from ..base import MXNetError, MXNetTypeError, MXNetValueError
from ..ndarray import NDArray
from ..symbol import Symbol
from ._compiled import CompiledGraph
from ._importing import imported
from ._inputs import arrays_of, in_order, listed, options_and_inputs, wrong_input
from ._numpy import makes_np
from ._publishing import generation, publishing
from ._shapes import wrong_shapes
from ._structure import Format, flatten, regroup, same_structure
from .hybrid_block import HybridBlock, Traced, flat_result
from .parameter_dict import ParameterDict, named_arrays, strip_kind

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._operators.call_options import CallOptions

__all__ = ["SymbolBlock", "SymbolBlockThreadSafe"]


class SymbolBlock(HybridBlock):
    """A model made of a symbol: what ``export`` and ``save_checkpoint`` wrote.

    Any number of threads may call one block at the same time, with inputs of any shapes; parameters
    are shared.

    Parameters
    ----------
    outputs : a symbol, or a list of symbols
    inputs : the variables that a call gives values for, as symbols or names, in order
    params : parameters of another block, to be shared with it
    """

    def __init__(self, outputs: Any, inputs: Any, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=None, params=None)
        self._prefix = ""
        self._params = ParameterDict("")
        if isinstance(outputs, (list, tuple)) and len(outputs) == 1:
            outputs = outputs[0]
        made, out_format = _flat(outputs, "outputs", "output")
        if isinstance(inputs, Symbol) and len(inputs) == 1:
            inputs = [inputs]
        given, in_format = _flat(inputs, "inputs", "input")
        variables = [part for one in given for part in one]
        graph = made[0] if len(made) == 1 else symbols.Group(made)
        if any(makes_np(one) for one in made):
            graph = graph.as_np_ndarray()
        self._input_names = _input_names(variables)
        self._take_graph(
            Traced(variables, graph, in_format if isinstance(in_format, list) else [in_format], out_format)
        )
        self._make_params(params)

    def _take_graph(self, traced: Traced) -> None:
        self._own = traced
        self._known_types: tuple[int, dict[str, str]] = (-1, {})
        self._symbol = traced.out
        self._input_names = [str(one.name) for one in traced.inputs]
        self._order = traced.out.list_inputs()
        # Whether a call takes and gives arrays that are in no lists of their own.
        self._plain = traced.in_format == [0] * len(traced.inputs) and flat_result(traced.out_format)

    def _known_trace(self) -> Traced | None:
        return self._own

    def _retrace(self, traced: Traced) -> None:
        self._take_graph(traced)
        super()._retrace(traced)

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
        for name, attrs in hints.items():
            if attrs.get("__storage_type__") == "1":
                raise AssertionError(
                    f"SymbolBlock doesn't support Parameter '{name}' because its storage type is 'row_sparse'."
                )
        types = _types_of_parameters(self._symbol)
        # Arguments, then auxiliary states: the order that programs and saved files of MXNet have.
        for name in [*self._symbol.list_arguments(), *aux]:
            if name in self._input_names:
                continue
            kwargs: dict[str, Any] = {"allow_deferred_init": True}
            if name in aux:
                kwargs["grad_req"] = "null"
            dtype = hints.get(name, {}).get("__dtype__")
            if dtype is not None and dtype not in ("-1",) and (given is None or name not in given):
                kwargs["dtype"] = _mxrt.dtype_of_code(dtype)
            elif types.get(name) is not None:
                kwargs["dtype"] = types[name]
            if given is not None and name in given:
                kwargs = {}
            self._params.get(name, **kwargs)
        shared = len(_common_start(list(self._params)))
        self._reg_params = {name[shared:]: parameter for name, parameter in self._params.items()}
        # Not a method: a block that is dropped gives its memory back at once.
        self._params._check = partial(wrong_shapes, self._symbol)

    def __repr__(self) -> str:
        first = f"{self._symbol!r} : {len(self._input_names)} -> {len(self._symbol)}"
        facts = "\n".join(f"  {name}: {text}" for name, text in self._facts())
        return f"{type(self).__name__}(\n{first}\n{facts}\n)"

    def _facts(self) -> list[tuple[str, str]]:
        """Inputs with what is known of their shapes, outputs, and the size of the parameters."""
        from .._graphs.layers import described_inputs
        from .._output.html import size_of

        shapes = {name: one.shape for name, one in self._params.items()}
        inputs = described_inputs(self._symbol, self._input_names, shapes)
        return [
            *((f"input {name}", text) for name, text in inputs),
            ("outputs", ", ".join(self._symbol.list_outputs())),
            ("parameters", size_of(self._params.values())),
        ]

    def _repr_html_(self) -> str:
        from .._output.html import of_block

        return of_block(self)

    @staticmethod
    def imports(
        symbol_file: str | bytes,
        input_names: str | Iterable[str],
        param_file: str | bytes | None = None,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> SymbolBlock:
        """The model of a symbol file and a parameter file, as MXNet of any age wrote them.

        Parameters
        ----------
        symbol_file : path of the ``-symbol.json``, or what it holds, as bytes
        input_names : names of the inputs of a call, in order; all others are parameters
        param_file : path of the ``.params``, or what it holds, as bytes; without one,
            ``initialize`` gives first values
        ctx : context or contexts of the parameters; each gets a copy
        allow_missing : parameters without a value in the file are left alone
        ignore_extra : values for no parameter are left out

        Raises
        ------
        MXNetDataError (a ValueError) : a file that cannot be read, or is damaged; one that is not
            there is MXNetFileNotFoundError, a kind of it
        MXNetValueError (a ValueError) : parameters that are missing, are not part of the symbol or
            have the wrong shape; the error lists all of them
        MXNetNotImplementedError : operators that mxrt does not have; the error lists all of them
        """
        return imported(SymbolBlock, symbol_file, input_names, param_file, ctx, allow_missing, ignore_extra)

    if TYPE_CHECKING:
        # Several outputs are a list, which programs use like an array: by index, in loops,
        # by number.

        @overload
        def __call__(self, *args: NDArray | np.ndarray[Any, Any], **options: Unpack[CallOptions]) -> NDArray: ...

        # Inputs by name.
        @overload
        def __call__(
            self,
            *args: NDArray | np.ndarray[Any, Any],
            priority: int = ...,
            deadline: float | None = ...,
            cancel_on_drop: bool = ...,
            **inputs: NDArray | np.ndarray[Any, Any],
        ) -> NDArray: ...

        @overload
        def __call__(self, *args: Symbol) -> Symbol: ...

        def __call__(self, *args: Any, **options: Any) -> Any: ...

    # ---- calls -----------------------------------------------------------------------------------

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """Runs the model: one array, or a list when it has several outputs. Returns before they are
        computed.

        Inputs are NDArrays or numpy arrays, in the order of the block's inputs or by their names. A
        numpy array becomes what ``mx.nd.array`` makes of it, of the element type that the
        parameters ask for, or else of float32, whatever its own type; an NDArray keeps its type.

        Options of the call are keywords. While others wait for the cores too, calls with a higher
        ``priority`` (0) are served first. A call that has not started ``deadline`` seconds from now
        does not run; reading its result raises an :class:`mxrt.base.MXNetTimeoutError`. With
        ``cancel_on_drop=True`` a call does not run if its result was dropped before it started; an
        ordinary call runs regardless.
        """
        options: CallOptions = {}
        if keywords:
            options, named = options_and_inputs(keywords)
            if named:
                args = in_order(type(self).__name__, self._input_names, args, named)
        if not self._plain:
            return self._call_nested(args, options)
        if len(args) != len(self._input_names):
            raise self._wrong_count(args)
        for value in args:
            if not isinstance(value, NDArray):
                if any(isinstance(other, Symbol) for other in args):
                    return self._larger_graph(args)
                args = self._arrays(args)
                break
        graph = self._compiled
        if graph is None or graph.flat < 0 or self._callback is not None:
            return self._call_hybrid(args, options)
        return graph.call(args, **options)

    def _types(self) -> dict[str, str]:
        """The element types of inputs, where they follow from those of the parameters."""
        number = generation()
        if self._known_types[0] != number:
            known = {name: one.dtype for name, one in self._params.items() if name in self._order}
            try:
                found, _, _ = self._symbol.infer_type_partial(**known)
            except MXNetError:  # what the graph contradicts, the call says
                found = None
            types = zip(self._symbol.list_arguments(), found or (), strict=False)
            self._known_types = number, {name: dtype_name(dtype) for name, dtype in types if dtype is not None}
        return self._known_types[1]

    def _arrays(self, args: tuple[Any, ...]) -> tuple[NDArray, ...]:
        """The arguments with NDArrays in the place of numpy arrays; refuses what is no array."""
        for name, value in zip(self._input_names, args, strict=True):
            if not isinstance(value, (NDArray, np.ndarray)):
                raise wrong_input(name, value)
        made: tuple[NDArray, ...] = arrays_of(args, self._input_names, self._params.values(), self._types())
        return made

    def _call_nested(self, args: tuple[Any, ...], options: CallOptions) -> Any:
        """A call whose arguments, or results, are in lists of their own."""
        flat, form = flatten(args, "input")
        if not any(isinstance(value, Symbol) for value in flat):
            made = arrays_of(args, self._input_names, self._params.values(), self._types())
            return self._call_hybrid(tuple(made), options)
        if not same_structure(form, self._own.in_format):
            raise AssertionError(f"Invalid input format: {form}, wanted {self._own.in_format}")
        out = self._larger_graph(tuple(flat))
        return regroup(out if isinstance(out, list) else [out], self._own.out_format)

    def _trace(self, args: tuple[Any, ...]) -> Traced:
        return self._own

    def _restore_graph(self, inputs: Any, out: Symbol, in_format: Any, out_format: Any) -> None:
        """Nothing to do: the graph is what the block was made of."""

    def _graph_for_plan(self, args: tuple[Any, ...]) -> tuple[CompiledGraph, list[NDArray]]:
        if len(args) != len(self._input_names):
            raise self._wrong_count(args)
        args = self._arrays(args)
        self._compile(args)
        return super()._graph_for_plan(args)

    def _compiled_graph(self) -> CompiledGraph:
        return self._compile(())

    def _wrong_count(self, args: tuple[Any, ...]) -> MXNetError:
        names, block = self._input_names, type(self).__name__
        takes = f"{block} takes {len(names)} input{'s' if len(names) != 1 else ''} ({listed(names)})"
        if not args:
            return MXNetTypeError(f"{takes}, but was called without input")
        for name, value in zip(names, args, strict=False):
            if not isinstance(value, (NDArray, np.ndarray, Symbol)):
                return wrong_input(name, value)
        missing = names[len(args) :]
        what = f"input {listed(missing)} is missing" if missing else f"{len(args) - len(names)} too many"
        return MXNetValueError(f"{takes}, but {len(args)} were given: {what}")

    def _larger_graph(self, args: tuple[Any, ...]) -> Any:
        """The result of the block for symbols."""
        for name, value in zip(self._input_names, args, strict=True):
            if not isinstance(value, (NDArray, np.ndarray, Symbol)):
                raise wrong_input(name, value)
        if not all(isinstance(value, Symbol) for value in args):
            raise MXNetValueError("inputs are NDArrays or Symbols, not a mixture of both")
        used = {n: v for n, v in zip(self._input_names, args, strict=True) if n in self._order}
        out = self._symbol(**used) if used else self._symbol
        return out if len(out) == 1 else list(out)

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
        """Sets flags. A SymbolBlock is always compiled, so that there is nothing to be turned on.

        ``precision="exact"`` computes convolutions without Winograd's algorithms, whose rounding
        errors are larger. ``precision="bf16"`` lets convolutions and dense layers round what they
        multiply to bf16 where that is faster, with errors of about 0.5 % of the largest answer of a
        resnet18, more in deeper networks; arrays stay float32. It needs a processor with
        AVX512-BF16; on others everything is computed in float32, and the text of :meth:`plan` says
        so, but dense and recurrent layers on fewer than 16 rows store their weights in bf16.
        ``precision="w8"`` stores the weights of dense and recurrent layers in a byte each, with a
        factor for each row; it is for calls whose time goes into reading weights, such as recurrent
        layers with a batch of 1. ``precision="auto"`` is bf16 on processors with tiles (Intel's
        AMX) and the default on others; :meth:`plan` says which. ``fallback=True`` runs operators
        for which a GPU has no kernel on the CPU, see :meth:`HybridBlock.hybridize`. MXNet's own
        keywords are accepted; an unknown one is an error, as in MXNet.
        """
        super().hybridize(
            active,
            backend,
            clear,
            static_alloc,
            static_shape,
            inline_limit,
            forward_bulk_size,
            backward_bulk_size,
            **kwargs,
        )

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the graph is fixed."""
        raise NotImplementedError("a SymbolBlock has no hybrid_forward: its graph is fixed")

    # ---- parameters ------------------------------------------------------------------------------

    def cast(self, dtype: Any) -> None:
        """Changes the element type of all parameters; those of BatchNorm stay float32 under
        float16, as in MXNet.
        """
        with publishing:
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

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """The parameters; with a regular expression only those whose names match."""
        return self._params.select(select) if select else self._params

    def load_parameters(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Reads all parameters from a file written by ``save_parameters`` or ``export``.

        Calls that run meanwhile see all old or all new values. Parameters and errors are those of
        :meth:`Block.load_parameters`.
        """
        values = {strip_kind(name): value for name, value in named_arrays(filename).items()}
        prefix = _common_start(list(self._params))
        # save_parameters leaves the common prefix out, export does not.
        if not any(name in self._params for name in values) and any(prefix + name in self._params for name in values):
            values = {prefix + name: value for name, value in values.items()}
        where = f"file: {filename}"
        self._params._load(values, where, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source, own=True)

    def reset_ctx(self, ctx: Any) -> None:
        """Moves all parameters to `ctx`, a context or a list of them; each gets a copy."""
        self.collect_params().reset_ctx(ctx)

    def summary(self, *inputs: Any) -> None:
        """Prints a line for each layer: its output for inputs like these, its parameters, and how
        many millions of multiplications it does. Nothing is computed.

        Inputs are arrays, in the order of the block's inputs. MXNetShapeError if they do not fit.
        """
        if len(inputs) != len(self._input_names):
            raise self._wrong_count(inputs)
        from ._summary import print_graph_summary

        print_graph_summary(self._symbol, dict(zip(self._input_names, inputs, strict=True)), self._params)


SymbolBlockThreadSafe = SymbolBlock


def _common_start(names: list[str]) -> str:
    """The common prefix of all names."""
    first, last = min(names, default=""), max(names, default="")
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]


def _types_of_parameters(symbol: Symbol) -> dict[str, Any]:
    """The element types that the operators of a graph need, where they follow from the graph
    alone.
    """
    try:
        arguments, _, aux = symbol.infer_type_partial()
    except MXNetError:  # what the graph contradicts, a call says
        return {}
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    return dict(zip(names, [*(arguments or ()), *(aux or ())], strict=False))


class NoSymbolError(MXNetTypeError, ValueError):
    """Something that is no symbol was given for one."""


def _flat(given: Any, argument: str, what: str) -> tuple[list[Symbol], Format]:
    """The symbols of nested lists, and the format."""
    try:
        flat, form = flatten(given, what)
        wrong = [one for one in flat if not isinstance(one, Symbol)]
    except ValueError:
        flat, form, wrong = [], 0, [given]
    if wrong or not flat:
        got = type(wrong[0]) if wrong else "an empty list"
        raise NoSymbolError(f"SymbolBlock: {argument} must be a Symbol or (nested) lists of them, got {got}")
    return flat, form


def _input_names(variables: list[Symbol]) -> list[str]:
    names = []
    for part in variables:
        if not part._is_variable:
            raise AssertionError(f"Input symbols must be variable, but {part!r} is an output of operators")
        names.append(part.name or "")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise MXNetValueError(f"SymbolBlock: the inputs {', '.join(repeated)} are named more than once")
    return names
