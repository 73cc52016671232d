"""Symbol: a graph of operators over variables."""

from __future__ import annotations

import json
import logging
import sys
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from .. import _mxrt, attribute
from .._operators.methods import OperatorMethods
from .._output.log import LOGGER
from .._scopes.np_mode import is_np_shape
from .._values.dtypes import dtype_name
from .._values.extents import extents
from ..base import MXNetShapeError, MXNetTypeError, NotImplementedForSymbol, no_training, warn
from ..context import Context, current_context
from ._given import Given, classes
from ._operators import SymbolOperators, apply

if TYPE_CHECKING:
    from ..executor import Executor

__all__ = ["Group", "Symbol", "Variable", "load", "load_json", "var"]


class Symbol(Given, SymbolOperators, OperatorMethods):
    """Outputs of operators over variables: what a ``-symbol.json`` file holds.

    A symbol has no values. ``bind`` or :class:`mxrt.gluon.SymbolBlock` give its variables arrays
    and run it.
    """

    __slots__ = ("__weakref__",)
    __array_ufunc__ = None
    __array_priority__: float = 1000.0

    def __repr__(self) -> str:
        name = self.name
        if name is not None:
            return f"<{type(self).__name__} {name}>"
        return f"<{type(self).__name__} group [{', '.join(str(part.name) for part in self)}]>"

    def _repr_html_(self) -> str:
        from .._output.html import of_symbol

        return of_symbol(self)

    def __iter__(self) -> Iterator[Symbol]:
        return (self._output(i) for i in range(len(self)))

    def __getitem__(self, index: int | str | slice) -> Symbol:
        """An output, by number or by name (``fc_output``); several, as a group, by a slice."""
        if isinstance(index, str):
            named: Symbol = self._output_named(index)
            return named
        if isinstance(index, slice):
            return Group([self[i] for i in range(*index.indices(len(self)))])
        if not hasattr(index, "__index__"):
            raise TypeError("Symbol only support integer index to fetch i-th output")
        place = index.__index__()
        count = len(self)
        if not -count <= place < count:
            raise IndexError(f"output {place} is out of range: the symbol has {count}")
        found: Symbol = self._output(place % count)
        return found

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol(self.__bool__, "bool")

    def __copy__(self) -> Symbol:
        copy: Symbol = self._deep_copy()
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Symbol:
        copy: Symbol = self._deep_copy()
        return copy

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores a graph that MXNet pickled: ``handle`` holds its JSON."""
        if state.get("handle") is not None:
            self._become(load_json(state["handle"]))

    def __reduce__(self) -> tuple[Any, ...]:
        return load_json, (self.tojson(remove_amp_cast=False),)

    def __call__(self, *args: Symbol, **kwargs: Any) -> Symbol:
        """A copy with other symbols in the place of variables: ``y(x=other)``."""
        name = kwargs.pop("name", None)
        if args and kwargs:
            raise TypeError("compose only accept input Symbols either as positional or keyword arguments, not both")
        arguments: list[tuple[str | None, Any]] = [(None, value) for value in args]
        arguments += kwargs.items()
        for _, value in arguments:
            if not isinstance(value, Symbol):
                raise TypeError("Compose expect `Symbol` as arguments")
        made: Symbol = self._compose(name, arguments)
        return made

    def _function(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(sys.modules["mxrt.symbol"], name)
        return found

    # ---- attributes and files --------------------------------------------------------------------

    def _set_attr(self, **attrs: str) -> None:
        """Sets attributes of the node; with MXNet's underscore, since programs call it."""
        for key, value in attrs.items():
            if not isinstance(value, str):
                raise ValueError("Set Attr only accepts string values")
            self._set_one_attr(key, value)

    def debug_str(self) -> str:
        """The graph as text, as MXNet writes it."""
        return self._described()

    def save(self, fname: str, remove_amp_cast: bool = True) -> None:
        """Writes the graph to a file, as MXNet 1.9.1 does; see :meth:`tojson`."""
        from ._files import write

        write(fname, self.tojson(remove_amp_cast))

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph as JSON, as MXNet 1.9.1 writes it.

        `remove_amp_cast` leaves out ``amp_cast`` and ``amp_multicast``, which convert between
        element types; their inputs are used instead.
        """
        text = super().tojson(is_np_shape())
        if remove_amp_cast and '"op": "amp_' in text:
            from ._files import without_casts

            return load_json(without_casts(text)).tojson(remove_amp_cast=False)
        return text

    def _as_data(self, remove_amp_cast: bool = False) -> dict[str, Any]:
        """The data that :meth:`tojson` writes: control characters of names are in its text, as in
        MXNet's.
        """
        graph: dict[str, Any] = json.loads(self.tojson(remove_amp_cast), strict=False)
        return graph

    # ---- inference -------------------------------------------------------------------------------

    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Shapes of arguments, outputs and auxiliary states, from those given by position or name.

        ``(None, None, None)`` with a warning when they do not suffice.
        """
        arguments, outputs, aux, complete = self._infer_shape(self._known_shapes(args, kwargs), False)
        if complete:
            return arguments, outputs, aux
        unknown = [
            f"{name}: {shape}"
            for name, shape in zip(self.list_arguments(), arguments, strict=True)
            if shape is None or (-1 in shape if is_np_shape() else not shape or 0 in shape)
        ]
        warn(
            f"Cannot decide shape for the following arguments ({'-1' if is_np_shape() else '0'}s in shape means "
            "unknown dimensions). Consider providing them as input:\n\t" + "\n\t".join(unknown)
        )
        return None, None, None

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Infers shapes like ``infer_shape``; an unknown extent is 0, or () for a whole shape. With
        NumPy's shapes it is -1, or None.

        Operators of MXNet conclude nothing where they know too little of their inputs, and so do
        these here.
        """
        return self._infer_shape_as_mxnet(self._known_shapes(args, kwargs))

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Element types of arguments, outputs and auxiliary states, from those given by position or
        name.
        """
        arguments, outputs, aux, complete = self._infer_type(self._known_types(args, kwargs), False)
        if complete:
            return classes(arguments), classes(outputs), classes(aux)
        unknown = [f"{n}: None" for n, t in zip(self.list_arguments(), arguments, strict=True) if t is None]
        warn(
            "Cannot decide type for the following arguments. Consider providing them as input:\n\t"
            + "\n\t".join(unknown)
        )
        return None, None, None

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Infers types like ``infer_type``; an unknown type is None."""
        arguments, outputs, aux, _ = self._infer_type(self._known_types(args, kwargs), True)
        return classes(arguments), classes(outputs), classes(aux)

    # ---- running ---------------------------------------------------------------------------------

    def bind(
        self,
        ctx: Context,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Any = None,
        shared_exec: Any = None,
    ) -> Executor:
        """An executor over the given arrays: a dictionary, or a list in the order of
        ``list_arguments()``.

        `group2ctx` gives groups of nodes, named by the attribute ``ctx_group``, contexts of their
        own. All contexts of the CPU compute together. Other devices divide the graph; nodes of no
        group run on `ctx`.
        """
        from .._graphs.binding import bind, check_grad_req

        check_grad_req(grad_req)
        made = bind(self, ctx, args, aux_states, args_grad, group2ctx)
        if args_grad is None:
            made.grad_arrays = None
        return made

    def simple_bind(
        self,
        ctx: Context,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        stype_dict: Any = None,
        group2ctx: Any = None,
        shared_arg_names: Any = None,
        shared_exec: Any = None,
        shared_buffer: Any = None,
        **kwargs: Any,
    ) -> Executor:
        """An executor over new arrays of zeros, of the shapes that follow from those given.

        Arrays of groups that `group2ctx` has a context for are on that one; see :meth:`bind`.
        With a dictionary of arrays as `shared_buffer` arguments use their memory if it is large
        enough, and others are put there. Then arguments named in `shared_arg_names`, and auxiliary
        states, are those of the executor `shared_exec`, if there is one, as in MXNet.
        """
        from .._graphs.binding import check_grad_req, shared_arrays, simple_bind

        check_grad_req(grad_req)
        if shared_buffer is not None and not isinstance(shared_buffer, dict):
            raise ValueError(f"simple_bind: shared_buffer must be a dict of NDArrays, got {type(shared_buffer)}")
        own = list(shared_arg_names or [])
        held = {} if shared_exec is None or shared_buffer is None else shared_arrays(shared_exec, own)
        made = simple_bind(
            self, ctx, type_dict or {}, kwargs, group2ctx, held, stype_dict, shared_buffer, unbuffered=own
        )
        for name, array in held.items():
            found = made.arg_dict.get(name, made.aux_dict.get(name))
            if found is not None and found is not array:
                raise MXNetShapeError(
                    f"simple_bind: '{name}' of shared_exec has shape {array.shape}, and {found.shape} is needed: "
                    "shared arrays must have the shapes that the graph needs"
                )
        return made

    def eval(self, ctx: Context | None = None, **kwargs: Any) -> list[Any]:
        """The outputs for these arrays."""
        return self.bind(current_context() if ctx is None else ctx, kwargs).forward()

    def optimize_for(
        self,
        backend: str,
        args: dict[str, Any] | None = None,
        aux: dict[str, Any] | None = None,
        ctx: Context | None = None,
        shape_dict: Any = None,
        type_dict: Any = None,
        stype_dict: Any = None,
        skip_infer: bool = False,
        **kwargs: Any,
    ) -> Symbol:
        """The graph that a backend of :mod:`mxrt.subgraph` makes of this one.

        `args` and `aux` are parameters by name: what the new graph needs is added to them, what it
        does not have is taken out. Other keywords are options of the backend. Every graph is
        optimised when it is compiled, so that no backend is needed for speed.

        Raises MXNetKeyError, which lists the backends, for an unknown name.
        """
        from ..subgraph import optimize

        if not isinstance(backend, str):
            raise AssertionError(f"optimize_for: the backend must be a string, got {type(backend)}")
        return optimize(self, backend, args, aux, ctx, **kwargs)

    def get_backend_symbol(self, backend: str) -> Symbol:
        """The graph that a backend of :mod:`mxrt.subgraph` makes of this one, without
        parameters.
        """
        return self.optimize_for(backend)

    def _gen_atomic_symbol(self) -> Symbol:
        """A symbol of the last operator alone, whose inputs are new variables."""
        graph = self._as_data()
        node = graph["nodes"][graph["heads"][0][0]]
        if node["op"] == "null" or "subgraphs" in node:
            raise MXNetTypeError(f"_gen_atomic_symbol: '{node['name']}' is no operator that stands alone")
        return apply(node["op"], node["op"].lower().lstrip("_"), [], node.get("attrs", {}))

    def gradient(self, wrt: Any) -> NoReturn:
        """Refused: there are no gradients."""
        raise no_training("gradient")

    # ---- methods of arrays that a symbol can have ------------------------------------------------

    def reshape(self, *args: Any, **kwargs: Any) -> Symbol:
        """``reshape`` of this symbol."""
        if args:
            # Files show the shape as it was given.
            kwargs["shape"] = args[0] if len(args) == 1 or not isinstance(args[0], int) else args
        made: Symbol = self._function("reshape")(self, **kwargs)
        return made

    def astype(self, dtype: Any, **kwargs: Any) -> Symbol:
        """``cast`` of this symbol."""
        made: Symbol = self._function("cast")(self, dtype=dtype, **kwargs)
        return made

    def transpose(self, *args: Any, **kwargs: Any) -> Symbol:
        """``transpose`` of this symbol."""
        if args:
            kwargs["axes"] = tuple(args[0]) if len(args) == 1 and not isinstance(args[0], int) else args
        made: Symbol = self._function("transpose")(self, **kwargs)
        return made

    def _named(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Symbol:
        made: Symbol = self._function(function)(self, *args, **kwargs)
        return made

    def expand_dims(self, axis: int, inplace: bool = False, **kwargs: Any) -> Symbol:
        """``expand_dims`` of this symbol; `inplace` is for arrays."""
        return self._named("expand_dims", (), {"axis": axis, **kwargs})

    def flatten(self, inplace: bool = False, **kwargs: Any) -> Symbol:
        """``flatten`` of this symbol; `inplace` is for arrays."""
        return self._named("flatten", (), kwargs)

    def squeeze(self, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Symbol:
        """``squeeze`` of this symbol; `inplace` is for arrays."""
        return self._named("squeeze", (), {"axis": axis, **kwargs})

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Attributes of this node. Raises DeprecationWarning for `recursive`, as in MXNet."""
        if recursive:
            raise DeprecationWarning(
                "Symbol.list_attr with recursive=True has been deprecated. Please use attr_dict instead."
            )
        return super().list_attr()

    def broadcast_to(self, *args: Any, **kwargs: Any) -> Symbol:
        """``broadcast_to`` of this symbol."""
        return self._named("broadcast_to", args, kwargs)

    def broadcast_like(self, *args: Any, **kwargs: Any) -> Symbol:
        """``broadcast_like`` of this symbol."""
        return self._named("broadcast_like", args, kwargs)

    def dot(self, *args: Any, **kwargs: Any) -> Symbol:
        """``dot`` of this symbol."""
        return self._named("dot", args, kwargs)

    # ---- methods of arrays that a symbol cannot have ---------------------------------------------

    def as_nd_ndarray(self) -> Symbol:
        """The symbol itself."""
        return self

    def as_np_ndarray(self) -> Any:
        """A symbol of the same outputs whose operators and methods are NumPy's."""
        from .numpy import _Symbol

        return _Symbol(self)

    def wait_to_read(self) -> NoReturn:
        """Refused: a symbol has no value."""
        raise NotImplementedForSymbol(self.wait_to_read)

    def asnumpy(self) -> NoReturn:
        """Refused: a symbol has no value."""
        raise NotImplementedForSymbol(self.asnumpy)

    def asscalar(self) -> NoReturn:
        """Refused: a symbol has no value."""
        raise NotImplementedForSymbol(self.asscalar)

    def copy(self) -> NoReturn:
        """Refused: a symbol has no value."""
        raise NotImplementedForSymbol(self.copy)

    def as_in_context(self, context: Any = None) -> NoReturn:
        """Refused: a symbol has no value."""
        raise NotImplementedForSymbol(self.as_in_context)

    def detach(self) -> NoReturn:
        """Refused: a symbol has no value."""
        raise NotImplementedForSymbol(self.detach)

    def backward(self) -> NoReturn:
        """Refused: a symbol has no value."""
        raise NotImplementedForSymbol(self.backward)


def var(
    name: str,
    attr: Mapping[str, str] | None = None,
    shape: Any = None,
    lr_mult: Any = None,
    wd_mult: Any = None,
    dtype: Any = None,
    init: Any = None,
    stype: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """A variable; shape and dtype are hints for inference."""
    if not isinstance(name, str):
        raise TypeError("Expect a string for variable `name`")
    attrs: dict[str, Any] = attribute.current().get(attr)
    if not all(isinstance(value, str) for value in attrs.values()):
        raise ValueError("Set Attr only accepts string values")
    if shape is not None:
        attrs["__shape__"] = extents(shape)
    if lr_mult is not None:
        attrs["__lr_mult__"] = lr_mult
    if wd_mult is not None:
        attrs["__wd_mult__"] = wd_mult
    if dtype is not None:
        attrs["__dtype__"] = _mxrt.dtype_code(dtype_name(dtype))
    if init is not None:
        attrs["__init__"] = init if isinstance(init, str) else init.dumps()
    if stype is not None:
        attrs["__storage_type__"] = {"default": 0, "row_sparse": 1, "csr": 2}[stype]
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise ValueError(
                f"Attribute name={key} is not supported. Additional attributes must start and end with double "
                "underscores, e.g, __yourattr__"
            )
        attrs[key] = value
    made: Symbol = _mxrt.variable(name, attrs)
    return made


Variable = var


def Group(symbols: Any, create_fn: Any = Symbol) -> Symbol:
    """One symbol with the outputs of several: of :class:`mxrt.sym.Symbol` or, with
    ``create_fn=mx.symbol.numpy._Symbol``, of that class.
    """
    parts = list(symbols) if isinstance(symbols, (list, tuple, Symbol)) else []
    if not parts:
        raise TypeError("Expected a list of symbols as input")
    made: Symbol = _mxrt.group(parts)
    if create_fn is not Symbol:
        made = made.as_np_ndarray()
    return made


def load(fname: str) -> Symbol:
    """The symbol of a ``-symbol.json`` file, of any age of MXNet."""
    from ._files import read

    return _loaded(*_mxrt.load_json(read(fname), str(fname)))


def load_json(json_str: str) -> Symbol:
    """The symbol that a JSON text describes."""
    if not isinstance(json_str, str):
        raise TypeError("fname required to be string")
    return _loaded(*_mxrt.load_json(json_str))


def _loaded(symbol: Symbol, notes: list[str]) -> Symbol:
    for note in notes:
        # MXNet writes these to its log too; nothing is wrong with an old file that was understood.
        LOGGER.log(logging.WARNING if "undefined behavior" in note else logging.INFO, "%s", note)
    return symbol
