"""CachedOp: a compiled graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import _mxrt
from .._scopes.mode import mode
from ..base import MXNetTypeError
from ._training import TrainingOp

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._operators.call_options import CallOptions
    from ..context import Context
    from ..symbol import Symbol
    from .ndarray import NDArray

__all__ = ["CachedOp"]


class CachedOp:
    """A graph, compiled once per signature of its inputs; any number of threads may call it at the
    same time.

    ``sym`` is the graph, as the backend named by ``MXNET_SUBGRAPH_BACKEND`` rewrites it.

    Called with arrays in the order of ``sym.list_inputs()``; returns at once, with one array or a
    list of them. ``out`` gives arrays to be overwritten. ``options`` are those of
    :meth:`mxrt.gluon.SymbolBlock.forward`.
    """

    __slots__ = ("_hook", "_op", "_training", "is_np_sym", "sym")

    def __init__(self, sym: Symbol, flags: Any = (), thread_safe: bool = True) -> None:
        if not isinstance(sym, _mxrt.SymbolBase):
            raise MXNetTypeError(f"CachedOp: the graph must be a Symbol, got {type(sym)}; mx.sym.load reads one")
        if "MXNET_SUBGRAPH_BACKEND" in os.environ:
            from ..subgraph import from_environment

            sym = from_environment(sym)
        self.sym: Symbol = sym
        # Names of MXNet that programs read.
        self.is_np_sym: bool = type(sym).__name__ == "_Symbol"
        self._hook: tuple[Callable[..., Any], bool] | None = None
        self._training: TrainingOp | None = None
        self._op = _mxrt.CachedOp(sym, dict(flags))

    @classmethod
    def _over_devices(cls, sym: Symbol, ctx: Context, groups: Mapping[str, Context]) -> CachedOp:
        """A graph of which `groups` puts nodes on other contexts than `ctx`, by their names."""
        made = cls(sym)
        placed = {name: context._device for name, context in groups.items()}
        made._op = _mxrt.CachedOp(made.sym, {}, ctx._device, placed)
        return made

    def __call__(self, *args: Any, out: Any = None, default_ctx: Any = None, **options: Unpack[CallOptions]) -> Any:
        if self._hook is not None:
            made = self._call_and_show(args, out, *self._hook)
        elif mode.training:
            made = self._as_in_training()(args, out=out, **options)
        else:
            made = self._op(*args, out=out, **options)
        if out is not None or not self.is_np_sym:
            return made
        return [one.as_np_ndarray() for one in made] if isinstance(made, list) else made.as_np_ndarray()

    def _as_in_training(self) -> TrainingOp:
        if self._training is None:
            self._training = TrainingOp(self.sym)
        return self._training

    def _register_op_hook(self, callback: Callable[..., Any] | None, monitor_all: bool = False) -> None:
        """Has a function called with what each operator makes, see
        :meth:`mxrt.gluon.Block.register_op_hook`; None ends it.
        """
        self._hook = None if callback is None else (callback, monitor_all)

    def _call_and_show(self, args: Any, out: Any, callback: Callable[..., Any], monitor_all: bool) -> Any:
        from .._graphs.training import training_form
        from .._graphs.watch import show_operators

        symbol = training_form(self.sym) if mode.training else self.sym
        made = show_operators(symbol, dict(zip(self.sym.list_inputs(), args, strict=True)), callback, monitor_all)
        if out is None:
            return made[0] if len(made) == 1 else made
        for target, array in zip(out if isinstance(out, (list, tuple)) else [out], made, strict=True):
            array.copyto(target)
        return out

    def bind(self, arrays: list[NDArray | None]) -> _mxrt.BoundOp:
        """The graph with arrays for some of its inputs, such as the parameters: a call takes the
        others, and costs the same however many are bound. ``None`` stands where a call's argument
        goes.
        """
        return self._op.bind(arrays)

    def plan(self, *args: Any, measure: bool = True) -> str:
        """The compiled form for inputs like these, as text; see
        :meth:`mxrt.gluon.SymbolBlock.plan`.
        """
        return self._op.plan(*args, measure=measure)

    def plan_report(self, *args: Any, measure: bool = True) -> dict[str, Any]:
        """The plan as data; see :meth:`mxrt.gluon.SymbolBlock.plan_report`."""
        return self._op.plan_report(*args, measure=measure)

    def plan_cache_info(self) -> dict[str, int]:
        """State of the compiled forms; see :meth:`mxrt.gluon.SymbolBlock.plan_cache_info`."""
        return self._op.plan_cache_info()

    def __repr__(self) -> str:
        return f"<CachedOp {self.sym!r}>"
