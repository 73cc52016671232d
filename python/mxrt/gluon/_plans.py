"""Reports of compiled blocks."""

from __future__ import annotations

from typing import Any

from .._output.html import Figures, PlanText
from ..ndarray import NDArray
from ._compiled import CompiledGraph

__all__ = ["PlanMethods"]


class PlanMethods:
    """Methods of hybridised blocks that show the compiled form."""

    def _graph_for_plan(self, args: tuple[Any, ...]) -> tuple[CompiledGraph, list[NDArray]]:
        """The compiled graph, and the arrays of arguments in its order."""
        raise NotImplementedError

    def _compiled_graph(self) -> CompiledGraph:
        """The compiled graph; RuntimeError if there is none yet."""
        raise NotImplementedError

    def plan(self, *args: NDArray, measure: bool = True) -> str:
        """The compiled form for inputs like these, as text.

        A line for every step: operator, name, what it makes, the kernel chosen, bytes of scratch
        memory it works on, bytes of packed weights, and the time it is estimated to take on one
        core. The network is run a few times on the inputs, and each line ends with the shortest
        time its step took on the cores that were idle; not so with ``measure=False``, which runs
        nothing.
        """
        from ..cli._fused import add_layers

        graph, arrays = self._graph_for_plan(args)
        report = graph.op.plan_report(*graph.every_input(arrays), measure=measure)
        add_layers(graph.symbol, report)
        report["model"] = graph.symbol.name or type(self).__name__
        report["precision"] = graph.precision
        report["inputs"] = {name: list(one.shape) for name, one in zip(graph.input_names, arrays, strict=False)}
        return PlanText(report)

    def plan_report(self, *args: NDArray, measure: bool = True) -> dict[str, Any]:
        """The content of :meth:`plan` as data.

        ``steps`` has a dictionary for every step: its number ``step``, ``operator``, ``node``,
        ``output``, ``kernel``, ``arena_bytes``, ``packed_bytes``, ``estimated_us`` and
        ``measured_us`` (None with ``measure=False``). The other keys are ``title``, ``parts``
        (``rows``, ``rows_of_a_part``, ``side_by_side`` if a large batch is run in parts; the steps
        are then those of one part), ``notes``, ``constants``, the totals under the names they have
        in a step, and the ``text``.
        """
        graph, arrays = self._graph_for_plan(args)
        return graph.op.plan_report(*graph.every_input(arrays), measure=measure)

    def convolutions(self, *args: NDArray) -> list[str]:
        """The distinct convolutions of the compiled form for inputs like these, a line of text
        each.

        It holds all that the choice of a kernel depends on; ``mxrt tune`` measures what they name.
        """
        graph, arrays = self._graph_for_plan(args)
        return graph.op.convolutions(*graph.every_input(arrays))

    def plan_cache_info(self) -> dict[str, int]:
        """State of the compiled forms kept, one for every combination of input shapes and dtypes.

        ``plans`` is the number of kept plans, ``built`` that of all plans built so far, and
        ``evicted`` that of dropped ones: those unused for longest, above ``max_plans`` or
        ``max_bytes``. ``plan_bytes`` and ``constant_bytes`` (folded and packed weights) are the
        sizes of the kept ones.

        Packed weights of other input sizes may take 1.5 times the parameters, in addition to those
        of the size with most. If one more size would take more, the least recently used forms are
        dropped, and built again when their size returns. The bits of a size do not depend on the
        sizes called before.
        """
        return Figures(self._compiled_graph().op.plan_cache_info())
