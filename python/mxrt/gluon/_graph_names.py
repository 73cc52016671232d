"""The graph of a block under the names that it has in MXNet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._values.overrulable import overrulable
from ..base import MXNetValueError
from ..symbol import Symbol
from ._compiled import CompiledGraph
from ._structure import Format

__all__ = ["GraphNames", "Traced"]


class Traced(NamedTuple):
    """A block as a graph."""

    inputs: list[Symbol]
    out: Symbol
    in_format: list[Format]
    out_format: Format


class GraphNames:
    """Attributes of blocks that programs written for MXNet read and set."""

    _compiled: CompiledGraph | None

    if TYPE_CHECKING:

        def _known_trace(self) -> Traced | None: ...
        def _retrace(self, traced: Traced) -> None: ...
        def _clear_cached_op(self) -> None: ...
        def _drop_compiled(self) -> None: ...
        def _own_graph(self, args: tuple[Any, ...]) -> Traced: ...
        def _compile(self, args: tuple[Any, ...]) -> CompiledGraph: ...
        def _call_compiled(self, args: tuple[Any, ...], options: Any) -> Any: ...
        def infer_shape(self, *args: Any) -> None: ...

    @property
    def _cached_graph(self) -> tuple[Any, ...]:
        traced = self._known_trace()
        return () if traced is None else (traced.inputs, traced.out)

    @_cached_graph.setter
    def _cached_graph(self, graph: tuple[Any, ...]) -> None:
        if not graph:
            self._clear_cached_op()
        elif graph != self._cached_graph:
            inputs, out = list(graph[0]), graph[1]
            known = self._known_trace()
            form = known.in_format if known is not None and len(known.inputs) == len(inputs) else [0] * len(inputs)
            self._retrace(Traced(inputs, out, form, len(out) if len(out) > 1 else 0))

    @property
    def _in_format(self) -> Any:
        traced = self._known_trace()
        return None if traced is None else traced.in_format

    @_in_format.setter
    def _in_format(self, form: Any) -> None:
        traced = self._known_trace()
        # Without a graph there is nothing yet that it describes.
        if traced is not None and form != traced.in_format:
            self._retrace(traced._replace(in_format=form if isinstance(form, list) else [form]))

    @property
    def _out_format(self) -> Any:
        traced = self._known_trace()
        return None if traced is None else traced.out_format

    @_out_format.setter
    def _out_format(self, form: Any) -> None:
        traced = self._known_trace()
        if traced is not None and form != traced.out_format:
            self._retrace(traced._replace(out_format=form))

    @property
    def _cached_op(self) -> Any:
        graph = self._compiled
        return None if graph is None else graph.op

    @_cached_op.setter
    def _cached_op(self, op: Any) -> None:
        graph = self._compiled
        if op is None:
            self._drop_compiled()
        elif graph is not None and op is not graph.op:
            graph.replace_op(op)

    @overrulable
    def _cached_op_args(self) -> list[tuple[bool, Any]]:
        """Returns a pair for each input of the graph: True and the number of the argument that
        gives it, or False and its parameter.
        """
        graph = self._compiled
        if graph is None:
            return []
        pairs = zip(graph.order, graph.arguments, strict=True)
        return [(False, graph.params[name]) if place is None else (True, place) for name, place in pairs]

    def _get_graph(self, *args: Any) -> tuple[Any, ...]:
        traced = self._own_graph(args)
        return traced.inputs, traced.out

    def _build_cache(self, *args: Any) -> None:
        self._compile(args)

    def _deferred_infer_shape(self, *args: Any) -> None:
        try:
            self.infer_shape(*args)
        except Exception as error:
            start = "Deferred initialization failed because shape cannot be inferred."
            raise MXNetValueError(f"{start} {error}") from error

    def _call_cached_op(self, *args: Any, **options: Any) -> Any:
        return self._call_compiled(args, options)
