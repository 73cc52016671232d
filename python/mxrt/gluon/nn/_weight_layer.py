"""Layers of one operator whose weights are large: they are packed once, not at every call."""

from __future__ import annotations

from typing import Any

from ... import ndarray, symbol
from ...symbol import var
from .._compiled import CompiledGraph
from ..hybrid_block import HybridBlock
from ..parameter import Parameter

__all__ = ["WeightLayer"]


class WeightLayer(HybridBlock):
    """A layer with a weight and perhaps a bias.

    A network that is not hybridised runs operator by operator. Here the operator is compiled with
    its weights all the same, so that they are packed for its kernel once.
    """

    _takes_parameters_as_they_are = True

    weight: Parameter
    bias: Parameter | None

    def _drop_compiled(self) -> None:
        super()._drop_compiled()
        self._alone: CompiledGraph | None = None

    def _operator(self, F: Any, x: Any, weight: Any, bias: Any) -> Any:
        """The operator of the layer, without an activation."""
        raise NotImplementedError

    def _apply_operator(self, F: Any, x: Any, weight: Any, bias: Any) -> Any:
        if F is not ndarray or not isinstance(x, ndarray.NDArray) or not self._owns(x, weight, bias):
            return self._operator(F, x, weight, bias)
        graph = self._alone
        if graph is None:
            params = {p.name: p for p in (self.weight, self.bias) if p is not None}
            own = [None if p is None else p.var() for p in (self.weight, self.bias)]
            graph = CompiledGraph(self._operator(symbol, var("data"), *own), ["data"], params, {})
            self._alone = graph
        return graph.call((x,))

    def _owns(self, x: Any, weight: Any, bias: Any) -> bool:
        """Whether these are the arrays of the layer's parameters: a subclass may pass others."""
        context = x.context
        if self.weight._arrays.get(context) is not weight:
            return False
        return bias is None if self.bias is None else self.bias._arrays.get(context) is bias
